import { DAY_MS, HOUR_MS } from "../text/duration.js";

/** How near the end of a certificate is: judged here for pages, commands, warnings, notifications and alerts. */
export type CertificateEnd = "ended" | "last" | "soon" | "later";

export interface CertificateLife {
  /** In milliseconds since 1970. */
  readonly notBefore: number;
  /** In milliseconds since 1970. */
  readonly notAfter: number;
  /** When it is to be renewed, where that is planned: before that time, its end is not a person's concern. */
  readonly renewAt?: number;
}

/** Enough time for a person; a renewal without one comes long before. */
export const SOON_DAYS = 14;
/** A certificate of six days has less than fourteen left all the time. */
export const SOON_SHARE = 1 / 4;
/** An order takes minutes, and some attempts may fail. */
export const OVERDUE_HOURS = 1;
const LAST_DAYS = 3;
const LAST_SHARE = 1 / 10;

/** @param soonDays of long certificates; others end soon in the last quarter of their life */
export function certificateEnd(
  { notBefore, notAfter, renewAt = -Infinity }: CertificateLife,
  now: number,
  soonDays = SOON_DAYS,
): CertificateEnd {
  const left = notAfter - now;
  const life = notAfter - notBefore;
  if (left < 0) return "ended";
  if (now < renewAt + OVERDUE_HOURS * HOUR_MS) return "later";
  if (left <= Math.min(LAST_DAYS * DAY_MS, life * LAST_SHARE)) return "last";
  return left <= Math.min(soonDays * DAY_MS, life * SOON_SHARE) ? "soon" : "later";
}

/** Time that is left, in whole days. */
export function daysLeftText(ms: number): string {
  const days = Math.floor(ms / DAY_MS);
  return days === 0 ? "less than a day" : `${days} day${days === 1 ? "" : "s"}`;
}
