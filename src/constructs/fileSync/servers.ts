import { Aspects } from "cdktf";
import type { IConstruct } from "constructs";
import {
  type ApplicationDefinition,
  type ApplicationRoute,
  type FrontEndExpectations,
  frontEndExpectations,
  type PublicPlace,
  type PauseResponse,
} from "../../applications/index.js";
import { problem, urlAuthority } from "../../model/index.js";
import { type NormalisedPath, RouteTable } from "../../model/serving.js";
import { Action } from "../action.js";
import type { ErrorPage } from "../errorPage.js";
import type { ResponseHeaders } from "../responseHeaders.js";
import { type FrontEndListeners, listenersIn } from "../frontEndParts.js";
import { warn } from "../warn.js";
import { literalPaths } from "../warnings.js";
import type { Mode } from "../mode.js";
import type { ProxyLogs } from "../proxySettings.js";
import type { Listener } from "../listener.js";
import { refuse } from "../props/checks.js";
import type { ReverseProxyBase } from "../reverseProxyBase.js";
import type { Route } from "../route.js";
import { type Upstream, type UpstreamProps, withChanges } from "../upstream.js";
import type { IVirtualServer, VirtualServer } from "../virtualServer.js";
import { originOf } from "./settings.js";

/** Upstreams, virtual servers and routes of a front end, from the data of its application. */

/** @internal The HTTPS listener, or a problem with a code. */
export function httpsOf({
  node,
  listeners,
}: IConstruct & { readonly listeners: FrontEndListeners }): Listener {
  if (listeners.https === undefined) {
    const fix = "Use `listeners.http`, or set `mode: Mode.tls()` of the front end.";
    const more = { allowed: "a front end with `mode: Mode.tls()`", fix };
    const path = `${node.path}.httpsListener`;
    refuse([problem("config.unknown-reference", path, "does not exist in plain mode", more)]);
  }
  return listeners.https!;
}

/** @internal The default server on the HTTP port, or a problem with a code. */
export function defaultServerOf({ node }: IConstruct, server: VirtualServer | undefined): VirtualServer {
  if (server === undefined) {
    const fix =
      "Use `application`, which responds to every name, or leave out `httpPort: false` of the mode.";
    const more = { allowed: "a front end with an HTTP port", fix };
    const path = `${node.path}.defaultServer`;
    refuse([problem("config.unknown-reference", path, "does not exist with `httpPort: false`", more)]);
  }
  return server!;
}

/** @internal The input of upstreams, virtual servers and routes. */
export interface SiteInput {
  readonly application: ApplicationDefinition;
  readonly listeners: FrontEndListeners;
  readonly mode: Mode;
  readonly serverNames: readonly [string, ...string[]];
  readonly upstreams?: UpstreamChanges;
  /** Directory of the default server's page. */
  readonly pageDirectory: string;
  readonly rootRedirect?: boolean;
  readonly responseHeaders?: ResponseHeaders;
  readonly errorPages?: readonly ErrorPage[];
  readonly pauseResponse?: PauseResponse;
  readonly routeResponseHeaders?: RouteFields;
  readonly requestBodyTimeoutMs?: number;
  readonly logDirectory?: string;
  /** Main logs of the proxy. */
  readonly logs?: ProxyLogs;
}

/** @internal The constructs that were made. */
export interface Site extends Servers {
  readonly place: PublicPlace;
  readonly upstreams: Readonly<Record<string, Upstream>>;
  readonly routes: Readonly<Record<string, Route>>;
  /** Where users find the application. */
  readonly url: string;
  /** Where the default server's page leads; undefined if nowhere. */
  readonly linked?: string;
}

/** @internal Everything of the proxy that is the application's. */
export function addSite(proxy: ReverseProxyBase, input: SiteInput): Site {
  const { application, mode, serverNames } = input;
  const place = placeOf(mode, serverNames);
  const upstreams = addUpstreams(proxy, application, input.upstreams ?? {});
  const path = mainPath(application, place);
  const page = Action.staticFiles(input.pageDirectory, { index: ["index.html"] });
  const root = input.rootRedirect === true && path !== "/" ? rootRedirect(mode, path) : undefined;
  const expect = frontEndExpectations({ ...place, path }, root !== undefined);
  const all = { ...input, place, upstreams, expect };
  const servers = addServers(proxy, { ...all, page, root });
  const routes = addRoutes(servers.application, { ...all, page: root ?? page });
  warnOfBuiltInPaths(servers.application, application);
  const url = `${place.origin}${path}`;
  return { ...servers, place, upstreams, routes, url, linked: root && url };
}

/** @internal Changes to upstreams and to routes' response fields, by name. */
export type UpstreamChanges = Readonly<Record<string, Partial<UpstreamProps> | undefined>>;
/** @internal */
export type RouteFields = Readonly<Record<string, ResponseHeaders | undefined>>;

/** The application's parts where they usually listen, with the caller's changes. */
function addUpstreams(
  proxy: ReverseProxyBase,
  { parts }: ApplicationDefinition,
  changes: UpstreamChanges,
): Readonly<Record<string, Upstream>> {
  const made = Object.entries(parts).map(([id, part]): [string, Upstream] => {
    const { title: _, liveness: __, ...props } = part!;
    return [id, proxy.addUpstream(id, withChanges(props, changes[id]))];
  });
  const all = made.map(([, upstream]) => upstream);
  for (const [i, upstream] of all.entries()) {
    const same = all.slice(0, i).find(({ url }) => url === upstream.url);
    if (same === undefined) continue;
    warn(
      upstream,
      `This upstream has the same URL as ${same.node.id}: each daemon of the application needs a separate port.`,
    );
  }
  return Object.fromEntries(made);
}

/** Where users find the application: its path, with a slash at its end. */
function mainPath(application: ApplicationDefinition, place: PublicPlace): string {
  const { path } = application.routes(place)[application.main]!;
  return path.endsWith("/") ? path : `${path}/`;
}

/** `/` leads to the application. Not for good: a browser would keep a 301 after the option is turned off. */
function rootRedirect({ scheme, publicPort: port }: Mode, path: string): Action {
  return Action.redirect({ status: 302, scheme, port, path });
}

interface ServersInput extends Omit<SiteInput, "upstreams"> {
  readonly place: PublicPlace;
  readonly page: Action;
  /** Where `/` leads; undefined if it is a page. */
  readonly root?: Action;
  readonly expect: FrontEndExpectations;
}

/** Virtual servers of the front end; `redirect` in TLS mode only, and none on the HTTP port if there is no such port. */
interface Servers {
  readonly defaultServer?: VirtualServer;
  readonly redirect?: VirtualServer;
  readonly application: VirtualServer;
}

/** The default server, and the application's; in TLS mode HTTP leads to HTTPS. */
function addServers(proxy: ReverseProxyBase, input: ServersInput): Servers {
  const { mode, serverNames, expect } = input;
  const { responseHeaders, errorPages } = input;
  const pauseResponse = input.pauseResponse ?? input.application.pauseResponse;
  const { windowsDrives } = input.application;
  const { http, http6, https, https6 } = input.listeners;
  const listeners = listenersIn(http, http6);
  let defaultServer: VirtualServer | undefined;
  if (listeners.length > 0) {
    const names = { serverNames: ["_"], listeners, default: true };
    defaultServer = proxy.addVirtualServer("default", { ...names, versionTokens: true });
    defaultServer.addRoute("page", { path: "/", action: input.page, expect: expect.default });
  }
  if (https === undefined) {
    const all = { serverNames, listeners, responseHeaders, errorPages, pauseResponse, windowsDrives };
    return { defaultServer, application: proxy.addVirtualServer("application", all) };
  }
  let redirect: VirtualServer | undefined;
  if (listeners.length > 0) {
    redirect = proxy.addVirtualServer("redirect", { serverNames, listeners });
    addRedirects(redirect, input);
  }
  const application = proxy.addVirtualServer("application", {
    serverNames: ["_"],
    listeners: listenersIn(https, https6),
    default: true,
    responseHeaders,
    errorPages,
    pauseResponse,
    windowsDrives,
    hsts: mode.https?.hsts,
  });
  return { defaultServer, redirect, application };
}

/** Adds a route for each path that the main route's path, as a text, does not cover. */
function addRedirects(
  redirect: VirtualServer,
  { application, place, mode, root, expect }: ServersInput,
): void {
  const action = Action.redirect({ status: 301, scheme: "https", port: mode.publicPort });
  const { [application.main]: main, ...others } = application.routes(place);
  redirect.addRoute("https", { path: main!.path, match: "prefix", action, expect: expect.redirect });
  const covered = [main!.path];
  for (const [id, route] of Object.entries(others)) {
    const { path } = route!;
    const isCovered = covered.some((above) => path === above || path.startsWith(`${above}/`));
    if (path.startsWith(main!.path) || isCovered) continue;
    covered.push(path);
    literalPaths.add(redirect.addRoute(id, { path, match: "segment", action, expect: false }));
  }
  if (root !== undefined)
    redirect.addRoute("root", { path: "/", match: "exact", action: root, expect: expect.httpRoot });
}

interface RoutesInput extends Omit<SiteInput, "upstreams"> {
  readonly upstreams: Readonly<Record<string, Upstream>>;
  readonly place: PublicPlace;
  /** What responds to `/` where the application has no route for it. */
  readonly page: Action;
  readonly expect: FrontEndExpectations;
}

/** The application's routes, and the page where it does not have `/`. */
function addRoutes(server: VirtualServer, input: RoutesInput): Readonly<Record<string, Route>> {
  const { requestBodyTimeoutMs, routeResponseHeaders: responseHeaders = {} } = input;
  const given = Object.entries(input.application.routes(input.place)) as [string, ApplicationRoute][];
  const made = given.map(([id, route]): [string, Route] => {
    const { action, ownLogs = false, ...props } = route;
    const proxied = action.type === "proxy" && requestBodyTimeoutMs !== undefined;
    return [
      id,
      server.addRoute(id, {
        ...props,
        action: actionOf(action, input),
        ...(proxied ? { requestBodyTimeoutMs } : {}),
        ...(responseHeaders[id] === undefined ? {} : { responseHeaders: responseHeaders[id] }),
        ...(ownLogs ? logsOf(id, input) : {}),
      }),
    ];
  });
  for (const [, route] of made) literalPaths.add(route);
  if (given.some(([, { path }]) => path === "/")) return Object.fromEntries(made);
  const page = server.addRoute("page", {
    path: "/",
    match: "exact",
    action: input.page,
    responseHeaders: responseHeaders.page,
    expect: input.expect.page,
  });
  return { ...Object.fromEntries(made), page };
}

/** On a stream everything goes to one place; the lines name the route. */
function logsOf(id: string, { logDirectory, logs = {} }: RoutesInput) {
  const isStream = (log: ProxyLogs[keyof ProxyLogs]): boolean =>
    logDirectory === undefined || (typeof log === "object" && "stream" in log);
  return {
    accessLog: isStream(logs.access) ? undefined : { path: `${logDirectory}/${id}.access.log` },
    errorLog: isStream(logs.error) ? undefined : { path: `${logDirectory}/${id}.error.log` },
  };
}

function actionOf(
  action: ApplicationRoute["action"],
  { upstreams, place: { scheme, port } }: RoutesInput,
): Action {
  switch (action.type) {
    case "proxy": {
      const { type: _, upstream, ...options } = action;
      return Action.proxy(upstreams[upstream]!, options);
    }
    case "staticFiles": {
      const { type: _, directory, ...options } = action;
      return Action.staticFiles(directory, options);
    }
    case "redirect": {
      const { type: _, ...options } = action;
      return Action.redirect({ scheme, port, ...options });
    }
    case "respond": {
      const { type: _, status, ...options } = action;
      return Action.respond(status, options);
    }
  }
}

/** @internal Where clients find the application. */
function placeOf(
  { scheme, publicPort: port }: Mode,
  serverNames: readonly [string, ...string[]],
): PublicPlace {
  const authorities = serverNames.map((name) => {
    const origin = originOf(scheme, name, port);
    return urlAuthority(scheme, origin.host, origin.port);
  });
  const origins = authorities.map((authority) => `${scheme}://${authority}`);
  return { scheme, host: serverNames[0], port, authority: authorities[0]!, origin: origins[0]!, origins };
}

/**
 * Warns, when the app is synthesized, where a path that the application's clients have built in does not lead where the
 * application has it: checks ask for the paths of the stack, so they pass while every such client fails.
 */
function warnOfBuiltInPaths(server: IVirtualServer, { clients, title }: ApplicationDefinition): void {
  const paths = clients.builtIn ?? [];
  const original = paths.map((path) => routeOf(server, path));
  let warned = false;
  Aspects.of(server).add({
    visit: (node) => {
      if (node !== server || warned) return;
      warned = true;
      for (const [i, path] of paths.entries()) {
        const now = routeOf(server, path);
        // A route at this very path was added for these clients.
        if (now !== undefined && (now === original[i] || now.path === path)) continue;
        const leads =
          now === undefined ? "no route serves this path" : `the route ${now.name} serves this path`;
        warn(
          server,
          `Clients of ${title} have the path ${path} built in, but ${leads}, so the clients will fail: add a route for ${path}.`,
        );
      }
    },
  });
}

function routeOf(server: IVirtualServer, asked: string): Route | undefined {
  const table = new RouteTable(
    server.routes.map((route) => ({ match: "segment" as const, ...route.render(), route })),
  );
  return table.find(asked as NormalisedPath)?.route;
}
