import { guarded, type Guarded } from "../sockets/guarded.js";

/** A request that waits for an upstream to accept connections again. */
export interface WaitingRequest {
  /**
   * Since when, by `performance.now()`, over all outages and full listen queues that it met; undefined before the first. Set
   * by the pool.
   */
  heldSince: number | undefined;
}

/**
 * While an upstream refuses connections, from the first that it refused to the next that is made:
 *
 *     accepts ──refuses one──> requests wait, and it is tried every 100 ms ──holdMs──> each request is tried, and refused
 *        ^──accepts one────────────────────────┴──────────────────────────no request for 30 s────┘
 *
 * So clients do not notice a restart of a service, and a service that is down for long delays only the requests of the
 * first seconds, in all workers together (`knownOutage.ts`). After a time without requests nobody knows whether the service
 * has been back: the next refusal may be that of a restart, and begins another outage.
 */
export class Outage {
  /** Requests wait. */
  holding: boolean;
  private waited = 0;
  private failed = 0;
  private readonly timer: NodeJS.Timeout | undefined;

  /**
   * @param began when a worker was first refused, by `performance.now()`
   * @param reason why the first connection of this worker was not made, for the error log
   * @param owner its `tryAgain` is called regularly as long as requests wait
   */
  constructor(
    readonly began: number,
    private readonly holdMs: number,
    private readonly reason: string,
    owner: Guarded & { tryAgain(): void },
  ) {
    this.holding = this.restMs > 0;
    // Like a sweep, it must not keep the process running.
    if (this.holding) this.timer = setInterval(() => guarded(owner, owner.tryAgain), TRY_MS).unref();
  }

  private get restMs(): number {
    return this.began + this.holdMs - performance.now();
  }

  /** No request waits longer than that, and then until the end of an outage that begins last. */
  mayWait({ heldSince = performance.now() }: WaitingRequest): boolean {
    return this.holding && performance.now() - heldSince < this.holdMs;
  }

  /** A request waits from now on. */
  admit(held: WaitingRequest): void {
    held.heldSince ??= performance.now();
    this.waited++;
  }

  /** @returns true once, when requests have waited long enough */
  sweep(now: number): boolean {
    if (!this.holding || now < this.began + this.holdMs) return false;
    this.stop();
    return true;
  }

  /** The error log's text for a request that gets no connection. */
  refusal({ heldSince = this.began }: WaitingRequest): string {
    this.failed++;
    const [held, refused] = [heldSince, this.began].map((since) => Math.round(performance.now() - since));
    return `${this.reason}; this request was held for ${held} ms, the upstream has refused connections for ${refused} ms`;
  }

  stop(): void {
    this.holding = false;
    clearInterval(this.timer);
  }

  /** The text for the error log when the outage begins. */
  get beginning(): string {
    return `refuses connections: requests wait for up to ${Math.round(this.restMs / 100) / 10} s (${this.reason})`;
  }

  /** The text for the error log when the outage is over. */
  get end(): string {
    const seconds = ((performance.now() - this.began) / 1_000).toFixed(1);
    const failed = this.failed === 0 ? "" : `, ${this.failed} of them got 502`;
    return `no longer refuses connections, after ${seconds} s: ${this.waited} requests waited${failed}`;
  }
}

/**
 * A refused connect costs almost nothing on both sides; on average a request waits half of this longer than necessary.
 */
const TRY_MS = 100;

/** Why a connect failed with nothing sent: no service listens, or one that accepts too slowly. */
export type ConnectRefusal = "down" | "busy";

/**
 * Whether no service listens there, as during a restart: ECONNREFUSED for a port and for a socket file that the service
 * left; ENOENT for services that remove their socket when they end (gunicorn, uvicorn). Other errors are no sign of a
 * restart, or have already taken long: timeouts, hosts without a route, failed lookups, TLS.
 *
 * @param error of a connect; for a name with several addresses it contains the errors of all
 */
export function isRefusal(error: Error & { readonly code?: string; readonly errors?: unknown }): boolean {
  const each = error instanceof AggregateError ? (error.errors as readonly { code?: string }[]) : [error];
  return each.some(({ code }) => code === "ECONNREFUSED" || code === "ENOENT");
}

/**
 * The kind of refusal; undefined for another error. The listen queue of a Unix socket is full where connect() fails with
 * EAGAIN. For a port the kernel repeats the connect itself until there is room.
 *
 * @param error of a connect
 */
export function refusalOf(error: Error & { readonly code?: string }): ConnectRefusal | undefined {
  return error.code === "EAGAIN" ? "busy" : isRefusal(error) ? "down" : undefined;
}
