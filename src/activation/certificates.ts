import { setTimeout as sleep } from "node:timers/promises";
import { type Deployment, parseConfigText, type Problem, problem, ProblemError } from "../model/index.js";
import { readText } from "../runtime/load/files.js";
import type { ListedCertificate } from "../runtime/process/certificateList.js";
import { askMaster } from "../runtime/process/control.js";
import { refuseInterrupted } from "./execution.js";
import type { Report } from "./report.js";
import type { Store } from "./store.js";
import { controlSocketOf } from "./systemctl.js";

/**
 * Finds certificates that authorities have not issued yet. Unless the deployment requires them, the activation only
 * reports them in a row and does not wait: an authority may be slow or down, and the proxy serves anyway.
 */
export async function awaitCertificates(
  store: Store,
  deployment: Deployment,
  signal: AbortSignal,
  report: Report,
): Promise<void> {
  if (!(await usesAcme(store, deployment))) return;
  const deadline = performance.now() + CERTIFICATE_SECONDS * 1000;
  for (;;) {
    const waiting = await notIssued(deployment);
    if (waiting.length === 0) return;
    if (!deployment.requireCertificate) return waiting.forEach((one) => report(waitingText(one)));
    refuseInterrupted(signal);
    const left = deadline - performance.now();
    if (left < 0 || waiting.some((one) => isHopeless(one, left)))
      throw new ProblemError(waiting.map(lacking));
    await sleep(RETRY_MS, undefined, { signal }).catch(() => refuseInterrupted(signal));
  }
}

/** Authorities issue within seconds, but may take up to two minutes to check a challenge. */
const CERTIFICATE_SECONDS = 180;
const RETRY_MS = 500;
const ASK_MS = 5_000;

async function usesAcme(store: Store, deployment: Deployment): Promise<boolean> {
  const file = store.onHost(deployment.config);
  const read = await readText(file, file);
  const parsed = "text" in read ? parseConfigText(read.text) : undefined;
  return parsed?.ok === true && parsed.value.certificateAuthorities.length > 0;
}

async function notIssued({ services }: Deployment): Promise<readonly ListedCertificate[]> {
  const socket = await controlSocketOf(services.proxy.service).catch(() => undefined);
  if (socket === undefined) return [];
  const outcome = await askMaster(socket, { command: "certificates" }, ASK_MS);
  if (!outcome.ok) throw new ProblemError(outcome.problems);
  return (outcome.value.certificates ?? []).filter(({ source }) => source === "temporary");
}

/** Whether the next attempt comes only after this wait is over. */
const isHopeless = ({ state, nextAttempt = 0 }: ListedCertificate, leftMs: number): boolean =>
  state === "waiting" && nextAttempt > Date.now() + leftMs;

function waitingText({ names, from, lastError }: ListedCertificate): string {
  const why = lastError === undefined ? `${from} is being asked` : `${lastError.message}; ${lastError.fix}`;
  return `WAIT  certificate for ${names.join(", ")}: ${why} | until then a temporary one serves; see \`portico certificates\``;
}

function lacking({ names, from, lastError }: ListedCertificate): Problem {
  const message = `has no certificate yet: ${from} has not issued it`;
  return problem("activation.no-certificate", names.join(", "), message, {
    ...(lastError === undefined ? {} : { received: lastError.message, fix: lastError.fix }),
    allowed: "an issued certificate, as `requireCertificate` asks for it",
  });
}
