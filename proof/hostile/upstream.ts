import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { parseMessage } from "../nginx/messages.js";

/** One connection that the proxy made, as far as it concerns the case under way. */
export interface RecordedConnection {
  readonly bytes: Buffer;
  /** Whether the proxy ended it. */
  readonly closed: boolean;
}

/** What an upstream answers a request with; the greeting if undefined. */
export type Script = (line: string, socket: Socket) => void;

/**
 * Upstreams that keep every byte they get, and answer each request by its own first line: an answer tells which
 * request it belongs to.
 */
export class RecordingUpstream {
  /** Answers requests in place of the greeting, for cases about answers. */
  script: Script | undefined = undefined;
  /** Reads nothing of new connections. */
  deaf = false;
  private readonly servers: Server[] = [];
  private connections: Connection[] = [];

  static async start(ports: readonly number[]): Promise<RecordingUpstream> {
    const upstream = new RecordingUpstream();
    for (const port of ports) {
      const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
        upstream.connections.push(new Connection(socket, upstream));
      });
      upstream.servers.push(server);
      server.listen(port, "127.0.0.1");
      await once(server, "listening");
    }
    return upstream;
  }

  /** Ends all connections; of new ones it reads nothing from now on, or all. */
  beDeaf(deaf: boolean): void {
    this.deaf = deaf;
    for (const { socket } of this.connections) socket.destroy();
  }

  /** Forgets what was received so far; connections stay. */
  forget(): void {
    this.connections = this.connections.filter((connection) => !connection.closed);
    for (const connection of this.connections) connection.forget();
  }

  /** What came since the last `forget`, once each connection is between two requests or closed. */
  async settled(ms: number): Promise<RecordedConnection[]> {
    const deadline = Date.now() + ms;
    while (this.connections.some((connection) => connection.busy) && Date.now() < deadline) await sleep(2);
    return this.connections
      .map(({ received, closed }) => ({ bytes: received, closed }))
      .filter(({ bytes }) => bytes.length > 0);
  }

  async close(): Promise<void> {
    for (const connection of this.connections) connection.socket.destroy();
    await Promise.all(this.servers.map((server) => new Promise((done) => server.close(done))));
  }
}

class Connection {
  received: Buffer = Buffer.alloc(0);
  closed = false;
  private at = 0;

  constructor(
    readonly socket: Socket,
    private readonly owner: { readonly script: Script | undefined; readonly deaf: boolean },
  ) {
    socket.on("data", (chunk: Buffer) => {
      this.received = Buffer.concat([this.received, chunk]);
      this.advance();
    });
    socket.on("end", () => {
      this.closed = true;
      socket.end();
    });
    socket.on("error", () => undefined);
    socket.on("close", () => (this.closed = true));
    if (owner.deaf) socket.pause();
  }

  /** Whether a request is unfinished. */
  get busy(): boolean {
    return !this.closed && this.at < this.received.length;
  }

  forget(): void {
    this.received = this.received.subarray(this.at);
    this.at = 0;
  }

  private advance(): void {
    for (;;) {
      const message = parseMessage(this.received, this.at, { type: "request" });
      if (message?.complete !== true) return;
      this.at = message.end;
      if (this.owner.script === undefined) this.socket.write(echo(message.startLine));
      else this.owner.script(message.startLine, this.socket);
    }
  }
}

/** An answer whose body is the first line of its request; HEAD gets the head of it. */
export function echo(line: string): Buffer {
  const head = `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: ${line.length}\r\n\r\n`;
  return Buffer.from(line.startsWith("HEAD ") ? head : head + line, "latin1");
}
