import { getEventListeners } from "node:events";
import fc from "../../testkit/property.js";
import { systemClock } from "../../src/runtime/acme/clock.js";
import {
  afterClockChange,
  afterRenewalFailure,
  asksToRenew,
  type History,
  nextAttempt,
  nextRenewalQuestion,
  NO_HISTORY,
  renewalTime,
  retryTime,
  type Validity,
} from "../../src/runtime/acme/schedule.js";

/** When an authority is asked. */

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const T = Date.UTC(2026, 5, 1);

const certificate = (days: number, fingerprint = "AA"): Validity => ({
  fingerprint,
  notBefore: T,
  notAfter: T + days * DAY,
});

const failure = (code: string, at: number) => ({ code, message: "", fix: "", at });

test("without a word of the authority, a certificate is renewed when a third of its lifetime is left, spread a little", () => {
  const times = Array.from({ length: 200 }, (_, i) => renewalTime(certificate(90, `F${i}`), NO_HISTORY));
  const left = times.map((at) => (T + 90 * DAY - at) / DAY);
  expect(Math.min(...left)).toBeGreaterThanOrEqual(30);
  expect(Math.max(...left)).toBeLessThanOrEqual(34.5);
  expect(Math.max(...left)).toBeGreaterThan(34.35);
  expect(Math.max(...left) - Math.min(...left)).toBeGreaterThan(4);
  expect(renewalTime(certificate(90, "F7"), NO_HISTORY)).toBe(times[7]);
});

describe("what the authority says of a renewal", () => {
  const saying = (start: number, end: number, of = "AA"): History => ({
    failures: 0,
    renewal: { certificate: of, window: { start, end }, askAgainAt: 0, failures: 0 },
  });

  test("counts, at the same moment of its window each time", () => {
    const history = saying(T + 10 * DAY, T + 12 * DAY);
    const at = renewalTime(certificate(90), history);
    expect(at).toBeGreaterThanOrEqual(T + 10 * DAY);
    expect(at).toBeLessThan(T + 12 * DAY);
    expect(renewalTime(certificate(90), history)).toBe(at);
    expect(asksToRenew(certificate(90), history, at - 1)).toBe(false);
    expect(asksToRenew(certificate(90), history, at)).toBe(true);
  });

  test("spreads certificates over the whole window", () => {
    const times = Array.from({ length: 200 }, (_, i) => {
      const fingerprint = `F${i}`;
      return renewalTime(certificate(90, fingerprint), saying(T + 10 * DAY, T + 12 * DAY, fingerprint));
    });
    const days = times.map((at) => (at - T) / DAY);
    expect(Math.min(...days)).toBeGreaterThanOrEqual(10);
    expect(Math.min(...days)).toBeLessThan(10.1);
    expect(Math.max(...days)).toBeLessThan(12);
    expect(Math.max(...days)).toBeGreaterThan(11.9);
  });

  test("does not count for another certificate", () => {
    const history = saying(T + 10 * DAY, T + 12 * DAY, "BB");
    expect(renewalTime(certificate(90), history)).toBe(renewalTime(certificate(90), NO_HISTORY));
    expect(asksToRenew(certificate(90), history, T + 89 * DAY)).toBe(false);
  });

  test("does not let a certificate expire", () => {
    expect(renewalTime(certificate(90), saying(T + 100 * DAY, T + 120 * DAY))).toBe(T + 81 * DAY);
  });

  test("does not have a new certificate replaced within an hour", () => {
    const history = { ...saying(T - 2 * DAY, T - DAY), issuedAt: T + MINUTE };
    expect(renewalTime(certificate(90), history)).toBe(T + MINUTE + HOUR);
  });

  test("is asked for as often as the authority likes, at least daily and at most every minute", () => {
    expect(nextRenewalQuestion(T, undefined)).toBe(T + 6 * HOUR);
    expect(nextRenewalQuestion(T, T + 2 * HOUR)).toBe(T + 2 * HOUR);
    expect(nextRenewalQuestion(T, T)).toBe(T + MINUTE);
    expect(nextRenewalQuestion(T, T + 30 * DAY)).toBe(T + DAY);
  });
});

describe("after a failure", () => {
  const pause = (code: string, failures: number): number =>
    nextAttempt("id", undefined, { failures, lastFailure: failure(code, T) }) - T;

  test("there is no pause where none counts any more, or its time is not known", () => {
    expect(nextAttempt("id", undefined, { failures: 0, lastFailure: failure("connection", T) })).toBe(0);
    expect(nextAttempt("id", undefined, { failures: 1 })).toBe(0);
  });

  test("in reaching the authority, it is asked after a minute, then at most every hour", () => {
    expect(pause("unreachable", 1)).toBeGreaterThanOrEqual(MINUTE);
    expect(pause("unreachable", 1)).toBeLessThan(1.1 * MINUTE);
    expect(pause("unreachable", 4)).toBeGreaterThanOrEqual(8 * MINUTE);
    expect(pause("unreachable", 50)).toBeLessThan(1.1 * HOUR);
  });

  test.each([
    ["unreachable", 1, MINUTE],
    ["unreachable", 6, 32 * MINUTE],
    ["unreachable", 40, HOUR],
    ["connection", 1, 10 * MINUTE],
    ["connection", 7, 640 * MINUTE],
    ["connection", 40, 12 * HOUR],
  ])(
    "in %s, after %d in a row, the pause is up to a tenth longer than so much, by chance: %d",
    (code, failures, ms) => {
      const lastFailure = failure(code, T);
      const pauses = Array.from(
        { length: 300 },
        (_, i) => nextAttempt(`${i}`, undefined, { failures, lastFailure }) - T,
      );
      expect([Math.min(...pauses) / ms, Math.max(...pauses) / ms]).toEqual([
        expect.closeTo(1.001, 2),
        expect.closeTo(1.1, 2),
      ]);
    },
  );

  test("of a validation, it is tried at most four times in any hour, and at least twice a day", () => {
    let at = T;
    const attempts = [at];
    for (let failures = 1; failures < 30; failures++) {
      at = nextAttempt("id", undefined, { failures, lastFailure: failure("connection", at) });
      attempts.push(at);
    }
    for (const start of attempts)
      expect(attempts.filter((one) => one >= start && one < start + HOUR).length).toBeLessThanOrEqual(4);
    expect(attempts.at(-1)! - attempts.at(-2)!).toBeLessThanOrEqual(1.1 * 12 * HOUR);
  });

  test("an authority that named a time is not asked before it", () => {
    const history = { failures: 1, lastFailure: failure("rateLimited", T), retryAt: T + 3 * DAY };
    expect(nextAttempt("id", undefined, history)).toBe(T + 3 * DAY);
  });

  test("of a rate limit, only a time that the authority named makes the pause short", () => {
    expect(pause("rateLimited", 1)).toBeGreaterThanOrEqual(10 * MINUTE);
    const lastFailure = failure("rateLimited", T);
    const named = (retryAt: number) =>
      nextAttempt("id", undefined, { failures: 1, lastFailure, retryAt }) - T;
    expect(named(T)).toBeGreaterThanOrEqual(MINUTE);
    expect(named(T)).toBeLessThan(1.1 * MINUTE);
    expect(retryTime(T, undefined, "rateLimited")).toBeUndefined();
    const wished = (code: string, days: number) => (retryTime(T, T + days * DAY, code)! - T) / DAY;
    expect([wished("rateLimited", 1), wished("rateLimited", 30)]).toEqual([1, 7]);
    expect([wished("serverInternal", 0.5), wished("serverInternal", 30)]).toEqual([0.5, 1]);
  });

  test.each([
    [90 * DAY, 7 * DAY],
    [14 * DAY, 7 * DAY],
    [4 * DAY, 2 * DAY],
    [2 * HOUR, HOUR],
    [30 * MINUTE, 15 * MINUTE],
    [MINUTE, MINUTE],
    [-30 * DAY, HOUR],
  ])("a certificate that is valid for %d ms more is waited with for %d at most", (left, most) => {
    expect(retryTime(T, T + 30 * DAY, "rateLimited", T + left)).toBe(T + most);
    expect(retryTime(T, T + 30 * DAY, "malformed", T + left)).toBe(T + Math.min(most, DAY));
    expect(retryTime(T, T + MINUTE, "rateLimited", T + left)).toBe(T + MINUTE);
    expect(retryTime(T, undefined, "rateLimited", T + left)).toBeUndefined();
  });

  test.each([
    ...["unreachable", "untrusted", "clock", "badResponse", "badNonce", "serverInternal", "timeout", "file"],
    ...["orderNotReady", "accountDoesNotExist"],
  ])("%s may be over soon", (code) => {
    expect(pause(code, 1)).toBeLessThan(1.1 * MINUTE);
    expect(pause("connection", 1)).toBeGreaterThanOrEqual(10 * MINUTE);
  });

  test("of a question about a renewal, it is asked again after an hour, then twice as long each time, up to a day", () => {
    const pauses = [1, 2, 3, 4, 5, 6, 40].map((failures) => (afterRenewalFailure(T, failures) - T) / HOUR);
    expect(pauses).toEqual([1, 2, 4, 8, 16, 24, 24]);
  });

  test("a certificate is not renewed before it is due", () => {
    const history = { failures: 1, lastFailure: failure("connection", T) };
    expect(nextAttempt("id", certificate(90), history)).toBe(renewalTime(certificate(90), history));
  });
});

test("wherever the clock jumps, the next attempt after a failure is not further away than its pause", () => {
  fc.assert(
    fc.property(fc.integer({ min: -20, max: 20 }), fc.integer({ min: 1, max: 40 }), (years, failures) => {
      const before: History = { failures, lastFailure: failure("connection", T), retryAt: T + HOUR };
      const now = T + years * 365 * DAY;
      const history = afterClockChange(before, now);
      expect(nextAttempt("id", undefined, history) - now).toBeLessThanOrEqual(1.1 * 12 * HOUR);
    }),
  );
  const recent: History = { failures: 1, lastFailure: failure("connection", T) };
  expect(afterClockChange(recent, T - 1_000)).toBe(recent);
});

test("after the clock was set back, what lies ahead happened now, and what is waited for stays as far away", () => {
  const renewal = { certificate: "AA", askAgainAt: T + 9 * DAY, failures: 2 };
  const before: History = {
    failures: 3,
    lastFailure: failure("connection", T + 2 * HOUR),
    retryAt: T + 5 * HOUR,
    issuedAt: T + HOUR,
    renewal,
  };
  expect(afterClockChange(before, T)).toEqual({
    failures: 3,
    lastFailure: failure("connection", T),
    retryAt: T + 3 * HOUR,
    issuedAt: T,
    renewal: { ...renewal, askAgainAt: T },
  });
  expect(afterClockChange({ failures: 0, issuedAt: T + HOUR }, T)).toStrictEqual({
    failures: 0,
    issuedAt: T,
  });
  const failed: History = { failures: 1, lastFailure: failure("connection", T + HOUR), issuedAt: T - DAY };
  expect(afterClockChange(failed, T)).toStrictEqual({
    ...{ failures: 1, lastFailure: failure("connection", T) },
    issuedAt: T - DAY,
  });
  // What was asked without a failure, and what a file says that no clock says.
  const far: History = { failures: 0, renewal: { ...renewal, askAgainAt: T + DAY + MINUTE + 1 } };
  expect(afterClockChange(far, T)).toStrictEqual({ failures: 0, renewal: { ...renewal, askAgainAt: T } });
  expect(afterClockChange(far, T + 1)).toBe(far);
  const waiting: History = { failures: 0, retryAt: 1e300 };
  expect(afterClockChange(waiting, T).retryAt).toBeLessThanOrEqual(T + 7 * DAY);
  // Clocks that are set a little are set often.
  const little: History = { failures: 0, issuedAt: T + MINUTE };
  expect(afterClockChange(little, T)).toBe(little);
  expect(afterClockChange(little, T - 1)).not.toBe(little);
});

test("the system's clock waits so long, or until the signal, on which it leaves nothing", async () => {
  const stopping = new AbortController();
  const { signal } = stopping;
  const began = performance.now();
  await systemClock.wait(50, signal);
  expect(performance.now() - began).toBeGreaterThan(45);
  expect(getEventListeners(signal, "abort")).toEqual([]);
  const waited = systemClock.wait(HOUR, signal);
  stopping.abort();
  await waited;
  await systemClock.wait(HOUR, signal);
  expect(getEventListeners(signal, "abort")).toEqual([]);
  expect(Math.abs(systemClock.now() - Date.now())).toBeLessThan(1000);
});
