import { removeCertificates } from "./certificates.js";
import type { Report } from "./report.js";
import {
  type Deployment,
  type Problem,
  problem,
  ProblemError,
  problemTitle,
  type ProxyConfig,
  type Result,
} from "../../model/index.js";
import { FORMER_ROTATION_FILE } from "../../render/logRotation.js";
import { askMaster } from "../../runtime/supervisor/control/askMaster.js";
import { removeFile } from "./durableFiles.js";
import { attempt, perform, problemsOf } from "./execution.js";
import { putState, removeTemporary, makeParents, removeDirectories } from "./fileChanges.js";
import { observe, sameState } from "./fileState.js";
import { installedConfig, valueIn } from "./loaded.js";
import { removeLogs, settleLogs } from "./logs.js";
import { formatStep, isUnit, type ActivationStep, type WantedUnit } from "./serviceSteps.js";
import { undoModes } from "./treeModes.js";
import { editedPaths, undoEdits } from "./settingsEdits.js";
import type { GoodState, Journal, Store } from "./store.js";
import type { SettingsEditRecord } from "../applicationSettings/index.js";
import { controlSocketOf } from "./systemctl.js";
import { deliveredUnits, isReloadable, namedUnits, statusOf, stepsTo } from "./transition.js";
import { awaitService, type FailedBefore } from "./verification.js";

/**
 * Brings a host back from an activation that failed or was cut off: files, settings and services of the last good
 * state, and for all other paths their state before Portico. Does as much as possible and returns the problems.
 */
export async function rollBack(
  store: Store,
  journal: Journal,
  last: GoodState | undefined,
  withSystemd: boolean,
  report: Report,
  failed?: FailedBefore,
): Promise<readonly Problem[]> {
  const wanted = wantedAgain(journal, last);
  const now = await statusOf([...wanted.keys()], withSystemd);
  const services = last?.deployment.services ?? journal.deployment.services;
  const { files, settings: edits, modes = [] } = journal;
  const reloadable = await isReloadableBack(store, journal, services.proxy.service);
  const situation = { services, files, edits, modes, domainOnly: false, reloadable, now, wanted };
  const { steps } = stepsTo(situation, withSystemd);
  const problems: Problem[] = [];
  let filesRestored = true;
  for (const step of steps) {
    report(formatStep(step));
    if (step.do === "files") {
      const restored = await restoreFiles(store, journal, report);
      await undoModes(modes, report);
      filesRestored = restored.unwritten.length === 0;
      problems.push(...restored.unwritten, ...restored.lost);
    } else problems.push(...(await tryStep(step)));
  }
  // The journal stays open until every file is restored, since it has the states to restore.
  if (!filesRestored) return problems;
  // Remaining files of these do not leave the host between two states, so they are only reported.
  if (journal.purge === true) problems.push(...(await purge(store, report)));
  const config = last && (await installedConfig(store, last.deployment));
  const settle = () =>
    journal.kind === "deactivation"
      ? removeFile(store.onHost(FORMER_ROTATION_FILE))
      : settleLogs(store, journal.deployment, config && valueIn(config));
  await attempt(problems, settle);
  await removeDirectories(store, journal.directories);
  if (journal.kind === "deactivation") await store.forget();
  await store.closeJournal();
  if (!withSystemd || last === undefined) return problems;
  return [...problems, ...(await verify(store, last.deployment, config!, wanted, failed))];
}

/** Removes what the proxies of all deployments have left. @returns problems of what could not be removed */
export async function purge(store: Store, report: Report): Promise<readonly Problem[]> {
  return [
    ...(await removeLogs(store, await store.readLogs(), report)),
    ...(await removeCertificates(store, report)),
  ];
}

/**
 * Units as they were before; those of the last good state run in any case. Whether a unit starts with the host was
 * changed only for units of a deployment: the links of any other unit are its owner's, even if they are unusual.
 */
function wantedAgain(journal: Journal, last: GoodState | undefined): Map<string, WantedUnit> {
  const serving = last === undefined ? [] : Object.values(namedUnits(last.deployment));
  const files = [...journal.deployment.files, ...(last?.deployment.files ?? [])];
  const brought = new Set(deliveredUnits(files).map(({ unit }) => unit));
  return new Map(
    Object.entries(journal.units).map(([unit, { active, enabled }]) => [
      unit,
      { active: active || serving.includes(unit), ...(brought.has(unit) ? { enabled } : {}) },
    ]),
  );
}

/** The same as on the way there, wherever the host is between the two. */
async function isReloadableBack(store: Store, journal: Journal, service: string): Promise<boolean> {
  const unit = journal.files.find(({ path }) => isUnit(path, service));
  const came = journal.deployment.files.find(({ path }) => path === unit?.path);
  if (unit?.restore.kind !== "file" || came === undefined) return false;
  return isReloadable(journal.files, store.blob(came.sha256), store.blob(unit.restore.sha256));
}

interface Restored {
  /** Files that could not be written; another attempt may succeed. */
  readonly unwritten: Problem[];
  /** Files whose stored content is gone; no further attempt can succeed. */
  readonly lost: Problem[];
}

async function restoreFiles(store: Store, journal: Journal, report: Report): Promise<Restored> {
  const restored: Restored = { unwritten: [], lost: [] };
  for (const { path, restore: state } of journal.files) {
    if (state.kind === "file" && !(await store.has(state.sha256))) {
      const message = `stays as it is: its previous content, ${store.blob(state.sha256)}, is missing or damaged`;
      restored.lost.push(problem("activation.not-restored", path, message));
      continue;
    }
    await attempt(restored.unwritten, async () => {
      // A write that was refused has changed nothing, and a write to undo it would be refused too.
      const found = await observe(store.onHost(path));
      if (found !== "unfit" && sameState(found, state)) return removeTemporary(store, path);
      if (state.kind !== "absent") await makeParents(store, path);
      await putState(store, path, state);
      report(`  ${path}: ${state.kind === "absent" ? "removed" : "restored"}`);
    });
  }
  await undoAllEdits(store, journal.settings, report, restored.unwritten);
  return restored;
}

/** Undoes edits of the application's own files, one file after the other; those that cannot be written are problems. */
export async function undoAllEdits(
  store: Store,
  edits: readonly SettingsEditRecord[],
  report: Report,
  unwritten: Problem[],
): Promise<void> {
  for (const path of editedPaths(edits)) {
    await attempt(unwritten, async () => {
      const changed = await undoEdits(store, path, edits);
      // Items that were changed in the meantime stay, and are reported.
      for (const p of changed) report(`  ${p.path}: ${p.message}`);
      if (changed.length === 0) report(`  ${path}: Portico's changes are undone`);
    });
  }
}

/** A proxy that cannot load the old state while it runs is restarted with it. */
async function tryStep(step: Exclude<ActivationStep, { do: "files" }>): Promise<readonly Problem[]> {
  try {
    await perform(step);
    return [];
  } catch (error) {
    if (step.do === "reload" || step.do === "upgrade") return tryStep({ do: "restart", unit: step.unit });
    return problemsOf(error);
  }
}

async function verify(
  store: Store,
  deployment: Deployment,
  config: Result<ProxyConfig>,
  wanted: ReadonlyMap<string, WantedUnit>,
  failed: FailedBefore | undefined,
): Promise<readonly Problem[]> {
  const running = [...wanted].filter(([, { active }]) => active).map(([unit]) => unit);
  try {
    if (!config.ok) throw new ProblemError(config.problems);
    await awaitService(
      store,
      { deployment, config: config.value },
      running,
      new AbortController().signal,
      failed,
    );
    return [];
  } catch (error) {
    const message = "the last good state was restored, but the proxy does not serve as before";
    const fix = "Solve the problems below; the files and units are those of the last good state.";
    return [problem("activation.not-restored", "", message, { fix }), ...problemsOf(error)];
  }
}

/**
 * Has the proxy of the last good state, which serves again, notify its targets that an activation was rolled back. The
 * proxy has the targets and their secrets; this process, which is root, sends nothing itself. Never fails: the
 * activation reports its failure anyway.
 */
export async function tellOfRollBack(
  { services }: Deployment,
  [first]: readonly Problem[],
  report: Report,
): Promise<void> {
  const socket = await controlSocketOf(services.proxy.service).catch(() => undefined);
  if (socket === undefined || first === undefined) return;
  const [reason, fix] = [problemTitle(first), first.fix].map((text) => text.slice(0, TEXT_MAX));
  const request = { command: "notify", rolledBack: { reason: reason!, fix: fix! } } as const;
  const outcome = await askMaster(socket, request, RESPONSE_MS);
  const [refused] = outcome.ok ? [] : outcome.problems;
  // Most configs have no notifications.
  if (refused !== undefined && refused.code !== "control.no-notifications")
    report(`no notification was sent: ${problemTitle(refused)}`);
}

const RESPONSE_MS = 5_000;
const TEXT_MAX = 2_000;
