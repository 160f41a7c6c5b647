import { clientPrefix, type RouteConfig } from "../../model/serving.js";
import { clientKey } from "./clientKey.js";
import { ClientTable } from "./clientTable.js";
import { hostNow } from "./hostClock.js";
import type { RunningNews, TimeNews, UsedRequests } from "./limitNews.js";
import { RequestRate } from "./requestRate.js";

/** Why a request of a client is one too many. */
export interface LimitRefusal {
  readonly limit: "rateLimit" | "concurrencyMax";
  /** When the client may try again. */
  readonly retrySeconds: number;
}

/** The fields that limit what one client may ask of a route. */
export type LimitedRoute = Pick<RouteConfig, "name" | "rateLimit" | "concurrencyMax">;

export const isLimited = ({ rateLimit, concurrencyMax }: LimitedRoute): boolean =>
  rateLimit !== undefined || concurrencyMax !== undefined;

/** The limits of a route in one worker, which knows a little later what the other workers count. */
export class RouteLimits {
  private readonly prefix: number;
  private readonly rate: Rate | undefined;
  private readonly running: Running | undefined;

  constructor({ rateLimit, concurrencyMax, ...route }: LimitedRoute) {
    this.prefix = clientPrefix({ ...route, rateLimit });
    this.rate = rateLimit && new Rate(new RequestRate(rateLimit));
    this.running = concurrencyMax === undefined ? undefined : new Running(concurrencyMax);
  }

  /**
   * Counts a request, unless it is refused.
   *
   * @returns what to give back to {@link over} when the request is over
   */
  begin(address: string, now = hostNow()): LimitRefusal | string {
    const key = clientKey(address, this.prefix);
    if (this.running?.isFull(key) === true) return FULL;
    const waitMs = this.rate?.take(key, now) ?? 0;
    if (waitMs > 0) return { limit: "rateLimit", retrySeconds: Math.ceil(waitMs / 1_000) };
    this.running?.begin(key);
    return key;
  }

  over(key: string): void {
    this.running?.over(key);
  }

  /** Requests that began and are not over. */
  get runningCount(): number {
    return this.running?.count ?? 0;
  }

  /** Requests that were counted since the last call. */
  used(): UsedRequests {
    return this.rate?.used() ?? [];
  }

  /** Clients whose number of requests in progress has changed since the last call. */
  changed(): RunningNews {
    return this.running?.changed() ?? [];
  }

  learnTimes(news: TimeNews, now: number): void {
    this.rate?.learn(news, now);
  }

  learnRunning(others: RunningNews): void {
    this.running?.learn(others);
  }
}

/** When a place will be free is not known. */
const FULL: LimitRefusal = { limit: "concurrencyMax", retrySeconds: 1 };

class Rate {
  private readonly table = new ClientTable();
  /** When the first request since the last report came, and how many have come. */
  private fresh = new Map<string, { readonly first: number; count: number }>();

  constructor(private readonly pace: RequestRate) {}

  /** @returns how long the client has to wait; 0 if the request is allowed, and counted */
  take(key: string, now: number): number {
    const time = this.table.timeOf(key, now);
    const waitMs = this.pace.waitMs(time, now);
    if (waitMs > 0) return waitMs;
    this.table.set(key, this.pace.after(time, now), now);
    const one = this.fresh.get(key);
    if (one !== undefined) one.count++;
    else if (this.fresh.size < NEWS_MAX) this.fresh.set(key, { first: now, count: 1 });
    return 0;
  }

  used(): UsedRequests {
    if (this.fresh.size === 0) return [];
    const used = [...this.fresh].map(([key, { first, count }]) => [key, first, count] as const);
    this.fresh = new Map();
    return used;
  }

  learn(news: TimeNews, now: number): void {
    for (const [key, time] of news) if (time > this.table.timeOf(key, now)) this.table.set(key, time, now);
  }
}

class Running {
  private readonly own = new Map<string, number>();
  private readonly others = new Map<string, number>();
  private readonly reported = new Map<string, number>();

  constructor(private readonly most: number) {}

  get count(): number {
    return [...this.own.values()].reduce((sum, count) => sum + count, 0);
  }

  isFull(key: string): boolean {
    return (this.own.get(key) ?? 0) + (this.others.get(key) ?? 0) >= this.most;
  }

  begin(key: string): void {
    this.own.set(key, (this.own.get(key) ?? 0) + 1);
  }

  over(key: string): void {
    setCount(this.own, key, this.own.get(key)! - 1);
  }

  changed(): RunningNews {
    const changes: [string, number][] = [];
    for (const key of this.reported.keys()) {
      if (this.own.has(key)) continue;
      changes.push([key, 0]);
      this.reported.delete(key);
    }
    for (const [key, count] of this.own) {
      if (changes.length >= NEWS_MAX) break;
      if (this.reported.get(key) === count) continue;
      changes.push([key, count]);
      this.reported.set(key, count);
    }
    return changes;
  }

  learn(others: RunningNews): void {
    for (const [key, count] of others) setCount(this.others, key, count);
  }
}

/** Keeps no client that has none. */
export function setCount(counts: Map<string, number>, key: string, count: number): void {
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}

/** So many clients of a route are reported at a time: what is beyond counts in each worker alone. */
const NEWS_MAX = 512;
