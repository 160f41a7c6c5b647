import type { Socket } from "node:net";
import type { ListenerConfig } from "../../model/index.js";
import type { Secured } from "../tls/certificateServers.js";
import { clientInfo, type Endpoints } from "../listen/client.js";
import { Connections } from "../listen/connections.js";
import { Http1Connection } from "./connection.js";

/** All HTTP/1.1 client connections of a worker. */
export class Http1Connections extends Connections<Http1Connection> {
  /**
   * @param socket must allow half-open
   * @param read bytes that were read from it already; it is paused then
   */
  override accept(
    socket: Socket,
    listener: ListenerConfig,
    secured?: Secured,
    announced?: Endpoints,
    read?: Buffer,
  ): void {
    const client = clientInfo(socket, listener, this.context, secured, announced);
    const connection = this.add(() => new Http1Connection(socket, client, this.context, this));
    if (read !== undefined) connection.continueAfter(read);
  }
}
