import type { WaitingRequest } from "./outage.js";

/**
 * What is known of the connections to a server, in ms of a monotonic clock that all processes of the host share. Each moment
 * only moves forward: processes agree in the end, in whatever order, and however late, they hear of each other.
 */
export interface KnownOutage {
  /** An outage that began before is over: a connection was made then, or nobody knows whether one could have been. */
  readonly overAt: number;
  /** When the last one began: it is under way if this is later than `overAt`. */
  readonly began: number;
  /** When a request last met an outage. */
  readonly metAt: number;
}

/** A worker's news about the only server of an upstream, for the others. */
export interface OutageNews {
  readonly upstream: string;
  readonly url: string;
  readonly outage: KnownOutage;
}

export const NO_OUTAGE: KnownOutage = { overAt: 0, began: 0, metAt: 0 };

/** The findings of two processes together. */
export const joined = (one: KnownOutage, other: KnownOutage): KnownOutage => ({
  overAt: Math.max(one.overAt, other.overAt),
  began: Math.max(one.began, other.began),
  metAt: Math.max(one.metAt, other.metAt),
});

/** When the outage that is under way began; 0 without one. */
const underWay = ({ began, overAt }: KnownOutage): number => (began > overAt ? began : 0);

/** Whether it matters to a process that knows `told` only. */
export const isNews = (known: KnownOutage, told: KnownOutage): boolean =>
  underWay(known) !== underWay(told) || (underWay(known) > 0 && known.metAt - told.metAt >= TELL_MS);

/** What a worker knows of the outages of a server: by its own connections, and by those of the other workers. */
export class OutageRecord {
  private known = NO_OUTAGE;
  /** What the other workers know. */
  private told = NO_OUTAGE;

  /** When the last outage began, by `performance.now()`. */
  get began(): number {
    return this.known.began - SHARED_CLOCK_MS;
  }

  /** Whether an outage that began then, by `performance.now()`, is over. */
  isOver(began: number): boolean {
    return began <= this.known.overAt - SHARED_CLOCK_MS;
  }

  /** The server accepted a connection. */
  accepted(): void {
    this.known = { ...this.known, overAt: Math.max(sharedNow(), this.known.began) };
  }

  /** The server refused a connection. @param held the request that met that */
  refused(holdMs: number, { heldSince }: WaitingRequest): void {
    const now = sharedNow();
    const { began, metAt, overAt } = this.known;
    const isForgotten = now >= began + holdMs && heldSince === undefined && now - metAt >= FORGET_MS;
    if (underWay(this.known) === 0)
      this.known = { overAt, began: Math.max(now, overAt + LATER_MS), metAt: now };
    else if (isForgotten) this.known = { overAt: Math.max(metAt, began), began: now, metAt: now };
    else this.known = { ...this.known, metAt: now };
  }

  /** The master tells what other workers found. */
  learn(told: KnownOutage): void {
    this.told = told;
    this.known = joined(this.known, told);
  }

  /** What other workers do not know yet, once. */
  takeNews(): KnownOutage | undefined {
    if (!isNews(this.known, this.told)) return undefined;
    return (this.told = this.known);
  }
}

/** The lead of the host's monotonic clock (`process.hrtime`) over the process's own, which begins with the process. */
const SHARED_CLOCK_MS = -performance.now() + Number(process.hrtime.bigint()) / 1e6;
const sharedNow = (): number => performance.now() + SHARED_CLOCK_MS;

/** Two events at the same reading of a clock are one after the other. */
const LATER_MS = 0.001;

/**
 * Longer than clients under steady traffic leave between two requests; short, because a service may be restarted soon after
 * a failed restart.
 */
const FORGET_MS = 30_000;

/** How old the others' knowledge of the last request may be: short beside `FORGET_MS`. */
const TELL_MS = 1_000;
