import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../model/text/duration.js";
import { createHash } from "node:crypto";
import type { AcmeFailure } from "./acmeHost.js";

/** When to ask an authority: pure functions of the stored history, so that a restart gets the same times. */

/** The history of a certificate: failures, and dates of its renewal. */
export interface History {
  /** Attempts in a row that failed. */
  readonly failures: number;
  readonly lastFailure?: AcmeFailure;
  /** The authority asked for no new attempt before this time. */
  readonly retryAt?: number;
  readonly issuedAt?: number;
  readonly renewal?: RenewalInfo;
}

/** The authority's renewal information (RFC 9773, 4.2). */
export interface RenewalInfo {
  /** The certificate that it is about. */
  readonly certificate: string;
  readonly window?: { readonly start: number; readonly end: number };
  readonly askAgainAt: number;
  /** Questions in a row without a response. */
  readonly failures: number;
}

export interface Validity {
  /** Differs for each certificate, so that the renewal times are spread evenly. */
  readonly fingerprint: string;
  readonly notBefore: number;
  readonly notAfter: number;
}

export const NO_HISTORY: History = { failures: 0 };

/** When to try next. @param certificate the current one; without one, at once */
export function nextAttempt(id: string, certificate: Validity | undefined, history: History): number {
  const due = certificate === undefined ? 0 : renewalTime(certificate, history);
  return Math.max(due, history.retryAt ?? 0, afterFailure(id, history));
}

/** When a certificate is due: as the authority says, else when a third of its lifetime is left. */
export function renewalTime(certificate: Validity, { issuedAt = 0, renewal }: History): number {
  const { fingerprint, notBefore, notAfter } = certificate;
  const lifetime = notAfter - notBefore;
  const share = fraction(fingerprint);
  const window = renewal?.certificate === fingerprint ? renewal.window : undefined;
  const due =
    window === undefined
      ? notAfter - lifetime / 3 - (share * lifetime) / JITTER_PART
      : // RFC 9773, 4.2: a random time in the window, the same each time it is looked at.
        Math.min(window.start + share * (window.end - window.start), notAfter - lifetime / LATEST_PART);
  // An authority that wants each new certificate renewed at once does not get one a minute.
  return Math.max(due, issuedAt + HOUR_MS);
}

/** Certificates of one day are not all renewed in one hour. */
const JITTER_PART = 20;
/** A window that opens after the end does not let a certificate expire. */
const LATEST_PART = 10;

/** Whether it is the authority that wants the renewal now: its limits do not count such an order. */
export function asksToRenew(certificate: Validity, history: History, now: number): boolean {
  const { renewal } = history;
  return (
    renewal?.certificate === certificate.fingerprint &&
    renewal.window !== undefined &&
    renewalTime(certificate, history) <= now
  );
}

function afterFailure(id: string, { failures, lastFailure, retryAt }: History): number {
  if (failures === 0 || lastFailure === undefined) return 0;
  // A known time decides; the pause then only keeps the authority from being asked every second.
  const known = lastFailure.code === "rateLimited" && retryAt !== undefined;
  const { first, most } = known || PASSING.has(lastFailure.code) ? SOON : LATER;
  const pause = Math.min(most, first * 2 ** Math.min(failures - 1, 20));
  return lastFailure.at + pause * (1 + fraction(`${id} ${failures}`) / 10);
}

const SOON = { first: MINUTE_MS, most: HOUR_MS };
/**
 * At most three orders in the first hour, as authorities count failed validations (Let's Encrypt: 5 per name and hour).
 */
const LATER = { first: 10 * MINUTE_MS, most: 12 * HOUR_MS };

/** Failures that may be over soon, and that no authority counts. */
const PASSING = new Set([
  "unreachable",
  "untrusted",
  "clock",
  "badResponse",
  "badNonce",
  "serverInternal",
  "timeout",
  "file",
  "orderNotReady",
  "accountDoesNotExist",
]);

/**
 * The authority's wish after a failure, within reason: nothing that an authority sends once may end all renewals, or let
 * a certificate expire that could have been renewed.
 *
 * @param code of the failure
 * @param notAfter end of the certificate that there is
 */
export function retryTime(
  now: number,
  wished: number | undefined,
  code: string,
  notAfter = Infinity,
): number | undefined {
  if (wished === undefined) return undefined;
  const longest = code === "rateLimited" ? RETRY_MOST_MS : DAY_MS;
  const left = notAfter - now;
  const most = left <= 0 ? HOUR_MS : Math.min(longest, Math.max(MINUTE_MS, left / 2));
  return Math.min(wished, now + most);
}

/** The longest limit that an authority publishes (Let's Encrypt: certificates for the same names). */
const RETRY_MOST_MS = 7 * DAY_MS;

/**
 * Whether an administrator may ask before the time that the authority set: only the administrator knows that a limit was
 * lifted, or that the authority is repaired. A program that asks in a loop is not heard more often than this.
 */
export const mayAskEarly = ({ lastFailure }: History, now: number): boolean =>
  Math.abs(now - (lastFailure?.at ?? 0)) >= MINUTE_MS;

/** When an authority that gave no response about a renewal is asked again. */
export const afterRenewalFailure = (now: number, failures: number): number =>
  now + Math.min(DAY_MS, HOUR_MS * 2 ** Math.min(failures - 1, 10));

/** The authority's wish, within reason: a short one would be a request a second, a long one would hide a revocation. */
export function nextRenewalQuestion(now: number, retryAt: number | undefined): number {
  return Math.min(Math.max(retryAt ?? now + 6 * HOUR_MS, now + MINUTE_MS), now + DAY_MS);
}

/**
 * After the clock was set back, recorded times may be in the future: they become the present, so that no wait is too
 * long.
 */
export function afterClockChange(history: History, now: number): History {
  const { lastFailure, retryAt, issuedAt } = history;
  // A later question than any that this module sets was recorded with a wrong clock.
  const tooFar = (history.renewal?.askAgainAt ?? 0) - now > DAY_MS + MINUTE_MS;
  const renewal = history.renewal && { ...history.renewal, askAgainAt: now };
  const ahead = Math.max(lastFailure?.at ?? 0, issuedAt ?? 0, (retryAt ?? 0) - RETRY_MOST_MS) - now;
  if (ahead <= MINUTE_MS) return tooFar ? { ...history, renewal: renewal! } : history;
  return {
    ...history,
    ...(lastFailure === undefined ? {} : { lastFailure: { ...lastFailure, at: now } }),
    ...(retryAt === undefined ? {} : { retryAt: retryAt - ahead }),
    ...(issuedAt === undefined ? {} : { issuedAt: Math.min(issuedAt, now) }),
    ...(renewal === undefined ? {} : { renewal }),
  };
}

/** The history from a file, without values of the wrong type: a time that is not a number would never come. */
export function historyIn(read: Partial<History> | undefined): History | undefined {
  if (!isNumber(read?.failures)) return undefined;
  const { failures, lastFailure, retryAt, issuedAt, renewal } = read as History;
  const isFailure = isNumber(lastFailure?.at) && areTexts(lastFailure!);
  const { window, askAgainAt, failures: windowFailures } = renewal ?? {};
  const isWindow = window === undefined || (isNumber(window?.start) && isNumber(window.end));
  return {
    failures,
    ...(isFailure ? { lastFailure: lastFailure! } : {}),
    ...(isNumber(retryAt) ? { retryAt } : {}),
    ...(isNumber(issuedAt) ? { issuedAt } : {}),
    ...(isWindow && isNumber(askAgainAt) && isNumber(windowFailures) ? { renewal: renewal! } : {}),
  };
}

/** JSON's `1e999` is an infinite number. */
const isNumber = (value: unknown): value is number => Number.isFinite(value);

const areTexts = ({ code, message, fix }: AcmeFailure): boolean =>
  [code, message, fix].every((text: unknown) => typeof text === "string");

/** From 0 to below 1, by chance, but the same for the same text. */
const fraction = (text: string): number =>
  createHash("sha256").update(text).digest().readUInt32BE(0) / 2 ** 32;
