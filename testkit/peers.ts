import { once } from "node:events";
import * as net from "node:net";
import * as tls from "node:tls";

/** Raw-socket peers: what goes over the wire is exactly what a test writes, and is seen byte for byte. */

/** A busy machine may need tens of seconds for what takes milliseconds otherwise. */
const LIMIT_MS = 60_000;

/** A connection a scripted upstream accepted. */
export class Accepted {
  /** Everything received so far, one char a byte. */
  received = "";
  ended = false;
  closed = false;
  private readonly waiting = new Set<() => void>();

  constructor(readonly socket: net.Socket) {
    // Pieces arrive as they were sent, and no small one waits for an acknowledgement.
    socket.setNoDelay(true);
    const wake = (): void => this.waiting.forEach((check) => check());
    socket.on("data", (chunk: Buffer) => {
      this.received += chunk.toString("latin1");
      wake();
    });
    socket.on("end", () => {
      this.ended = true;
      wake();
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      this.closed = true;
      wake();
    });
  }

  /** Resolves once the predicate holds; rejects after `ms` with what was received. */
  until(holds: (peer: this) => boolean, ms = LIMIT_MS): Promise<this> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.waiting.delete(check);
        reject(
          new Error(
            `nothing such within ${ms} ms; closed: ${this.closed}; received: ${JSON.stringify(this.received.slice(0, 2000))}`,
          ),
        );
      }, ms);
      const check = (): void => {
        if (!holds(this)) return;
        clearTimeout(timer);
        this.waiting.delete(check);
        resolve(this);
      };
      this.waiting.add(check);
      check();
    });
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
export class RawUpstream {
  readonly connections: Accepted[] = [];
  port = 0;
  private readonly server: net.Server;
  private readonly waiting = new Set<() => void>();

  /** @param secure over TLS: connections are those that completed a handshake */
  constructor(onConnection: (peer: Accepted, index: number) => void = () => {}, secure?: tls.TlsOptions) {
    const accept = (socket: net.Socket): void => {
      const peer = new Accepted(socket);
      this.connections.push(peer);
      onConnection(peer, this.connections.length - 1);
      this.waiting.forEach((check) => check());
    };
    this.server =
      secure === undefined
        ? net.createServer({ allowHalfOpen: true }, accept)
        : tls.createServer(secure, accept);
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

  /** The connection with this index, as soon as it exists. */
  connection(index = 0, ms = LIMIT_MS): Promise<Accepted> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`upstream saw no connection ${index}`)), ms);
      const check = (): void => {
        const peer = this.connections[index];
        if (peer === undefined) return;
        clearTimeout(timer);
        this.waiting.delete(check);
        resolve(peer);
      };
      this.waiting.add(check);
      check();
    });
  }

  /** Everything that reached the upstream, over all connections. */
  get received(): string {
    return this.connections.map((c) => c.received).join("");
  }

  async close(): Promise<void> {
    this.connections.forEach((c) => c.socket.destroy());
    this.server.close();
    await once(this.server, "close");
  }
}

/** Answers every request head with the same bytes, keeping the connection. */
export function answering(response: string): (peer: Accepted) => void {
  return (peer) => {
    let answered = 0;
    peer.socket.on("data", () => {
      const requests = peer.received.split("\r\n\r\n").length - 1;
      for (; answered < requests; answered++) peer.send(response);
    });
  };
}

/** One for all: making it costs more than the rest of a connection. */
const secureContext = tls.createSecureContext();

/** A raw client connection, over TCP or TLS. */
export async function connectTo(port: number, secure = false): Promise<Accepted> {
  const socket = secure
    ? tls.connect({
        port,
        host: "127.0.0.1",
        secureContext,
        rejectUnauthorized: false,
        ALPNProtocols: ["http/1.1"],
      })
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
  const [line = "", ...lines] = head.split("\r\n");
  const headers: Record<string, string> = {};
  for (const field of lines) {
    const colon = field.indexOf(":");
    headers[field.slice(0, colon).toLowerCase()] ??= field.slice(colon + 1).trim();
  }
  const match = /^HTTP\/1\.1 (\d{3}) ?(.*)$/.exec(line);
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
