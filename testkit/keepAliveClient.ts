import { once } from "node:events";
import * as net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { parseMessage } from "./messages.js";

/** A response as it came over one connection. */
export interface Response {
  readonly status: number;
  readonly head: string;
  readonly body: string;
  /** Whether the server said that it closes. */
  readonly closes: boolean;
}

/** One keep-alive connection that asks again and again and minds what the server says about closing. */
export class KeepAliveClient {
  private buffer: Buffer = Buffer.alloc(0);
  private ended = false;
  private wake: () => void = () => undefined;

  private constructor(readonly socket: net.Socket) {
    socket.on("data", (bytes: Buffer) => {
      this.buffer = Buffer.concat([this.buffer, bytes]);
      this.wake();
    });
    const end = (): void => {
      this.ended = true;
      this.wake();
    };
    socket.on("end", end).on("close", end).on("error", end);
  }

  static async connect(port: number): Promise<KeepAliveClient> {
    const socket = net.connect({ port, host: "127.0.0.1", noDelay: true });
    await once(socket, "connect");
    return new KeepAliveClient(socket);
  }

  get closed(): boolean {
    return this.ended;
  }

  /** Sends a request and resolves with its response; rejects if the connection ends before that is complete. */
  async ask(path = "/"): Promise<Response> {
    this.send(path);
    return this.response();
  }

  send(path: string): void {
    this.socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  }

  async response(): Promise<Response> {
    for (;;) {
      const response = this.takeResponse();
      if (response !== undefined) return response;
      if (this.ended)
        throw new Error(
          `closed without a response; received ${JSON.stringify(this.buffer.toString("latin1"))}`,
        );
      await new Promise<void>((resolve) => (this.wake = resolve));
    }
  }

  /** Resolves when the server has closed. */
  async end(): Promise<void> {
    while (!this.ended) await new Promise<void>((resolve) => (this.wake = resolve));
  }

  private takeResponse(): Response | undefined {
    const message = parseMessage(this.buffer, 0, { type: "response", method: "GET", ended: this.ended });
    if (message?.complete !== true) return undefined;
    const head = this.buffer.toString("latin1", 0, this.buffer.indexOf("\r\n\r\n"));
    this.buffer = this.buffer.subarray(message.end);
    const body = message.body.toString("latin1");
    return { status: Number(head.slice(9, 12)), head, body, closes: /connection: close/i.test(head) };
  }
}

/** Clients that ask again and again, some on kept connections, some on a new one each time. */
export class Hammer {
  /** Rest of a client between two requests, in milliseconds. */
  pauseMs = 0;
  readonly bodies = new Map<string, number>();
  readonly failures: string[] = [];
  private running = true;
  private readonly loops: Promise<void>[];

  constructor(
    private readonly port: number,
    clients = 8,
    private readonly path = "/",
  ) {
    this.loops = Array.from({ length: clients }, (_, i) => this.loop(i % 2 === 0));
  }

  get responses(): number {
    return [...this.bodies.values()].reduce((sum, n) => sum + n, 0);
  }

  async stop(): Promise<void> {
    this.running = false;
    await Promise.all(this.loops);
  }

  private async loop(keepAlive: boolean): Promise<void> {
    let client: KeepAliveClient | undefined;
    while (this.running) {
      try {
        if (client === undefined || client.closed) client = await KeepAliveClient.connect(this.port);
        const { status, body, closes } = await client.ask(this.path);
        if (status !== 200) this.failures.push(`status ${status}`);
        this.bodies.set(body, (this.bodies.get(body) ?? 0) + 1);
        if (this.pauseMs > 0) await sleep(this.pauseMs);
        if (keepAlive && !closes) continue;
      } catch (error) {
        this.failures.push((error as Error).message);
      }
      client?.socket.destroy();
      client = undefined;
    }
    client?.socket.destroy();
  }
}
