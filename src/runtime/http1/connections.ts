import type { Socket } from "node:net";
import type { ListenerConfig } from "../../model/index.js";
import type { Misdirected } from "../listen/certificateServers.js";
import { clientInfo } from "../listen/client.js";
import { Connections } from "../listen/connections.js";
import { Http1Connection } from "./connection.js";

/** All HTTP/1.1 client connections of a worker. */
export class Http1Connections extends Connections<Http1Connection> {
  /** @param socket must allow half-open */
  override accept(socket: Socket, listener: ListenerConfig, misdirected?: Misdirected): void {
    const client = clientInfo(socket, listener, this.context, misdirected);
    this.add(() => new Http1Connection(socket, client, this.context, this));
  }
}
