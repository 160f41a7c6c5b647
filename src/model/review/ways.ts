import {
  type ActionOf,
  CATCH_ALL,
  type ListenerConfig,
  type ProxyConfig,
  type RouteConfig,
  Router,
  serversOf,
  type UpstreamConfig,
  urlAuthority,
  type VirtualServerConfig,
} from "../index.js";
import { redirectPort } from "../actions/location.js";
import { redirectsToSlash } from "../actions/slashRedirect.js";
import { restBelow } from "../actions/staticPath.js";
import type { NormalisedPath } from "../net/target.js";

/**
 * All reachable paths: the one source for the table and the graph of a review, and for `portico check --against`. The
 * router decides, so that no other code duplicates its rules.
 */

/** A route of a virtual server as clients of one listener reach it. */
export interface WayIn {
  readonly listener: ListenerConfig;
  readonly server: VirtualServerConfig;
  readonly route: RouteConfig;
  /** JSON path of the route: `virtualServers[0].routes[1]`. */
  readonly place: string;
  /** Names that clients of the listener use, in the order of the config; {@link OTHER_NAME} stands for all others. */
  readonly names: readonly string[];
  readonly lead: Lead;
}

/** The goal of a route, in words that no name of a listener, virtual server, route or upstream is part of. */
export interface Lead {
  readonly kind: RouteConfig["action"]["type"];
  /** Text for a reader: `http://127.0.0.1:8000`, `files of /srv/www`, `301 to https://(same host)(same path)`. */
  readonly text: string;
  /** What the text leaves out, for a reader of two leads with the same text; with both equal, responses are alike. */
  readonly detail: string;
}

/** Every way in, in the order of the config. */
export class Reach {
  readonly ways: readonly WayIn[];
  private readonly router: Router;
  private readonly byRoute = new Map<string, WayIn>();

  constructor(readonly config: ProxyConfig) {
    this.router = new Router(config);
    const ways: WayIn[] = [];
    for (const listener of config.listeners)
      for (const [i, server] of config.virtualServers.entries()) {
        if (!server.listeners.includes(listener.name)) continue;
        const names = namesOn(config, listener, server);
        for (const [j, route] of server.routes.entries()) {
          const place = `virtualServers[${i}].routes[${j}]`;
          const way = { listener, server, route, place, names, lead: leadOf(config, route) };
          ways.push(way);
          this.byRoute.set(keyOf(listener, server, route), way);
        }
      }
    this.ways = ways;
  }

  /** The upstream that a way leads to, and its JSON path; undefined for all that is not proxied. */
  upstream({
    route: { action },
  }: WayIn): { readonly upstream: UpstreamConfig; readonly place: string } | undefined {
    if (action.type !== "proxy") return undefined;
    const i = this.config.upstreams.findIndex(({ name }) => name === action.upstream);
    return { upstream: this.config.upstreams[i]!, place: `upstreams[${i}]` };
  }

  /** The virtual server of a name on a listener. */
  server(listener: ListenerConfig, name: string): VirtualServerConfig {
    return this.router.virtualServer(listener.name, name);
  }

  /** The way that a request takes; undefined if no route has the path (404). */
  taken(listener: ListenerConfig, name: string, path: string): WayIn | undefined {
    const server = this.server(listener, name);
    const route = this.router.route(server, path);
    return route === undefined ? undefined : this.byRoute.get(keyOf(listener, server, route));
  }
}

const keyOf = (listener: ListenerConfig, server: VirtualServerConfig, route: RouteConfig): string =>
  [listener.name, server.name, route.name].join(" ");

function namesOn(
  config: ProxyConfig,
  { name }: ListenerConfig,
  server: VirtualServerConfig,
): readonly string[] {
  if (config.virtualServers.filter(({ listeners }) => listeners.includes(name)).length === 1)
    return [ANY_NAME];
  const names = server.serverNames.filter((one) => one !== CATCH_ALL);
  return server.default ? [...names, OTHER_NAME] : names;
}

/** What a default server responds for besides its own names, and the only server of a listener. */
export const OTHER_NAME = "any other name";
export const ANY_NAME = "any name";

/** How much requests can change behind a route. */
export type Writes = "nothing" | "byMethod" | "always";

export function writesOf({ action, writes }: RouteConfig): Writes {
  return action.type !== "proxy" || writes === "never" ? "nothing" : writes;
}

type Leads = {
  readonly [T in Lead["kind"]]: (config: ProxyConfig, route: RouteConfig, action: ActionOf<T>) => Lead;
};

function leadOf<T extends Lead["kind"]>(config: ProxyConfig, route: RouteConfig): Lead {
  return (LEADS[route.action.type as T] as Leads[T])(config, route, route.action as ActionOf<T>);
}

const LEADS: Leads = {
  proxy: ({ upstreams }, route, action) => {
    const { path } = route;
    const { upstream, strip, rewrite, hostHeader } = action;
    const to = upstreams.find(({ name }) => name === upstream)!;
    const servers = serversOf(to).map(({ url, backup }) => (backup ? `${url} (backup)` : url));
    const cut = rewrite === undefined ? `without ${path}` : `${path} as ${rewrite}`;
    const words = [
      servers.sort().join(" or "),
      ...(strip === "none" && rewrite === undefined ? [] : [cut]),
      ...(hostHeader === "upstream" ? ["by its own Host"] : []),
    ];
    const text = words.join(", ");
    const slash = redirectsToSlash({ ...route, action }) ? `, redirect to ${path}/` : "";
    return { kind: "proxy", text, detail: `strip ${strip}${slash}` };
  },
  staticFiles: (_, route, { directory, index }) => ({
    kind: "staticFiles",
    text: `files of ${directory}`,
    detail: [
      `below ${route.path}`,
      index.length === 0 ? "no index" : `index ${index.map((name) => JSON.stringify(name)).join(" ")}`,
      ...(restBelow(route, route.path as NormalisedPath) === "" ? [`redirect to ${route.path}/`] : []),
    ].join(", "),
  }),
  redirect: (_, { path: own }, action) => {
    const { status, scheme, host = SAME_HOST, path = "(same path)", keep } = action;
    const kept = { nothing: "", query: " (same query)", rest: ` (with what follows ${own})` }[keep];
    const text = `${status} to ${scheme}://${urlAuthority(scheme, host, redirectPort(action))}${path}${kept}`;
    return { kind: "redirect", text, detail: "" };
  },
  respond: (_, __, { status, body, contentType }) => ({
    kind: "respond",
    text: `${status}`,
    detail: `${contentType}: ${body}`,
  }),
  status: (_, __, { allow, addresses, fileNames }) => ({
    kind: "status",
    text: `the status, for ${[...allow].sort().join(" and ")}`,
    detail: `addresses ${addresses}, file names ${fileNames ? "shown" : "hidden"}`,
  }),
};

const SAME_HOST = "(same host)";

/** Whether the way leads to something outside the config: an application, or files. */
export const leadsInside = ({ lead }: WayIn): boolean => lead.kind === "proxy" || lead.kind === "staticFiles";
