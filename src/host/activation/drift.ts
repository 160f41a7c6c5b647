import { existsSync, lstatSync, type Stats } from "node:fs";
import { dirname } from "node:path";
import type { Drift, Finding } from "../diagnosis/evidence.js";
import {
  type Deployment,
  DEPLOYMENT_FILE,
  DEPLOYMENT_STORE,
  parseDeploymentText,
  ProblemError,
} from "../../model/index.js";
import { quote } from "../../render/shell.js";
import { readTrustedSync } from "../../runtime/load/trustedFile.js";
import { differences, type FileState, observe } from "./fileState.js";
import { inKernel, type Loaded, proxyReasons, seeLoaded } from "./loaded.js";
import { runningPrograms } from "./programs.js";
import { closedToProxy, openings } from "./openDirectories.js";
import { foreignDirectories } from "./preconditions.js";
import { emptiedTrees } from "../diagnosis/emptyTrees.js";
import { lostRoutes } from "../diagnosis/defaultRoutes.js";
import { userOfProcess } from "../diagnosis/closedPaths.js";
import { run } from "../diagnosis/command.js";
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
  const findings: Finding[] = [];
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
  const deployment = last?.deployment ?? documentOnHost();
  if (deployment === undefined && findings.length === 0) return undefined;
  if (last === undefined && findings.length === 0) findings.push(lostState(store));
  if (journal !== undefined && !(await isRunning(store))) findings.push(cutOff(store, journal));
  if (last !== undefined) findings.push(...(await storeFindings(store, last)));
  if (deployment === undefined) return { drift: { store: findings, files: [], units: [] } };
  const loaded = await seeLoaded(store, deployment);
  return {
    deployment,
    drift: {
      store: findings,
      files:
        last === undefined
          ? []
          : [...(await fileFindings(store, last)), ...(await closedFindings(store, last, loaded))],
      ...ifAny("emptied", await emptiedTrees(last?.filled ?? [])),
      ...ifAny("routes", lostRoutes(last?.defaultRoutes ?? [])),
      units: await unitFindings(deployment, loaded, { store, again: again(store) }),
      ...firewallOf(store, deployment, loaded),
      ...(loaded.proxy === undefined
        ? {}
        : { running: proxyReasons(loaded.proxy).map((what) => ({ ...what, fix: again(store) })) }),
    },
  };
}

const ifAny = (name: "emptied" | "routes", findings: readonly Finding[]): Partial<Drift> =>
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

/**
 * A command line of portico on this host: with the command that activations leave there, or else with the running
 * program.
 */
function portico(store: Store, words: string): string {
  const command = store.at("command");
  return existsSync(command) ? `${command} ${words}` : byRunning(words);
}

const byRunning = (words: string): string => `${runningPrograms().map(quote).join(" ")} ${words}`;

/** The command that undoes manual changes. */
const again = (store: Store): string => portico(store, "activate --again");

function lostState(store: Store): Finding {
  const what = "does not exist: the state of the host before the deployment is no longer known";
  return {
    at: store.at("state.json"),
    what,
    fix: `${portico(store, "activate")} (creates a new record from the files on the host)`,
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
): Finding {
  const what = `the ${kind} of ${startedAt} was cut off`;
  return { at: store.at("journal.json"), what, fix: portico(store, "recover") };
}

async function storeFindings(store: Store, last: GoodState): Promise<Finding[]> {
  const findings: Finding[] = [];
  const { mode, uid } = lstatSync(store.directory);
  if ((mode & 0o077) !== 0 || uid !== 0) {
    const fix = `chown root:root ${store.directory} && chmod 700 ${store.directory}`;
    findings.push({
      at: store.directory,
      what: `can be accessed by users other than root (${octal(mode)})`,
      fix,
    });
  }
  if (!(await store.hasCommand())) {
    const what =
      "is missing or was changed: this command runs portico on the host, and removes the deployment";
    findings.push({ at: store.at("command"), what, fix: byRunning("activate --again") });
  }
  // A content that is also in place is not hashed twice.
  for (const { path, sha256 } of keptFiles(last)) {
    const blob = statIfThere(store.blob(sha256));
    const file = statIfThere(path);
    const whole = blob !== undefined && (blob.size === file?.size || (await store.has(sha256)));
    const what = `is ${blob === undefined ? "missing" : "damaged"}: ${path} could not be put back`;
    if (!whole) findings.push({ at: store.blob(sha256), what, fix: again(store) });
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
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw error;
  }
}

const octal = (mode: number): string => `mode ${(mode & 0o7777).toString(8).padStart(4, "0")}`;

async function fileFindings(store: Store, last: GoodState): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const { path, state } of goodFiles(last)) {
    const found = await observe(path);
    if (found === "unfit") {
      const fix = `Move it away, then ${again(store)}`;
      findings.push({ at: path, what: "is not a regular file, or a directory above it is a file", fix });
    } else {
      const what = differing(found, state);
      if (what !== "") findings.push({ at: path, what, fix: again(store) });
    }
  }
  for (const directory of directoriesOf(last)) {
    const found = statIfThere(directory);
    if (found === undefined || (found.isDirectory() && found.uid === 0 && (found.mode & 0o022) === 0))
      continue;
    const what = found.isDirectory()
      ? `users other than root may write to it (${octal(found.mode)}, user ${found.uid})`
      : "is not a directory";
    findings.push({ at: directory, what, fix: `chown root:root ${directory} && chmod go-w ${directory}` });
  }
  for (const { path, message, fix } of await foreignDirectories(goodFiles(last).map((file) => file.path)))
    if (!findings.some(({ at }) => path.startsWith(`${at}/`)))
      findings.push({ at: path, what: message, fix });
  return findings;
}

/** Directories that the proxy's user cannot enter. A file that it cannot read has another mode than it was given. */
async function closedFindings(store: Store, last: GoodState, { units }: Loaded): Promise<Finding[]> {
  const { deployment, directories } = last;
  const service = units?.find(({ unit }) => unit === deployment.services.proxy.service);
  const user = userOfProcess(service?.mainPid ?? 0);
  const closed = await closedToProxy(deployment, user);
  const opened = openings(closed, deployment, directories).map(({ path }) => path);
  return closed.flatMap((at) => {
    const found = statIfThere(at);
    if (found?.isDirectory() !== true) return [];
    const what = `the proxy's user cannot enter it (${octal(found.mode)}): the proxy does not start again`;
    return [{ at, what, fix: opened.includes(at) ? again(store) : `chmod o+x ${at}` }];
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
  store: Store,
  { services }: Deployment,
  { rules, units }: Loaded,
): Pick<Drift, "firewall" | "firewallUnknown"> {
  if (services.firewall === undefined || rules.size === 0) return {};
  const fix = again(store);
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
