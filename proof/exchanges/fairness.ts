import { once } from "node:events";
import { createServer, type Server } from "node:http";
import * as net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { UpstreamInput } from "../../src/model/index.js";
import { eventually } from "../kit/waiting.js";

const CONNECTIONS = 4;
const QUEUE = 4;
/** More than all connections and all places of the queue. */
const GREEDY = (CONNECTIONS + QUEUE) * 2;
const SERVED_MS = 5_000;

/** An upstream with few connections, which answers one client and lets another wait for ever. */
export class Fairness {
  private constructor(
    private readonly server: Server,
    private readonly asked: Set<string>,
  ) {}

  static async start(): Promise<Fairness> {
    const asked = new Set<string>();
    const server = createServer({ keepAlive: true, keepAliveTimeout: 60_000 }, (request, response) => {
      asked.add(String(request.headers["x-id"]));
      if (request.headers["x-id"] === MODEST) response.end("served");
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new Fairness(server, asked);
  }

  get upstream(): UpstreamInput {
    const { port } = this.server.address() as net.AddressInfo;
    const room = { connectionsMax: CONNECTIONS, queuedRequestsMax: QUEUE, queueTimeoutMs: SERVED_MS * 2 };
    return { name: "shared", url: `http://127.0.0.1:${port}`, ...room, idleTimeoutMs: 1 };
  }

  /** One client asks for all that it can get; another one is to be served all the same. @returns what was not */
  async broken(port: number): Promise<string[]> {
    this.asked.clear();
    const greedy = Array.from({ length: GREEDY }, (_, i) => ask(port, "127.0.0.2", `greedy${i}`));
    try {
      await eventually(() => this.asked.size > 0, "for the first request", { ms: SERVED_MS });
      await sleep(SETTLED_MS);
      const modest = ask(port, "127.0.0.3", MODEST);
      const got = await Promise.race([modest.answered, sleep(SERVED_MS, "nothing")]);
      modest.socket.destroy();
      return got.startsWith("HTTP/1.1 200 ")
        ? []
        : [`law: a client got ${got.split("\r\n")[0]} while another held ${this.asked.size} connections`];
    } finally {
      for (const { socket } of greedy) socket.destroy();
    }
  }

  stop(): void {
    this.server.closeAllConnections();
    this.server.close();
  }
}

const MODEST = "modest";
const SETTLED_MS = 50;

function ask(port: number, from: string, id: string): { socket: net.Socket; answered: Promise<string> } {
  const socket = net.connect({ port, host: "127.0.0.1", localAddress: from });
  socket.on("error", () => undefined);
  socket.write(`GET /g HTTP/1.1\r\nHost: h\r\nX-Id: ${id}\r\n\r\n`);
  const answered = new Promise<string>((resolve) => {
    socket.once("data", (bytes) => resolve(bytes.toString("latin1")));
    socket.once("close", () => resolve("nothing"));
  });
  return { socket, answered };
}
