import { existsSync, lstatSync, type Stats } from "node:fs";
import { dirname } from "node:path";
import type { Drift, EvidenceFinding } from "../diagnosis/evidence.js";
import {
  type Deployment,
  DEPLOYMENT_FILE,
  DEPLOYMENT_STORE,
  parseDeploymentText,
  ProblemError,
} from "../../model/index.js";
import { SEND_PROGRAMS } from "../../render/programScripts.js";
import { quote } from "../../render/shell.js";
import { readTrustedSync } from "../../runtime/files/trustedFile.js";
import { differences, type FileState, isLacking, observe, obstacleTo } from "./fileState.js";
import { inKernel, installedConfig, type LoadedByHost, proxyReasons, seeLoaded, valueIn } from "./loaded.js";
import { runningPrograms } from "./programs.js";
import { closedToProxy, openings } from "./openDirectories.js";
import { foreignDirectories } from "./preconditions.js";
import { brokenProgram } from "../diagnosis/system/brokenPrograms.js";
import { emptiedTrees } from "../diagnosis/emptyTrees.js";
import { lostRoutes } from "../diagnosis/defaultRoutes.js";
import { userOfProcess } from "../diagnosis/system/closedPaths.js";
import { run } from "../diagnosis/system/command.js";
import { isIn } from "../diagnosis/treePermissions.js";
import { contentsBefore, type GoodState, goodFiles, keptFiles, Store } from "./store.js";
import { unitFindings } from "./unitDrift.js";

/** The differences between this host and its activated deployment. Changes nothing. */
export interface SeenDrift {
  readonly drift: Drift;
  readonly deployment?: Deployment;
}

/** Undefined if nothing was deployed, or this process may not read the store. */
export async function seeDrift(): Promise<SeenDrift | undefined> {
  if (process.geteuid!() !== 0) return undefined;
  const store = new Store("/");
  const findings: EvidenceFinding[] = [];
  const read = async <T>(what: Promise<T>): Promise<T | undefined> => {
    try {
      return await what;
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error;
      findings.push(...error.problems.map(({ path, message, fix }) => ({ at: path, what: message, fix })));
      return undefined;
    }
  };
  const last = await read(store.readState());
  const journal = await read(store.readJournal());
  await read(store.readLogs());
  const deployment = last?.deployment ?? documentOnHost();
  if (deployment === undefined && findings.length === 0) return undefined;
  const lost = await lostCommand(store);
  // A command line of portico that can be run on this host now.
  const portico = lost === undefined ? store.at("command") : BY_RUNNING;
  const again = `${lostNode(store, deployment)}${portico} activate --again`;
  if (last === undefined && findings.length === 0) findings.push(await lostState(store, portico));
  if (journal !== undefined && !(await isRunning(store))) findings.push(cutOff(store, journal, portico));
  if (last !== undefined) findings.push(...(await storeFindings(store, last, again)));
  if (deployment === undefined) return { drift: { store: findings, files: [], units: [] } };
  const loaded = await seeLoaded(store, deployment, valueIn(await installedConfig(store, deployment)));
  const files =
    last === undefined
      ? []
      : [...(await fileFindings(last, again)), ...(await closedFindings(last, loaded, again))];
  const units = await unitFindings(deployment, loaded, { store, again });
  // A program that is lost is named by the rows of files and units.
  if (last !== undefined && lost !== undefined && ![...files, ...units].some((one) => isAbout(one, lost)))
    findings.push({ at: store.at("command"), what: lost.what, fix: again });
  return {
    deployment,
    drift: {
      store: findings,
      files,
      ...ifAny("emptied", await emptiedTrees(last?.filled ?? [])),
      ...ifAny("routes", lostRoutes(last?.defaultRoutes ?? [])),
      units,
      ...firewallOf(deployment, loaded, again),
      ...(loaded.proxy === undefined
        ? {}
        : { running: proxyReasons(loaded.proxy).map((what) => ({ ...what, fix: again })) }),
    },
  };
}

const ifAny = (name: "emptied" | "routes", findings: readonly EvidenceFinding[]): Partial<Drift> =>
  findings.length === 0 ? {} : { [name]: findings };

function documentOnHost(): Deployment | undefined {
  try {
    const parsed = parseDeploymentText(readTrustedSync(DEPLOYMENT_FILE).toString("utf8"));
    return parsed.ok ? parsed.value : undefined;
  } catch {
    // Other findings say that it is missing, or that it is not read.
    return undefined;
  }
}

const SEND_AGAIN = `Run ${SEND_PROGRAMS}.`;

const BY_RUNNING = runningPrograms().map(quote).join(" ");

/** How the host gets a Node that no deployment brings: an activation checks that the proxy's unit can start. */
function lostNode(store: Store, deployment: Deployment | undefined): string {
  const { files = [], services } = deployment ?? {};
  const unit = files.find(({ path }) => path.endsWith(`/${services?.proxy.service}`));
  const text = unit === undefined ? "" : blobText(store, unit.sha256);
  const [, node] = /^ExecStart=(\/\S+)/m.exec(text) ?? [];
  const broken = node && !files.some(({ path }) => path === node) ? brokenProgram(node) : undefined;
  return broken === undefined ? "" : `${broken.fix}, then `;
}

/** Empty for a blob that is lost, or that another user can change: findings of the store name both. */
function blobText(store: Store, sha256: string): string {
  try {
    return readTrustedSync(store.blob(sha256)).toString("utf8");
  } catch {
    return "";
  }
}

/** Why the command that activations leave on the host does not run portico. */
interface LostCommand {
  readonly what: string;
  /** The program that is the reason, where one is. */
  readonly program?: string;
}

/** Undefined if the command runs: only a run shows whether its programs are whole. */
async function lostCommand(store: Store): Promise<LostCommand | undefined> {
  const programs = await store.commandPrograms();
  if (programs === undefined)
    return {
      what: "is missing or was changed: this command runs portico on the host, and removes the deployment",
    };
  const { code, stderr } = await run([store.at("command"), "--version"], SHOW_SECONDS);
  if (code === 0) return undefined;
  const [why = ""] = stderr.split("\n");
  const program = programs.find((path) => why.startsWith(`${path}: `));
  return { what: `does not run portico: ${why}`, program };
}

const isAbout = ({ at, what }: EvidenceFinding, { program }: LostCommand): boolean =>
  program !== undefined && (isIn(program, at) || what.includes(program));

async function lostState(store: Store, portico: string): Promise<EvidenceFinding> {
  const file = store.at("state.json");
  const at = await obstacleTo(file);
  const [how, first] =
    at === file ? ["does not exist", ""] : ["is not a directory", `Move ${at} away, then `];
  return {
    at,
    what: `${how}: the state of the host before the deployment is no longer known`,
    fix: `${first}${portico} activate (creates a new record from the files on the host)`,
  };
}

/** Whether an activation holds the lock now. */
async function isRunning(store: Store): Promise<boolean> {
  const { code } = await run(["flock", "--nonblock", store.lock, "true"], SHOW_SECONDS);
  return code === 1;
}

function cutOff(
  store: Store,
  { kind, startedAt }: { readonly kind: "activation" | "deactivation"; readonly startedAt: string },
  portico: string,
): EvidenceFinding {
  const what = `the ${kind} of ${startedAt} was cut off`;
  return { at: store.at("journal.json"), what, fix: `${portico} recover` };
}

async function storeFindings(store: Store, last: GoodState, again: string): Promise<EvidenceFinding[]> {
  const findings: EvidenceFinding[] = [];
  const { mode, uid } = lstatSync(store.directory);
  if ((mode & 0o077) !== 0 || uid !== 0) {
    const fix = `chown root:root ${store.directory} && chmod 700 ${store.directory}`;
    findings.push({
      at: store.directory,
      what: `can be accessed by users other than root (${octal(mode)})`,
      fix,
    });
  }
  // A content that is also in place is not hashed twice.
  for (const { path, sha256 } of keptFiles(last)) {
    const blob = statIfThere(store.blob(sha256));
    const file = statIfThere(path);
    const whole = blob !== undefined && (blob.size === file?.size || (await store.has(sha256)));
    const what = `is ${blob === undefined ? "missing" : "damaged"}: ${path} could not be put back`;
    if (!whole) findings.push({ at: store.blob(sha256), what, fix: again });
  }
  for (const [path, before] of contentsBefore(last)) {
    if (existsSync(store.blob(before.sha256))) continue;
    const what = `is missing: a destroy cannot restore the previous content of ${path}`;
    const fix = `Restore the file from a backup of ${DEPLOYMENT_STORE}, or write ${path} by hand after a destroy`;
    findings.push({ at: store.blob(before.sha256), what, fix });
  }
  return findings;
}

/** Undefined also below a file, where `throwIfNoEntry: false` would throw. */
function statIfThere(path: string): Stats | undefined {
  try {
    return lstatSync(path);
  } catch (error) {
    if (isLacking(error)) return undefined;
    throw error;
  }
}

const octal = (mode: number): string => `mode ${(mode & 0o7777).toString(8).padStart(4, "0")}`;

async function fileFindings(last: GoodState, again: string): Promise<EvidenceFinding[]> {
  const findings: EvidenceFinding[] = [];
  const fit: string[] = [];
  const unfit = new Map<string, string>();
  const kept = new Set(keptFiles(last).map(({ path }) => path));
  for (const { path, state } of goodFiles(last)) {
    const found = await observe(path);
    if (found === "unfit") {
      const obstacle = await obstacleTo(path);
      unfit.set(obstacle, obstacle === path ? "is not a regular file" : "is not a directory");
    } else {
      fit.push(path);
      const what = differing(found, state);
      const isThere = found.kind === "file" && state.kind === "file" && found.sha256 === state.sha256;
      if (what !== "") findings.push({ at: path, what, fix: isThere || kept.has(path) ? again : SEND_AGAIN });
    }
  }
  for (const directory of directoriesOf(last)) {
    const found = statIfThere(directory);
    if (found?.isDirectory() === false) unfit.set(directory, "is not a directory");
    if (found?.isDirectory() !== true || (found.uid === 0 && (found.mode & 0o022) === 0)) continue;
    const what = `users other than root may write to it (${octal(found.mode)}, user ${found.uid})`;
    findings.push({ at: directory, what, fix: `chown root:root ${directory} && chmod go-w ${directory}` });
  }
  // Nothing below these can be put back before.
  findings.unshift(...[...unfit].map(([at, what]) => ({ at, what, fix: `Move ${at} away, then ${again}` })));
  for (const { path, message, fix } of await foreignDirectories(fit))
    if (!findings.some(({ at }) => path.startsWith(`${at}/`)))
      findings.push({ at: path, what: message, fix });
  return findings;
}

/** Directories that the proxy's user cannot enter. A file that it cannot read has another mode than it was given. */
async function closedFindings(
  last: GoodState,
  { units }: LoadedByHost,
  again: string,
): Promise<EvidenceFinding[]> {
  const { deployment, directories } = last;
  const service = units?.find(({ unit }) => unit === deployment.services.proxy.service);
  const user = userOfProcess(service?.mainPid ?? 0);
  const closed = await closedToProxy(deployment, user);
  const opened = openings(closed, deployment, directories).map(({ path }) => path);
  return closed.flatMap((at) => {
    const found = statIfThere(at);
    if (found?.isDirectory() !== true) return [];
    const what = `the proxy's user cannot enter it (${octal(found.mode)}): the proxy does not start again`;
    return [{ at, what, fix: opened.includes(at) ? again : `chmod o+x ${at}` }];
  });
}

function differing(found: FileState, wanted: FileState): string {
  if (found.kind === "absent") return "is missing";
  if (found.kind === "link") return `is a link to ${found.target}`;
  return differences(found, wanted)
    .map((what) => (what === "content" ? "has different content" : `has ${what}`))
    .join(", ");
}

/** Directories that the deployment made, and those that its files are in. */
function directoriesOf({ deployment, directories }: GoodState): string[] {
  const parents = deployment.files.map(({ path }) => dirname(path));
  return [...new Set([...directories, ...parents])].sort();
}

const SHOW_SECONDS = 30;

function firewallOf(
  { services }: Deployment,
  { rules, units }: LoadedByHost,
  fix: string,
): Pick<Drift, "firewall" | "firewallUnknown"> {
  if (services.firewall === undefined || rules.size === 0) return {};
  const unit = units?.find((one) => one.unit === services.firewall);
  const stopped =
    unit === undefined || unit.active === "active"
      ? []
      : [{ at: unit.unit, what: `is ${unit.active}`, fix: `systemctl start ${unit.unit}` }];
  const findings = [...rules].flatMap(([path, found]) =>
    found.state === "missing" || found.state === "different"
      ? found.tables.map((table) => ({
          at: path,
          what: `the table ${table} is ${inKernel(found.state)}`,
          fix,
        }))
      : [],
  );
  const why = [...rules.values()].flatMap((found) => (found.state === "unknown" ? [found.why] : []));
  return {
    firewall: [...stopped, ...findings],
    ...(why.length === 0
      ? {}
      : { firewallUnknown: `The loaded rules cannot be compared: ${why.join("; ")}` }),
  };
}
