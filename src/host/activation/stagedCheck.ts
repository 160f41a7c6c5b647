import { copyFile, chmod, mkdir, readdir, readFile, rm, symlink } from "node:fs/promises";
import { BlockList, isIP } from "node:net";
import { basename, dirname, join } from "node:path";
import { lateProblems } from "../../model/lateValues.js";
import { type DeployedFile, type Problem, problem } from "../../model/index.js";
import { loadConfig } from "../../runtime/load/loadConfig.js";
import type { Delivered } from "./delivered.js";
import { run } from "../diagnosis/system/command.js";
import { unitPathProblems } from "../diagnosis/system/unitPaths.js";
import { KEEPALIVED, missingProgram, NFT } from "../../render/hostSupport.js";
import { commandProblem, unitStatus, type UnitStatus } from "./systemctl.js";
import { isDropIn, unitOf } from "./serviceSteps.js";
import type { Store } from "./store.js";

/** The findings about a deployment before anything is touched. */
export interface StagedFindings {
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
}

/**
 * Checks a deployment as it will be on the host: config and TLS files, and with systemd the units and the files for nft
 * and keepalived.
 */
export async function checkStaged(
  store: Store,
  delivered: Delivered,
  withSystemd: boolean,
): Promise<StagedFindings> {
  const staging = store.at("staging");
  try {
    await rm(staging, { recursive: true, force: true });
    await mkdir(staging, { mode: 0o700 });
    const read = await checkConfig(store, delivered, join(staging, "root"));
    const config = {
      ...read,
      problems: [...read.problems, ...lateProblems(delivered.deployment.lateValues)],
    };
    if (!withSystemd) return withoutApplication(config);
    const units = await checkUnits(delivered, join(staging, "units"));
    const programs = [...(await checkRules(delivered)), ...(await checkKeepalived(delivered))];
    return {
      ...config,
      problems: [...config.problems, ...units.problems, ...programs],
      warnings: [...config.warnings, ...units.warnings],
    };
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

/** Roles of files that the proxy reads. */
const READ_BY_PROXY = ["config", "tls", "page"];

async function checkConfig(
  store: Store,
  { deployment, contents, config }: Delivered,
  root: string,
): Promise<StagedFindings> {
  const files = deployment.files.filter(({ role }) => READ_BY_PROXY.includes(role));
  const tree = new Map(files.map((file) => [file.path, file]));
  await layOut(tree, "/", store.root, root, contents);
  // Checked without log permissions: systemd sets these (LogsDirectory=), and this process may write anything.
  const file = join(root, deployment.config);
  const loaded = await loadConfig({ file, root, logToStderr: true, ...(config && { parsed: config }) });
  const withHostPaths = (p: Problem): Problem =>
    JSON.parse(JSON.stringify(p).replaceAll(JSON.stringify(root).slice(1, -1), ""));
  return loaded.ok
    ? { problems: [], warnings: loaded.value.warnings.map(withHostPaths) }
    : { problems: loaded.problems.map(withHostPaths), warnings: [] };
}

/** A folder contains only the deployment, not the application with its directories. */
function withoutApplication({ problems, warnings }: StagedFindings): StagedFindings {
  const isMissing = ({ code }: Problem): boolean => code === "files.bad-directory";
  return {
    problems: problems.filter((p) => !isMissing(p)),
    warnings: [...warnings, ...problems.filter(isMissing)],
  };
}

/** The host as it will be: new files in place, and links to existing files for everything else. */
async function layOut(
  tree: ReadonlyMap<string, DeployedFile>,
  directory: string,
  hostRoot: string,
  stagedRoot: string,
  contents: Delivered["contents"],
): Promise<void> {
  const below = directory === "/" ? "/" : `${directory}/`;
  const names = [...tree.keys()].filter((path) => path.startsWith(below));
  const entries = new Set(names.map((path) => path.slice(below.length).split("/")[0]!));
  const staged = join(stagedRoot, directory);
  await mkdir(staged);
  for (const name of await readdir(join(hostRoot, directory)).catch(() => [])) {
    if (!entries.has(name)) await symlink(join(hostRoot, directory, name), join(staged, name));
  }
  for (const name of entries) {
    const file = tree.get(below + name);
    if (file === undefined) await layOut(tree, below + name, hostRoot, stagedRoot, contents);
    else await copy(file, contents, join(staged, name));
  }
}

async function copy(file: DeployedFile, contents: Delivered["contents"], path: string): Promise<void> {
  await copyFile(contents.get(file.sha256)!, path);
  await chmod(path, parseInt(file.mode, 8));
}

interface UnitFindings {
  readonly problems: Problem[];
  readonly warnings: Problem[];
}

/** Makes systemd check the new units together with those of the host. */
async function checkUnits({ deployment, contents }: Delivered, staging: string): Promise<UnitFindings> {
  const units = deployment.files.filter(({ role }) => role === "unit");
  const found: UnitFindings = { problems: [], warnings: [] };
  if (units.length === 0) return found;
  found.problems.push(...(await missingOnFailure(units, contents)));
  const paths = new Set(deployment.files.map(({ path }) => path));
  for (const file of units) {
    const unit = await readFile(contents.get(file.sha256)!, "utf8");
    found.problems.push(...(await unitPathProblems(unitOf(file.path), unit, paths)));
    const path = join(staging, isDropIn(file.path) ? `${unitOf(file.path)}.d` : "", basename(file.path));
    await mkdir(dirname(path), { recursive: true });
    await copy(file, contents, path);
  }
  const names = [...new Set(units.map(({ path }) => unitOf(path)))].map(instanceOf);
  const environment = { SYSTEMD_UNIT_PATH: `${staging}:` };
  const command = ["systemd-analyze", "verify", "--man=no", ...names] as const;
  const { code, stderr } = await run([...command], 60, environment);
  if (code === 127) {
    const message = "is not installed here: the units were not verified";
    const fix = "Install the package that contains systemd-analyze.";
    return { problems: [], warnings: [{ ...commandProblem("systemd-analyze", message), fix }] };
  }
  const delivered = new Set(deployment.files.filter(({ mode }) => mode === "0755").map(({ path }) => path));
  for (const line of stderr.split("\n")) {
    const at = names.find((name) => line.startsWith(`${name}:`) || line.startsWith(`${staging}/`));
    if (at === undefined || isNotYetThere(line, delivered)) continue;
    const text = line.replaceAll(`${staging}/`, "");
    // systemd ignores directives that it does not know, so the unit may still work with an older version.
    const kind = code === 0 || text.includes(", ignoring") ? found.warnings : found.problems;
    kind.push(problem("activation.bad-unit", text.split(":")[0]!, text));
  }
  return found;
}

/** Units of `OnFailure=` that systemd would not find, so that a failure would go unnoticed. */
async function missingOnFailure(
  units: readonly DeployedFile[],
  contents: Delivered["contents"],
): Promise<Problem[]> {
  const named = units.map(async ({ path, sha256 }) => {
    const text = await readFile(contents.get(sha256)!, "utf8");
    const names = [...text.matchAll(/^OnFailure=(.*)$/gm)].flatMap(([, value]) => value!.split(/\s+/));
    return names.filter((name) => name !== "" && !name.includes("%")).map((unit) => ({ path, unit }));
  });
  const brought = new Set(units.map(({ path }) => basename(path)));
  const others = (await Promise.all(named))
    .flat()
    .filter(({ unit }) => !brought.has(unit) && !brought.has(unit.replace(/@.*(?=\.)/, "@")));
  const status = await unitStatus(others.map(({ unit }) => unit));
  return others
    .filter(({ unit }) => status.get(unit)?.known !== true)
    .map(({ path, unit: received }) =>
      problem("activation.unknown-unit", `${path}: OnFailure`, "is not a unit of this host", { received }),
    );
}

/** A template is checked through an instance of it. */
const instanceOf = (unit: string): string => unit.replace(/@\./, "@check.");

/** A program that comes with this very deployment. */
function isNotYetThere(line: string, delivered: ReadonlySet<string>): boolean {
  const missing = /Command (\S+) is not executable/.exec(line)?.[1];
  return missing !== undefined && delivered.has(missing);
}

/** Rules that nft would refuse, or that would lock out the session that deploys them. */
async function checkRules({ deployment, contents }: Delivered): Promise<Problem[]> {
  const problems: Problem[] = [];
  for (const file of deployment.files.filter(({ role }) => role === "firewall")) {
    const source = contents.get(file.sha256)!;
    if (isDropIn(file.path)) continue;
    const { code, stderr } = await run(["nft", "--check", "--file", source], 60);
    if (code === 127) problems.push(missingProgram(NFT));
    else if (code !== 0) {
      const said = stderr.trim().replaceAll(source, file.path);
      problems.push(commandProblem(`nft --check ${file.path}`, `failed with status ${code}: ${said}`));
    }
    problems.push(...lockedOut(file.path, await readFile(source, "utf8")));
  }
  return problems;
}

/** A configuration that keepalived would refuse: an interface that the host does not have, say. */
async function checkKeepalived({ deployment, contents }: Delivered): Promise<Problem[]> {
  const files = deployment.files.filter(({ role }) => role === "keepalived");
  const found = files.map(async (file) => {
    const source = contents.get(file.sha256)!;
    const { code, stderr } = await run(["keepalived", "--config-test", `--use-file=${source}`], 60);
    if (code === 0) return [];
    if (code === 127) return [missingProgram(KEEPALIVED)];
    const said = stderr.trim().replaceAll(source, file.path);
    return [commandProblem(`keepalived -t ${file.path}`, `failed with status ${code}: ${said}`)];
  });
  return (await Promise.all(found)).flat();
}

/** Rules that would not let in the session that deploys them. */
function lockedOut(path: string, rules: string): Problem[] {
  const [client, , , port] = process.env.SSH_CONNECTION?.split(" ") ?? [];
  if (client === undefined || port === undefined || admits(rules, client, port)) return [];
  const message = `does not open port ${port} to ${client}, the address of this session`;
  return [problem("activation.locked-out", path, message)];
}

/** Units that the deployment needs but does not contain. */
export function missingUnits(
  units: Readonly<Record<string, string | undefined>>,
  isKnown: (unit: string) => boolean,
): Problem[] {
  return Object.entries(units).flatMap(([field, unit]) =>
    unit === undefined || isKnown(unit)
      ? []
      : [
          problem("activation.unknown-unit", field, "is not a unit of this host", {
            received: unit,
          }),
        ],
  );
}

/** Units that run or should run, but that systemd refuses to start. */
export function maskedUnits(units: ReadonlyMap<string, UnitStatus>, brought: readonly string[]): Problem[] {
  return [...units].flatMap(([unit, { masked }]) => {
    // Our own unit file replaces the link that masks.
    if (!masked || brought.includes(unit)) return [];
    const fix = `Run \`systemctl unmask ${unit}\`, or leave the unit out of the deployment.`;
    return [problem("activation.masked-unit", unit, "is masked: systemd refuses to start it", { fix })];
  });
}

/**
 * Whether an nftables rule lets a client reach a TCP port, as far as such rules are understood here: `tcp dport` with
 * the port, `accept`, and before it no source address or one that is the client's. Other conditions of a rule (an
 * interface) are assumed to be met.
 */
export function admits(rules: string, client: string, port: string): boolean {
  const opens = new RegExp(`\\btcp dport (?:\\{[^}]*\\b${port}\\b[^}]*\\}|${port}\\b)(?= ).*\\baccept\\b`);
  return rules.split("\n").some((line) => {
    const rule = line.replace(/#.*/, "");
    const found = opens.exec(rule);
    return found !== null && isAdmitted(rule, client);
  });
}

function isAdmitted(rule: string, client: string): boolean {
  const [, family, not, set] = /\b(ip6?) saddr (!= )?(\{[^}]*\}|\S+)/.exec(rule) ?? [];
  if (set === undefined) return true;
  if ((family === "ip6" ? 6 : 4) !== isIP(client)) return false;
  const ranges = set.replace(/[{}]/g, "").split(",");
  return ranges.some((range) => contains(range.trim(), client)) === (not === undefined);
}

function contains(range: string, client: string): boolean {
  const type = isIP(client) === 6 ? "ipv6" : "ipv4";
  const list = new BlockList();
  try {
    const [first = "", last] = range.split("-");
    const [address = "", bits] = range.split("/");
    if (last !== undefined) list.addRange(first, last, type);
    else if (bits !== undefined) list.addSubnet(address, Number(bits), type);
    else list.addAddress(address, type);
  } catch {
    // A name, or a variable of the rule set: it is not known to be the client's.
    return false;
  }
  return list.check(client, type);
}
