import { setTimeout as sleep } from "node:timers/promises";
import { type Deployment, parseConfigText, type Problem, problem, ProblemError } from "../model/index.js";
import { readText } from "../runtime/fileAccess.js";
import { expectedResponses } from "../diagnosis/expectedResponses.js";
import { type CheckedResponse, checkLive } from "../diagnosis/liveCheck.js";
import { mediaFileOf } from "../diagnosis/mediaFile.js";
import { checkMediaPermissions } from "../diagnosis/mediaPermissions.js";
import { refuseInterrupted, type Report } from "./execution.js";
import { unitStatus } from "./serviceManager.js";
import type { Store } from "./store.js";

/**
 * Waits until a host serves as its deployment promises: its units run, and the expected responses (spec 4.3) come.
 * Daemons take their time after a start, so all is asked again until the time is up; then every deviation is a problem.
 */
export async function awaitService(
  store: Store,
  deployment: Deployment,
  units: readonly string[],
  signal: AbortSignal,
): Promise<readonly CheckedResponse[]> {
  const { enabled, timeoutSeconds } = deployment.probe;
  // Not by the clock, which a host that has just started may still set.
  const deadline = performance.now() + timeoutSeconds * 1000;
  for (;;) {
    const stopped = await stoppedUnits(units);
    const rows = enabled ? await responses(store, deployment) : [];
    const failed = rows.filter((row) => !row.pass);
    if (stopped.length + failed.length === 0) return rows;
    refuseInterrupted(signal);
    if (performance.now() > deadline) throw new ProblemError([...stopped, ...failed.map(unexpected)]);
    await sleep(RETRY_MS, undefined, { signal }).catch(() => refuseInterrupted(signal));
  }
}

/** Gives the permissions of spec 2.3 where that was asked for; what cannot be given the expected responses show. */
export async function mendMedia({ media }: Deployment, report: Report): Promise<void> {
  if (media?.mend !== true) return;
  const { violations } = await checkMediaPermissions(media);
  for (const { path, fix, mended, notMended } of violations) {
    report(
      mended
        ? `mended: ${fix}`
        : `${path}: not mended${notMended === undefined ? "" : `, ${notMended}`}; ${fix}`,
    );
  }
}

const RETRY_MS = 500;
const REQUEST_MS = 10_000;

async function stoppedUnits(units: readonly string[]): Promise<Problem[]> {
  const status = await unitStatus(units);
  return [...status].flatMap(([unit, { active }]) =>
    active ? [] : [problem("activation.command-failed", unit, "does not run")],
  );
}

async function responses(store: Store, deployment: Deployment): Promise<CheckedResponse[]> {
  const file = store.onHost(deployment.config);
  const read = await readText(file, file);
  if ("problem" in read) throw new ProblemError([read.problem]);
  const parsed = parseConfigText(read.text);
  if (!parsed.ok) throw new ProblemError(parsed.problems);
  const mediaPath = deployment.probe.mediaPath ?? (await mediaFileOf(parsed.value, store.root));
  const rows = expectedResponses(parsed.value, mediaPath === undefined ? {} : { mediaPath });
  // Whether clients trust the certificate is another question than whether it serves.
  return checkLive(rows, { timeoutMs: REQUEST_MS, insecure: true });
}

function unexpected(row: CheckedResponse): Problem {
  const cause = row.cause === undefined ? {} : { fix: row.cause };
  return problem("activation.unexpected-response", row.request, `${row.name}: not as expected`, {
    received: row.seen,
    allowed: row.expected,
    ...cause,
  });
}
