import type { UpstreamConfig } from "../../model/index.js";
import { sweepRegularly } from "../clock.js";
import { UpstreamConnection } from "./connection.js";

/** The connections to one upstream: hands out idle ones, most recently used first, and opens new ones. */
export class UpstreamPool {
  private readonly idleConnections: UpstreamConnection[] = [];
  private readonly all = new Set<UpstreamConnection>();
  private readonly stopSweeping: () => void;
  private readonly address: { host: string; port: number };
  private closing = false;

  constructor(readonly config: UpstreamConfig) {
    const url = new URL(config.url);
    this.address = { host: url.hostname.replace(/^\[|\]$/g, ""), port: Number(url.port || 80) };
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
