import { Aspects } from "cdktf";
import {
  ANY_PLACE,
  type ApplicationDefinition,
  type ApplicationRoute,
  DEFAULT_SERVER,
  type FrontEndExpectations,
  frontEndExpectations,
  type LogIn,
  type PublicPlace,
  type PauseResponse,
} from "../../applications/index.js";
import { urlAuthority } from "../../model/index.js";
import { type NormalisedPath, OWN_SITE, RouteTable } from "../../model/serving.js";
import { Action } from "../proxy/action.js";
import type { ErrorPage } from "../proxy/errorPage.js";
import type { ClientCertificate } from "../proxy/clientCertificate.js";
import type { ResponseHeaders } from "../proxy/responseHeaders.js";
import { type FrontEndListeners, listenersIn } from "./parts.js";
import { warn } from "../props/warn.js";
import { literalPaths } from "../proxy/warnings.js";
import type { Mode } from "../proxy/mode.js";
import type { ProxyLogs } from "../proxy/proxySettings.js";
import type { TlsMaterial } from "../proxy/tlsMaterial.js";
import { ReverseProxy } from "../proxy/reverseProxy.js";
import type { ReverseProxyBase } from "../proxy/reverseProxyBase.js";
import type { Route } from "../proxy/route.js";
import { type Upstream, type UpstreamProps, withChanges } from "../proxy/upstream.js";
import type { IVirtualServer, VirtualServer } from "../proxy/virtualServer.js";
import { originOf } from "../application/settings.js";

/** Upstreams, virtual servers and routes of a front end, from the data of its application. */

/** @internal What responds to names that no site has: the proxy's page over http, or 404 over both protocols. */
export function addDefaultServer(
  proxy: ReverseProxyBase,
  { http, http6, https, https6 }: FrontEndListeners,
  page: Action | undefined,
): VirtualServer | undefined {
  const listeners = page === undefined ? listenersIn(http, http6, https, https6) : listenersIn(http, http6);
  if (listeners.length === 0) return undefined;
  const server = { serverNames: ["_"], listeners, default: true };
  if (page === undefined) {
    const made = proxy.addVirtualServer("default", server);
    made.asksForUsers = false;
    made.addRoute("nothing", { path: "/", action: Action.respond(404), expect: OTHER_NAMES });
    return made;
  }
  const made = proxy.addVirtualServer("default", { ...server, versionTokens: true });
  // It is served without TLS, and has nothing of a site.
  made.asksForUsers = false;
  made.addRoute("page", { path: "/", action: page, expect: [DEFAULT_SERVER] });
  return made;
}

const OTHER_NAMES = { name: "other names", host: "unknown", status: 404 } as const;

/** @internal The input of an application's upstreams and routes. */
export interface ApplicationInput {
  /**
   * Name of a further site, which responds to its own names only, or of an application below a path. Undefined for the
   * site with the host's names, which responds to every name over https unless its application is for its own names only.
   */
  readonly name?: string;
  readonly application: ApplicationDefinition;
  readonly mode: Mode;
  readonly serverNames: readonly [string, ...string[]];
  readonly upstreams?: UpstreamChanges;
  readonly routeResponseHeaders?: RouteFields;
  readonly requestBodyTimeoutMs?: number;
}

/** @internal The input of a site's upstreams, virtual servers and routes. */
export interface SiteInput extends ApplicationInput {
  readonly listeners: FrontEndListeners;
  /** What responds to `/` where neither the application nor a redirect does. */
  readonly page: Action;
  /** Certificate of a further site; that of the listeners without it. */
  readonly tls?: TlsMaterial;
  readonly rootRedirect?: boolean;
  readonly responseHeaders?: ResponseHeaders;
  readonly errorPages?: readonly ErrorPage[];
  readonly pauseResponse?: PauseResponse;
  readonly windowsDrives?: boolean;
  readonly clientCertificate?: ClientCertificate;
}

/** @internal The constructs of an application. */
export interface ApplicationParts {
  readonly place: PublicPlace;
  readonly upstreams: Readonly<Record<string, Upstream>>;
  readonly routes: Readonly<Record<string, Route>>;
  /** The URL at which users find the application. */
  readonly url: string;
}

/** @internal The constructs of a site. */
export interface SiteParts extends ApplicationParts, Servers {
  /** The target of the link on the default server's page; undefined if there is no link. */
  readonly linked?: string;
}

/** @internal Everything of the proxy that is the site's. */
export function addSiteParts(proxy: ReverseProxyBase, input: SiteInput): SiteParts {
  const { application, mode, serverNames } = input;
  const place = placeOf(mode, serverNames);
  const upstreams = addUpstreams(proxy, input);
  const path = mainPath(application, place);
  const root = input.rootRedirect === true && path !== "/" ? rootRedirect(mode, path) : undefined;
  const expect = frontEndExpectations({ ...place, path }, root !== undefined, input.name);
  const all = { ...input, proxy, place, upstreams, expect };
  const servers = addServers(proxy, { ...all, root });
  const own = addRoutes(servers.application, all);
  const page = addPage(servers.application, { ...all, page: root ?? input.page });
  warnOfBuiltInPaths(servers.application, application);
  const url = `${place.origin}${path}`;
  return { ...servers, place, upstreams, routes: { ...own, ...page }, url, linked: root && url };
}

/** @internal Upstreams and routes of an application below a path of a site. */
export function addPathParts(
  proxy: ReverseProxyBase,
  { application: server, redirect }: Servers,
  { path, id, ...input }: ApplicationInput & { readonly path: string; readonly id: string },
): ApplicationParts {
  const place = placeOf(input.mode, input.serverNames, path);
  const upstreams = addUpstreams(proxy, input);
  const routes = addRoutes(server, { ...input, proxy, place, upstreams, routeName: id });
  if (redirect !== undefined && routeOf(redirect, path) === undefined) {
    const action = Action.redirect({ status: 301, scheme: "https", port: input.mode.publicPort });
    literalPaths.add(redirect.addRoute(id, { path, match: "segment", action, expect: false }));
  }
  return { place, upstreams, routes, url: `${place.origin}${mainPath(input.application, place)}` };
}

/** @internal Changes to upstreams and to routes' response fields, by name. */
export type UpstreamChanges = Readonly<Record<string, Partial<UpstreamProps> | undefined>>;
/** @internal */
export type RouteFields = Readonly<Record<string, ResponseHeaders | undefined>>;

/** Ids and names of the parts of a further site, or of an application below a path, have its name in front. */
const namedBy = ({ name }: Pick<ApplicationInput, "name">, id: string): string =>
  name === undefined ? id : `${name}-${id}`;

/** The application's parts where they usually listen, with the caller's changes. */
function addUpstreams(proxy: ReverseProxyBase, input: ApplicationInput): Readonly<Record<string, Upstream>> {
  const { upstreams: changes = {} } = input;
  const made = Object.entries(input.application.parts).map(([id, part]): [string, Upstream] => {
    const { title: _, liveness: __, ...props } = part!;
    return [id, proxy.addUpstream(namedBy(input, id), withChanges(props, changes[id]))];
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

/** The path at which users find the application, with a slash at its end. */
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
  /** The action of `/`; undefined if it is a page. */
  readonly root?: Action;
  readonly expect: FrontEndExpectations;
}

/** Virtual servers of a site; `redirect` in TLS mode only, and none on the HTTP port if there is no such port. */
interface Servers {
  readonly redirect?: VirtualServer;
  readonly application: VirtualServer;
}

/** The application's virtual server; in TLS mode HTTP leads to HTTPS. */
function addServers(proxy: ReverseProxyBase, input: ServersInput): Servers {
  const { mode, serverNames, name, application: definition } = input;
  const { responseHeaders, errorPages, clientCertificate } = input;
  const { pauseResponse = definition.pauseResponse, windowsDrives = definition.windowsDrives } = input;
  const { http, http6, https, https6 } = input.listeners;
  const listeners = listenersIn(http, http6);
  const id = name ?? OWN_SITE;
  const common = { responseHeaders, errorPages, pauseResponse, windowsDrives, clientCertificate };
  if (https === undefined) {
    return { application: proxy.addVirtualServer(id, { site: name, serverNames, listeners, ...common }) };
  }
  let redirect: VirtualServer | undefined;
  if (listeners.length > 0) {
    redirect = proxy.addVirtualServer(namedBy(input, "redirect"), { site: name, serverNames, listeners });
    // It tells nothing, and a client that is refused is told so by https.
    redirect.access = { name: "open", access: "open" };
    addRedirects(redirect, input);
  }
  const all = { listeners: listenersIn(https, https6), ...common, hsts: mode.https?.hsts };
  const application = respondsToAnyName(input)
    ? proxy.addVirtualServer(id, { serverNames: ["_"], default: true, ...all })
    : proxy.addVirtualServer(id, { site: name, serverNames, tls: input.tls, ...all });
  return { redirect, application };
}

/** @internal Whether the application also responds to names that are not its own, over https. */
export const respondsToAnyName = ({ name, application }: Pick<SiteInput, "name" | "application">): boolean =>
  name === undefined && application.ownNamesOnly !== true;

/** @internal Whether a request gets the default server's page: over http, or at `/` where nothing else is. */
export const isPageServed = ({
  application,
  mode,
  rootRedirect = false,
}: Pick<SiteInput, "application" | "rootRedirect"> & { readonly mode?: Mode }): boolean =>
  respondsToAnyName({ application }) &&
  (mode?.httpPort !== undefined || (!rootRedirect && !hasRoot(application, ANY_PLACE)));

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

interface RoutesInput extends Omit<ApplicationInput, "upstreams"> {
  readonly proxy: ReverseProxyBase;
  readonly upstreams: Readonly<Record<string, Upstream>>;
  readonly place: PublicPlace;
  /** Beginning of the ids of routes, where the virtual server has routes of another application. */
  readonly routeName?: string;
}

/** The application's routes. */
function addRoutes(server: VirtualServer, input: RoutesInput): Readonly<Record<string, Route>> {
  const { requestBodyTimeoutMs, routeResponseHeaders: responseHeaders = {} } = input;
  const given = Object.entries(input.application.routes(input.place)) as [string, ApplicationRoute][];
  const below = input.routeName === undefined ? "" : input.place.path;
  server.logIns = [
    ...server.logIns,
    ...input.application.clients.logIns.map((one) => logInBelow(below, one)),
  ];
  server.withCredentials = [
    ...server.withCredentials,
    ...input.application.clients.withCredentials.map((path) => `${below}${path}`.replace(/(?<=.)\/$/, "")),
  ];
  const made = given.map(([id, route]): [string, Route] => {
    const { action, access, ownLogs = false, ...props } = route;
    const proxied = action.type === "proxy" && requestBodyTimeoutMs !== undefined;
    const added = server.addRoute(namedBy({ name: input.routeName }, id), {
      ...props,
      action: actionOf(action, input),
      ...(proxied ? { requestBodyTimeoutMs } : {}),
      ...(responseHeaders[id] === undefined ? {} : { responseHeaders: responseHeaders[id] }),
      ...(ownLogs ? logsOf(id, input) : {}),
    });
    if (access !== undefined) added.closedByManual = access;
    return [id, added];
  });
  for (const [, route] of made) literalPaths.add(route);
  return Object.fromEntries(made);
}

const logInBelow = (path: string, { failedLocation, ...logIn }: LogIn): LogIn => ({
  ...logIn,
  path: `${path}${logIn.path}`,
  ...(failedLocation === undefined ? {} : { failedLocation: `${path}${failedLocation}` }),
});

interface PageInput extends Pick<SiteInput, "page" | "application" | "routeResponseHeaders"> {
  readonly place: PublicPlace;
  readonly expect: FrontEndExpectations;
}

const hasRoot = ({ routes }: ApplicationDefinition, place: PublicPlace): boolean =>
  Object.values(routes(place)).some((route) => route!.path === "/");

/** What responds to `/` where the application has no route for it. */
function addPage(server: VirtualServer, { page: action, ...input }: PageInput): { readonly page?: Route } {
  const { application, place, routeResponseHeaders, expect } = input;
  if (hasRoot(application, place)) return {};
  const responseHeaders = routeResponseHeaders?.page;
  const props = { path: "/", match: "exact", action, responseHeaders, expect: expect.page } as const;
  return { page: server.addRoute("page", props) };
}

/** On a stream everything goes to one place; the lines name the route. */
function logsOf(route: string, { proxy, name }: RoutesInput) {
  const id = namedBy({ name }, route);
  if (!(proxy instanceof ReverseProxy)) return {};
  const { paths, mainLogs: { access, error } = {} } = proxy;
  const isStream = (log: ProxyLogs[keyof ProxyLogs]): boolean => typeof log === "object" && "stream" in log;
  const path = `${paths.logDirectory}/${id}`;
  return {
    accessLog: isStream(access) ? undefined : { path: `${path}.access.log` },
    errorLog: isStream(error) ? undefined : { path: `${path}.error.log` },
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

/** The place at which clients find the application. */
function placeOf(
  { scheme, publicPort: port }: Mode,
  serverNames: readonly [string, ...string[]],
  path = "",
): PublicPlace {
  const authorities = serverNames.map((name) => {
    const origin = originOf(scheme, name, port);
    return urlAuthority(scheme, origin.host, origin.port);
  });
  const origins = authorities.map((authority) => `${scheme}://${authority}`);
  return {
    scheme,
    host: serverNames[0],
    port,
    authority: authorities[0]!,
    origin: origins[0]!,
    origins,
    path,
  };
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
