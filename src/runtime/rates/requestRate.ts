import { burstOf, type RateLimitConfig } from "../../model/serving.js";

/**
 * The generic cell rate algorithm (ITU-T I.371, annex A): one time for a client, at which all its requests would be done if
 * each took its share of `perMs`. A request is allowed unless that is too far ahead.
 */
export class RequestRate {
  /** How much later each request makes the time. */
  readonly shareMs: number;
  private readonly aheadMs: number;

  constructor(limit: RateLimitConfig) {
    this.shareMs = limit.perMs / limit.requests;
    this.aheadMs = (burstOf(limit) - 1) * this.shareMs;
  }

  /** How long a client with this time has to wait; 0 if its next request is allowed. */
  waitMs(time: number, now: number): number {
    const wait = time - this.aheadMs - now;
    return wait > ROUNDING_MS ? wait : 0;
  }

  /** The time after so many more requests. */
  after(time: number, now: number, requests = 1): number {
    return Math.max(time, now) + requests * this.shareMs;
  }
}

/** Sums of shares are off by less. */
const ROUNDING_MS = 0.001;
