import type { CheckedResponse } from "../diagnosis/liveCheck.js";
import { formatProblem, type Problem, problem, ProblemError } from "../model/index.js";
import { type Delivered, observeAll, readDelivered } from "./delivered.js";
import { carryOut, formatChange, problemsOf, refuseInterrupted, type Report } from "./execution.js";
import { fileChanges, missingDirectories, pathsOf, removeDirectories } from "./fileChanges.js";
import type { FileState } from "./fileState.js";
import { withLock } from "./lock.js";
import { rollBack } from "./rollBack.js";
import { systemdIsHere } from "./serviceManager.js";
import { formatStep } from "./serviceSteps.js";
import { planEdits } from "./settingsEdits.js";
import { checkStaged, missingUnits } from "./stagedCheck.js";
import { filesOf, type GoodState, type Journal, Store } from "./store.js";
import {
  broughtUnits,
  isDomainOnly,
  journalOf,
  namedUnits,
  type Plan,
  statusOf,
  stepsTo,
  unitsInQuestion,
  wantedUnits,
} from "./transition.js";
import { awaitService, mendMedia } from "./verification.js";

export interface ActivationOptions {
  /** Folder that stands for the host's `/`; any other than `/` gets its files, and no service is touched. */
  readonly root: string;
  /** Where the delivery uploaded to; without one the files are in their places already. */
  readonly incoming?: string;
  readonly dryRun: boolean;
  /** How long to wait for another activation. */
  readonly lockSeconds: number;
  /** Ends the activation, and rolls back what it did. */
  readonly signal: AbortSignal;
  readonly report: Report;
}

export interface Activated {
  readonly plan: Plan;
  readonly responses: readonly CheckedResponse[];
}

/** An activation that failed after it had begun: why, and what the roll-back could not do. */
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
  const store = await openStore(options);
  return withLock(store.at("lock"), options.lockSeconds, async () => {
    // Whoever held the lock may have taken the store away.
    await store.prepare();
    await recover(store, options);
    const last = await store.readState();
    const delivered = await readDelivered(store, options.incoming);
    const plan = await makePlan(store, delivered, last, withSystemd(options));
    if (options.dryRun) return { plan, responses: [] };
    if (plan.steps.length === 0 && last?.document === delivered.document) {
      const responses = await verify(store, delivered, options);
      await tidyUp(store, last, options);
      return { plan, responses };
    }
    return { plan, responses: await carryOutOrRollBack(store, delivered, plan, last, options) };
  });
}

export const withSystemd = ({ root }: Pick<ActivationOptions, "root">): boolean => root === "/";

/** Refuses a host that cannot be changed by this process. */
export async function openStore({ root }: Pick<ActivationOptions, "root">): Promise<Store> {
  if (withSystemd({ root })) {
    if (process.geteuid!() !== 0) {
      throw new ProblemError([problem("activation.not-root", "", "changes the host, which takes root")]);
    }
    if (!systemdIsHere()) {
      throw new ProblemError([problem("activation.no-systemd", "/run/systemd/system", "does not exist")]);
    }
  }
  const store = new Store(root);
  await store.prepare();
  return store;
}

/**
 * Brings a host out of the middle, where something was cut off: back to the last good state from an activation, to the
 * end of a deactivation. Returns what could not be done; undefined if nothing had been cut off.
 */
export async function recover(
  store: Store,
  options: Pick<ActivationOptions, "root" | "report" | "dryRun">,
): Promise<readonly Problem[] | undefined> {
  if (!options.dryRun) await store.sweep();
  const [journal, last] = [await store.readJournal(), await store.readState()];
  if (journal === undefined) return undefined;
  const what = `the ${journal.kind} of ${journal.startedAt} was cut off`;
  if (options.dryRun) {
    options.report(`${what}: that would be mended first, and the plan may differ then`);
    return undefined;
  }
  if (journal.id === last?.id) {
    // It had succeeded; all but the end was written.
    await store.closeJournal();
    return undefined;
  }
  const removing = journal.kind === "deactivation";
  options.report(`${what}: ${removing ? "carrying on" : "rolling back"}`);
  const good = removing ? undefined : last;
  const problems = await rollBack(store, journal, good, withSystemd(options), options.report);
  if ((await store.readJournal()) !== undefined) throw new ProblemError(problems);
  for (const p of problems) options.report(`  ${p.path}: ${p.message}`);
  return problems;
}

async function makePlan(
  store: Store,
  delivered: Delivered,
  last: GoodState | undefined,
  systemd: boolean,
): Promise<Plan> {
  const { deployment } = delivered;
  const now = new Map([...(await observeAll(store, pathsOf(last))), ...delivered.now]);
  const files = fileChanges(delivered, last, now);
  const settings = await planEdits(store, deployment);
  const units = await statusOf(unitsInQuestion(deployment, last?.deployment), systemd);
  const checked = await checkStaged(store, delivered, systemd);
  const brought = broughtUnits(deployment.files).map(({ unit }) => unit);
  const isKnown = (unit: string): boolean =>
    !systemd || brought.includes(unit) || units.get(unit)?.known === true;
  const problems = [
    ...checked.problems,
    ...settings.plan.problems,
    ...missingUnits(namedUnits(deployment.services), isKnown),
  ];
  if (problems.length > 0) throw new ProblemError(problems);
  const steps = stepsTo(
    {
      services: deployment.services,
      files,
      edits: settings.edits,
      domainOnly: isDomainOnly(deployment, last, files),
      now: units,
      wanted: await wantedUnits(delivered, last),
    },
    systemd,
  );
  const written = files.filter(({ to }) => to.kind !== "absent").map(({ path }) => path);
  const directories = missingDirectories(store, written);
  return { files, directories, settings, steps, units, warnings: checked.warnings };
}

async function carryOutOrRollBack(
  store: Store,
  delivered: Delivered,
  plan: Plan,
  last: GoodState | undefined,
  options: ActivationOptions,
): Promise<readonly CheckedResponse[]> {
  const { report, signal } = options;
  const before = beforePortico(delivered, plan, last);
  await keepContents(store, delivered, plan);
  refuseInterrupted(signal);
  const journal = await journalOf(store, plan, delivered.deployment, last);
  await store.writeJournal(journal);
  try {
    await carryOut(store, plan, signal, report);
    const responses = await verify(store, delivered, options);
    const state = goodState(delivered, plan, journal, last, before);
    await store.writeState(state);
    await tidyUp(store, state, options);
    return responses;
  } catch (error) {
    const reason = problemsOf(error);
    for (const p of reason) report(`failed: ${formatProblem(p)}`);
    report(
      last === undefined ? "rolling back to what was there before" : "rolling back to the last good state",
    );
    throw new ActivationFailed(reason, await rollBack(store, journal, last, withSystemd(options), report));
  }
}

/** What follows on success. None of it may turn the success into a failure; the next activation does it again. */
async function tidyUp(
  store: Store,
  state: GoodState,
  { incoming, report }: Pick<ActivationOptions, "incoming" | "report">,
): Promise<void> {
  const isNeeded = (directory: string): boolean =>
    state.deployment.files.some(({ path }) => path.startsWith(`${directory}/`));
  try {
    await store.closeJournal();
    await removeDirectories(
      store,
      state.directories.filter((directory) => !isNeeded(directory)),
    );
    await store.collectGarbage(state, incoming);
  } catch (error) {
    report(`not tidied up: ${(error as Error).message}`);
  }
}

/** Puts everything that may be needed into the store: the new contents, and those that are to be replaced. */
async function keepContents(store: Store, delivered: Delivered, plan: Plan): Promise<void> {
  for (const { path, now } of plan.files) {
    if (now.kind === "file") await store.keep(store.onHost(path), now.sha256);
  }
  for (const [sha256, { from, path }] of delivered.contents) {
    const isDocument = sha256 === delivered.document;
    if (from === "incoming" && !isDocument) await store.adopt(path, sha256);
    else if (from !== "store") await store.keep(path, sha256);
  }
}

/** What stood at each path before Portico came: known from earlier, or seen now. */
function beforePortico(
  delivered: Delivered,
  plan: Plan,
  last: GoodState | undefined,
): Record<string, FileState | "unknown"> {
  const seen = new Map(plan.files.map(({ path, now }) => [path, now]));
  return Object.fromEntries(
    filesOf(delivered.deployment, delivered.document).map(({ path }) => {
      const now = delivered.inPlace ? "unknown" : (seen.get(path) ?? delivered.now.get(path)!);
      return [path, last?.before[path] ?? now];
    }),
  );
}

async function verify(
  store: Store,
  { deployment }: Delivered,
  options: ActivationOptions,
): Promise<readonly CheckedResponse[]> {
  if (!withSystemd(options)) return [];
  await mendMedia(deployment, options.report);
  const units = Object.values(namedUnits(deployment.services)).filter((unit) => unit !== undefined);
  return awaitService(store, deployment, units, options.signal);
}

function goodState(
  { deployment, document }: Delivered,
  plan: Plan,
  { id }: Journal,
  last: GoodState | undefined,
  before: GoodState["before"],
): GoodState {
  return {
    version: 1,
    id,
    activatedAt: new Date().toISOString(),
    deployment,
    document,
    before,
    directories: [...new Set([...(last?.directories ?? []), ...plan.directories])].sort(),
    settings: [...(last?.settings ?? []), ...plan.settings.edits],
  };
}

/** A plan as lines of text; empty if there is nothing to do. */
export function formatPlan({ files, settings, steps }: Plan): string[] {
  return steps.flatMap((step) => [
    formatStep(step),
    ...(step.do === "files"
      ? [
          ...files.map(formatChange),
          ...settings.edits.map(({ path }) => `${path}: application settings`),
        ].map((line) => `  ${line}`)
      : []),
  ]);
}
