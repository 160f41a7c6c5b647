import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import type { UpstreamInput } from "../../src/model/index.js";
import { issue } from "../../testkit/certificates.js";
import { UPSTREAMS } from "./case.js";
import type { Running } from "./running.js";
import { readBy, send } from "./transfer.js";

/** The responders of the matrix: Node's own servers, which know each exchange by the last segment of its path. */
export class Upstreams {
  private constructor(
    readonly inputs: readonly UpstreamInput[],
    private readonly servers: readonly Server[],
  ) {}

  /**
   * @param folder where the Unix socket is
   * @param find the exchange of an id
   */
  static async start(folder: string, find: (id: string) => Running | undefined): Promise<Upstreams> {
    const { key, cert } = await issue({ names: ["upstream.test"], type: "ec" });
    const servers = { http: createServer(), https: createTlsServer({ key, cert }), unix: createServer() };
    const path = join(folder, "upstream.sock");
    const inputs: UpstreamInput[] = [];
    for (const name of UPSTREAMS) {
      const server = servers[name];
      server.keepAliveTimeout = IDLE_MS;
      server.requestTimeout = 0;
      server.on("request", (...both) => serve(find, ...both));
      server.on("upgrade", (...asked) => tunnel(find, ...asked));
      // What the proxy gives up is seen by the exchange.
      server.on("clientError", (_, socket) => socket.destroy());
      server.listen(...((name === "unix" ? [path] : [0, "127.0.0.1"]) as [string]));
      await once(server, "listening");
      const url =
        name === "unix" ? `unix:${path}` : `${name}://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const tls = name === "https" ? { tls: { verify: false } } : {};
      inputs.push({ name, url, idleTimeoutMs: IDLE_MS, ...tls });
    }
    return new Upstreams(
      inputs,
      UPSTREAMS.map((name) => servers[name]),
    );
  }

  /** Closes the connections that wait to be used again. */
  hangUp(): void {
    for (const server of this.servers) server.closeIdleConnections();
  }

  async stop(): Promise<void> {
    for (const server of this.servers) {
      server.close();
      server.closeAllConnections();
    }
  }
}

/** Nothing is closed for idleness while cases run. */
const IDLE_MS = 60_000;

type Find = (id: string) => Running | undefined;

const idOf = ({ url }: IncomingMessage): string => url!.slice(url!.lastIndexOf("/") + 1);

function serve(find: Find, request: IncomingMessage, response: ServerResponse): void {
  const running = find(idOf(request));
  request.on("error", () => undefined);
  response.on("error", () => undefined);
  if (running === undefined) {
    response.writeHead(418).end();
    return;
  }
  limitRecords(request.socket, running.recordBytes);
  const { exchange, up } = running;
  const { transfer, reader, leavesAt } = exchange;
  const reads = transfer === "both" && reader === "leaving" ? "fast" : reader;
  const leave = (): void => running.leave(() => request.socket.destroy());
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

function tunnel(find: Find, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  const running = find(idOf(request));
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
