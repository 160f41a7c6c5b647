import { type Problem, problem, ProblemError } from "../../model/index.js";
import { problemsWithTrustedFixes } from "../diagnosis/system/trustedFixes.js";
import { askMaster } from "../../runtime/supervisor/control/askMaster.js";
import { systemReason } from "../../runtime/files/systemReason.js";
import { putState, type FileChange, makeDirectories } from "./fileChanges.js";
import { sameState } from "./fileState.js";
import {
  actOnUnit,
  controlSocketOf,
  reloadNetwork,
  reloadServiceManager,
  stopUnit,
  unitStatus,
} from "./systemctl.js";
import { formatStep, type ActivationStep } from "./serviceSteps.js";
import { makeModes } from "./treeModes.js";
import { editedPaths, makeEdits } from "./settingsEdits.js";
import type { Store } from "./store.js";
import type { Plan } from "./transition.js";
import type { Report } from "./report.js";

/** Carries out a plan, step by step; the first failure ends it. */
export async function carryOut(store: Store, plan: Plan, signal: AbortSignal, report: Report): Promise<void> {
  for (const step of plan.steps) {
    refuseInterrupted(signal);
    report(formatStep(step));
    if (step.do === "files") await writeFiles(store, plan, report);
    else await performOrRestart(step);
  }
}

/** A proxy that dies instead of reloading the new state is started with it: the new state is not the cause. */
async function performOrRestart(step: Exclude<ActivationStep, { do: "files" }>): Promise<void> {
  try {
    await perform(step);
  } catch (error) {
    if (step.do !== "reload" && step.do !== "upgrade") throw error;
    const status = (await unitStatus([step.unit])).get(step.unit);
    if (status?.active === true && !status.unsettled) throw error;
    await perform({ do: "restart", unit: step.unit });
  }
}

/** Does a step other than `files`. */
export async function perform(step: Exclude<ActivationStep, { do: "files" }>): Promise<void> {
  switch (step.do) {
    case "daemon-reload":
      return reloadServiceManager();
    case "network-reload":
      return reloadNetwork();
    case "upgrade":
      return upgradeProxy(step.unit);
    case "stop":
      return stopUnit(step.unit);
    default:
      return actOnUnit(step.do, step.unit);
  }
}

/** Hands over from the running proxy to the installed one; nothing is lost. */
async function upgradeProxy(unit: string): Promise<void> {
  const socket = await controlSocketOf(unit);
  // A runtime that cannot be queried is older than the handover.
  if (socket === undefined) return actOnUnit("restart", unit);
  const outcome = await askMaster(socket, { command: "upgrade" }, UPGRADE_MS);
  if (!outcome.ok) throw new ProblemError(problemsWithTrustedFixes(outcome.problems));
}

const UPGRADE_MS = 120_000;

async function writeFiles(store: Store, plan: Plan, report: Report): Promise<void> {
  await makeDirectories(store, plan.directories);
  await makeModes(plan.opened, report);
  for (const change of plan.files) {
    if (sameState(change.now, change.to)) continue;
    await putState(store, change.path, change.to);
    report(`  ${formatChange(change)}`);
  }
  await makeEdits(plan.settings);
  for (const path of editedPaths(plan.settings.edits)) report(`  ${path}: application settings`);
  await makeModes(plan.modes, report);
}

export function formatChange({ path, why }: FileChange): string {
  return `${path}: ${why}`;
}

export function refuseInterrupted(signal: AbortSignal): void {
  if (!signal.aborted) return;
  throw new ProblemError([problem("activation.interrupted", "", `interrupted by ${String(signal.reason)}`)]);
}

/** Continues even if an act fails; the reason is added to the problems. */
export async function attempt(problems: Problem[], act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    problems.push(...problemsOf(error));
  }
}

/** Any error, as problems: an unexpected fault must be rolled back as well. */
export function problemsOf(error: unknown): readonly Problem[] {
  if (error instanceof ProblemError) return error.problems;
  return [problem("activation.file-failed", "", systemReason(error as Error))];
}
