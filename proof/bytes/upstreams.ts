import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import type { UpstreamInput } from "../../src/model/index.js";
import { issue, type Issued } from "../../testkit/certificates.js";
import { type Carrier, UPSTREAMS } from "./case.js";
import type { Running } from "./running.js";
import { readBy, send } from "./transfer.js";

/** What a server over TLS shows. */
export type Shown = Pick<Issued, "key" | "cert">;

/** One of Node's own servers, which knows each exchange by the last segment of its path. It may end, and begin again at its place. */
export class BodyServer {
  private server: Server | undefined;
  private readonly sockets = new Set<Socket>();
  /** The sockets on which no request is open. */
  private readonly idle = new Set<Duplex>();
  private port = 0;

  /**
   * @param path of its socket, if it is at one
   * @param find the exchange of an id
   */
  constructor(
    readonly name: string,
    readonly carrier: Carrier,
    readonly path: string,
    private readonly shown: Shown,
    readonly find: Find,
  ) {}

  /** For the upstream's config, once it was up. */
  get url(): string {
    return this.carrier === "unix" ? `unix:${this.path}` : `${this.carrier}://127.0.0.1:${this.port}`;
  }

  /** What its own URLs begin with. */
  get origin(): string {
    return this.carrier === "unix" ? "http://localhost" : this.url;
  }

  get isUp(): boolean {
    return this.server !== undefined;
  }

  async up(): Promise<void> {
    const { carrier } = this;
    const server = carrier === "https" ? createTlsServer(this.shown) : createServer();
    server.keepAliveTimeout = IDLE_MS;
    server.requestTimeout = 0;
    server.on("connection", (socket: Socket) => {
      this.sockets.add(socket);
      socket.on("close", () => this.sockets.delete(socket));
    });
    server.on(carrier === "https" ? "secureConnection" : "connection", (socket: Socket) => {
      this.idle.add(socket);
      socket.on("close", () => this.idle.delete(socket));
    });
    server.on("request", (request, response) => {
      const { socket } = request;
      this.idle.delete(socket);
      response.on("close", () => {
        if (!socket.destroyed) this.idle.add(socket);
      });
      serve(this, request, response);
    });
    server.on("upgrade", (request, socket, head) => {
      this.idle.delete(socket);
      tunnel(this, request, socket, head);
    });
    // What the proxy gives up is seen by the exchange.
    server.on("clientError", (_, socket) => socket.destroy());
    server.listen(...((carrier === "unix" ? [this.path] : [this.port, "127.0.0.1"]) as [string]));
    await once(server, "listening");
    if (carrier !== "unix") this.port = (server.address() as AddressInfo).port;
    this.server = server;
  }

  /**
   * Closes the connections that wait for a request. Node's `closeIdleConnections` leaves those that never had one: a
   * connection that the proxy opened for a client that left meanwhile.
   */
  hangUp(): void {
    for (const socket of this.idle) socket.destroy();
  }

  /** Ends at once, with all its connections. */
  async kill(): Promise<void> {
    const { server } = this;
    this.server = undefined;
    if (server === undefined) return;
    const closed = once(server, "close");
    server.close();
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }
}

/** The responders of the matrix, one over each carrier. */
export class Upstreams {
  private constructor(private readonly servers: readonly BodyServer[]) {}

  /** @param folder where the Unix socket is */
  static async start(folder: string, find: Find): Promise<Upstreams> {
    const shown = await issue({ names: ["upstream.test"], type: "ec" });
    const path = join(folder, "upstream.sock");
    const servers = UPSTREAMS.map((name) => new BodyServer(name, name, path, shown, find));
    for (const server of servers) await server.up();
    return new Upstreams(servers);
  }

  get inputs(): readonly UpstreamInput[] {
    return this.servers.map(({ name, carrier, url }) => ({
      ...{ name, url, idleTimeoutMs: IDLE_MS },
      ...(carrier === "https" ? { tls: { verify: false } } : {}),
    }));
  }

  /** As {@link BodyServer.hangUp}. */
  hangUp(): void {
    for (const server of this.servers) server.hangUp();
  }

  async stop(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.kill()));
  }
}

/** Servers hang up as long as `work` takes: a connection may become idle, or be made, in the middle of it. */
export async function hungUp<T>(servers: Pick<BodyServer, "hangUp">, work: Promise<T>): Promise<T> {
  servers.hangUp();
  const again = setInterval(() => servers.hangUp(), HANG_UP_MS);
  return work.finally(() => clearInterval(again));
}

const HANG_UP_MS = 100;

/** Nothing is closed for idleness while cases run. */
export const IDLE_MS = 60_000;

export type Find = (id: string) => Running | undefined;

const idOf = ({ url }: IncomingMessage): string => url!.slice(url!.lastIndexOf("/") + 1);

/** A server fails requests whose ids begin with this: it closes the connection without a response. */
export const FAILS = "fails.";

function serve(by: BodyServer, request: IncomingMessage, response: ServerResponse): void {
  const id = idOf(request);
  const running = by.find(id);
  running?.arrived(by.name, request);
  request.on("error", () => undefined);
  response.on("error", () => undefined);
  if (running === undefined) {
    if (id.startsWith(FAILS)) request.socket.destroy();
    else response.writeHead(418).end();
    return;
  }
  limitRecords(request.socket, running.recordBytes);
  const { exchange, up } = running;
  const { transfer, reader, leavesAt } = exchange;
  const reads = transfer === "both" && reader === "leaving" ? "fast" : reader;
  const leave = (): void => running.leave(() => request.socket.destroy());
  if (running.showsUrl) response.setHeader("Content-Location", `${by.origin}${request.url}`);
  if (transfer === "download") request.resume();
  else readBy(reads, request, up, leavesAt, leave);
  request.on("end", () => running.uploaded.open());
  if (transfer === "upload") request.on("end", () => response.end(running.id));
  else void respond(response, running);
}

async function respond(response: ServerResponse, { exchange, down, uploaded }: Running): Promise<void> {
  const { framing, transfer, pieces } = exchange;
  if (framing === "length") response.setHeader("Content-Length", down.expected.length);
  if (framing === "chunked") response.setHeader("Transfer-Encoding", "chunked");
  if (framing === "close") {
    response.shouldKeepAlive = false;
    response.useChunkedEncodingByDefault = false;
  }
  // A response of a length of 0 ends with its head.
  if (transfer === "both" && down.expected.length === 0) await uploaded.opened;
  response.flushHeaders();
  await send(response, down.expected, pieces, transfer === "both" ? uploaded.opened : undefined);
  response.end();
}

function tunnel(by: BodyServer, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  const running = by.find(idOf(request));
  running?.arrived(by.name, request);
  if (running === undefined) {
    socket.destroy();
    return;
  }
  limitRecords(socket, running.recordBytes);
  socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  if (head.length > 0) socket.unshift(head);
  void running.tunnel(socket, "upstream");
}

export function limitRecords(socket: Duplex, bytes: number): void {
  (socket as Partial<TLSSocket>).setMaxSendFragment?.(bytes);
}
