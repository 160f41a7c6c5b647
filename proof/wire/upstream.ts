import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { type Field, type Message, parseMessage } from "../../testkit/messages.js";
import { Accepted, LoopbackServer } from "../../testkit/peers.js";
import type { Response, ResponseScript } from "./case.js";
import { closeBy } from "./client.js";
import type { Ports } from "./site.js";

/** The daemons behind the proxy (service 1.2). */
export const UPSTREAM_NAMES = ["web", "files", "dav"] as const;
export type UpstreamName = (typeof UPSTREAM_NAMES)[number];

/** Responds to a request, by its first line; undefined if it does so on the socket, in a way of its own. */
export type Script = (line: string, socket: Socket, name: UpstreamName) => Response | undefined;

/** What an upstream received. */
export interface RecordedRequest {
  readonly upstream: UpstreamName;
  readonly line: string;
  readonly fields: readonly Field[];
  readonly body: Buffer;
  /** Whether all of it came. */
  readonly complete: boolean;
  /** Whether the proxy closed the connection although a response was still owed. */
  readonly givenUp: boolean;
}

/** One connection that the proxy made, as far as it concerns the case under way. */
export type RecordedConnection = Pick<RecordingConnection, "bytes" | "closed">;

/** Time for a proxy to close a connection that it no longer needs. */
const RELEASE_MS = 3_000;
const PIECE_PAUSE_MS = 5;

/** The upstreams of a proxy: they keep every byte that they get, and respond by script. */
export class RecordingUpstream {
  script: Script = echo;
  /** Responds once the head of a request is there, not all of it. */
  early = false;
  /** Bytes received since the last case, to time a client by. */
  bytes = 0;
  private deaf = false;
  private servers: LoopbackServer[] = [];
  private connections: RecordingConnection[] = [];

  private constructor(readonly ports: Ports) {}

  static async start(ports: Ports): Promise<RecordingUpstream> {
    const upstream = new RecordingUpstream(ports);
    await upstream.open();
    return upstream;
  }

  async open(): Promise<void> {
    for (const name of UPSTREAM_NAMES) {
      const server = new LoopbackServer((socket) => {
        this.connections.push(new RecordingConnection(name, socket, this));
        if (this.deaf) socket.pause();
      });
      this.servers.push(await server.listen(this.ports[name]));
    }
  }

  /** Ends all connections; of new ones it reads nothing from now on, or all. */
  beDeaf(deaf: boolean): void {
    this.deaf = deaf;
    for (const server of this.servers) server.cut();
  }

  /** Forgets what was received so far; connections stay. */
  forget(): void {
    this.bytes = 0;
    this.connections = this.connections.filter(({ closed }) => !closed);
    for (const connection of this.connections) connection.forget();
  }

  /** What came since the last `forget`, once each connection is between two requests or closed. */
  async settled(ms: number): Promise<RecordedConnection[]> {
    const deadline = Date.now() + ms;
    while (this.connections.some(({ busy }) => busy) && Date.now() < deadline) await sleep(2);
    return this.connections.filter(({ bytes }) => bytes.length > 0);
  }

  /** The same as requests, with all connections ended. A proxy that owes an end is given time for it first. */
  async released(): Promise<RecordedRequest[]> {
    const all = this.connections;
    const requests = await Promise.all(all.map((connection) => connection.release()));
    this.connections = this.connections.filter((connection) => !all.includes(connection));
    this.bytes = 0;
    return requests.flat();
  }

  async close(): Promise<void> {
    await Promise.all(this.servers.splice(0).map((server) => server.close()));
  }
}

/**
 * A connection that a proxy made to an upstream. One kind reads its bytes as they are and responds by line; the other
 * (`strictUpstream.ts`) reads within messages, and takes none but those that its script has clients send.
 */
export class UpstreamConnection extends Accepted {
  constructor(socket: Socket) {
    super(socket);
    socket.on("end", () => socket.end());
  }

  /** Ends this side, and waits for the other's end. */
  leave(ms: number): Promise<unknown> {
    this.socket.end();
    return this.gone(ms);
  }

  /** Waits for the end of the connection, but not for ever. */
  protected gone(ms: number): Promise<unknown> {
    return this.until(() => this.closed, ms).catch(() => undefined);
  }
}

class RecordingConnection extends UpstreamConnection {
  /** Where the first request begins without a response. */
  private at = 0;
  private responding = false;
  /** Responded before all of it was there: the rest of it belongs to no other request. */
  private respondedEarly = false;

  constructor(
    private readonly name: UpstreamName,
    socket: Socket,
    private readonly owner: RecordingUpstream,
  ) {
    super(socket);
  }

  get bytes(): Buffer {
    return Buffer.from(this.received, "latin1");
  }

  /** Whether a request is unfinished, or has no response yet. */
  get busy(): boolean {
    return !this.closed && this.at < this.received.length;
  }

  forget(): void {
    this.received = this.received.slice(this.at);
    this.at = 0;
  }

  async release(): Promise<RecordedRequest[]> {
    if (this.at < this.received.length && !this.respondedEarly) await this.gone(RELEASE_MS);
    const { closed, responding, at } = this;
    await this.leave(RELEASE_MS);
    this.socket.destroy();
    const { bytes } = this;
    const requests: RecordedRequest[] = [];
    for (let from = 0; from < bytes.length;) {
      const message = parseMessage(bytes, from, { type: "request" });
      requests.push({
        upstream: this.name,
        line: message?.startLine ?? bytes.toString("latin1", from),
        fields: message?.fields ?? [],
        body: message?.body ?? Buffer.alloc(0),
        complete: message?.complete ?? false,
        givenUp: closed && from >= at && !responding,
      });
      // What follows a request whose response ends the connection is nobody's.
      if (message === undefined || from >= at) break;
      from = message.end;
    }
    return requests;
  }

  protected override read({ length }: Buffer): void {
    this.owner.bytes += length;
    this.advance();
  }

  private advance(): void {
    while (!this.responding) {
      const message = parseMessage(this.bytes, this.at, { type: "request" });
      if (message === undefined || !(message.complete || this.owner.early)) return;
      const response = this.owner.script(message.startLine, this.socket, this.name);
      if (response === undefined) this.at = message.end;
      else if (typeof response === "string") {
        this.socket.write(Buffer.from(response, "latin1"));
        this.at = message.end;
      } else if (response.pieces.length > 0 || response.then !== undefined) this.play(response, message);
      else return;
    }
  }

  private play(response: ResponseScript, { complete, end }: Message): void {
    this.responding = true;
    this.respondedEarly = !complete;
    void play(this.socket, response).then(() => {
      if (this.respondedEarly || response.then !== undefined) return;
      this.at = end;
      this.responding = false;
      this.advance();
    });
  }
}

/** What is to be known of a response while it is written. */
interface Writing {
  /** Resolves when a piece may be written that waits for more than the pause. */
  held?(piece: number): Promise<unknown> | undefined;
  /** All pieces are. */
  written?(): Promise<void> | void;
  /** The connection ends now. */
  leaves?(): void;
  /** The connection below TLS. */
  readonly transport?: Socket;
}

/** Writes a response. */
export async function play(
  socket: Socket,
  { pieces, pauseMs = PIECE_PAUSE_MS, then, thenMs }: ResponseScript<string | Buffer>,
  { held, written, leaves, transport }: Writing = {},
): Promise<void> {
  for (const [i, piece] of pieces.entries()) {
    const waits = held?.(i) ?? (i > 0 ? sleep(pauseMs) : undefined);
    if (waits !== undefined) await waits;
    // Over TLS an empty write has the next record of the peer read within it.
    if (!socket.destroyed && piece.length > 0)
      socket.write(typeof piece === "string" ? Buffer.from(piece, "latin1") : piece);
  }
  await written?.();
  if (then === undefined) return;
  const waitMs = thenMs ?? (then === "reset" ? PIECE_PAUSE_MS : 0);
  if (waitMs > 0) await sleep(waitMs);
  leaves?.();
  closeBy(socket, then === "close" ? "half" : "reset", transport);
}

/** The usual response of a daemon; its body tells which one gave it. */
export const greeting: Script = (_line, _socket, name) => responseWith(name);

/**
 * A response whose body is the first line of its request, so that it tells which it belongs to; HEAD gets the head of
 * it.
 */
export const echo = (line: string): string => {
  const whole = responseWith(line);
  return line.startsWith("HEAD ") ? whole.slice(0, -line.length) : whole;
};

const responseWith = (body: string): string =>
  `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
