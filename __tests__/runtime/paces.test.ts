import { expectedMs, PACE_WINDOW_MS, Paces } from "../../src/runtime/dispatch/paces.js";
import type { RunningExchange } from "../../src/runtime/exchange/exchange.js";

/** Which clients are slow, and for how long requests are expected to run. */

const LOOK_MS = 250;

/**
 * @param bytesAt bytes that have arrived after so many milliseconds
 * @param awaits whether the client could send then
 * @returns when the client is found to be slow; undefined if it never is
 */
function slowAt(
  bytesAt: (ms: number) => number,
  { rate = 500, awaits = () => true, everyMs = LOOK_MS, forMs = 10 * PACE_WINDOW_MS }: Looks = {},
): number | undefined {
  let now = 0;
  const paces = new Paces(() => now);
  const exchange = { bodyBytesReceived: 0, awaitsBody: true };
  for (; now <= forMs; now += everyMs) {
    Object.assign(exchange, { bodyBytesReceived: Math.floor(bytesAt(now)), awaitsBody: awaits(now) });
    if (paces.isSlow(exchange as unknown as RunningExchange, rate)) return now;
  }
  return undefined;
}

interface Looks {
  readonly rate?: number;
  readonly awaits?: (ms: number) => boolean;
  readonly everyMs?: number;
  readonly forMs?: number;
}

const steady = (bytesPerSecond: number) => (ms: number) => (ms * bytesPerSecond) / 1_000;
/** Nothing for so long, then a burst, again and again. */
const bursts = (everyMs: number, bytes: number) => (ms: number) => Math.floor(ms / everyMs) * bytes;

test.each<[what: string, bytesAt: (ms: number) => number, looks: Looks, slow: number | undefined]>([
  ["a client that sends nothing", () => 0, {}, 30_000],
  ["a few bytes a second", steady(5), {}, 30_000],
  ["a little less than the rate", steady(495), {}, 30_000],
  ["a little more than the rate", steady(510), {}, undefined],
  ["a phone without reception for 29 s of every 30", bursts(29_000, 15_000), {}, undefined],
  ["a fast start and then nothing", (ms) => Math.min(1e9, ms * 1e6), {}, 1_000 + 30_000],
  ["an upstream that reads nothing", () => 0, { awaits: () => false }, undefined],
  ["an upstream that reads nothing half of the time", () => 0, { awaits: (ms) => ms % 500 === 0 }, 60_000],
  ["no bound", () => 0, { rate: 0 }, undefined],
  ["looks once a minute: the rest of the minute counts for nothing", () => 0, { everyMs: 60_000 }, undefined],
])("%s: slow after %#", (_, bytesAt, looks, slow) => {
  const found = slowAt(bytesAt, looks);
  if (slow === undefined) expect(found).toBeUndefined();
  else expect(Math.abs(found! - slow)).toBeLessThanOrEqual(2 * LOOK_MS);
});

test.each<[what: string, more: object, ms: number]>([
  ["half of a known body", { bodyLength: 100, bodyBytesReceived: 50 }, 10_000],
  ["nearly all of it", { bodyLength: 100, bodyBytesReceived: 99 }, 101],
  ["nothing of it yet", { bodyLength: 100 }, 10_000],
  ["an unknown length", { bodyLength: -1, bodyBytesReceived: 5 }, 10_000],
  ["all of it, and no response yet", { bodyLength: 100, bodyBytesReceived: 100 }, 10_000],
  ["a quarter of the response", { bodyBytesSent: 25, responseBytes: 100 }, 30_000],
  ["a response of unknown length", { bodyBytesSent: 25 }, 10_000],
])("with %s a request of ten seconds is expected to run for %#", (_, more, ms) => {
  const { bodyLength = 0, ...rest } = more as { bodyLength?: number };
  const request = { bodyLength, receivedAt: 5_000 };
  const moved = { bodyBytesReceived: 0, bodyBytesSent: 0, responseBytes: -1, ...rest };
  const exchange = { request, ...moved } as unknown as RunningExchange;
  expect(Math.round(expectedMs(exchange, 15_000))).toBe(ms);
});
