import { once } from "node:events";
import * as http from "node:http";
import type { Duplex } from "node:stream";
import { eventually } from "./waiting.js";

/** Tunnels whose target begins with this stay open after their client has ended. */
const DEAF = "/deaf";
const SWITCHED = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";

/** An application on one port, or at one socket, that comes and goes: what it got, each time that it was there. */
export class RestartingWeb {
  /** How many requests came with a target, each counted when it was complete. */
  readonly got = new Map<string, number>();
  /** Bytes of all bodies. */
  bytes = 0;
  private server: http.Server | undefined;
  /** Tunnels of the server that is up, of which it ignores the client's end. */
  private deaf = new Set<Duplex>();

  /**
   * @param place a port of 127.0.0.1, or the path of a socket
   * @param responseMs how long a response takes
   */
  constructor(
    readonly place: number | string,
    private readonly responseMs = 0,
  ) {}

  get url(): string {
    return typeof this.place === "number" ? `http://127.0.0.1:${this.place}` : `unix:${this.place}`;
  }

  get isUp(): boolean {
    return this.server !== undefined;
  }

  async up(): Promise<void> {
    const deaf = (this.deaf = new Set<Duplex>());
    const server = http.createServer((request, response) => {
      request.on("data", (chunk: Buffer) => (this.bytes += chunk.length));
      request.on("end", () => {
        this.count(request.url!);
        const respond = (): unknown => response.end(`got ${request.method} ${request.url}`);
        if (this.responseMs === 0) respond();
        else setTimeout(respond, this.responseMs);
      });
    });
    server.on("upgrade", (request: http.IncomingMessage, socket: Duplex) => {
      this.count(request.url!);
      socket.on("error", () => undefined);
      const isDeaf = request.url!.startsWith(DEAF);
      if (isDeaf) deaf.add(socket.on("close", () => deaf.delete(socket)));
      socket[isDeaf ? "write" : "end"](SWITCHED);
    });
    if (typeof this.place === "number") server.listen(this.place, "127.0.0.1");
    else server.listen(this.place);
    await once(server, "listening");
    this.server = server;
  }

  /** It listens no longer; requests that it has get a response. */
  async down(): Promise<void> {
    const { server } = this;
    this.server = undefined;
    if (server === undefined) return;
    let closed = false;
    server.close(() => (closed = true));
    server.closeIdleConnections();
    let open = 0;
    const onlyDeaf = async (): Promise<boolean> => {
      open = await new Promise<number>((resolve) => server.getConnections((_, n) => resolve(n)));
      return closed || open <= this.deaf.size;
    };
    const seen = (): string => `${open} connections, ${this.deaf.size} of them deaf`;
    await eventually(onlyDeaf, "for the end of its connections", { everyMs: 1, seen });
  }

  /** The same at once, with all its connections. */
  async kill(): Promise<void> {
    this.server?.closeAllConnections();
    for (const socket of this.deaf) socket.destroy();
    await this.down();
  }

  private count(target: string): void {
    this.got.set(target, (this.got.get(target) ?? 0) + 1);
  }
}
