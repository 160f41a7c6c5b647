import { isIPv6 } from "node:net";
import {
  AccessGuards,
  type AccessLists,
  type AccessRefusal,
  type ActionConfig,
  type ActionOf,
  admittedName,
  asksForDrives,
  belowDirectory,
  canonicalAddress,
  certificateRefusal,
  clientPort,
  CONNECT_REFUSAL,
  defaultPort,
  type HeaderList,
  hostAsked,
  isBodyTooLong,
  isFileMethod,
  type ListenerConfig,
  type NormalisedPath,
  normalisePath,
  parseHost,
  type ProxyConfig,
  redirectLocation,
  redirectsToSlash,
  refusalStatus,
  type RouteGuard,
  restBelow,
  type RouteConfig,
  Router,
  type Scheme,
  TRACE_REFUSAL,
  upstreamTargetOf,
  type VirtualServerConfig,
  withSlash,
} from "./index.js";

/**
 * A config's decision about a request, as far as it depends on the request line, host, body length and, for OPTIONS,
 * the client's program. `resolve` adds the effects of other fields, `why` the rules in their order; `portico replay` uses
 * only this, because a log shows no more.
 */
export type Decision =
  /** @property target path and query that go upstream */
  | { readonly kind: "proxy"; readonly upstream: string; readonly target: string }
  | { readonly kind: "staticFile"; readonly file: string }
  | { readonly kind: "redirect"; readonly status: number; readonly location: string }
  /** @property windowsDrives whether the virtual server itself responds, so that Windows may map network drives */
  | {
      readonly kind: "respond";
      readonly status: number;
      readonly body: string;
      readonly windowsDrives?: true;
    }
  /** @property allow addresses that may see it: all others get 403 */
  | { readonly kind: "status"; readonly allow: readonly string[] }
  /** @property refusal the refusal, if the client may not come in; 444 if the connection is closed */
  | { readonly kind: "error"; readonly status: number; readonly refusal?: AccessRefusal };

/** The listener, the virtual server and the route of a request. */
export interface RouteMatch {
  readonly listener: ListenerConfig;
  readonly server: VirtualServerConfig;
  /** Undefined if none matches. */
  readonly route: RouteConfig | undefined;
  readonly path: NormalisedPath;
  /** Normalised, without port; empty if the client named none. */
  readonly serverName: string;
  /** Judges the clients of the route; undefined if everyone may come in. */
  readonly guard?: RouteGuard | undefined;
}

/** Listeners, virtual servers and routes of a config, to look up many requests in. */
export class RequestMatcher {
  private readonly router: Router;
  private readonly guards: AccessGuards;

  /** @param lists contents of the files that access policies name; without them, these files have no addresses */
  constructor(
    private readonly config: ProxyConfig,
    lists?: AccessLists,
  ) {
    this.router = new Router(config);
    this.guards = new AccessGuards(config, lists);
  }

  /** The server that responds to what fails before the host is known. */
  defaultServer(listener: ListenerConfig): VirtualServerConfig {
    return this.router.defaultServer(listener.name);
  }

  /**
   * The match of a request; undefined if it gets 400 for its host or target.
   *
   * @param authority host as the client wrote it, with its port; empty if it named none
   * @param target origin-form target, one char a byte
   */
  match(listener: ListenerConfig, authority: string, target: string): RouteMatch | undefined {
    const serverName = authority === "" ? "" : parseHost(authority)?.serverName;
    const path = normalisePath(target);
    if (serverName === undefined || path === undefined) return undefined;
    const server = this.router.virtualServer(listener.name, serverName);
    const route = this.router.route(server, path);
    return { listener, server, route, path, serverName, guard: route && this.guards.of(route) };
  }

  /**
   * The listener for a scheme and authority: the one with that scheme and port, at the address that is its host, or
   * else of its family. Undefined if there is none; also if the authority names a port that no listener has.
   *
   * @param name the listener's name, if that is known
   */
  listener(scheme: Scheme, authority: string, name?: string): ListenerConfig | undefined {
    const all = this.config.listeners.filter((l) =>
      name === undefined ? l.protocol === scheme : l.name === name,
    );
    const host = parseHost(authority);
    const port = Number(host?.port || defaultPort(scheme));
    // If something in front maps ports and the config does not say how, no listener may have the scheme's own port.
    const taking = all.filter((l) => clientPort(l) === port);
    const isAsked = name === undefined && host?.port !== undefined && host.port !== "";
    const onPort = taking.length > 0 || isAsked ? taking : all;
    const ipv6 = host !== undefined && isIPv6(host.serverName);
    return (
      onPort.find((l) => canonicalAddress(l.address) === host?.serverName) ??
      onPort.find((l) => isIPv6(l.address) === ipv6) ??
      onPort[0]
    );
  }
}

/** A request that matched a listener and a virtual server. */
export interface MatchedRequest {
  readonly method: string;
  /** Origin-form target, one char a byte. */
  readonly target: string;
  /** Bytes of its body; -1 if that is not known. */
  readonly bodyBytes: number;
  /** Whether it asks for an upgrade. */
  readonly upgrade?: boolean;
  /** The request's fields, as far as they are known; only `User-Agent` matters. */
  readonly headers?: HeaderList;
  /** Address of the client; if it is unknown, access is not judged. */
  readonly client?: string | undefined;
  /** Whether the client names a user, whose password is taken for right; undefined if that is not known. */
  readonly namesUser?: boolean | undefined;
  /** Name of the client's certificate, which is taken for valid; empty for none, undefined if that is not known. */
  readonly certificate?: string | undefined;
}

/** What happens to a request, in the order of the runtime (`dispatch/dispatch.ts`, and its codecs before that). */
export function decide(match: RouteMatch, request: MatchedRequest): Decision {
  const { route, server, path } = match;
  if (request.method === "CONNECT") return error(CONNECT_REFUSAL.status);
  if (request.method === "TRACE") return error(TRACE_REFUSAL.status);
  const refusal = certificateRefusalOf(server, request) ?? refusalOf(match, request);
  if (refusal !== undefined) return { kind: "error", status: refusalStatus(refusal), refusal };
  if (asksForDrives(server, { headers: [], ...request, path })) return DRIVES;
  if (route === undefined) return error(404);
  if (isBodyTooLong(request.bodyBytes, route.requestBodyBytesMax)) return error(413);
  return decided(match, request, route, route.action);
}

function certificateRefusalOf(
  server: VirtualServerConfig,
  { certificate }: Pick<MatchedRequest, "certificate">,
): AccessRefusal | undefined {
  const rules = server.clientCertificate;
  if (rules === undefined || certificate === undefined) return undefined;
  const comesIn = certificate === "" ? !rules.required : admittedName(rules, [certificate]) !== undefined;
  return comesIn ? undefined : certificateRefusal(server);
}

function refusalOf(
  { guard, path }: RouteMatch,
  { client, target, namesUser }: MatchedRequest,
): AccessRefusal | undefined {
  if (guard === undefined || client === undefined) return undefined;
  return namesUser === false
    ? guard.refusalOfUnknown(client, target, path)
    : guard.refusal(client, target, path);
}

const DRIVES: Decision = { kind: "respond", status: 200, body: "", windowsDrives: true };
const error = (status: number): Decision => ({ kind: "error", status });

function decided<T extends ActionConfig["type"]>(
  match: RouteMatch,
  request: MatchedRequest,
  route: RouteConfig,
  action: ActionOf<T>,
): Decision {
  return (DECISIONS[action.type as T] as Decisions[T])(match, request, route, action);
}

type Decisions = {
  readonly [T in ActionConfig["type"]]: (
    match: RouteMatch,
    request: MatchedRequest,
    route: RouteConfig,
    action: ActionOf<T>,
  ) => Decision;
};

/** The decision of each kind of action. */
const DECISIONS: Decisions = {
  proxy: ({ path }, { method, target, upgrade }, { path: own, match }, action) => {
    const asksForOwn = path === own && isFileMethod(method) && upgrade !== true;
    if (asksForOwn && redirectsToSlash({ path: own, match, action }))
      return { kind: "redirect", status: 301, location: withSlash(target, path) };
    const { upstream } = action;
    return { kind: "proxy", upstream, target: upstreamTargetOf({ path: own, action }, target, path) };
  },
  staticFiles: ({ path }, { method }, route, action) => staticFile(method, path, route, action),
  redirect: ({ serverName, server, listener, path }, { target }, { path: own }, action) => {
    const host = hostAsked(serverName, server.serverNames, listener.address);
    const location = redirectLocation(action, host, target, own, path);
    return { kind: "redirect", status: action.status, location };
  },
  respond: (_, __, ___, { status, body }) => ({ kind: "respond", status, body }),
  status: ({ path }, { method }, route, { allow }) => {
    if (!isFileMethod(method)) return error(405);
    return path === route.path || path === `${route.path}/` ? { kind: "status", allow } : error(404);
  },
};

/** The file that a path names; the first index file for a directory. */
function staticFile(
  method: string,
  path: NormalisedPath,
  route: RouteConfig,
  action: ActionOf<"staticFiles">,
): Decision {
  if (!isFileMethod(method)) return error(405);
  const rest = restBelow(route, path);
  if (rest === undefined) return error(404);
  const index = rest.endsWith("/") ? (action.index[0] ?? "") : "";
  const named = Buffer.from(rest, "latin1").toString("utf8") + index;
  return { kind: "staticFile", file: belowDirectory(action.directory) + named };
}
