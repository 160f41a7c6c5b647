import { once } from "node:events";
import * as http from "node:http";
import type { Duplex } from "node:stream";

/** An application on one port, or at one socket, that comes and goes: what it got, each time that it was there. */
export class RestartingWeb {
  /** How many requests came with a target, each counted when it was complete. */
  readonly got = new Map<string, number>();
  /** Bytes of all bodies. */
  bytes = 0;
  private server: http.Server | undefined;

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
      socket.end("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
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
    server.close();
    server.closeIdleConnections();
    await once(server, "close");
  }

  /** The same at once, with all its connections. */
  async kill(): Promise<void> {
    this.server?.closeAllConnections();
    await this.down();
  }

  private count(target: string): void {
    this.got.set(target, (this.got.get(target) ?? 0) + 1);
  }
}
