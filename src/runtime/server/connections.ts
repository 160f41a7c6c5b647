import type { Socket } from "node:net";
import type { ListenerConfig } from "../../model/index.js";
import { coarseNow, sweepRegularly } from "../sockets/deadlines.js";
import { guarded, type Guarded } from "../sockets/guarded.js";
import type { Secured } from "../tls/certificateServers.js";
import { clientInfo, type Endpoints } from "../listen/clientInfo.js";
import type { MakeRoom } from "../listen/gate.js";
import { tcpSocketOf } from "../sockets/node/tcpBelowTls.js";
import type { ClientInfo, RunningExchange } from "../exchange/exchange.js";
import type { WorkerContext } from "../dispatch/workerContext.js";
import { Http1Connection } from "./http1Connection.js";
import type { TLSSocket } from "node:tls";
import { Http2Connection } from "./http2Connection.js";
import { WindowLender } from "./flowControl.js";
import { lentWindowBytes } from "../codec/http2/settings.js";

/** A client connection as a worker manages it, whichever protocol it speaks. */
interface ClientConnection extends Guarded {
  readonly client: ClientInfo;
  readonly socket: Socket | TLSSocket;
  /**
   * Since when it waits for a request, by the coarse clock; Infinity if it has one, or a part of one. 10 s are added while it
   * waits for its first one, since a client sends a request again only on a connection that was used before; HTTP/2 adds the
   * time that its client may still take to read a response.
   */
  readonly waitsSince: number;
  /** Requests whose responses are not over. */
  running(): Iterable<RunningExchange>;
  drain(): void;
  destroy(): void;
  sweep(now: number): void;
}

/**
 * Ends connections, of any protocol, that have waited for a request for some time, those first that have waited longest. A
 * request that is on its way then is lost, which a client has to expect (RFC 9112, 9.5).
 */
export const roomMaker =
  (...all: readonly Connections<ClientConnection>[]): MakeRoom =>
  (most, counts) => {
    const until = coarseNow() - WAITED_MS;
    return all
      .flatMap((connections) => connections.waiting(until))
      .flatMap((connection) => {
        const { client, socket } = connection;
        const tcp = client.scheme === "https" ? tcpSocketOf(socket as TLSSocket) : socket;
        return tcp !== undefined && counts(tcp) ? [{ connection, tcp }] : [];
      })
      .sort((one, other) => one.connection.waitsSince - other.connection.waitsSince)
      .slice(0, most)
      .map(({ connection, tcp }) => {
        connection.destroy();
        return tcp;
      });
  };

/** Between two requests of a page that is being loaded there is less. */
const WAITED_MS = 1_000;

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

  /** Those that have waited for a request since that time or longer. */
  waiting(until: number): readonly C[] {
    return [...this.all].filter(({ waitsSince }) => waitsSince <= until);
  }

  /** Requests on all connections whose responses are not over; requests that end meanwhile may be included or not. */
  running(): readonly RunningExchange[] {
    return [...this.all].flatMap((connection) => [...connection.running()]);
  }

  /** The listeners that they came through, each with how many of them are open. */
  byListener(): ReadonlyMap<string, number> {
    const open = new Map<string, number>();
    for (const { client } of this.all) open.set(client.listener, (open.get(client.listener) ?? 0) + 1);
    return open;
  }

  sweep(now: number): void {
    for (const connection of this.all) {
      guarded(connection, connection.sweep, now);
      for (const exchange of connection.running())
        this.context.dispatcher.countsOf(exchange).progress(exchange);
    }
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
    this.context.counts.accepted(client.listener, "http/1.1");
    const connection = this.add(() => new Http1Connection(socket, client, this.context, this));
    if (this.draining) connection.drain();
    if (read !== undefined) connection.continueAfter(read);
  }
}

/** All HTTP/2 client connections of a worker. */
export class Http2Connections extends Connections<Http2Connection> {
  /** Lends the growth of their windows. */
  readonly windows = new WindowLender(lentWindowBytes(this.context.config));

  /** Open streams of all of them. */
  get streams(): number {
    let streams = 0;
    for (const connection of this.all) streams += connection.streams.open.size;
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
    this.context.counts.accepted(client.listener, "h2");
    const connection = this.add(() => new Http2Connection(socket, client, this.context, this));
    if (this.draining) connection.drain();
  }
}
