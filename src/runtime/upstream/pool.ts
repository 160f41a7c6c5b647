import { isIP } from "node:net";
import type { UpstreamConfig } from "../../model/index.js";
import { coarseNow, sweepRegularly } from "../clock.js";
import { UpstreamConnection } from "./connection.js";

/** The connections to one upstream: hands out idle ones, most recently used first, and opens new ones. */
export class UpstreamPool {
  private readonly idleConnections: UpstreamConnection[] = [];
  private readonly all = new Set<UpstreamConnection>();
  private readonly stopSweeping: () => void;
  private readonly address: { host: string; port: number };
  /** Whether the upstream is given by a name, whose address may change. */
  private readonly named: boolean;
  private closing = false;

  constructor(readonly config: UpstreamConfig) {
    const url = new URL(config.url);
    this.address = { host: url.hostname.replace(/^\[|\]$/g, ""), port: Number(url.port || 80) };
    this.named = isIP(this.address.host) === 0;
    this.stopSweeping = sweepRegularly(this);
  }

  /** @param fresh true to open a new connection even if an idle one is there: for the one retry */
  acquire(fresh: boolean): UpstreamConnection {
    while (!fresh) {
      const idle = this.idleConnections.pop();
      if (idle === undefined) break;
      // One that was closed stays in the list until its close is told.
      if (idle.usable) return idle;
    }
    const connection = new UpstreamConnection(this.config, this.address, this);
    this.all.add(connection);
    return connection;
  }

  /** Closes idle connections now and busy ones after their answer. */
  close(): void {
    this.closing = true;
    for (const connection of this.idleConnections.splice(0)) connection.destroy();
    if (this.all.size === 0) this.stopSweeping();
  }

  sweep(now: number): void {
    for (const connection of this.all) connection.sweep(now);
  }

  idle(connection: UpstreamConnection): boolean {
    if (this.closing || this.idleConnections.length >= this.config.idleConnectionsMax) return false;
    if (this.named && coarseNow() - connection.openedAt >= NAMED_REUSE_MS) return false;
    this.idleConnections.push(connection);
    return true;
  }

  closed(connection: UpstreamConnection): void {
    this.all.delete(connection);
    const at = this.idleConnections.indexOf(connection);
    if (at !== -1) this.idleConnections.splice(at, 1);
    if (this.closing && this.all.size === 0) this.stopSweeping();
  }
}

/**
 * How long connections to an upstream with a name are used. Each new one looks the name up again, so that a change of
 * its address is noticed even if the connections never rest (nginx looks names up once, at its start).
 */
const NAMED_REUSE_MS = 10_000;
