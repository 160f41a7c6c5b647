import { performServerHandshake } from "node:http2";
import type { TLSSocket } from "node:tls";
import type { ListenerConfig } from "../../model/index.js";
import { sweepRegularly } from "../clock.js";
import { clientInfo } from "../clientInfo.js";
import type { Services } from "../services.js";
import { Http2Connection } from "./connection.js";
import { sessionOptions, SESSION_WINDOW_BYTES } from "./sessionOptions.js";

/** All HTTP/2 client connections of a worker. */
export class Http2Connections {
  private readonly all = new Set<Http2Connection>();
  private readonly options: ReturnType<typeof sessionOptions>;
  private readonly stopSweeping: () => void;
  private draining = false;

  constructor(private readonly services: Services) {
    this.options = sessionOptions(services.config);
    this.stopSweeping = sweepRegularly(this);
  }

  get size(): number {
    return this.all.size;
  }

  /** Takes over a connection on which ALPN chose `h2`; its handshake is complete. */
  accept(socket: TLSSocket, listener: ListenerConfig): void {
    // The client may have gone before anyone looked.
    if (socket.destroyed) return;
    const client = clientInfo(socket, listener, this.services);
    const session = performServerHandshake(socket, this.options);
    session.setLocalWindowSize(SESSION_WINDOW_BYTES);
    const connection = new Http2Connection(session, socket, client, this.services, this);
    this.all.add(connection);
    if (this.draining) connection.close();
  }

  /** Tells every client to open no more streams; connections close when theirs are done. */
  drain(): void {
    this.draining = true;
    for (const connection of this.all) connection.close();
    if (this.all.size === 0) this.stopSweeping();
  }

  closeAll(): void {
    for (const connection of this.all) connection.destroy();
  }

  sweep(now: number): void {
    for (const connection of this.all) connection.sweep(now);
  }

  delete(connection: Http2Connection): void {
    this.all.delete(connection);
    if (this.draining && this.all.size === 0) this.stopSweeping();
  }
}
