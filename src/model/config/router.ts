import { leadsTo, type RedirectGoal } from "../actions/location.js";
import type { ListenerConfig, ProxyConfig, RouteConfig, VirtualServerConfig } from "./config.js";
import { CATCH_ALL, NameTable } from "../net/serverName.js";
import type { NormalisedPath } from "../net/target.js";

/**
 * Which virtual server and which route a request gets. Built once from a config; the same code serves requests
 * and `resolve()` in unit tests.
 */
export class Router {
  private readonly byListener = new Map<
    string,
    { byName: NameTable<VirtualServerConfig>; fallback: VirtualServerConfig }
  >();
  private readonly tables = new Map<VirtualServerConfig, RouteTable>();

  constructor(config: ProxyConfig) {
    for (const listener of config.listeners) {
      const servers = config.virtualServers.filter((v) => v.listeners.includes(listener.name));
      const byName = new NameTable<VirtualServerConfig>();
      for (const server of servers)
        byName.add(
          server.serverNames.filter((name) => name !== CATCH_ALL),
          server,
        );
      this.byListener.set(listener.name, { byName, fallback: servers.find((v) => v.default)! });
    }
    for (const server of config.virtualServers) this.tables.set(server, new RouteTable(server.routes));
  }

  /** The virtual server for a normalised host name on a listener; the listener's default for any other name. */
  virtualServer(listener: string, serverName: string): VirtualServerConfig {
    const servers = this.byListener.get(listener)!;
    return servers.byName.find(serverName) ?? servers.fallback;
  }

  /** The listener's default server, which responds to what fails before the host is known. */
  defaultServer(listener: string): VirtualServerConfig {
    return this.byListener.get(listener)!.fallback;
  }

  /** The route for a normalised path; undefined where none matches (404). */
  route(server: VirtualServerConfig, path: NormalisedPath): RouteConfig | undefined {
    return this.tables.get(server)!.find(path);
  }
}

type RouteKey = Pick<RouteConfig, "path" | "match">;

/**
 * Routes of one virtual server. The longest literal path wins (decisions 1.3); of one length `exact` is before
 * `segment` is before `prefix`. A lookup walks the path's possible lengths, longest first, with one map
 * access where something of that length can match, so its cost does not depend on the number of routes.
 */
export class RouteTable<Route extends RouteKey = RouteConfig> {
  private readonly byPath = new Map<string, { exact?: Route; segment?: Route; prefix?: Route }>();
  /** Lengths that occur, longest first; `prefix` where a route of that length matches within a segment as well. */
  private readonly lengths: { readonly length: number; readonly prefix: boolean }[];

  constructor(routes: readonly Route[]) {
    for (const route of routes) {
      const entry = this.byPath.get(route.path) ?? {};
      entry[route.match] ??= route;
      this.byPath.set(route.path, entry);
    }
    const prefixes = new Set(routes.filter(({ match }) => match === "prefix").map(({ path }) => path.length));
    this.lengths = [...new Set(routes.map(({ path }) => path.length))]
      .sort((a, b) => b - a)
      .map((length) => ({ length, prefix: prefixes.has(length) }));
  }

  find(path: NormalisedPath): Route | undefined {
    for (const { length, prefix } of this.lengths) {
      if (length > path.length || !(prefix || endsSegment(path, length))) continue;
      const entry = this.byPath.get(length === path.length ? path : path.slice(0, length));
      if (entry === undefined) continue;
      if (length === path.length && entry.exact !== undefined) return entry.exact;
      if (entry.segment !== undefined && endsSegment(path, length)) return entry.segment;
      if (entry.prefix !== undefined) return entry.prefix;
    }
    return undefined;
  }
}

/** True if a segment of the path ends at `length`; a route path that itself ends in `/` always does. */
function endsSegment(path: string, length: number): boolean {
  return length === path.length || path.charCodeAt(length) === 0x2f || path.charCodeAt(length - 1) === 0x2f;
}

/** Safe methods: RFC 9110, 9.2.1; PROPFIND (RFC 4918, 9.1), REPORT (RFC 3253, 3.6), SEARCH (RFC 5323, 2.1). */
const SAFE = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "REPORT", "SEARCH"]);

/** Whether a request can change something behind its route; only a proxied request can. */
export function isWrite(route: RouteConfig, method: string, upgrade: boolean): boolean {
  if (route.action.type !== "proxy" || route.writes === "never") return false;
  // Over HTTP/2 a WebSocket is a CONNECT (RFC 8441), over HTTP/1.1 a GET.
  return route.writes === "always" || !(upgrade || SAFE.has(method));
}

/** The names of all virtual servers. */
export function ownNames({ virtualServers }: Pick<ProxyConfig, "virtualServers">): NameTable<true> {
  const names = new NameTable<true>();
  for (const { serverNames } of virtualServers) names.add(serverNames, true);
  return names;
}

/** The proxy's own listener that a redirect leads to; undefined if it leads elsewhere. */
export function listenerLedTo(goal: RedirectGoal, config: ProxyConfig): ListenerConfig | undefined {
  const { host } = goal;
  const ours = host === undefined || ownNames(config).find(host) !== undefined;
  return ours ? config.listeners.find((listener) => leadsTo(goal, listener)) : undefined;
}
