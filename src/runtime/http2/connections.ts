import type { TLSSocket } from "node:tls";
import type { ListenerConfig } from "../../model/index.js";
import type { Secured } from "../tls/certificateServers.js";
import { clientInfo, type Endpoints } from "../listen/client.js";
import { Connections } from "../listen/connections.js";
import { Http2Connection } from "./connection.js";
import { WindowLender } from "./flowControl.js";
import { lentWindowBytes } from "../codec/http2/settings.js";

/** All HTTP/2 client connections of a worker. */
export class Http2Connections extends Connections<Http2Connection> {
  /** What their windows grow by. */
  readonly windows = new WindowLender(lentWindowBytes(this.context.config));

  /** Open streams of all of them. */
  get streams(): number {
    let streams = 0;
    for (const connection of this.all) streams += connection.streams.size;
    return streams;
  }

  /** @param socket on which ALPN chose `h2`; its handshake is complete */
  override accept(
    socket: TLSSocket,
    listener: ListenerConfig,
    secured?: Secured,
    announced?: Endpoints,
  ): void {
    // The client may already be gone.
    if (socket.destroyed) return;
    const client = clientInfo(socket, listener, this.context, secured, announced);
    const connection = this.add(() => new Http2Connection(socket, client, this.context, this));
    if (this.draining) connection.drain();
  }
}
