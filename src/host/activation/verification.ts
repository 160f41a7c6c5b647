import { setTimeout as sleep } from "node:timers/promises";
import { type Deployment, type Problem, problem, ProblemError, type ProxyConfig } from "../../model/index.js";
import { expectedResponses } from "../diagnosis/expected/expectedResponses.js";
import { type CheckedResponse, checkLive } from "../diagnosis/expected/liveCheck.js";
import { seePauses, withoutPaused } from "../diagnosis/pauses.js";
import { imageFor } from "../diagnosis/expected/imageFile.js";
import { refuseInterrupted } from "./execution.js";
import { CONTROL_SOCKET } from "../../render/hostPaths.js";
import { unitStatus } from "./systemctl.js";
import type { Store } from "./store.js";

/** What was not as expected before an activation changed anything, by request and response. */
export type FailedBefore = ReadonlySet<string>;
const NOTHING_FAILED: FailedBefore = new Set();
const failureOf = ({ request, seen }: CheckedResponse): string => `${request} ${seen}`;

/** A deployment, and its config. */
export interface Served {
  readonly deployment: Deployment;
  readonly config: ProxyConfig;
}

/** Asks a host once how it serves the last deployment: what fails already is not the fault of the next one. */
export async function failedBefore(store: Store, last: Served): Promise<FailedBefore> {
  if (!last.deployment.probe.enabled) return NOTHING_FAILED;
  const rows = await responses(store, last);
  return new Set(rows.filter((row) => !row.pass).map(failureOf));
}

/**
 * Waits until a host serves as its deployment promises: its units run, and give the expected responses (service 5.1).
 * Daemons need some time after a start, so all requests are repeated until the time is up; then every deviation is a
 * problem, except those that the deployment did not cause: they are only reported.
 */
export async function awaitService(
  store: Store,
  served: Served,
  units: readonly string[],
  signal: AbortSignal,
  before = NOTHING_FAILED,
): Promise<readonly CheckedResponse[]> {
  const { deployment } = served;
  const { enabled, timeoutSeconds } = deployment.probe;
  // Not the wall clock, which a host that has just started may still set.
  const deadline = performance.now() + timeoutSeconds * 1000;
  let attempts = 0;
  for (;;) {
    const stopped = await stoppedUnits(units);
    const rows = enabled ? await responses(store, served) : [];
    // No request was made for these rows: no file was found for them, or a user hides it from the check.
    const asked = rows.filter((row) => !row.pass && row.notProbed !== true);
    const isTolerated = (row: CheckedResponse): boolean =>
      isNotYetSet(row, deployment) || before.has(failureOf(row));
    const failed = asked.filter((row) => !isTolerated(row));
    const isLast = performance.now() > deadline;
    const later = asked.some(isTolerated);
    // Neither will change while we wait; but a daemon that starts may respond in the same way.
    if (stopped.length + failed.length === 0 && (!later || isLast || attempts++ > 4))
      return rows.map((row) => (!row.pass && before.has(failureOf(row)) ? { ...row, asBefore: true } : row));
    refuseInterrupted(signal);
    if (isLast) throw new ProblemError([...stopped, ...failed.map(unexpected)]);
    await sleep(RETRY_MS, undefined, { signal }).catch(() => refuseInterrupted(signal));
  }
}

const RETRY_MS = 500;
const REQUEST_MS = 10_000;

async function stoppedUnits(units: readonly string[]): Promise<Problem[]> {
  const status = await unitStatus(units);
  return [...status].flatMap(([unit, { active }]) =>
    active
      ? []
      : [
          problem("activation.command-failed", unit, "does not run", {
            fix: `Read why in the log of the unit: journalctl -u ${unit}`,
          }),
        ],
  );
}

async function responses(store: Store, { deployment, config }: Served): Promise<CheckedResponse[]> {
  const { expect } = deployment;
  const { imagePath } = deployment.probe;
  const image = imagePath === undefined ? await imageFor(config, expect, store.root) : { imagePath };
  const all = expectedResponses(config, {
    expect,
    ...image,
  });
  // Until an authority has issued a certificate, one for other names may serve; `requireCertificate` waits for it.
  const rows = all.filter(({ certificate }) => certificate === undefined);
  // Whether clients trust the certificate does not matter here, only whether the host serves.
  const pauses = await seePauses(store.onHost(CONTROL_SOCKET), REQUEST_MS);
  const asked = withoutPaused(rows, config, pauses);
  return checkLive(asked, { timeoutMs: REQUEST_MS, insecure: true });
}

/**
 * Whether a response is wrong only because of settings that are left to the application's owner: a first deployment
 * cannot wait for settings whose values come with it. They are reported, and are not a reason to roll back.
 */
function isNotYetSet(row: CheckedResponse, { settings }: Deployment): boolean {
  return !row.pass && row.settings !== undefined && settings?.apply !== true;
}

function unexpected(row: CheckedResponse): Problem {
  const cause = row.cause === undefined ? {} : { fix: row.cause };
  return problem("activation.unexpected-response", row.request, `${row.name}: not as expected`, {
    received: row.seen,
    allowed: row.expected,
    ...cause,
  });
}
