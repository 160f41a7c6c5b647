import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, ListenOptions, Socket } from "node:net";

/** A status and one line of text. */
export type HealthAnswer = readonly [status: number, text: string];

/**
 * The HTTP server of the health listener. Who asks are probes: a short head, no body, one request for each connection.
 * Anything else is closed soon. If there are more connections than a few, the oldest is closed: whoever holds many of them
 * must not keep probes out.
 */
export class HealthServer {
  private constructor(private readonly server: Server) {}

  /**
   * Opens a socket, or goes on with one that is open.
   *
   * @param answer for a path; undefined if there is nothing
   * @returns the server, or why it cannot listen
   */
  static listen(
    where: ListenOptions & { readonly fd?: number },
    answer: (path: string) => HealthAnswer | undefined,
  ): Promise<HealthServer | NodeJS.ErrnoException> {
    const server = createServer(OPTIONS, (request, response) => respond(request, response, answer));
    server.timeout = SILENCE_MS;
    const open = new Set<Socket>();
    server.on("connection", (socket) => {
      open.add(socket);
      socket.once("close", () => open.delete(socket));
      const [oldest] = open;
      if (open.size <= CONNECTIONS_MAX) return;
      open.delete(oldest!);
      oldest!.destroy();
    });
    return new Promise((resolve) => {
      server.once("error", resolve).listen(where, () => resolve(new HealthServer(server)));
    });
  }

  get at(): AddressInfo {
    return this.server.address() as AddressInfo;
  }

  /** Accepts no more; what it has is answered, or cut after a moment. */
  close(): void {
    this.server.close();
    setTimeout(() => this.server.closeAllConnections(), HEAD_MS).unref();
  }
}

const HEAD_MS = 2_000;
const SILENCE_MS = 5_000;
const CONNECTIONS_MAX = 64;

const OPTIONS = {
  maxHeaderSize: 4_096,
  headersTimeout: HEAD_MS,
  requestTimeout: HEAD_MS,
  connectionsCheckingInterval: 500,
};

function respond(
  { method, url = "" }: IncomingMessage,
  response: ServerResponse,
  answer: (path: string) => HealthAnswer | undefined,
): void {
  const [status, text] =
    method === "GET" || method === "HEAD"
      ? (answer(url.split("?")[0]!) ?? [404, "not found"])
      : [405, "GET or HEAD"];
  response.writeHead(status, {
    "Content-Type": "text/plain; charset=utf-8",
    "Content-Length": Buffer.byteLength(text) + 1,
    "Cache-Control": "no-store",
    Connection: "close",
    ...(status === 405 ? { Allow: "GET, HEAD" } : {}),
  });
  response.end(`${text}\n`);
}
