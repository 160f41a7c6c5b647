import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import path from "node:path";
import type { ProxyConfigInput, RouteInput } from "../../src/model/index.js";
import { run, start, stop } from "./children.js";
import type { HeadRequest } from "./headClients.js";
import { accepting } from "./ports.js";
import { familyOf } from "./processes.js";
import type { Site } from "./site.js";
import { freePorts } from "../../testkit/ports.js";

/** A front end in which each feature that reads a head has a route, and an upstream that says what it is told. */

export interface Feature {
  readonly name: string;
  readonly request: Omit<HeadRequest, "hostile">;
  /** Whether the requests come from an address in `trustedProxies`. */
  readonly trusted?: boolean;
  /** Whether the upstream sends the hostile field, and not the client. */
  readonly responds?: boolean;
}

const HOST = "site.example";

/** What a browser sends. */
const USUAL: HeadRequest["fields"] = [
  ["user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"],
  ["accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"],
  ["accept-encoding", "gzip, deflate, br, zstd"],
  ["accept-language", "en-US,en;q=0.5"],
  ["cookie", "sessionid=b5c1ef0a0f6d4a8c; theme=dark"],
];

const at = (target: string, more: Partial<HeadRequest> = {}): Feature["request"] => ({
  host: HOST,
  target,
  fields: USUAL,
  ...more,
});

export const FEATURES: readonly Feature[] = [
  { name: "respond, log in json", request: at("/respond") },
  { name: "redirect, log in combined", request: at("/redirect/") },
  { name: "status", request: at("/status/") },
  { name: "static, precompressed", request: at("/static/page.txt") },
  { name: "errorPages", request: at("/nothing", { host: "pages.example" }) },
  { name: "maintenance", request: at("/", { host: "paused.example" }) },
  { name: "proxy, strip, trustedProxies", request: at("/strip/"), trusted: true },
  { name: "proxy, rewrite, responseHeaders", request: at("/rewrite/") },
  { name: "proxy, sticky.cookie", request: at("/cookie/") },
  { name: "proxy, sticky.applicationCookie", request: at("/session/") },
  { name: "proxy, webSocket", request: at("/strip/", { webSocket: true }) },
  { name: "response of an upstream", request: at("/strip/"), responds: true },
  { name: "response, responseHeaders", request: at("/rewrite/"), responds: true },
];

/** Addresses of loopback: the first is a client's, the second a trusted proxy's. */
export const ADDRESSES = ["127.0.0.1", "127.0.0.2"] as const;

const LISTENERS = ["http", "https"];

function routes(folder: string): RouteInput[] {
  const proxied = (name: string, upstream: string, more: object = {}): RouteInput => ({
    name,
    path: `/${name}`,
    action: { type: "proxy", upstream, ...more },
  });
  const access = { path: path.join(folder, "logs/combined.log") };
  return [
    { name: "respond", path: "/respond", action: { type: "respond", status: 200, body: "It works." } },
    { name: "redirect", path: "/redirect", action: { type: "redirect" }, accessLog: access },
    { name: "status", path: "/status", action: { type: "status", allow: ["127.0.0.0/8"] } },
    {
      name: "static",
      path: "/static",
      action: {
        type: "staticFiles",
        directory: path.join(folder, "static"),
        precompressed: ["zstd", "br", "gzip"],
      },
    },
    proxied("strip", "web", { strip: "raw", destination: "absolute" }),
    {
      ...proxied("rewrite", "web", {
        rewrite: "/elsewhere",
        trustedFields: ["Remote-User"],
        setHeaders: { "X-Site": "files" },
      }),
      responseHeaders: { set: { "X-Frame-Options": "DENY" }, remove: ["X-Powered-By", "Server"] },
    },
    proxied("cookie", "cookie"),
    proxied("session", "session"),
  ];
}

function config(folder: string, site: Site, ports: readonly number[]): ProxyConfigInput {
  const [http, https, web, second] = ports as [number, number, number, number];
  const servers = [web, second].map((port) => ({ url: `http://127.0.0.1:${port}` }));
  const page = { statuses: [404 as const], html: "<p>{{status}} {{reason}} {{requestId}}</p>" };
  const found: RouteInput = { name: "found", path: "/found", action: { type: "respond", status: 200 } };
  const tls = { certificate: site.tls.certificate, key: site.tls.key };
  return {
    version: 1,
    workers: 1,
    trustedProxies: [ADDRESSES[1]],
    requestId: { response: true },
    logs: {
      access: { path: path.join(folder, "logs/access.log"), format: "json" },
      error: { path: path.join(folder, "logs/error.log") },
    },
    limits: { keepAliveRequestsMax: 1_000_000_000, streamResetsPerSecondMax: 100_000 },
    listeners: [
      { name: "http", address: "127.0.0.1", port: http, protocol: "http" },
      { name: "https", address: "127.0.0.1", port: https, protocol: "https", tls },
    ],
    upstreams: [
      { name: "web", ...servers[0]!, holdMs: 0 },
      { name: "cookie", servers, sticky: { cookie: "portico_web" } },
      { name: "session", servers, sticky: { applicationCookie: "session" } },
    ],
    virtualServers: [
      { name: "site", serverNames: [HOST], listeners: LISTENERS, default: true, routes: routes(folder) },
      {
        name: "pages",
        serverNames: ["pages.example"],
        listeners: LISTENERS,
        errorPages: [page],
        routes: [found],
      },
      {
        name: "paused",
        serverNames: ["paused.example"],
        listeners: LISTENERS,
        routes: [{ ...found, path: "/" }],
      },
    ],
  };
}

export interface HeadSite {
  readonly http: number;
  readonly https: number;
  readonly upstream: SpeakingUpstream;
  /** The process that serves requests. */
  readonly worker: number;
  stop(): Promise<void>;
}

/** @param serve the command that serves a config file @param portico the command line of the same program */
export async function startHeadSite(
  site: Site,
  cores: string,
  portico: readonly string[],
): Promise<HeadSite> {
  const folder = path.join(site.folder, "heads");
  for (const name of ["logs", "static", "run"]) mkdirSync(path.join(folder, name), { recursive: true });
  for (const name of ["page.txt", "page.txt.gz", "page.txt.br"])
    writeFileSync(path.join(folder, "static", name), "It works.\n");
  const ports = await freePorts(4);
  const upstream = new SpeakingUpstream();
  await upstream.listen(ports.slice(2));
  const file = path.join(folder, "portico.json");
  writeFileSync(file, JSON.stringify(config(folder, site, ports)));
  const output = path.join(folder, "output.log");
  const env = { RUNTIME_DIRECTORY: path.join(folder, "run"), NODE_EXTRA_CA_CERTS: undefined };
  const child = start([...portico, "serve", file], { cores, output, env });
  const alive = (): boolean => child.exitCode === null && child.signalCode === null;
  if (!(await accepting(ports[1]!, alive)))
    throw new Error(`portico does not start:\n${readFileSync(output, "utf8")}`);
  const pause = await run([...portico, "maintenance", "on", "--site", "paused"], {
    env: env,
    limitMs: 30_000,
  });
  if (pause.code !== 0) throw new Error(`no maintenance: ${pause.stderr}`);
  return {
    http: ports[0]!,
    https: ports[1]!,
    upstream,
    worker: familyOf(child.pid!).at(-1)!,
    stop: async () => {
      await stop(child);
      upstream.close();
    },
  };
}

/** Responds to each request with 200, and with the fields that it is told to send. */
export class SpeakingUpstream {
  /** Lines of a response's head. */
  lines = "";
  private readonly servers: Server[] = [];

  async listen(ports: readonly number[]): Promise<void> {
    for (const port of ports) {
      const server = createServer({ noDelay: true }, (socket) => this.serve(socket));
      await new Promise<void>((done) => server.listen(port, "127.0.0.1", done));
      this.servers.push(server);
    }
  }

  close(): void {
    for (const server of this.servers) server.close();
  }

  private serve(socket: Socket): void {
    let pending = "";
    socket.on("error", () => undefined);
    socket.on("data", (bytes: Buffer) => {
      pending += bytes.toString("latin1");
      const heads = pending.split("\r\n\r\n");
      pending = heads.pop()!;
      const response = `HTTP/1.1 200 OK\r\nContent-Length: 9\r\n${this.lines}\r\nIt works.`;
      if (heads.length > 0) socket.write(response.repeat(heads.length), "latin1");
    });
  }
}
