import { once } from "node:events";
import { readFileSync, rmSync } from "node:fs";
import * as net from "node:net";
import { join } from "node:path";
import {
  formatProblem,
  parseConfig,
  type ProxyConfig,
  type ProxyConfigInput,
  type RouteInput,
  type UpstreamInput,
} from "../src/model/index.js";
import { Http1Connections } from "../src/runtime/server/connections.js";
import { LogFiles } from "../src/runtime/logs/logFiles.js";
import { compileRoutes } from "../src/runtime/actions/compileRoutes.js";
import { freePort } from "./ports.js";
import { publicFolder } from "./publicFolder.js";

export interface ProxyOptions {
  readonly routes: readonly RouteInput[];
  readonly upstreams?: readonly UpstreamInput[];
  readonly config?: Partial<ProxyConfigInput>;
  /** Of the access log. */
  readonly format?: "combined" | "json";
}

/** A proxy in this process, on a free loopback port, with its logs in a folder of its own. */
export interface TestProxy {
  readonly port: number;
  readonly config: ProxyConfig;
  /** What stands in the main logs by now. */
  accessLog(): Promise<string>;
  errorLog(): Promise<string>;
  connections(): number;
  drain(): void;
  close(): Promise<void>;
}

/** Serves the routes on one http listener; the default server is the only one and responds for every host. */
export async function startProxy(options: ProxyOptions): Promise<TestProxy> {
  const folder = publicFolder("portico-test-");
  const port = await freePort();
  const parsed = parseConfig({
    version: 1,
    logs: {
      access: { path: join(folder, "access.log"), format: options.format },
      error: { path: join(folder, "error.log") },
    },
    listeners: [{ name: "http", address: "127.0.0.1", port, protocol: "http" }],
    // Who asks for a server that is gone gets a response at once, unless the test is of that.
    upstreams: (options.upstreams ?? []).map((one) => ({ holdMs: 0, ...one })),
    virtualServers: [
      { name: "application", serverNames: ["_"], default: true, listeners: ["http"], routes: options.routes },
    ],
    ...options.config,
  });
  if (!parsed.ok) throw new Error(parsed.problems.map(formatProblem).join("\n"));
  const config = parsed.value;
  const logs = new LogFiles(config);
  const unopened = logs.open();
  if (unopened.length > 0) throw new Error(unopened.map(formatProblem).join("\n"));
  const serving = compileRoutes(config, logs);
  const connections = new Http1Connections(serving);
  const server = net.createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
    connections.accept(socket, config.listeners[0]!),
  );
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const read = async (name: string): Promise<string> => {
    await logs.flush();
    return readFileSync(join(folder, name), "latin1");
  };
  return {
    port,
    config,
    accessLog: () => read("access.log"),
    errorLog: () => read("error.log"),
    connections: () => connections.size,
    drain: () => connections.drain(),
    close: async () => {
      server.close();
      connections.drain();
      connections.closeAll();
      serving.close();
      await once(server, "close");
      await logs.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The front end's proxied routes, all led to one upstream, with timeouts that tests can wait for. */
export function proxiedRoutes(): RouteInput[] {
  const forwarded = { host: "sync.example" };
  const plain = { realIp: false, for: false, proto: false };
  return [
    { name: "web", path: "/sync", match: "prefix", action: { type: "proxy", upstream: "web", forwarded } },
    {
      name: "webdav",
      path: "/syncdav",
      match: "prefix",
      action: { type: "proxy", upstream: "web", forwarded },
    },
    {
      name: "fileServer",
      path: "/synchttp",
      match: "segment",
      action: {
        type: "proxy",
        upstream: "web",
        strip: "raw",
        slashRedirect: false,
        hostHeader: "upstream",
        forwarded: plain,
      },
    },
  ];
}
