import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Manual } from "./manuals.js";

/** Stands in for the servers of an application: responds exactly as its manual says, and refuses the rest. */
export class StandIn {
  private constructor(
    readonly ports: Readonly<Record<string, number>>,
    private readonly servers: readonly Server[],
  ) {}

  static async start({ asks }: Manual): Promise<StandIn> {
    const leads = asks.map(([request, to, status = 200]) => {
      const [part, path] = to.split(" ");
      return { method: request.split(" ")[0]!, part: part!, path: path!, status };
    });
    const parts = new Set(
      leads.map(({ part }) => part).filter((part) => part !== "files" && part !== "redirect"),
    );
    const started = await Promise.all(
      [...parts].map(async (part) => {
        const server = createServer();
        const known = (asked: string, target: string): (typeof leads)[number] | undefined =>
          leads.find(({ method, part: of, path }) => of === part && method === asked && fits(path, target));
        const says = (method: string, target: string, fields: IncomingHttpHeaders): string =>
          JSON.stringify({ part, method, target, fields: forwarded(fields) });
        server.on("request", ({ method, url, headers }, response) => {
          response.writeHead(known(method!, url!)?.status ?? 404).end(says(method!, url!, headers));
        });
        server.on("upgrade", ({ url, headers }, socket: Socket) => {
          if (known("WS", url!) === undefined)
            return void socket.end("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
          const text = says("WS", url!, headers);
          const head =
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
          socket.end(`${head}${text}`);
        });
        server.listen(0, "127.0.0.1");
        await once(server, "listening");
        return [part, server] as const;
      }),
    );
    const ports = started.map(([part, server]) => [part, (server.address() as AddressInfo).port] as const);
    return new StandIn(
      Object.fromEntries(ports),
      started.map(([, server]) => server),
    );
  }

  stop(): void {
    for (const server of this.servers) {
      server.close();
      server.closeAllConnections();
    }
  }
}

/** `*` stands for any path. A query is the application's own. */
function fits(path: string, target: string): boolean {
  const [asked] = target.split("?");
  return path.endsWith("*") ? target.startsWith(path.slice(0, -1)) : asked === path;
}

/** What a proxy says of the client. */
const forwarded = (fields: IncomingHttpHeaders): Record<string, string> =>
  Object.fromEntries(
    Object.entries(fields)
      .filter(([name]) => name === "host" || name === "x-real-ip" || name.startsWith("x-forwarded-"))
      .map(([name, value]) => [name, String(value)]),
  );
