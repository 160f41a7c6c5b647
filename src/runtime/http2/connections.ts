import { guarded } from "../exchange/guarded.js";
import type { TLSSocket } from "node:tls";
import type { ListenerConfig } from "../../model/index.js";
import { sweepRegularly } from "../exchange/clock.js";
import { clientInfo } from "../listen/client.js";
import type { WorkerContext } from "../exchange/workerContext.js";
import { Http2Connection } from "./connection.js";

/** All HTTP/2 client connections of a worker. */
export class Http2Connections {
  private readonly all = new Set<Http2Connection>();
  private stopSweeping: (() => void) | undefined = undefined;
  private draining = false;

  constructor(private readonly context: WorkerContext) {}

  get size(): number {
    return this.all.size;
  }

  /** Takes over a connection on which ALPN chose `h2`; its handshake is complete. */
  accept(socket: TLSSocket, listener: ListenerConfig): void {
    // The client may have gone before anyone looked.
    if (socket.destroyed) return;
    // Also after draining began: a TLS handshake may end then.
    this.stopSweeping ??= sweepRegularly(this);
    const client = clientInfo(socket, listener, this.context);
    const connection = new Http2Connection(socket, client, this.context, this);
    this.all.add(connection);
    if (this.draining) connection.drain();
  }

  /** Tells every client to open no more streams; connections close when theirs are done. */
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

  delete(connection: Http2Connection): void {
    this.all.delete(connection);
    if (this.all.size > 0) return;
    this.stopSweeping?.();
    this.stopSweeping = undefined;
  }
}
