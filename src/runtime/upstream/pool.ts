import { isIP } from "node:net";
import { guarded, type Guarded } from "../exchange/guarded.js";
import { upstreamAuthority, type UpstreamConfig } from "../../model/serving.js";
import { coarseNow, sweepRegularly } from "../exchange/clock.js";
import { type Faults } from "../exchange/faults.js";
import { UpstreamConnection } from "./connection.js";

/** Waits for a connection to an upstream. */
export interface ConnectionTaker extends Guarded {
  /** Its turn has come. Never called from within a call by the taker. */
  onConnection(connection: UpstreamConnection): void;
  /** None became free in time: it waits no longer. */
  onQueueTimeout(): void;
}

/**
 * The connections to one upstream: hands out idle ones, most recently used first, and opens new ones up to a limit.
 * When all are in use, requests wait in a queue: first come, first served.
 */
export class UpstreamPool {
  private readonly idleConnections: UpstreamConnection[] = [];
  private readonly all = new Set<UpstreamConnection>();
  private readonly stopSweeping: () => void;
  private readonly address: { host: string; port: number };
  /** Whether the upstream is given by a name, whose address may change. */
  private readonly named: boolean;
  private closing = false;
  /** Waiting takers in the order they came, and until when each waits. */
  private readonly waiting = new Map<ConnectionTaker, number>();

  constructor(
    readonly config: UpstreamConfig,
    readonly faults: Faults,
  ) {
    this.address = upstreamAuthority(config.url);
    this.named = isIP(this.address.host) === 0;
    this.stopSweeping = sweepRegularly(this);
  }

  /** A connection for a request; undefined if all are in use, or others are already waiting: see {@link enqueue}. */
  acquire(): UpstreamConnection | undefined {
    return this.waiting.size === 0 ? this.take() : undefined;
  }

  /**
   * A new connection in place of one that broke during a request, even if there are idle ones, which may be broken too.
   * It takes over the other's share of the limit, so a retry does not wait again.
   */
  replace(): UpstreamConnection {
    return this.open();
  }

  /** @returns false if the queue is full */
  enqueue(taker: ConnectionTaker): boolean {
    if (this.waiting.size >= this.config.queuedRequestsMax) return false;
    this.waiting.set(taker, coarseNow() + this.config.queueTimeoutMs);
    return true;
  }

  /** For a taker that no longer waits, or never did. */
  leave(taker: ConnectionTaker): void {
    this.waiting.delete(taker);
  }

  /** Closes idle connections now and busy ones after their answer. */
  close(): void {
    this.closing = true;
    for (const connection of this.idleConnections.splice(0)) connection.destroy();
    this.stopWhenOver();
  }

  sweep(now: number): void {
    for (const connection of this.all) guarded(connection, connection.sweep, now);
    for (const [taker, deadline] of this.waiting) {
      // All wait equally long.
      if (now < deadline) return;
      this.waiting.delete(taker);
      guarded(taker, taker.onQueueTimeout);
    }
  }

  onFault(error: unknown): void {
    this.faults.report(error);
  }

  idle(connection: UpstreamConnection): boolean {
    if (this.closing || this.idleConnections.length >= this.config.idleConnectionsMax) return false;
    if (this.named && coarseNow() - connection.openedAt >= NAMED_REUSE_MS) return false;
    this.idleConnections.push(connection);
    this.serveSoon();
    return true;
  }

  closed(connection: UpstreamConnection): void {
    this.all.delete(connection);
    const at = this.idleConnections.indexOf(connection);
    if (at !== -1) this.idleConnections.splice(at, 1);
    this.serveSoon();
    this.stopWhenOver();
  }

  private take(): UpstreamConnection | undefined {
    for (;;) {
      const idle = this.idleConnections.pop();
      if (idle === undefined) return this.all.size < this.config.connectionsMax ? this.open() : undefined;
      // One that was closed stays in the list until its close is reported.
      if (idle.usable) return idle;
    }
  }

  private open(): UpstreamConnection {
    const connection = new UpstreamConnection(this.config, this.address, this);
    this.all.add(connection);
    return connection;
  }

  /** Not at once: the connection that became free is still processing the end of its answer. */
  private serveSoon(): void {
    if (this.waiting.size > 0) process.nextTick(this.serve);
  }

  private readonly serve = (): void => {
    for (const taker of this.waiting.keys()) {
      const connection = this.take();
      if (connection === undefined) return;
      this.waiting.delete(taker);
      guarded(taker, taker.onConnection, connection);
    }
    this.stopWhenOver();
  };

  private stopWhenOver(): void {
    if (this.closing && this.all.size === 0 && this.waiting.size === 0) this.stopSweeping();
  }
}

/**
 * How long connections to an upstream with a host name are used. Each new one looks up the name again, so that a change
 * of address is noticed even if the connections are never idle (nginx looks up names once, at its start).
 */
const NAMED_REUSE_MS = 10_000;
