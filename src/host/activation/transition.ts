import { randomUUID } from "node:crypto";
import type { ModeChange } from "../diagnosis/treePermissions.js";
import { readerOnHost, READERS_OF_HOST } from "../../model/deployment.js";
import type { Deployment, FileRole, Problem, ProxyConfig } from "../../model/index.js";
import { isReloadEnough } from "../../render/proxyUnits.js";
import { readTrusted } from "../../runtime/files/trustedFile.js";
import type { Delivered } from "./delivered.js";
import type { FileChange } from "./fileChanges.js";
import { type UnitStatus, unitStatus } from "./systemctl.js";
import {
  isDropIn,
  PROXY_ROLES,
  serviceSteps,
  settingsReaders,
  type Situation,
  type ActivationStep,
  unitOf,
  type WantedUnit,
} from "./serviceSteps.js";
import type { PlannedEdits } from "./settingsEdits.js";
import { goodFiles, type GoodState, type Journal, type Leaving, type Store } from "./store.js";
import type { SettingsEditRecord } from "../applicationSettings/index.js";

/** The planned changes of a host. */
export interface Plan {
  readonly files: readonly FileChange[];
  /** Directories that have to be made for them. */
  readonly directories: readonly string[];
  readonly settings: PlannedEdits;
  /** Permissions of trees that are set. */
  readonly modes: readonly ModeChange[];
  /** Served directories that have something in them. */
  readonly filled: readonly string[];
  /** Directories that are opened for the proxy's user again; a roll-back leaves them so. */
  readonly opened: readonly ModeChange[];
  readonly steps: readonly ActivationStep[];
  /** What is undone once the deployment serves. */
  readonly leaving?: Leaving;
  /** Their effects on services, with the reasons, as text. */
  readonly preview: readonly string[];
  /** Units in question, as they are. */
  readonly units: ReadonlyMap<string, UnitStatus>;
  readonly warnings: readonly Problem[];
  /** The config that the host has before. */
  readonly installed: ProxyConfig | undefined;
  /** The differences between the loaded state and the installed files, as text. */
  readonly drift: readonly string[];
}

/** The units that a deployment names, by field; a file names the program of the host that reads it. */
export function namedUnits({ services, files }: Deployment): Record<string, string | undefined> {
  const { proxy, daemons = [], firewall, keepalived } = services;
  return {
    "services.proxy.service": proxy.service,
    "services.proxy.socket": proxy.socket,
    ...Object.fromEntries(daemons.map(({ unit }, i) => [`services.daemons[${i}].unit`, unit])),
    "services.firewall": firewall,
    "services.keepalived": keepalived,
    ...Object.fromEntries(
      Object.entries(READERS_OF_HOST).flatMap(([role, unit]) => {
        const at = files.findIndex((file) => file.role === role);
        return at === -1 ? [] : [[`files[${at}].role`, unit]];
      }),
    ),
  };
}

/** Units that deployed files belong to. */
function unitsOfFiles(files: readonly { readonly path: string; readonly role: FileRole }[]): string[] {
  return [...new Set(files.filter(({ role }) => role === "unit").map(({ path }) => unitOf(path)))];
}

/** Units whose own file is among the files, not just a drop-in. Templates do not run as units. */
export function deliveredUnits<T extends { readonly path: string; readonly role: FileRole }>(
  files: readonly T[],
): { readonly unit: string; readonly file: T }[] {
  return files
    .filter(({ path, role }) => role === "unit" && path.endsWith(`/${unitOf(path)}`))
    .map((file) => ({ unit: unitOf(file.path), file }))
    .filter(({ unit }) => !unit.includes("@."));
}

/** Every unit that a change from one deployment to another may concern. */
export function unitsInQuestion(...deployments: readonly (Deployment | undefined)[]): string[] {
  const units = deployments.flatMap((deployment) =>
    deployment === undefined
      ? []
      : [...Object.values(namedUnits(deployment)), ...unitsOfFiles(deployment.files)],
  );
  // A template does not run as a unit.
  return [...new Set(units)].filter((unit): unit is string => unit !== undefined && !unit.includes("@."));
}

/** Units as a deployment wants them: those that it names run, and those that it delivers start at boot. */
export async function wantedUnits(
  { deployment, contents }: Pick<Delivered, "deployment" | "contents">,
  last?: GoodState,
): Promise<Map<string, WantedUnit>> {
  const wanted = new Map<string, WantedUnit>();
  for (const unit of removedUnits(deployment, last)) wanted.set(unit, { active: false, enabled: false });
  for (const { unit, file } of deliveredUnits(deployment.files)) {
    const content = contents.get(file.sha256);
    const starts = content !== undefined && (await hasInstallSection(content));
    if (starts) wanted.set(unit, { active: true, enabled: true });
  }
  for (const unit of Object.values(namedUnits(deployment))) {
    if (unit !== undefined && !wanted.has(unit)) wanted.set(unit, { active: true });
  }
  return wanted;
}

/** Units whose file is removed with the last deployment, and that did not exist before. */
function removedUnits(deployment: Deployment, last: GoodState | undefined): string[] {
  const staying = new Set(deployment.files.map(({ path }) => path));
  return deliveredUnits(last?.deployment.files ?? [])
    .filter(({ file: { path } }) => !staying.has(path) && cameByDeployment(last!, path))
    .map(({ unit }) => unit);
}

/** Whether a deployment created a file: as far as is known, nothing was at its path before the first one. */
export function cameByDeployment(last: GoodState, path: string): boolean {
  const before = last.before[path];
  return before !== undefined && (before === "unknown" || before.kind === "absent");
}

async function hasInstallSection(path: string): Promise<boolean> {
  return /^\[Install\]/m.test(await textOf(path));
}

const textOf = async (path: string): Promise<string> =>
  (await readTrusted(path, { by: "operator" })).bytes.toString("utf8");

/** Whether all that changes is the host in the application's URLs (service 2.7). */
export function isDomainOnly(
  deployment: Deployment,
  last: GoodState | undefined,
  files: readonly { readonly role: FileRole }[],
): boolean {
  const [now, then] = [deployment.settings?.files, last?.deployment.settings?.files];
  const withoutHost = (wanted: unknown): string =>
    JSON.stringify(wanted).replaceAll(/(https?:\/\/)(?:\[[^\]"]*\]|[^/:"]*)/g, "$1");
  return (
    now !== undefined &&
    then !== undefined &&
    JSON.stringify(now) !== JSON.stringify(then) &&
    withoutHost(now) === withoutHost(then) &&
    files.every(({ role }) => ["config", "tls", "page", "settings", "other"].includes(role))
  );
}

/**
 * Whether a reload applies what changes in the proxy's unit.
 * @param before a file with the unit as the running proxy has it
 * @param after a file with the unit as it will be
 */
export async function isReloadable(
  changed: Situation["changed"],
  before: string | undefined,
  after: string | undefined,
): Promise<boolean> {
  // A new runtime takes the credentials over as they are.
  if (changed.some(({ role }) => role === "runtime" || role === "node")) return false;
  if (before === undefined || after === undefined) return false;
  const texts = await Promise.all([before, after].map((file) => textOf(file).catch(() => undefined)));
  const [from, to] = texts;
  return from !== undefined && to !== undefined && from !== to && isReloadEnough(from, to);
}

/** The steps of a plan, with their effects on services; without systemd, only the files. */
export function stepsTo(
  given: Omit<Situation, "changed" | "settings"> & {
    readonly files: readonly { readonly path: string; readonly role: FileRole }[];
    readonly edits: readonly SettingsEditRecord[];
    readonly modes: readonly ModeChange[];
  },
  withSystemd: boolean,
): Pick<Plan, "steps" | "preview"> {
  const { files, edits, modes } = given;
  const edit: ActivationStep = { do: "files" };
  if (!withSystemd)
    return { steps: files.length + edits.length + modes.length > 0 ? [edit] : [], preview: [] };
  const situation = { ...given, changed: files, settings: new Set(edits.map(({ file }) => file)) };
  const steps = serviceSteps(situation);
  // Permissions do not concern any service.
  const isOnlyModes = modes.length > 0 && !steps.some((step) => step.do === "files");
  return { steps: isOnlyModes ? [edit, ...steps] : steps, preview: previewOf(steps, situation) };
}

export async function statusOf(
  units: readonly string[],
  withSystemd: boolean,
): Promise<Map<string, UnitStatus>> {
  return withSystemd ? unitStatus(units) : new Map();
}

/** The journal that has to be written before a plan is carried out. */
export async function journalOf(
  store: Store,
  plan: Plan,
  deployment: Deployment,
  last: GoodState | undefined,
): Promise<Journal> {
  const good = new Map((last === undefined ? [] : goodFiles(last)).map((file) => [file.path, file.state]));
  const files = await Promise.all(
    plan.files.map(async ({ path, role, now }) => {
      const state = good.get(path);
      const usable = state?.kind === "file" && (await store.has(state.sha256));
      return { path, role, restore: usable ? state : now };
    }),
  );
  return {
    version: 1,
    kind: "activation",
    id: randomUUID(),
    startedAt: new Date().toISOString(),
    files,
    directories: plan.directories,
    settings: plan.settings.edits,
    modes: plan.modes,
    units: Object.fromEntries(
      [...plan.units].map(([unit, { active, enabled }]) => [unit, { active, enabled }]),
    ),
    deployment,
  };
}

/** The effects of a unit's steps for users. */
const NOTICED = {
  stop: (unit: string) => `will stop ${unit}`,
  restart: (unit: string) => `will restart ${unit}, which interrupts its work`,
  reload: (unit: string) => `will reload ${unit}, which interrupts nothing`,
  upgrade: (unit: string) => `will upgrade ${unit}, which interrupts nothing`,
  start: (unit: string) => `will start ${unit}`,
};

/**
 * The effects of steps on services, with reasons: a line for each unit, in the order in which they are first touched.
 */
export function previewOf(steps: readonly ActivationStep[], situation: Situation): string[] {
  const done = new Map<string, Set<ActivationStep["do"]>>();
  for (const step of steps) {
    if ("unit" in step) done.set(step.unit, (done.get(step.unit) ?? new Set()).add(step.do));
  }
  return [...done].flatMap(([unit, acts]) => {
    const noticed = noticedOf(acts);
    return noticed === undefined ? [] : [`${NOTICED[noticed](unit)}: ${whyOf(unit, situation)}`];
  });
}

function noticedOf(acts: ReadonlySet<ActivationStep["do"]>): keyof typeof NOTICED | undefined {
  if (acts.has("restart") || (acts.has("stop") && acts.has("start"))) return "restart";
  if (acts.has("upgrade")) return "upgrade";
  if (acts.has("reload") || acts.has("reload-or-restart")) return "reload";
  return acts.has("stop") ? "stop" : acts.has("start") ? "start" : undefined;
}

function whyOf(unit: string, { services, changed, settings, now, wanted, stale }: Situation): string {
  if (wanted.get(unit)?.active === false) return "it is no longer deployed";
  if (now.get(unit)?.active !== true) return "it does not run";
  const { proxy, firewall, keepalived } = services;
  const isOfProxy = unit === proxy.service || unit === proxy.socket;
  const files = changed.filter(({ path, role }) => {
    if (role === "unit" || isDropIn(path))
      return unitOf(path) === unit || (isOfProxy && unitOf(path) === proxy.socket);
    if (role === "firewall") return unit === firewall;
    if (role === "keepalived") return unit === keepalived;
    if (readerOnHost(role) !== undefined) return unit === readerOnHost(role);
    return isOfProxy && PROXY_ROLES.includes(role);
  });
  const edited = settingsReaders(services, settings).includes(unit) ? ["the application's settings"] : [];
  const why = [...files.map(({ path }) => path), ...edited];
  if (why.length > 0) return `${why.join(", ")} will change`;
  return stale === undefined
    ? "another unit needs it"
    : "it runs with another release than the installed one";
}
