import type { Held } from "./outage.js";

/**
 * What is known of the connections to a server, in ms of a monotonic clock that all processes of the host share. An outage
 * is under way if `began` is later than `overAt`.
 */
export interface KnownOutage {
  /** An outage that began before is over: a connection was made then, or nobody knows whether one could have been. */
  readonly overAt: number;
  readonly began: number;
  /** When a request last met it. */
  readonly metAt: number;
}

/** A worker's news about the only server of an upstream, for the others. */
export interface OutageNews {
  readonly upstream: string;
  readonly url: string;
  readonly outage: KnownOutage;
}

export const NO_OUTAGE: KnownOutage = { overAt: 0, began: 0, metAt: 0 };

/** The findings of two processes together, the same in whatever order, and however late, they are told. */
export function joined(one: KnownOutage, other: KnownOutage): KnownOutage {
  const overAt = Math.max(one.overAt, other.overAt);
  const lasting = [one.began, other.began].filter((began) => began > overAt);
  return {
    overAt,
    began: lasting.length === 0 ? 0 : Math.min(...lasting),
    metAt: Math.max(one.metAt, other.metAt),
  };
}

/** Whether it matters to a process that knows `told` only. */
export const isNews = (known: KnownOutage, told: KnownOutage): boolean =>
  known.began !== told.began || (known.began > 0 && known.metAt - told.metAt >= TELL_MS);

/** What a worker knows of the outages of a server: by its own connections, and by those of the other workers. */
export class OutageRecord {
  private known = NO_OUTAGE;
  /** What the other workers know. */
  private told = NO_OUTAGE;

  /** When the outage that is under way began, by `performance.now()`; Infinity without one. */
  get began(): number {
    return this.known.began === 0 ? Infinity : this.known.began - SHARED_CLOCK_MS;
  }

  /** The server accepted a connection. */
  accepted(): void {
    this.known = { ...this.known, overAt: sharedNow(), began: 0 };
  }

  /**
   * The server refused a connection.
   *
   * @param held the request that met that
   * @returns `began`: later than before if the last outage may have ended unnoticed, since no request met it for so long
   */
  refused(holdMs: number, { heldSince }: Held): number {
    const now = sharedNow();
    const { began, metAt, overAt } = this.known;
    const isForgotten = now >= began + holdMs && heldSince === undefined && now - metAt >= FORGET_MS;
    if (began === 0) this.known = { overAt, began: Math.max(now, overAt + LATER_MS), metAt: now };
    else if (isForgotten) this.known = { overAt: metAt, began: now, metAt: now };
    else this.known = { ...this.known, metAt: now };
    return this.began;
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

/** Of the host's monotonic clock, which `process.hrtime` reads, and the process's own, which begins with the process. */
const SHARED_CLOCK_MS = Number(process.hrtime.bigint()) / 1e6 - performance.now();
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
