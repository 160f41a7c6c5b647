import { once } from "node:events";
import { readFileSync, rmSync } from "node:fs";
import * as net from "node:net";
import { join } from "node:path";
import * as tls from "node:tls";
import {
  type AccessUsers,
  formatProblem,
  parseConfig,
  type ProxyConfigInput,
  type RouteInput,
  type UpstreamInput,
} from "../src/model/index.js";
import { Http1Connections, Http2Connections } from "../src/runtime/server/connections.js";
import { loadUpstreamTls } from "../src/runtime/load/upstreamTls.js";
import { LogFiles } from "../src/runtime/logs/logFiles.js";
import { compileRoutes, type CompiledRoutes } from "../src/runtime/actions/compileRoutes.js";
import { issue, type Issued } from "./certificates.js";
import { publicFolder } from "./publicFolder.js";

/** One proxy in this process that serves the same routes over HTTP/1.1 in plain and in TLS, and over HTTP/2. */
export interface EveryProtocol {
  readonly plainPort: number;
  /** TLS; ALPN chooses HTTP/2 or HTTP/1.1. */
  readonly securePort: number;
  readonly serving: CompiledRoutes;
  readonly http1: Http1Connections;
  readonly http2: Http2Connections;
  errorLog(): Promise<string>;
  accessLog(): Promise<string>;
  close(): Promise<void>;
}

let certificate: Promise<Issued> | undefined;

export async function startEveryProtocol(options: {
  readonly routes: readonly RouteInput[];
  readonly upstreams?: readonly UpstreamInput[];
  readonly config?: Partial<ProxyConfigInput>;
  /** Of the access log. */
  readonly format?: "json";
  readonly clientAddress?: "full" | "network" | "none";
  /** Users of access policies. */
  readonly users?: AccessUsers;
}): Promise<EveryProtocol> {
  const folder = publicFolder("portico-every-");
  const { key, cert } = await (certificate ??= issue({ type: "ec" }));
  const files = { certificate: "/unused.pem", key: "/unused.pem" };
  const parsed = parseConfig({
    version: 1,
    logs: {
      access: { path: join(folder, "access.log"), format: options.format },
      error: { path: join(folder, "error.log") },
      clientAddress: options.clientAddress,
    },
    listeners: [
      { name: "http", address: "127.0.0.1", port: 80, protocol: "http" },
      { name: "https", address: "127.0.0.1", port: 443, protocol: "https", tls: files },
    ],
    // Who asks for a server that is gone gets a response at once, unless the test is of that.
    upstreams: (options.upstreams ?? []).map((one) => ({ holdMs: 0, ...one })),
    virtualServers: [
      {
        name: "application",
        serverNames: ["_"],
        default: true,
        listeners: ["http", "https"],
        routes: options.routes,
      },
    ],
    ...options.config,
  });
  if (!parsed.ok) throw new Error(parsed.problems.map(formatProblem).join("\n"));
  const config = parsed.value;
  const logs = new LogFiles(config);
  logs.open();
  const { contents } = await loadUpstreamTls(config, "problem", () => Promise.resolve(undefined));
  const serving = compileRoutes(config, logs, {}, contents, "key", undefined, {}, options.users);
  const http1 = new Http1Connections(serving);
  const http2 = new Http2Connections(serving);
  const [plainListener, secureListener] = config.listeners as [
    (typeof config.listeners)[0],
    (typeof config.listeners)[0],
  ];
  const plain = net.createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
    http1.accept(socket, plainListener),
  );
  const secure = tls.createServer(
    { key, cert, ALPNProtocols: ["h2", "http/1.1"], noDelay: true },
    (socket) => {
      if (socket.alpnProtocol === "h2") return http2.accept(socket, secureListener);
      socket.allowHalfOpen = true;
      http1.accept(socket, secureListener);
    },
  );
  secure.on("tlsClientError", () => undefined);
  for (const server of [plain, secure]) {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  }
  const read = async (name: string): Promise<string> => {
    await logs.flush();
    return readFileSync(join(folder, name), "latin1");
  };
  return {
    plainPort: (plain.address() as net.AddressInfo).port,
    securePort: (secure.address() as net.AddressInfo).port,
    serving,
    http1,
    http2,
    errorLog: () => read("error.log"),
    accessLog: () => read("access.log"),
    close: async () => {
      plain.close();
      secure.close();
      http1.drain();
      http2.drain();
      http1.closeAll();
      http2.closeAll();
      serving.close();
      await Promise.all([once(plain, "close"), once(secure, "close")]);
      await logs.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
