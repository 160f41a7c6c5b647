import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  CERTIFICATE_STORE,
  type Problem,
  problem,
  ProblemError,
  type ProxyConfig,
} from "../../model/index.js";
import { certificatesWithTrustedFixes, problemsWithTrustedFixes } from "../diagnosis/system/trustedFixes.js";
import { ACME_FOLDER } from "../../runtime/supervisor/served/certificateManager.js";
import { isoMinutes, type ListedCertificate } from "../../runtime/supervisor/control/certificateList.js";
import { askMaster } from "../../runtime/supervisor/control/askMaster.js";
import { removeLinkedIfEmpty, removeTree } from "./durableFiles.js";
import { attempt, refuseInterrupted } from "./execution.js";
import type { Report } from "./report.js";
import type { Store } from "./store.js";
import { controlSocketOf } from "./systemctl.js";
import type { Served } from "./verification.js";

/**
 * Finds certificates that authorities have not issued yet. Unless the deployment requires them, the activation only
 * reports them in a row and does not wait: an authority may be slow or down, and the proxy serves anyway.
 */
export async function awaitCertificates(
  { deployment, config }: Served,
  signal: AbortSignal,
  report: Report,
): Promise<void> {
  if (config.certificateAuthorities.length === 0) return;
  const started = performance.now();
  const deadline = started + CERTIFICATE_SECONDS * 1000;
  for (let isFirst = true; ; isFirst = false) {
    const socket = await controlSocketOf(deployment.services.proxy.service).catch(() => undefined);
    if (socket === undefined) return;
    const lacking = await notIssued(socket, config);
    if (lacking.length === 0) return;
    const waiting = lacking.filter(({ waitsFor }) => waitsFor === undefined);
    // A host without the address that selects the ordering host cannot get its certificate. The host may be about to
    // get the address.
    const isOthers = waiting.length === 0 && performance.now() - started > ADDRESS_SECONDS * 1000;
    if (!deployment.requireCertificate || isOthers) return lacking.forEach((one) => report(waitingText(one)));
    if (isFirst)
      report(`waiting for the certificate for ${lacking.flatMap(({ names }) => names).join(", ")}`);
    refuseInterrupted(signal);
    const left = deadline - performance.now();
    if (isFirst) {
      await Promise.race([askAgain(socket, waiting.filter(failedBefore), left), once(signal, "abort")]);
      continue;
    }
    const hopeless = waiting.filter((one) => performance.now() > deadline || isHopeless(one, left));
    if (hopeless.length > 0) throw new ProblemError(hopeless.map(notIssuedYet));
    await sleep(RETRY_MS, undefined, { signal }).catch(() => refuseInterrupted(signal));
  }
}

/** Removes stored certificates by ACME, of this deployment or an earlier one. @returns problems of the removal */
export async function removeCertificates(store: Store, report: Report): Promise<readonly Problem[]> {
  const problems: Problem[] = [];
  const directory = store.onHost(CERTIFICATE_STORE);
  const state = join(directory, ACME_FOLDER);
  await attempt(problems, async () => {
    if (await removeTree(state)) report(`  ${state}: removed`);
    await removeLinkedIfEmpty(directory);
  });
  return problems;
}

/** Authorities issue within seconds, but may take up to two minutes to check a challenge. */
const CERTIFICATE_SECONDS = 180;
/** An address that moves between hosts comes a second after the proxy is ready, and is noticed five seconds later. */
const ADDRESS_SECONDS = 10;
const RETRY_MS = 500;
const ASK_MS = 5_000;

async function notIssued(socket: string, config: ProxyConfig): Promise<readonly ListedCertificate[]> {
  const outcome = await askMaster(socket, { command: "certificates" }, ASK_MS);
  if (!outcome.ok) throw new ProblemError(problemsWithTrustedFixes(outcome.problems));
  const { certificates = [] } = outcome.value;
  return certificatesWithTrustedFixes(certificates, config).filter(({ source }) => source === "temporary");
}

/** Whether its last attempt was before this activation, that is, before this process started. */
const failedBefore = ({ state, lastError }: ListedCertificate): boolean =>
  state === "waiting" && lastError !== undefined && lastError.at < performance.timeOrigin;

/** A new activation suggests that the cause was removed, so the proxy retries at once, within an authority's limits. */
async function askAgain(socket: string, failed: readonly ListedCertificate[], ms: number): Promise<void> {
  await Promise.all(failed.map(({ names }) => askMaster(socket, { command: "renew", name: names[0]! }, ms)));
}

/** Whether the next attempt comes only after this wait is over. */
const isHopeless = ({ state, nextAttempt }: ListedCertificate, leftMs: number): boolean =>
  state === "waiting" && nextAttempt !== undefined && nextAttempt > Date.now() + leftMs;

function waitingText({ names, from, lastError, nextAttempt, waitsFor }: ListedCertificate): string {
  const certificate = `WAIT  certificate for ${names.join(", ")}`;
  if (waitsFor !== undefined)
    return `${certificate}: waiting for the address ${waitsFor} | a temporary certificate is served until the other host shares its certificate`;
  const meanwhile = "until then, a temporary certificate is served";
  if (lastError === undefined)
    return `${certificate}: requested from ${from} | ${meanwhile}; see \`portico certificates\``;
  const { message, fix } = lastError;
  const renew = "`portico certificates renew` starts";
  const again =
    nextAttempt === undefined
      ? `${renew} the next attempt`
      : `the next attempt is at ${isoMinutes(nextAttempt)}; ${renew} it now`;
  return `${certificate}: ${from} has not issued it: ${message}. ${fix} | ${meanwhile}; ${again}`;
}

function notIssuedYet({ names, from, lastError }: ListedCertificate): Problem {
  const why =
    lastError === undefined ? `the request is still open after ${CERTIFICATE_SECONDS} s` : lastError.message;
  const message = `has no certificate yet: ${from} has not issued it: ${why}`;
  return problem("activation.no-certificate", names.join(", "), message, {
    allowed: "an issued certificate, which `requireCertificate` demands",
    fix: lastError && `${lastError.fix} Then apply again.`,
  });
}
