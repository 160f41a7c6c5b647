import { createServer, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { type Field, parseMessage } from "./messages.js";
import type { Ports } from "./site.js";

/** The daemons behind the proxy (service 1.2). */
export type UpstreamName = "web" | "files" | "dav";

/** What an upstream says, raw. A text is written once the request is complete, and the connection stays open. */
export type Answer = string | AnswerScript | "refused";

export interface AnswerScript {
  /** Pieces are written one after the other, each once the one before has left; none: no answer is ever given. */
  readonly pieces: readonly string[];
  /** When it begins: once the whole request is there (default), or its head. */
  readonly after?: "request" | "head";
  /** What becomes of the connection then; it stays open by default. */
  readonly then?: "close" | "reset";
}

/** What an upstream received. */
export interface RecordedRequest {
  readonly upstream: UpstreamName;
  readonly line: string;
  readonly fields: readonly Field[];
  readonly body: Buffer;
  /** Whether all of it came. */
  readonly complete: boolean;
  /** Whether the proxy closed the connection although an answer was still owed. */
  readonly givenUp: boolean;
}

/** Time for a proxy to close a connection that it no longer needs. */
const RELEASE_MS = 3_000;
const PIECE_PAUSE_MS = 30;

/** The three upstreams of one proxy: they record every byte of requests and answer by script. */
export class Upstreams {
  private readonly servers = new Map<UpstreamName, Server>();
  private readonly connections = new Set<Connection>();
  private answer: Answer | undefined;
  /** Bytes received since the last case, to time a client by. */
  bytes = 0;

  private constructor(private readonly ports: Ports) {}

  static async start(ports: Ports): Promise<Upstreams> {
    const upstreams = new Upstreams(ports);
    await upstreams.open();
    return upstreams;
  }

  /** Sets what is answered in the next case. */
  async prepare(answer: Answer | undefined): Promise<void> {
    this.answer = answer;
    this.bytes = 0;
    if (answer === "refused") await this.close();
  }

  /** What was received in this case, once no connection of it is left. */
  async settle(): Promise<RecordedRequest[]> {
    const all = [...this.connections];
    const requests = (await Promise.all(all.map((connection) => connection.release()))).flat();
    for (const connection of all) this.connections.delete(connection);
    if (this.answer === "refused") await this.open();
    return requests;
  }

  async close(): Promise<void> {
    const closing = [...this.servers.values()].map((server) => new Promise((done) => server.close(done)));
    this.servers.clear();
    for (const connection of this.connections) connection.socket.destroy();
    await Promise.all(closing);
  }

  private async open(): Promise<void> {
    for (const name of ["web", "files", "dav"] as const) {
      const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
        this.connections.add(new Connection(name, socket, () => this.answer ?? greeting(name), this));
      });
      this.servers.set(name, server);
      await new Promise<void>((resolve, reject) => {
        server.once("error", reject);
        server.listen(this.ports[name], "127.0.0.1", resolve);
      });
    }
  }
}

/** The usual answer; its body tells which upstream gave it. */
function greeting(name: UpstreamName): string {
  return `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: ${name.length}\r\n\r\n${name}`;
}

/** One connection of the proxy to an upstream. */
class Connection {
  private readonly done: RecordedRequest[] = [];
  private received: Buffer = Buffer.alloc(0);
  private at = 0;
  /** Whether the request under way is being answered already. */
  private answering = false;
  /** Whether it was answered before it was complete; the rest of it belongs to no other request. */
  private answeredEarly = false;
  private ended = false;
  private readonly closed: Promise<void>;

  constructor(
    private readonly name: UpstreamName,
    readonly socket: Socket,
    private readonly answer: () => Answer,
    private readonly counter: { bytes: number },
  ) {
    this.closed = new Promise((resolve) => socket.once("close", () => resolve()));
    socket.on("data", (chunk: Buffer) => this.receive(chunk));
    socket.on("end", () => {
      this.ended = true;
      socket.end();
    });
    // A proxy may reset what it gives up; that is recorded as `givenUp`.
    socket.on("error", () => undefined);
  }

  /** Ends the connection and tells what it carried. A proxy that owes a closing is given time for it first. */
  async release(): Promise<RecordedRequest[]> {
    const rest = this.record(false);
    const owed = rest !== undefined && !this.answeredEarly;
    if (owed) await within(RELEASE_MS, this.closed);
    const last = this.record(this.ended || this.socket.destroyed);
    this.socket.end();
    await within(RELEASE_MS, this.closed);
    this.socket.destroy();
    return last === undefined ? this.done : [...this.done, last];
  }

  private receive(chunk: Buffer): void {
    this.counter.bytes += chunk.length;
    this.received = Buffer.concat([this.received, chunk]);
    this.advance();
  }

  private advance(): void {
    const message = parseMessage(this.received, this.at, { type: "request" });
    if (message === undefined || this.answering) return;
    const answer = this.answer();
    const script: AnswerScript = typeof answer === "string" ? { pieces: [answer] } : answer;
    if (!message.complete && script.after !== "head") return;
    if (script.pieces.length === 0 && script.then === undefined) return;
    this.answering = true;
    this.answeredEarly = !message.complete;
    void this.send(script).then(() => {
      if (this.answeredEarly || script.then !== undefined) return;
      this.done.push(this.record(false)!);
      this.at = message.end;
      this.answering = false;
      this.advance();
    });
  }

  private async send({ pieces, then }: AnswerScript): Promise<void> {
    for (const [i, piece] of pieces.entries()) {
      if (i > 0) await sleep(PIECE_PAUSE_MS);
      if (!this.socket.destroyed) this.socket.write(Buffer.from(piece, "latin1"));
    }
    if (then === "close") this.socket.end();
    else if (then === "reset") this.socket.resetAndDestroy();
  }

  /** The request that is not filed yet, as far as it came. */
  private record(givenUp: boolean): RecordedRequest | undefined {
    if (this.at >= this.received.length) return undefined;
    const message = parseMessage(this.received, this.at, { type: "request" });
    return {
      upstream: this.name,
      line: message?.startLine ?? this.received.toString("latin1", this.at),
      fields: message?.fields ?? [],
      body: message?.body ?? Buffer.alloc(0),
      complete: message?.complete ?? false,
      givenUp: givenUp && !this.answering,
    };
  }
}

function within(milliseconds: number, promise: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    void promise.then(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
