import type { IConstruct } from "constructs";
import { problem } from "../../model/index.js";
import { type FileSyncPaths } from "../../applications/index.js";
import { renderOrigin } from "../../render/index.js";
import { Action, type ForwardedOptions, type ProxyOptions } from "../action.js";
import type { FrontEndListeners } from "../frontEndParts.js";
import { warn } from "../warn.js";
import type { FileSyncExpectations } from "../../applications/index.js";
import type { Mode } from "../mode.js";
import type { ProxyLogs } from "../proxySettings.js";
import type { Listener } from "../listener.js";
import { refuse } from "../props/checks.js";
import type { ReverseProxyBase } from "../reverseProxyBase.js";
import type { ResponseHeaders } from "../responseHeaders.js";
import type { Route, RouteProps } from "../route.js";
import type { Upstream, UpstreamProps } from "../upstream.js";
import type { VirtualServer } from "../virtualServer.js";

/** @internal The HTTPS listener, or a problem with a code. */
export function httpsOf({
  node,
  listeners,
}: IConstruct & { readonly listeners: FrontEndListeners }): Listener {
  if (listeners.https === undefined) {
    const fix = "Use `listeners.http`, or give the front end `mode: Mode.tls()`.";
    const more = { allowed: "a front end with TLS", fix };
    const path = `${node.path}.httpsListener`;
    refuse([problem("config.unknown-reference", path, "does not exist in plain mode", more)]);
  }
  return listeners.https!;
}

/** The application's daemons. */
export interface FileSyncUpstreams {
  /** Web application, port 8000. */
  readonly web: Upstream;
  /** WebDAV daemon, port 8080. */
  readonly webdav: Upstream;
  /** File server, port 8082. */
  readonly fileServer: Upstream;
}

/** Routes of the application's virtual server. */
export interface FileSyncRoutes {
  /** To the web application: everything below the path prefix. */
  readonly web: Route;
  /** To the WebDAV daemon. */
  readonly webdav: Route;
  /** To the file server, for upload and download; its route's path is cut off. */
  readonly fileServer: Route;
  /** Files of the media directory. */
  readonly media: Route;
  /** Avatars, where the application keeps them outside its media directory. */
  readonly avatars?: Route;
  /**
   * `/` and nothing below it: the default server's page, so that `/` is answered with 200 for every name; or a redirect
   * to the application, by `rootRedirect`.
   */
  readonly page: Route;
}

// Service 4.5: connect, read and send timeouts of the proxied routes.
const TEN_HOURS_MS = 36_000_000;

/** Changes to the upstreams of the application's daemons, by daemon. */
export type FileSyncUpstreamOverrides = {
  readonly [name in keyof FileSyncUpstreams]?: Partial<UpstreamProps>;
};

/** The daemons on their ports, with the caller's changes. */
export function addUpstreams(
  proxy: ReverseProxyBase,
  overrides: FileSyncUpstreamOverrides,
): FileSyncUpstreams {
  const add = (id: keyof FileSyncUpstreams, port: number): Upstream =>
    proxy.addUpstream(id, {
      url: `http://127.0.0.1:${port}`,
      connectTimeoutMs: TEN_HOURS_MS,
      sendTimeoutMs: TEN_HOURS_MS,
      readTimeoutMs: TEN_HOURS_MS,
      ...overrides[id],
    });
  const upstreams = {
    web: add("web", 8000),
    webdav: add("webdav", 8080),
    fileServer: add("fileServer", 8082),
  };
  const all = Object.values(upstreams);
  for (const [i, upstream] of all.entries()) {
    const same = all.slice(0, i).find(({ url }) => url === upstream.url);
    if (same === undefined) continue;
    warn(
      upstream,
      `This upstream has the URL of ${same.node.id}: each of the application's daemons needs its own port.`,
    );
  }
  return upstreams;
}

/** Fields of the answers of the application's routes, by route. */
export type FileSyncRouteFields = { readonly [name in keyof FileSyncRoutes]?: ResponseHeaders };

/** @internal What the virtual servers depend on. */
export interface FileSyncServersInput {
  readonly listeners: FrontEndListeners;
  readonly mode: Mode;
  readonly serverNames: readonly string[];
  readonly paths: FileSyncPaths;
  readonly page: Action;
  /** Where `/` leads; undefined if it is a page. */
  readonly root?: Action;
  readonly responseHeaders?: ResponseHeaders;
  readonly expect: FileSyncExpectations;
}

/** `/` leads to the application. Not for good: a browser would keep a 301 after the option is turned off. */
export function rootRedirect({ scheme, publicPort: port }: Mode, path: string): Action {
  return Action.redirect({ status: 302, scheme, port, path: `${path}/` });
}

/** Where clients find the application. */
export function applicationUrl({ scheme, publicPort: port }: Mode, host: string, path: string): string {
  return `${renderOrigin({ scheme, host, port })}${path}/`;
}

/** Virtual servers of the front end; `redirect` in TLS mode only. */
export interface FileSyncServers {
  readonly defaultServer: VirtualServer;
  readonly redirect?: VirtualServer;
  readonly application: VirtualServer;
}

/** The default server, and the application's; in TLS mode HTTP leads to HTTPS. */
export function addServers(proxy: ReverseProxyBase, input: FileSyncServersInput): FileSyncServers {
  const { mode, serverNames, responseHeaders, expect } = input;
  const { http, http6, https, https6 } = input.listeners;
  const listeners = http6 === undefined ? [http] : [http, http6];
  const defaultServer = proxy.addVirtualServer("default", {
    serverNames: ["_"],
    listeners,
    default: true,
    versionTokens: true,
  });
  defaultServer.addRoute("page", { path: "/", action: input.page, expect: expect.default });
  if (https === undefined) {
    const application = proxy.addVirtualServer("application", { serverNames, listeners, responseHeaders });
    return { defaultServer, application };
  }
  const redirect = proxy.addVirtualServer("redirect", { serverNames, listeners });
  const action = Action.redirect({ status: 301, scheme: "https", port: mode.publicPort });
  const { web, ...others } = input.paths;
  redirect.addRoute("https", { path: web, match: "prefix", action, expect: expect.redirect });
  for (const [id, path] of Object.entries(others))
    if (!path.startsWith(web)) redirect.addRoute(id, { path, match: "segment", action, expect: false });
  if (input.root !== undefined)
    redirect.addRoute("root", { path: "/", match: "exact", action: input.root, expect: expect.httpRoot });
  const application = proxy.addVirtualServer("application", {
    serverNames: ["_"],
    listeners: https6 === undefined ? [https] : [https, https6],
    default: true,
    responseHeaders,
    hsts: mode.https?.hsts,
  });
  return { defaultServer, redirect, application };
}

/** @internal What the application's routes depend on. */
export interface FileSyncRoutesInput {
  readonly upstreams: FileSyncUpstreams;
  readonly paths: FileSyncPaths;
  readonly scheme: "http" | "https";
  readonly serverName: string;
  readonly mediaDirectory: string;
  readonly avatarDirectory?: string;
  readonly requestBodyTimeoutMs?: number;
  readonly webdavDestination?: ProxyOptions["destination"];
  readonly responseHeaders?: FileSyncRouteFields;
  readonly page: Action;
  readonly expect: FileSyncExpectations;
  /** Main logs of the proxy. */
  readonly logs?: ProxyLogs;
}

/** The four routes, and the page. */
export function addRoutes(
  server: VirtualServer,
  logDirectory: string | undefined,
  input: FileSyncRoutesInput,
): FileSyncRoutes {
  const { upstreams, paths, requestBodyTimeoutMs, avatarDirectory, logs = {} } = input;
  const { responseHeaders = {} } = input;
  const add = (id: keyof FileSyncRoutes, props: RouteProps): Route =>
    server.addRoute(id, { ...props, responseHeaders: responseHeaders[id], expect: input.expect[id] });
  const proxied = { sendTimeoutMs: TEN_HOURS_MS, requestBodyBytesMax: 0, requestBodyTimeoutMs };
  // Only TLS mode sets X-Forwarded-Proto (service 4.2); the client's own is dropped in both.
  const forwarded = { realIp: true, for: true, proto: input.scheme === "https", host: input.serverName };
  // On a stream everything goes to one place; the lines name the route.
  const isStream = (log: ProxyLogs[keyof ProxyLogs]): boolean =>
    logDirectory === undefined || (typeof log === "object" && "stream" in log);
  const logged = (name: string) => ({
    accessLog: isStream(logs.access) ? undefined : { path: `${logDirectory}/${name}.access.log` },
    errorLog: isStream(logs.error) ? undefined : { path: `${logDirectory}/${name}.error.log` },
  });
  const daemon = (id: "web" | "webdav", path: string, destination?: ProxyOptions["destination"]): Route =>
    add(id, {
      path,
      match: "prefix",
      action: Action.proxy(upstreams[id], { hostHeader: "client", forwarded, destination }),
      ...proxied,
      ...logged(id),
    });
  return {
    web: daemon("web", paths.web),
    webdav: daemon("webdav", paths.webdav, input.webdavDestination),
    fileServer: add("fileServer", {
      path: paths.fileServer,
      match: "segment",
      action: Action.proxy(upstreams.fileServer, { strip: "raw", hostHeader: "upstream", forwarded: NONE }),
      ...proxied,
    }),
    media: add("media", {
      path: paths.media,
      action: Action.staticFiles(input.mediaDirectory),
    }),
    avatars:
      avatarDirectory === undefined
        ? undefined
        : add("avatars", {
            path: `${paths.media}/avatars`,
            action: Action.staticFiles(avatarDirectory),
          }),
    page: add("page", { path: "/", match: "exact", action: input.page }),
  };
}

const NONE: ForwardedOptions = { realIp: false, for: false, proto: false };
