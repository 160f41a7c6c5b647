import type { Report } from "./report.js";
import { awaitCertificates } from "./certificates.js";
import { filledTrees } from "../diagnosis/emptyTrees.js";
import { defaultRoutes } from "../diagnosis/defaultRoutes.js";
import type { CheckedResponse } from "../diagnosis/expected/liveCheck.js";
import {
  type Deployment,
  type DeploymentIdentity,
  formatProblem,
  type Problem,
  ProblemError,
  type ProxyConfig,
  problem,
} from "../../model/index.js";
import { configHash, type Delivered, observeAll, readDelivered, readLast } from "./delivered.js";
import { carryOut, formatChange, problemsOf, refuseInterrupted } from "./execution.js";
import { fileChanges, missingDirectories, pathsOf } from "./fileChanges.js";
import type { FileState } from "./fileState.js";
import { editsOf, finish, formatLeaving, leavingFor, leavingPreview, modesOf } from "./leaving.js";
import { installedConfig, seeLoaded, staleOf, staleReasons, valueIn, configAt } from "./loaded.js";
import { withLock } from "./lock.js";
import { contentsToKeep, foreignDirectories, unopenable } from "./preconditions.js";
import { type Programs, programsOf, runningPrograms } from "./programs.js";
import { recover } from "./recovery.js";
import { missingRoom } from "./room.js";
import { rollBack, tellOfRollBack } from "./rollBack.js";
import { formatStep, isUnit } from "./serviceSteps.js";
import { planOpenings } from "./openDirectories.js";
import { formatMode, mergeModes, ownTrees, planModes, unreadable, unreadableImage } from "./treeModes.js";
import { editedPaths, mergeEdits, planEdits } from "./settingsEdits.js";
import { rememberLogs, settleLogs } from "./logs.js";
import { checkStaged, maskedUnits, missingUnits } from "./stagedCheck.js";
import {
  changesServices,
  filesOf,
  type GoodState,
  type Journal,
  openStore,
  refuseOther,
  sameIdentity,
  type Store,
} from "./store.js";
import {
  deliveredUnits,
  isDomainOnly,
  isReloadable,
  journalOf,
  namedUnits,
  type Plan,
  statusOf,
  stepsTo,
  unitsInQuestion,
  wantedUnits,
} from "./transition.js";
import { awaitService, type FailedBefore, failedBefore } from "./verification.js";
import { originOf, Replay } from "../diagnosis/replay/replay.js";
import { readInto } from "../diagnosis/replay/replayFile.js";
import { replayText } from "../diagnosis/replay/replayText.js";

export interface ActivationOptions {
  /** Folder to use as the host's `/`; if it is not `/`, it only gets the files, and no service is touched. */
  readonly root: string;
  /** The folder that the delivery uploaded to; if there is none, the files are already in place. */
  readonly incoming?: string;
  /** Whether to activate the last deployment again, from the store; default false. */
  readonly again?: boolean;
  /** SHA-256 of the document; without it, whichever is there as `deployment.json`. */
  readonly document?: string;
  /** The deployment's identity; default: that of the host's deployment. */
  readonly identity?: DeploymentIdentity;
  /** Whether it takes the place of another deployment; default false. */
  readonly takeOver?: boolean;
  readonly dryRun: boolean;
  /** How long to wait for another activation. */
  readonly lockSeconds: number;
  /** Ends the activation, and rolls back its changes. */
  readonly signal: AbortSignal;
  readonly report: Report;
}

export interface Activated {
  readonly plan: Plan;
  readonly responses: readonly CheckedResponse[];
}

/** An activation that failed after it had begun, with the cause and the problems of the roll-back. */
export class ActivationFailed extends ProblemError {
  constructor(
    readonly reason: readonly Problem[],
    readonly notRestored: readonly Problem[],
  ) {
    super([...reason, ...notRestored]);
    this.name = "ActivationFailed";
  }
}

/**
 * Makes a deployment the running state of the host, or leaves the host as it was.
 *
 *     check ──> keep contents ──> journal ──> stop, write, start ──> probe ──> good state, journal closed
 *       │             │                              └───────────────┴──> roll back
 *       └─────────────┴──> nothing was touched
 *
 * Whatever ends the process, the next activation finds either no journal, and the host in its last good state, or a
 * journal, by which it first goes back to that state. Rejects with a ProblemError.
 */
export async function activate(options: ActivationOptions): Promise<Activated> {
  const store = openStore(options.root);
  const { incoming } = options;
  return withLock(store.lock, { what: "activation", incoming }, options, async () => {
    refuseOther(await store.readState(), options);
    await store.prepare();
    await recover(store, options);
    const last = await store.readState();
    // Whatever the outcome, the deployment can be removed.
    if (last === undefined && !options.dryRun) await keepCommand(store, runningPrograms());
    const delivered =
      options.again === true ? await readLast(store, last) : await readDelivered(store, options);
    const plan = await makePlan(store, delivered, last, options);
    if (options.dryRun) return { plan, responses: [] };
    if (plan.steps.length === 0 && last?.document === delivered.document) {
      const responses = await verify(store, delivered, options);
      // Contents that the store has lost since are still in place on the host.
      await keepContents(store, delivered, plan);
      const state = { ...last, leaving: plan.leaving, ...identityOf(last, options) };
      if (!sameIdentity(state, last)) await store.writeState(state);
      await tidyUp(store, delivered, state, last, options);
      return { plan, responses };
    }
    return { plan, responses: await carryOutOrRollBack(store, delivered, plan, last, options) };
  });
}

async function makePlan(
  store: Store,
  delivered: Delivered,
  last: GoodState | undefined,
  { root, report }: ActivationOptions,
): Promise<Plan> {
  const systemd = changesServices(root);
  const { deployment } = delivered;
  const now = new Map([...(await observeAll(store, pathsOf(last))), ...delivered.now]);
  const files = fileChanges(delivered, last, now);
  const settings = await planEdits(store, deployment, last && { ...last, settings: editsOf(last) });
  const { changes: modes, unreached } = systemd
    ? await planModes(deployment)
    : { changes: [], unreached: [] };
  const opened = systemd && last !== undefined ? await planOpenings(deployment, last.directories) : [];
  const inQuestion = unitsInQuestion(deployment, last?.deployment);
  const units = await statusOf([...new Set([...inQuestion, ...(last?.leaving?.daemons ?? [])])], systemd);
  const checked = await checkStaged(store, delivered, systemd);
  const brought = deliveredUnits(deployment.files).map(({ unit }) => unit);
  const isKnown = (unit: string): boolean =>
    !systemd || brought.includes(unit) || units.get(unit)?.known === true;
  const problems = [
    ...checked.problems,
    ...settings.plan.problems,
    ...missingUnits(namedUnits(deployment), isKnown),
    ...maskedUnits(units, brought),
  ];
  if (problems.length > 0) throw new ProblemError(problems);
  const config = delivered.config!;
  const installed = last && (await installedBefore(store, delivered, last.deployment, now));
  const replayed = await replayGate(store, delivered, last, installed, report);
  const wanted = await wantedUnits(delivered, last);
  const leaving = leavingFor(deployment, config, last, units, wanted);
  const loaded =
    systemd && last !== undefined ? await seeLoaded(store, last.deployment, installed) : undefined;
  const stale = loaded && staleOf(loaded, deployment);
  const { steps, preview } = stepsTo(
    {
      services: deployment.services,
      files,
      edits: settings.edits,
      modes: [...opened, ...modes],
      domainOnly: isDomainOnly(deployment, last, files),
      now: units,
      wanted,
      stale,
      reloadable: stale?.proxy !== "upgrade" && (await isUnitReloadable(store, delivered, files)),
    },
    systemd,
  );
  const inTheWay = [
    ...(await missingRoom(store, delivered, files, settings.plan)),
    ...(systemd ? unopenable(delivered, steps) : []),
    ...(systemd ? await unreadableImage(store, deployment, config, last?.deployment, installed) : []),
    ...(systemd ? await foreignDirectories(files.map(({ path }) => path)) : []),
  ];
  if (inTheWay.length > 0) throw new ProblemError(inTheWay);
  const written = files.filter(({ to }) => to.kind !== "absent").map(({ path }) => path);
  const directories = missingDirectories(store, written);
  const drift = loaded === undefined ? [] : staleReasons(loaded);
  const unserved = systemd ? await unreadable(deployment, config) : [];
  const filled = systemd ? await filledTrees(ownTrees(deployment, config)) : [];
  const warnings = [...checked.warnings, ...replayed, ...settings.unreached, ...unreached, ...unserved];
  const changes = { files, directories, settings, modes, opened, steps, ...(leaving && { leaving }) };
  const effects = [...preview, ...leavingPreview(leaving)];
  return { ...changes, filled, preview: effects, units, warnings, installed, drift };
}

/** Whether a reload applies the change of the proxy's unit. */
async function isUnitReloadable(
  store: Store,
  { deployment, contents }: Delivered,
  files: Plan["files"],
): Promise<boolean> {
  const unit = files.find(({ path }) => isUnit(path, deployment.services.proxy.service));
  if (unit?.to.kind !== "file") return false;
  return isReloadable(files, store.onHost(unit.path), contents.get(unit.to.sha256));
}

/** The config that the host has, which is the delivered one if their files are the same. */
async function installedBefore(
  store: Store,
  delivered: Delivered,
  last: Deployment,
  now: ReadonlyMap<string, FileState>,
): Promise<ProxyConfig | undefined> {
  const found = now.get(last.config);
  return found?.kind === "file" && found.sha256 === configHash(delivered.deployment)
    ? delivered.config
    : valueIn(await installedConfig(store, last));
}

async function carryOutOrRollBack(
  store: Store,
  delivered: Delivered,
  plan: Plan,
  last: GoodState | undefined,
  options: ActivationOptions,
): Promise<readonly CheckedResponse[]> {
  const { report, signal } = options;
  const before = beforePortico(delivered, last);
  await keepContents(store, delivered, plan);
  refuseInterrupted(signal);
  const failed =
    last !== undefined && plan.installed !== undefined && changesServices(store.root)
      ? await failedBefore(store, { deployment: last.deployment, config: plan.installed })
      : undefined;
  const journal = await journalOf(store, plan, delivered.deployment, last);
  await keepCommand(store, runningPrograms());
  await rememberLogs(store, delivered.config);
  await store.writeJournal(journal);
  for (const line of [...plan.drift, ...plan.preview]) report(line);
  try {
    await carryOut(store, plan, signal, report);
    const responses = await verify(store, delivered, options, failed);
    const state = { ...goodState(delivered, plan, journal, last, before), ...identityOf(last, options) };
    await store.writeState(state);
    await tidyUp(store, delivered, state, last, options);
    return responses;
  } catch (error) {
    const reason = problemsOf(error);
    for (const p of reason) report(`failed: ${formatProblem(p)}`);
    report(
      last === undefined ? "rolling back to what was there before" : "rolling back to the last good state",
    );
    const notRestored = await rollBack(store, journal, last, changesServices(options.root), report, failed);
    if (last !== undefined) {
      await keepCommand(store, programsOf(last.deployment));
      if (changesServices(options.root)) await tellOfRollBack(last.deployment, reason, report);
    }
    throw new ActivationFailed(reason, notRestored);
  }
}

/** Cleans up after success. A failure here must not make the activation fail; the next activation repeats the steps. */
async function tidyUp(
  store: Store,
  { config }: Delivered,
  state: GoodState,
  last: GoodState | undefined,
  options: ActivationOptions,
): Promise<void> {
  const { incoming, report } = options;
  try {
    await finish(store, state, report);
    await settleLogs(store, state.deployment, config);
    await store.collectGarbage(state, last, incoming);
  } catch (error) {
    report(`cleanup failed: ${(error as Error).message}`);
  }
}

/** Leaves a command on the host, which runs portico by the programs of its deployment. */
async function keepCommand(store: Store, programs: Programs): Promise<void> {
  if (changesServices(store.root)) await store.writeCommand(programs);
}

/** Puts everything that may be needed into the store. Uploads are copied too: a new delivery writes to them. */
async function keepContents(store: Store, delivered: Delivered, { files }: Plan): Promise<void> {
  for (const [sha256, path] of contentsToKeep(store, delivered, files)) await store.keep(path, sha256);
}

/** The state of each path before the first deployment: stored earlier, or observed now. */
function beforePortico(
  delivered: Delivered,
  last: GoodState | undefined,
): Record<string, FileState | "unknown"> {
  return Object.fromEntries(
    filesOf(delivered.deployment, delivered.document).map(({ path }) => {
      const now = delivered.inPlace ? "unknown" : delivered.now.get(path)!;
      return [path, last?.before[path] ?? now];
    }),
  );
}

async function verify(
  store: Store,
  { deployment, config }: Delivered,
  options: ActivationOptions,
  failed?: FailedBefore,
): Promise<readonly CheckedResponse[]> {
  if (!changesServices(options.root)) return [];
  const units = Object.values(namedUnits(deployment)).filter((unit) => unit !== undefined);
  const served = { deployment, config: config! };
  const responses = await awaitService(store, served, units, options.signal, failed);
  await awaitCertificates(served, options.signal, options.report);
  return responses;
}

function goodState(
  { deployment, document }: Delivered,
  plan: Plan,
  { id }: Journal,
  last: GoodState | undefined,
  before: GoodState["before"],
): GoodState {
  const same = last?.document === document ? last : undefined;
  const { leaving } = plan;
  return {
    version: 1,
    id,
    activatedAt: new Date().toISOString(),
    deployment,
    document,
    before,
    // In one order, however often some of them came and went.
    directories: [...new Set([...(last?.directories ?? []), ...plan.directories])].sort(),
    settings: mergeEdits(without(editsOf(last), leaving?.settings), plan.settings.edits),
    modes: mergeModes(without(modesOf(last), leaving?.modes), plan.modes),
    leaving,
    // An activation of the same deployment repairs the host: what the host has lost is not forgotten.
    defaultRoutes: [...(same?.defaultRoutes ?? []), ...defaultRoutes()],
    filled: [...new Set([...(same?.filled ?? []), ...plan.filled])],
  };
}

const without = <T>(all: readonly T[], some: readonly T[] = []): T[] =>
  all.filter((one) => !some.includes(one));

/** Whose the host is after an activation. */
function identityOf(last: GoodState | undefined, options: ActivationOptions): Pick<GoodState, "identity"> {
  const identity = options.identity ?? last?.identity;
  return identity === undefined ? {} : { identity };
}

/** A plan as lines of text; empty if there is nothing to do. */
export function formatPlan({
  files,
  settings,
  modes,
  opened,
  steps,
  leaving,
  drift,
  preview,
}: Plan): string[] {
  const lines = [
    ...steps.flatMap((step) => [
      formatStep(step),
      ...(step.do === "files"
        ? [
            ...files.map(formatChange),
            ...editedPaths(settings.edits).map((path) => `${path}: application settings`),
            ...[...opened, ...modes].map(formatMode),
          ].map((line) => `  ${line}`)
        : []),
    ]),
    ...formatLeaving(leaving),
  ];
  return lines.length === 0 ? [] : [...drift, ...preview, ...lines];
}

/**
 * Runs the requests of an access log through the config of the last good state and the one that would replace it, if the
 * deployment asks for it. Changes nothing.
 *
 * @returns why nothing could be replayed, as warnings: a missing log is not a reason to refuse
 * @throws ProblemError if more requests than allowed would be treated differently; examples are reported before
 */
async function replayGate(
  store: Store,
  { deployment, config: next }: Delivered,
  last: GoodState | undefined,
  installed: ProxyConfig | undefined,
  report: Report,
): Promise<readonly Problem[]> {
  const { replay } = deployment;
  const [before, after] = [last?.deployment, deployment].map((one) => one && configHash(one));
  // Nothing was served before, or the same will be.
  if (replay === undefined || before === undefined || before === after) return [];
  // The installed file may have been changed since.
  const old = valueIn(await configAt(store.blob(before))) ?? installed;
  if (old === undefined || next === undefined)
    return [notReplayed(deployment.config, "the config in force cannot be read")];
  const { access } = old.logs;
  const log = replay.accessLog ?? (typeof access === "object" && "path" in access ? access.path : undefined);
  if (log === undefined) return [notReplayed("logs.access", "the config in force logs to no file")];
  const origin = originOf(old, { host: replay.host });
  // If each line names its host, no choice is needed.
  const assumed = "names" in origin ? { scheme: "https" as const, host: origin.names[0]! } : origin;
  const run = new Replay({ before: old, after: next, origin: assumed, secrets: false });
  const end = { bytesMax: replay.logBytesMax, links: false };
  const counted = await readInto(run, store.onHost(log), "names" in origin, end);
  if (counted.failure !== undefined) return [notReplayed(log, counted.failure.message)];
  if (counted.hostMissing === true) {
    const fix = "Set `host` of `replay`, or write the log in JSON, which contains the hosts.";
    return [notReplayed(log, "its lines do not name hosts, but the config has several", fix)];
  }
  if (counted.requests === 0) return [notReplayed(log, "it contains no request")];
  if (run.changed <= replay.changesMax) return [];
  const shown = {
    before: "the config in force",
    after: "the new config",
    files: [counted],
    run,
    problems: [],
  };
  for (const line of replayText(shown).trimEnd().split("\n")) report(line);
  throw new ProblemError([
    problem(
      "activation.replay-changes",
      log,
      "contains requests that the new config would treat differently",
      {
        received: `${run.changed} of ${run.requests} requests`,
        allowed: `up to ${replay.changesMax} requests`,
      },
    ),
  ]);
}

const notReplayed = (log: string, why: string, fix?: string): Problem =>
  problem("activation.not-replayed", log, `was not replayed: ${why}`, fix === undefined ? {} : { fix });
