import type { Socket } from "node:net";
import type { ListenerConfig } from "../../model/index.js";
import { sweepRegularly } from "../sockets/deadlines.js";
import { guarded, type Guarded } from "../sockets/guarded.js";
import type { Secured } from "../tls/certificateServers.js";
import type { Endpoints } from "./client.js";
import type { WorkerContext } from "../exchange/workerContext.js";

/** What a worker does with a client connection, whichever protocol it speaks. */
interface ClientConnection extends Guarded {
  drain(): void;
  destroy(): void;
  sweep(now: number): void;
}

/** All client connections of a worker that speak one protocol. */
export abstract class Connections<C extends ClientConnection> {
  draining = false;
  protected readonly all = new Set<C>();
  private stopSweeping: (() => void) | undefined = undefined;

  constructor(protected readonly context: WorkerContext) {}

  get size(): number {
    return this.all.size;
  }

  /** Takes over a connection, even after draining began: a TLS handshake may complete only then. */
  abstract accept(socket: Socket, listener: ListenerConfig, secured?: Secured, announced?: Endpoints): void;

  /** The clock must run before the connection is made, because the connection sets its deadlines by it. */
  protected add(make: () => C): C {
    this.stopSweeping ??= sweepRegularly(this);
    const connection = make();
    this.all.add(connection);
    return connection;
  }

  /** Each connection closes when the requests on it are done. */
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

  delete(connection: C): void {
    this.all.delete(connection);
    if (this.all.size > 0) return;
    this.stopSweeping?.();
    this.stopSweeping = undefined;
  }
}
