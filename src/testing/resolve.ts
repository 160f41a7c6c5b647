import { BlockList, isIPv6 } from "node:net";
import type { IConstruct } from "constructs";
import {
  type ActionConfig,
  defaultPort,
  ForwardingRules,
  type HeaderList,
  type ListenerConfig,
  type NormalisedPath,
  normalisePath,
  parseHost,
  type ProxyConfig,
  redirectPort,
  type RouteConfig,
  Router,
  urlAuthority,
  type VirtualServerConfig,
} from "../model/index.js";
import { renderProxyConfig } from "./proxyConfig.js";

/** A request as a client makes it. */
export interface TestRequest {
  /** `http://HOST[:PORT]TARGET`; the target goes out byte for byte, so `//`, `..` and `%2F` can be tested. */
  readonly url: string;
  /**
   * Method of the request.
   * @default "GET"
   */
  readonly method?: string;
  /** Request fields by name; a list sends the field several times. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  /**
   * IPv4 or IPv6 address that the request comes from.
   * @default "198.51.100.7"
   */
  readonly clientAddress?: string;
  /**
   * Listener the connection comes in through.
   * @default - the one with the URL's scheme and port, of the address family of its host
   */
  readonly listener?: string;
}

/** Who answers a request, and how. */
export type Resolution = Answerer & Answered;

type Answered =
  | {
      readonly kind: "proxy";
      readonly upstream: string;
      readonly upstreamUrl: string;
      /** As it goes upstream: `GET /files/x HTTP/1.1`. */
      readonly requestLine: string;
      /** Fields that go upstream, by lower-case name; fields sent several times are joined with `, `. */
      readonly headers: Readonly<Record<string, string>>;
    }
  | { readonly kind: "staticFile"; readonly file: string }
  | { readonly kind: "redirect"; readonly status: number; readonly location: string }
  | { readonly kind: "respond"; readonly status: number; readonly body: string }
  | { readonly kind: "error"; readonly status: number };

interface Answerer {
  readonly listener: string;
  readonly virtualServer: string;
  /** Undefined where no route matched. */
  readonly route?: string;
}

/**
 * What happens to a request, by the rules that the runtime serves by: which virtual server and route take it, what
 * goes upstream, which file is read, where a redirect leads. Nothing is sent and no file is touched, so a static file
 * is named whether it exists or not.
 *
 * @param target a config, or a construct with one proxy
 */
export function resolve(target: ProxyConfig | IConstruct, request: TestRequest | string): Resolution {
  const config = "node" in target ? renderProxyConfig(target) : target;
  const asked = typeof request === "string" ? { url: request } : request;
  const url = splitUrl(asked.url);
  const listener = listenerFor(config, url, asked.listener);
  const router = new Router(config);
  const host = parseHost(url.authority);
  const path = normalisePath(url.target);
  if (host === undefined || path === undefined) {
    const server = router.defaultServer(listener.name);
    return { listener: listener.name, virtualServer: server.name, kind: "error", status: 400 };
  }
  const server = router.virtualServer(listener.name, host.serverName);
  const route = router.route(server, path);
  return answer({ config, asked, url, listener, serverName: host.serverName, server, route, path });
}

interface Routed {
  readonly config: ProxyConfig;
  readonly asked: TestRequest;
  readonly url: SplitUrl;
  readonly listener: ListenerConfig;
  readonly serverName: string;
  readonly server: VirtualServerConfig;
  readonly route: RouteConfig | undefined;
  readonly path: NormalisedPath;
}

function answer(routed: Routed): Resolution {
  const { route, asked, path } = routed;
  const answerer = { listener: routed.listener.name, virtualServer: routed.server.name, route: route?.name };
  const method = asked.method ?? "GET";
  const fail = (status: number): Resolution => ({ ...answerer, kind: "error", status });
  // CONNECT would make the proxy a tunnel, and TRACE shows a client's secrets to scripts (decisions 2.7).
  if (method === "CONNECT") return fail(400);
  if (method === "TRACE") return fail(405);
  if (route === undefined) return fail(404);
  const length = Number(fieldOf(asked, "content-length") ?? 0);
  if (route.requestBodyBytesMax > 0 && length > route.requestBodyBytesMax) return fail(413);
  const { action } = route;
  switch (action.type) {
    case "proxy":
      return { ...answerer, ...upstreamRequest(routed, route, action) };
    case "staticFiles": {
      const file = fileFor(route, action, path);
      if (file === undefined) return fail(404);
      return method === "GET" || method === "HEAD" ? { ...answerer, kind: "staticFile", file } : fail(405);
    }
    case "redirect":
      return { ...answerer, kind: "redirect", status: action.status, location: locationOf(routed, action) };
    case "respond":
      return { ...answerer, kind: "respond", status: action.status, body: action.body };
  }
}

type Action<T extends ActionConfig["type"]> = Extract<ActionConfig, { type: T }>;

function upstreamRequest(routed: Routed, route: RouteConfig, action: Action<"proxy">): Answered {
  const { config, asked, url } = routed;
  const upstream = config.upstreams.find(({ name }) => name === action.upstream)!;
  const clientAddress = asked.clientAddress ?? "198.51.100.7";
  const upgrade = fieldOf(asked, "upgrade")?.toLowerCase() === "websocket";
  const request = {
    method: asked.method ?? "GET",
    target: url.target,
    path: routed.path,
    headers: headerList(asked),
    host: url.authority,
    serverName: routed.serverName,
    scheme: url.scheme,
    clientAddress,
    trusted: isTrusted(config.trustedProxies, clientAddress),
    webSocket: upgrade && action.webSocket,
  };
  const rules = new ForwardingRules({ ...route, action }, upstream);
  const refusal = rules.refusal(request);
  if (refusal !== undefined) return { kind: "error", status: refusal.status };
  const head = rules.requestHead(request, "");
  const [requestLine, ...lines] = head.trimEnd().split("\r\n") as [string, ...string[]];
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const name = line.slice(0, line.indexOf(":")).toLowerCase();
    const value = line.slice(line.indexOf(":") + 1).trim();
    headers[name] = name in headers ? `${headers[name]}, ${value}` : value;
  }
  return { kind: "proxy", upstream: upstream.name, upstreamUrl: upstream.url, requestLine, headers };
}

/** The file that a path names; the first index file for a directory, undefined for a sibling of the prefix. */
function fileFor(
  route: RouteConfig,
  action: Action<"staticFiles">,
  path: NormalisedPath,
): string | undefined {
  const prefix = route.path.endsWith("/") ? route.path.slice(0, -1) : route.path;
  const rest = route.match === "exact" && path === prefix ? "/" : path.slice(prefix.length);
  if (rest !== "" && !rest.startsWith("/")) return undefined;
  const index = rest.endsWith("/") ? (action.index[0] ?? "") : "";
  const directory = action.directory === "/" ? "" : action.directory;
  return directory + Buffer.from(rest, "latin1").toString("utf8") + index;
}

function locationOf({ serverName, url }: Routed, action: Action<"redirect">): string {
  const host = action.host ?? serverName;
  return `${action.scheme}://${urlAuthority(action.scheme, host, redirectPort(action))}${url.target}`;
}

interface SplitUrl {
  readonly scheme: "http" | "https";
  readonly authority: string;
  readonly target: string;
}

/** Not `new URL()`, which resolves and encodes what is to be tested. */
function splitUrl(url: string): SplitUrl {
  const match = /^(https?):\/\/([^/?#]*)(.*)$/s.exec(url);
  if (match === null) throw new Error(`Give an absolute http or https URL: ${JSON.stringify(url)} is none.`);
  const [, scheme, authority, rest] = match as unknown as [string, "http" | "https", string, string];
  const target = Buffer.from(rest.startsWith("/") ? rest : `/${rest}`, "utf8").toString("latin1");
  return { scheme, authority, target };
}

function listenerFor(config: ProxyConfig, url: SplitUrl, name: string | undefined): ListenerConfig {
  const all = config.listeners.filter((l) =>
    name === undefined ? l.protocol === url.scheme : l.name === name,
  );
  const host = parseHost(url.authority);
  const port = Number(host?.port || defaultPort(url.scheme));
  // Behind a router that maps ports, the port asked for is none of the listeners'.
  const onPort = all.some((l) => l.port === port) ? all.filter((l) => l.port === port) : all;
  const ipv6 = host !== undefined && isIPv6(host.serverName);
  const found = onPort.find((l) => isIPv6(l.address) === ipv6) ?? onPort[0];
  if (found !== undefined) return found;
  const known = config.listeners.map((l) => `${l.name} (${l.protocol}, port ${l.port})`).join(", ");
  throw new Error(`No listener takes ${url.scheme}://${url.authority}: there is ${known}.`);
}

function headerList({ headers = {} }: TestRequest): HeaderList {
  return Object.entries(headers).flatMap(([name, values]) =>
    [values].flat().flatMap((v) => [name, String(v)]),
  );
}

function fieldOf(request: TestRequest, name: string): string | undefined {
  const headers = headerList(request);
  const at = headers.findIndex((field, i) => i % 2 === 0 && field.toLowerCase() === name);
  return at === -1 ? undefined : headers[at + 1];
}

function isTrusted(ranges: readonly string[], address: string): boolean {
  const list = new BlockList();
  for (const range of ranges) {
    const [base, length] = range.split("/") as [string, string?];
    const family = isIPv6(base) ? "ipv6" : "ipv4";
    if (length === undefined) list.addAddress(base, family);
    else list.addSubnet(base, Number(length), family);
  }
  return list.check(address, isIPv6(address) ? "ipv6" : "ipv4");
}
