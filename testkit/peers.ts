import { once } from "node:events";
import * as net from "node:net";
import * as tls from "node:tls";
import { type Message, parseHead, wholeMessages } from "./messages.js";
import { connectTls, type TlsClient } from "./tlsClient.js";
import { Changes } from "./waiting.js";

/** Raw-socket peers: what goes over the wire is exactly what a test writes, and is seen byte for byte. */

/** A busy machine may need tens of seconds for what takes milliseconds otherwise. */
const LIMIT_MS = 60_000;

/** A server on a loopback port, or a Unix socket, that knows its connections. */
export class LoopbackServer {
  port = 0;
  readonly sockets = new Set<net.Socket>();
  private readonly server: net.Server;
  /** TCP connections below TLS, by the port of the peer. */
  private readonly carriers = new Map<number, net.Socket>();

  /** @param secure over TLS: connections are those that completed a handshake */
  constructor(accept: (socket: net.Socket) => void, secure?: tls.TlsOptions) {
    const taken = (socket: net.Socket): void => {
      this.sockets.add(socket);
      // What a peer resets is seen as an end.
      socket.on("error", () => undefined).on("close", () => this.sockets.delete(socket));
      accept(socket);
    };
    // Pieces arrive as they were sent, and no small one waits for an acknowledgement.
    const options = { allowHalfOpen: true, noDelay: true };
    this.server =
      secure === undefined
        ? net.createServer(options, taken)
        : tls.createServer({ ...secure, noDelay: true }, taken);
    if (secure === undefined) return;
    this.server.on("connection", (carrier: net.Socket) => {
      const port = carrier.remotePort!;
      this.carriers.set(port, carrier);
      carrier.on("close", () => this.carriers.delete(port));
    });
  }

  /** The connection below TLS, which alone can be reset; without TLS the socket itself. */
  transportOf(socket: net.Socket): net.Socket {
    return this.carriers.get(socket.remotePort ?? 0) ?? socket;
  }

  async listen(port = 0): Promise<this> {
    this.server.listen(port, "127.0.0.1");
    await once(this.server, "listening");
    this.port = (this.server.address() as net.AddressInfo).port;
    return this;
  }

  /** On a Unix socket. */
  async listenAt(path: string): Promise<this> {
    this.server.listen(path);
    await once(this.server, "listening");
    return this;
  }

  /** Takes no more connections, and keeps those it has; resolves when the last is gone. */
  stopListening(): Promise<unknown> {
    return new Promise((done) => this.server.close(done));
  }

  /** Cuts all connections; others may come. */
  cut(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  async close(): Promise<void> {
    this.cut();
    this.server.close();
    await once(this.server, "close");
  }
}

/** A connection whose bytes are kept: of a client, or one that a scripted upstream accepted. */
export class Accepted {
  /** Everything received so far, one char a byte. */
  received = "";
  ended = false;
  closed = false;
  private readonly changes = new Changes();

  constructor(readonly socket: net.Socket) {
    socket.setNoDelay(true);
    socket.on("data", (chunk: Buffer) => {
      this.received += chunk.toString("latin1");
      this.read?.(chunk);
      this.changes.tell();
    });
    socket.on("end", () => {
      this.ended = true;
      this.changes.tell();
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      this.closed = true;
      this.left?.();
      this.changes.tell();
    });
  }

  /** For those who read what comes as it comes. */
  protected read?(bytes: Buffer): void;

  /** The connection is closed. */
  protected left?(): void;

  /** Resolves once the predicate holds; rejects after `ms` with what was received. */
  async until(holds: (peer: this) => boolean, ms = LIMIT_MS): Promise<this> {
    const seen = (): string =>
      `; closed: ${this.closed}; received: ${JSON.stringify(this.received.slice(0, 2000))}`;
    await this.changes.until(() => holds(this), ms, seen);
    return this;
  }

  /** Waits for text to have arrived. */
  receives(text: string | RegExp): Promise<this> {
    return this.until((peer) =>
      typeof text === "string" ? peer.received.includes(text) : text.test(peer.received),
    );
  }

  send(bytes: string | Buffer): this {
    this.socket.write(typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes);
    return this;
  }
}

/** A scripted upstream: `onConnection` runs for each connection; all of them are kept for inspection. */
export class RawUpstream extends LoopbackServer {
  readonly connections: Accepted[] = [];
  private readonly changes = new Changes();

  /** @param secure over TLS: connections are those that completed a handshake */
  constructor(onConnection: (peer: Accepted, index: number) => void = () => {}, secure?: tls.TlsOptions) {
    super((socket) => {
      const peer = new Accepted(socket);
      this.connections.push(peer);
      onConnection(peer, this.connections.length - 1);
      this.changes.tell();
    }, secure);
  }

  /** The connection with this index, as soon as it exists. */
  async connection(index = 0, ms = LIMIT_MS): Promise<Accepted> {
    const seen = (): string => `: upstream saw no connection ${index}`;
    await this.changes.until(() => this.connections[index] !== undefined, ms, seen);
    return this.connections[index]!;
  }

  /** Everything that reached the upstream, over all connections. */
  get received(): string {
    return this.connections.map((c) => c.received).join("");
  }
}

/** Responds to every whole request, given by its first line and body, and keeps the connection. */
export function respondingWhole(respond: (request: Message) => string): (socket: net.Socket) => void {
  return (socket) => {
    let unread: Buffer = Buffer.alloc(0);
    socket.on("data", (chunk: Buffer) => {
      const bytes = Buffer.concat([unread, chunk]);
      const { messages, rest } = wholeMessages(bytes, { type: "request" });
      unread = bytes.subarray(bytes.length - rest);
      for (const request of messages) socket.write(Buffer.from(respond(request), "latin1"));
    });
  };
}

/** Responds to every request head with the same bytes, keeping the connection. */
export function responding(response: string): (peer: Accepted) => void {
  return (peer) => {
    let responded = 0;
    peer.socket.on("data", () => {
      const requests = peer.received.split("\r\n\r\n").length - 1;
      for (; responded < requests; responded++) peer.send(response);
    });
  };
}

/** A raw client connection, over TCP or TLS. @param secure over TLS, or how */
export async function connectTo(
  port: number,
  secure: boolean | Partial<TlsClient> = false,
): Promise<Accepted> {
  const socket = secure
    ? connectTls({ port, protocol: "http/1.1", ...(secure === true ? {} : secure) })
    : net.connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  const peer = new Accepted(socket);
  await once(socket, secure ? "secureConnect" : "connect");
  return peer;
}

export interface RawResponse {
  readonly status: number;
  readonly reason: string;
  readonly head: string;
  /** First value of a field, by lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Parses the first response in `text`; the body is what follows the head, undecoded. */
export function parseResponse(text: string): RawResponse {
  const end = text.indexOf("\r\n\r\n");
  const head = text.slice(0, end);
  const { startLine, fields } = parseHead(head);
  const headers: Record<string, string> = {};
  for (const [name, value] of fields) headers[name.toLowerCase()] ??= value;
  const match = /^HTTP\/1\.1 (\d{3}) ?(.*)$/.exec(startLine);
  if (match === null || end === -1) throw new Error(`no response: ${JSON.stringify(text.slice(0, 500))}`);
  return { status: Number(match[1]), reason: match[2]!, head, headers, body: text.slice(end + 4) };
}

/** Sends bytes on a connection of its own, waits for its end (the proxy's or an idle moment), and returns the response. */
export async function exchange(port: number, request: string, secure = false): Promise<RawResponse> {
  const client = await connectTo(port, secure);
  client.send(request);
  await client.until((peer) => peer.closed || peer.ended || isComplete(peer.received));
  client.socket.destroy();
  return parseResponse(client.received);
}

/** True for a response whose declared body has arrived. */
export function isComplete(text: string): boolean {
  const end = text.indexOf("\r\n\r\n");
  if (end === -1) return false;
  const { status, headers, body } = parseResponse(text);
  if (status === 204 || status === 304) return true;
  if (headers["transfer-encoding"] === "chunked") return body.endsWith("0\r\n\r\n");
  return headers["content-length"] !== undefined && body.length >= Number(headers["content-length"]);
}
