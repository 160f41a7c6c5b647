import { MINUTE_MS } from "../../../model/text/duration.js";
import { type Counts, numberOf, totalOf } from "../../counting/counts.js";
import type { TrafficHistory } from "../../status/overview.js";

/** Totals since the start: they never fall, since counts of ended workers are kept. */
export interface TrafficTotals {
  /** Requests that are over. */
  readonly requests: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Requests that are over, by virtual server and by route (`serverKey`, `routeKey`). */
  readonly byPlace: ReadonlyMap<string, number>;
  /** Requests that an upstream failed, by route and name of the failure (`failureKey`). */
  readonly failures: ReadonlyMap<string, number>;
}

/** The totals that the overview shows. */
export function trafficTotals(counts: Counts): TrafficTotals {
  const byPlace = new Map<string, number>();
  const add = (map: Map<string, number>, key: string, n: number): void =>
    void map.set(key, (map.get(key) ?? 0) + n);
  let requests = 0;
  for (const series of counts.requests ?? []) {
    const [server = "", route = ""] = series.labels;
    const n = numberOf("requests", series);
    requests += n;
    add(byPlace, serverKey(server), n);
    if (route !== "") add(byPlace, routeKey(server, route), n);
  }
  const failures = new Map<string, number>();
  for (const series of counts.failures ?? []) {
    const [server = "", route = "", failure = ""] = series.labels;
    if (OF_UPSTREAM.test(failure))
      add(failures, failureKey(server, route, failure), numberOf("failures", series));
  }
  return {
    requests,
    bytesIn: totalOf(counts, "requestBytes"),
    bytesOut: totalOf(counts, "responseBytes"),
    byPlace,
    failures,
  };
}

/** Names of failures (RFC 9209, 2.3) that are the upstream's, and not those of requests. */
const OF_UPSTREAM = /^(?:connection|destination|dns|tls|http_response)_/;

interface TrafficSample {
  readonly at: number;
  readonly totals: TrafficTotals;
}

/** The totals of the last quarter of an hour, as means of short periods: rings of numbers, and a few samples of all. */
export class TrafficSamples {
  private readonly requests: number[] = [];
  private readonly bytesIn: number[] = [];
  private readonly bytesOut: number[] = [];
  /** The samples of the last minute, the oldest first. */
  private readonly samples: TrafficSample[] = [];

  /** @param at on a monotonic clock, in milliseconds */
  add(totals: TrafficTotals, at: number): void {
    const before = this.samples.at(-1);
    if (before !== undefined && at > before.at) {
      const perSecond = (of: (totals: TrafficTotals) => number): number =>
        (Math.max(0, of(totals) - of(before.totals)) * 1_000) / (at - before.at);
      push(
        this.requests,
        perSecond(({ requests }) => requests),
      );
      push(
        this.bytesIn,
        perSecond(({ bytesIn }) => bytesIn),
      );
      push(
        this.bytesOut,
        perSecond(({ bytesOut }) => bytesOut),
      );
    }
    this.samples.push({ at, totals });
    while (this.samples.length > 1 && at - this.samples[1]!.at >= MINUTE_MS) this.samples.shift();
  }

  get history(): TrafficHistory {
    const [requests, bytesIn, bytesOut] = [this.requests, this.bytesIn, this.bytesOut].map((ring) =>
      ring.map((value) => Math.round(value * 100) / 100),
    ) as [number[], number[], number[]];
    return { everyMs: EVERY_MS, periods: PERIODS, requests, bytesIn, bytesOut };
  }

  /** Rates per second over the last seconds. @param now newer totals, counted at `at` */
  recent(now: TrafficTotals, at: number): Rates {
    // The last sample alone may be a moment old: too short for a mean.
    const before = this.samples.findLast((sample) => at - sample.at >= RECENT_MS) ?? this.samples[0];
    const seconds = before === undefined ? 0 : (at - before.at) / 1_000;
    const rate = (is: number, was: number): number =>
      seconds <= 0 ? 0 : Math.round((Math.max(0, is - was) / seconds) * 100) / 100;
    const was = before?.totals;
    return {
      requests: rate(now.requests, was?.requests ?? 0),
      bytesIn: rate(now.bytesIn, was?.bytesIn ?? 0),
      bytesOut: rate(now.bytesOut, was?.bytesOut ?? 0),
      at: (place) => rate(now.byPlace.get(place) ?? 0, was?.byPlace.get(place) ?? 0),
    };
  }

  /** How many requests failed in the last minute, by name of the failure, of routes that are so. */
  failures(now: TrafficTotals, routes: readonly string[]): ReadonlyMap<string, number> {
    const before = this.samples[0]?.totals.failures;
    const found = new Map<string, number>();
    for (const [key, count] of now.failures) {
      const [route, failure] = split(key);
      const fresh = count - (before?.get(key) ?? 0);
      if (fresh > 0 && routes.includes(route)) found.set(failure, (found.get(failure) ?? 0) + fresh);
    }
    return found;
  }
}

export interface Rates {
  readonly requests: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** The rate of requests at a place. */
  at(place: string): number;
}

function push(ring: number[], value: number): void {
  ring.push(value);
  if (ring.length > PERIODS) ring.shift();
}

/** How often a sample is taken. */
export const EVERY_MS = 5_000;
/** A quarter of an hour. */
const PERIODS = 180;
const RECENT_MS = 3_000;

/** Names of the config, which have no space. */
export const serverKey = (server: string): string => `server ${server}`;
export const routeKey = (server: string, route: string): string => `route ${server} ${route}`;
const failureKey = (server: string, route: string, failure: string): string =>
  `${routeKey(server, route)} ${failure}`;

function split(key: string): [route: string, failure: string] {
  const at = key.lastIndexOf(" ");
  return [key.slice(0, at), key.slice(at + 1)];
}
