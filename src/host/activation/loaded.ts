import { type Deployment, parseConfigText, type ProxyConfig, type Result } from "../../model/index.js";
import { lostLogDirectories } from "../diagnosis/logState.js";
import { askMaster } from "../../runtime/supervisor/control/askMaster.js";
import { readText } from "../../runtime/load/files.js";
import { loadConfig, type LoadedState, loadedStateOf } from "../../runtime/load/loadConfig.js";
import { type CommandResult, run } from "../diagnosis/system/command.js";
import { hashOf } from "./fileState.js";
import { showUnits, type ShownUnit } from "../diagnosis/system/shownUnits.js";
import { controlSocketOf } from "./systemctl.js";
import { isDropIn, type StaleState } from "./serviceSteps.js";
import type { Store } from "./store.js";
import { deliveredUnits } from "./transition.js";

/**
 * The loaded state of a host, which its files do not show: rules in the kernel, units in systemd, config, certificates
 * and runtime in the running proxy. A manual change to this state changes no file.
 */
export interface LoadedByHost {
  /** The rule sets by path. */
  readonly rules: ReadonlyMap<string, LoadedRules>;
  /** Units that are part of the deployment; undefined if systemd does not respond. */
  readonly units: readonly ShownUnit[] | undefined;
  /** The state that the proxy runs, and the state that it would load now; undefined if it could not be queried. */
  readonly proxy: { readonly running: LoadedState; readonly installed: LoadedState } | undefined;
  /** Directories of logs that are gone, or that the running proxy no longer sees. */
  readonly lostLogDirectories: readonly string[];
}

/** @param config the installed one, if it can be read */
export async function seeLoaded(
  store: Store,
  deployment: Deployment,
  config: ProxyConfig | undefined,
): Promise<LoadedByHost> {
  const rules = new Map<string, LoadedRules>();
  for (const { path, role } of deployment.files)
    if (role === "firewall" && !isDropIn(path)) rules.set(path, await loadedRules(store.onHost(path)));
  const brought = deliveredUnits(deployment.files).map(({ unit }) => unit);
  const shown = await showUnits(brought, SHOW_SECONDS);
  const units = "code" in shown ? undefined : shown;
  const service = units?.find(({ unit }) => unit === deployment.services.proxy.service);
  return {
    rules,
    units,
    proxy: config && (await seeProxy(store, deployment, config)),
    lostLogDirectories: config === undefined ? [] : lostLogDirectories(config, service?.mainPid ?? 0),
  };
}

async function seeProxy(
  store: Store,
  deployment: Deployment,
  parsed: ProxyConfig,
): Promise<LoadedByHost["proxy"]> {
  const socket = await controlSocketOf(deployment.services.proxy.service).catch(() => undefined);
  if (socket === undefined) return undefined;
  const outcome = await askMaster(socket, { command: "status" }, STATUS_MS);
  const running = outcome.ok ? outcome.value.loaded : undefined;
  const runtime = deployment.files.find(({ role }) => role === "runtime");
  const file = store.onHost(deployment.config);
  const loaded = await loadConfig({ file, parsed, logToStderr: true, expiry: "warning" });
  if (running === undefined || runtime === undefined || !loaded.ok) return undefined;
  const hash = await hashOf(store.onHost(runtime.path)).catch(() => "");
  return { running, installed: { runtime: hash, ...loadedStateOf(loaded.value) } };
}

const STATUS_MS = 5_000;
const SHOW_SECONDS = 30;

/** The installed config, or why it cannot be read. */
export function installedConfig(store: Store, { config }: Deployment): Promise<Result<ProxyConfig>> {
  return configAt(store.onHost(config));
}

/** The same in any file. */
export async function configAt(file: string): Promise<Result<ProxyConfig>> {
  const read = await readText(file, file);
  return "text" in read ? parseConfigText(read.text) : { ok: false, problems: [read.problem] };
}

export const valueIn = <T>(read: Result<T>): T | undefined => (read.ok ? read.value : undefined);

/** Descriptions, to explain why something is done. */
export function staleReasons({ rules, units, proxy, lostLogDirectories }: LoadedByHost): string[] {
  const filters = [...rules].flatMap(([path, found]) =>
    found.state === "missing" || found.state === "different"
      ? found.tables.map((table) => `${path}: the table ${table} is ${inKernel(found.state)}`)
      : [],
  );
  return [
    ...filters,
    ...(units ?? []).flatMap(({ unit, outdated }) =>
      outdated ? [`${unit}: changed since systemd read it`] : [],
    ),
    ...lostLogDirectories.map((path) => `${path}: was removed, and the proxy cannot create it again`),
    ...proxyReasons(proxy).map(({ at, what }) => `${at}: ${what}`),
  ];
}

/** The differences between the running proxy and its installed files. */
export function proxyReasons(proxy: LoadedByHost["proxy"]): { readonly at: string; readonly what: string }[] {
  if (proxy === undefined) return [];
  const { running, installed } = proxy;
  return [
    ...(running.runtime === installed.runtime ? [] : [{ at: "runtime", what: "is not the one that runs" }]),
    ...(running.config === installed.config
      ? []
      : [{ at: "config", what: "was changed since it was loaded" }]),
    ...(running.tls === installed.tls
      ? []
      : [{ at: "certificate", what: "was changed since it was loaded" }]),
  ];
}

export const inKernel = (state: "missing" | "different"): string =>
  state === "missing" ? "not loaded" : "loaded with other rules";

export function staleOf(loaded: LoadedByHost, { services }: Deployment): StaleState {
  const outdated = (loaded.units ?? []).filter((unit) => unit.outdated).map(({ unit }) => unit);
  const rules = [...loaded.rules.values()].some(({ state }) => state === "missing" || state === "different");
  const { running, installed } = loaded.proxy ?? {};
  const config = running?.config !== installed?.config || running?.tls !== installed?.tls;
  return {
    units: new Set([
      ...outdated,
      ...(rules && services.firewall !== undefined ? [services.firewall] : []),
      ...(loaded.lostLogDirectories.length > 0 ? [services.proxy.service] : []),
    ]),
    manager: outdated.length > 0,
    proxy: running?.runtime !== installed?.runtime ? "upgrade" : config ? "reload" : "nothing",
  };
}

/** Whether the kernel has the rules of a file; `unknown` if this cannot be determined, with the reason. */
type LoadedRules =
  | { readonly state: "loaded" }
  | { readonly state: "missing" | "different"; readonly tables: readonly string[] }
  | { readonly state: "unknown"; readonly why: string };

/**
 * Compares the rules that the kernel has with those of a file. The output of nft differs from its input, so the file is
 * loaded into an empty, temporary network namespace, and both are printed by the same nft. Counters are ignored.
 */
async function loadedRules(file: string, nft = "nft"): Promise<LoadedRules> {
  const script = `${nft} -f "$1" && ${nft} --stateless --numeric list ruleset`;
  const wanted = await run(["unshare", "--net", "sh", "-c", script, "nft", file], SECONDS);
  if (wanted.code !== 0) return { state: "unknown", why: said(wanted) };
  const tables = [...wanted.stdout.matchAll(/^table (.*) \{/gm)].map(([, table]) => table!);
  const found: [string, CommandResult][] = [];
  for (const table of tables) {
    const [family = "", name = ""] = table.split(" ");
    const list = ["--stateless", "--numeric", "list", "table", family, name];
    found.push([table, await run([nft, ...list], SECONDS)]);
  }
  const missing = found.filter(([, { code }]) => code !== 0).map(([table]) => table);
  if (missing.length > 0) return { state: "missing", tables: missing };
  const different = found
    .filter(([table, { stdout }]) => stdout.trim() !== tableIn(wanted.stdout, table))
    .map(([table]) => table);
  return different.length > 0 ? { state: "different", tables: different } : { state: "loaded" };
}

/** The text of a table in a printed rule set. */
function tableIn(ruleSet: string, table: string): string {
  const from = ruleSet.indexOf(`table ${table} {`);
  const end = ruleSet.indexOf("\n}", from);
  return `${ruleSet.slice(from, end)}\n}`;
}

const said = ({ stderr, code }: CommandResult): string => stderr.trim() || `status ${code}`;
const SECONDS = 20;
