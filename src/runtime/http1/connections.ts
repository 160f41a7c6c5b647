import { guarded } from "../exchange/guarded.js";
import type { Socket } from "node:net";
import type { ListenerConfig } from "../../model/index.js";
import { sweepRegularly } from "../exchange/clock.js";
import { clientInfo } from "../listen/client.js";
import type { WorkerContext } from "../exchange/workerContext.js";
import { Http1Connection } from "./connection.js";

/** All HTTP/1.1 client connections of a worker. */
export class Http1Connections {
  draining = false;
  private readonly all = new Set<Http1Connection>();
  private stopSweeping: (() => void) | undefined = undefined;

  constructor(private readonly context: WorkerContext) {}

  get size(): number {
    return this.all.size;
  }

  /** Takes a connection over; the socket must allow half-open. */
  accept(socket: Socket, listener: ListenerConfig): void {
    // Also after draining began: a TLS handshake may end then.
    this.stopSweeping ??= sweepRegularly(this);
    this.all.add(new Http1Connection(socket, clientInfo(socket, listener, this.context), this.context, this));
  }

  /** Closes idle connections soon, unless a request is on its way, and each of the others after the answer it is giving. */
  drain(): void {
    this.draining = true;
    for (const connection of this.all) connection.drain();
  }

  closeAll(): void {
    for (const connection of this.all) connection.destroy();
  }

  sweep(now: number): void {
    for (const connection of this.all) guarded(connection, connection.sweep, now);
  }

  onFault(error: unknown): void {
    this.context.faults.report(error);
  }

  delete(connection: Http1Connection): void {
    this.all.delete(connection);
    if (this.all.size > 0) return;
    this.stopSweeping?.();
    this.stopSweeping = undefined;
  }
}
