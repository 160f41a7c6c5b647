import { DEFAULT_SERVER, fileSyncExpectations, frontEndExpectations } from "../src/applications/index.js";
import type { ExpectedRow, ProxyConfigInput, RouteInput } from "../src/model/index.js";
import { rowsOfRoute } from "../src/model/host/expect.js";

export interface SiteOptions {
  readonly mode: "plain" | "tls";
  readonly host?: string;
  readonly ipv6?: string;
  readonly address?: string;
  readonly mediaDirectory?: string;
  readonly pageDirectory?: string;
  readonly tlsDirectory?: string;
  readonly upstreams?: { web: string; fileServer: string; webdav: string };
}

/** A file-sync front end's config as small as it gets: the names and paths of the real one. */
export function siteConfig(options: SiteOptions): ProxyConfigInput {
  const { mode, host = "192.0.2.10", address = "0.0.0.0", ipv6, tlsDirectory = "/etc/portico/tls" } = options;
  const tls = mode === "tls";
  const certificate = { certificate: `${tlsDirectory}/cacert.pem`, key: `${tlsDirectory}/privkey.pem` };
  const listeners: ProxyConfigInput["listeners"] = [
    { name: "http", address, port: 80, protocol: "http" },
    ...(tls ? [{ name: "https", address, port: 443, protocol: "https" as const, tls: certificate }] : []),
    ...(ipv6 === undefined ? [] : [{ name: "http6", address: ipv6, port: 80, protocol: "http" as const }]),
    ...(tls && ipv6 !== undefined
      ? [{ name: "https6", address: ipv6, port: 443, protocol: "https" as const, tls: certificate }]
      : []),
  ];
  const named = (protocol: string): string[] =>
    listeners.filter((l) => l.protocol === protocol).map((l) => l.name);
  const urls = options.upstreams ?? {
    web: "http://127.0.0.1:8000",
    fileServer: "http://127.0.0.1:8082",
    webdav: "http://127.0.0.1:8080",
  };
  const index: RouteInput = {
    name: "page",
    path: "/",
    match: "prefix",
    action: {
      type: "staticFiles",
      directory: options.pageDirectory ?? "/usr/share/portico/default",
      index: ["index.html"],
    },
  };
  const redirect: RouteInput = {
    name: "toHttps",
    path: "/sync",
    match: "prefix",
    action: { type: "redirect" },
  };
  return {
    version: 1,
    workers: 1,
    logs: { error: { path: "/var/log/portico/error.log" } },
    listeners,
    upstreams: Object.entries(urls).map(([name, url]) => ({ name, url })),
    virtualServers: [
      {
        name: "default",
        serverNames: ["_"],
        listeners: named("http"),
        default: true,
        versionTokens: true,
        routes: [index],
      },
      ...(tls
        ? [{ name: "redirect", serverNames: [host], listeners: named("http"), routes: [redirect] }]
        : []),
      {
        name: "application",
        serverNames: tls ? ["_"] : [host],
        listeners: named(tls ? "https" : "http"),
        default: tls,
        routes: applicationRoutes(host, options.mediaDirectory ?? "/opt/sync/media"),
      },
    ],
  };
}

function applicationRoutes(host: string, directory: string): RouteInput[] {
  const accessLog = { path: "/var/log/portico/sync.access.log" };
  const proxied = { type: "proxy" as const, forwarded: { host } };
  return [
    { name: "web", path: "/sync", match: "prefix", action: { ...proxied, upstream: "web" }, accessLog },
    {
      name: "fileServer",
      path: "/synchttp",
      action: { type: "proxy", upstream: "fileServer", strip: "raw", slashRedirect: false },
    },
    { name: "media", path: "/syncmedia", action: { type: "staticFiles", directory } },
    { name: "webdav", path: "/syncdav", match: "prefix", action: { ...proxied, upstream: "webdav" } },
  ];
}

/** The expected responses of the same front end, as its deployment lists them. */
export function siteExpect({ mode, host = "192.0.2.10" }: Pick<SiteOptions, "mode" | "host">): ExpectedRow[] {
  const scheme = mode === "tls" ? "https" : "http";
  const expect = {
    ...fileSyncExpectations({ scheme, host, path: "/sync" }),
    ...frontEndExpectations({ scheme, host, path: "/sync/" }, false),
  };
  const rows = (server: string, name: keyof typeof expect, path: string) =>
    rowsOfRoute(server, { name, path }, expect[name]);
  return [
    ...rowsOfRoute("default", { name: "page", path: "/" }, [DEFAULT_SERVER]),
    ...rows("application", "media", "/syncmedia"),
    ...(mode === "tls" ? rows("redirect", "redirect", "/sync") : []),
    ...rows("application", "web", "/sync"),
    ...rows("application", "fileServer", "/synchttp"),
    ...rows("application", "webdav", "/syncdav"),
  ];
}
