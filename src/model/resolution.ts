import { isIP } from "node:net";
import { isWrite } from "./config/router.js";
import {
  type AccessRefusal,
  type BasicCredentials,
  basicCredentials,
  type VerifiedUser,
  verifiedUser,
  bothUsers,
  certificateUser,
  portalUser,
  acceptedCodings,
  acceptsHtml,
  type ActionOf,
  responseFieldRules,
  connectionOptions,
  clientPort,
  CODING_SUFFIXES,
  forwardedClient,
  forwardedUpgrade,
  ForwardingRules,
  withFileValues,
  type ForwardedRequest,
  type HeaderList,
  type ListenerConfig,
  problem,
  ProblemError,
  type ProxyConfig,
  requestedUpgrade,
  type RouteConfig,
  hasSeveral,
  serversOf,
  type VirtualServerConfig,
  withinRanges,
} from "./index.js";
import { decide, type RouteMatch, RequestMatcher } from "./decision.js";
import { type ServerChance, serverChances } from "./config/serverChances.js";

/** A request as a client makes it. */
export interface TestRequest {
  /** `http://HOST[:PORT]TARGET`. The target is sent byte for byte, so `//`, `..` and `%2F` can be tested. */
  readonly url: string;
  /**
   * Method of the request.
   * @default "GET"
   */
  readonly method?: string;
  /**
   * Request header fields by name; a list sends the field several times. The password in an `Authorization` of Basic
   * authentication is taken for right.
   */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  /**
   * IPv4 or IPv6 address that the request comes from. If `trustedProxies` contains the address, header fields name
   * the client.
   * @default "198.51.100.7"
   */
  readonly clientAddress?: string;
  /**
   * A name of the client's certificate, such as `alice`. The certificate is taken for valid, and for one that the virtual
   * server asked for.
   * @default - the client has no certificate
   */
  readonly certificateName?: string;
  /**
   * Listener that accepts the connection.
   * @default - the listener with the scheme and port of the URL, at the address that is the URL's host, or else of
   * the same address family; a port in the URL without a listener is an error
   */
  readonly listener?: string;
}

/** The virtual server and route of a request, and the response. */
export type Resolution = ResolutionMatch & ResolutionOutcome;

/** The response to a request; `kind` determines the fields. */
export type ResolutionOutcome =
  | {
      readonly kind: "proxy";
      readonly upstream: string;
      /** The URL of its server; of several servers, the first. */
      readonly upstreamUrl: string;
      /** Which of several servers may get it, and why, as long as all are up; only where there are several. */
      readonly servers?: readonly ServerChance[];
      /** Whether it can change something, and is refused while a command runs under `portico quiesce`. */
      readonly writes: boolean;
      /** The request line that goes upstream: `GET /files/x HTTP/1.1`. */
      readonly requestLine: string;
      /** Fields that go upstream, by lower-case name; fields sent several times are joined with `, `. */
      readonly headers: Readonly<Record<string, string>>;
    }
  | {
      readonly kind: "staticFile";
      readonly file: string;
      /** Encoded files that the client accepts, best first: the first that exists beside the file is sent in its place. */
      readonly encodedFiles?: readonly string[];
    }
  | { readonly kind: "redirect"; readonly status: number; readonly location: string }
  /** @property windowsDrives whether the virtual server itself responds, so that Windows may map network drives */
  | {
      readonly kind: "respond";
      readonly status: number;
      readonly body: string;
      readonly windowsDrives?: true;
    }
  /** The status page. */
  | { readonly kind: "status" }
  | {
      readonly kind: "error";
      readonly status: number;
      /** The policy that does not let the client in, by the place that it was given at, and the list that decided. */
      readonly refusal?: AccessRefusal;
      /** The virtual server's own page, not filled in, or its file; only where the client gets one. */
      readonly page?: { readonly html: string } | { readonly file: string };
    };

/** Fields of every resolution. */
export interface ResolutionMatch {
  /** Name of the listener that accepts the request. */
  readonly listener: string;
  /** Name of the virtual server that handles the request. */
  readonly virtualServer: string;
  /** Name of the route; undefined if none matched. */
  readonly route?: string;
  /**
   * Name of the access policy that clients have to pass, which is the place that it was given at: `front end`, a site, or
   * a site and a route, such as `vault/admin`. Undefined if everyone may come in.
   */
  readonly access?: string;
  /**
   * URL of the portal that the policy asks about the request. Undefined if it asks none. Nothing is sent to it, and the
   * user is taken for signed on: the fields that the upstream gets have `(from the portal)` as their values.
   */
  readonly forwardAuth?: string;
  /** Name of the guard against guessing that judges log-ins, the place that it was given at. Undefined without one. */
  readonly passwordGuard?: string;
  /**
   * The client's address, for logs and upstreams: from the header fields of a trusted proxy, else the address that
   * the request comes from.
   */
  readonly clientAddress: string;
  /**
   * Response header fields that the config sets (`responseHeaders`, `hsts`), by lower-case name. The response to an
   * upgrade (101) does not have these fields.
   */
  readonly responseHeaders: Readonly<Record<string, string>>;
  /** Lower-case names of response header fields that the config removes, even if the upstream sent them. */
  readonly removedResponseHeaders: readonly string[];
}

/** The default client address of a request: an address for documentation (RFC 5737). */
export const EXAMPLE_CLIENT = "198.51.100.7";

/** The outcome of a request, by the rules of the runtime. Nothing is sent and no file is read. */
export function resolution(config: ProxyConfig, request: TestRequest | string): Resolution {
  const asked = withDefaults(typeof request === "string" ? { url: request } : request);
  const url = splitUrl(asked.url);
  const matcher = new RequestMatcher(config);
  const listener =
    matcher.listener(url.scheme, url.authority, asked.listener) ?? noListener(config, url, asked);
  const match = matcher.match(listener, url.authority, url.target);
  if (match === undefined) {
    const { clientAddress } = asked;
    const server = matcher.defaultServer(listener);
    return { ...matchOf(listener, server, undefined), clientAddress, kind: "error", status: 400 };
  }
  return responseOf({ ...match, config, asked, client: clientOf(config, asked), url });
}

type AskedRequest = TestRequest & Required<Pick<TestRequest, "method" | "clientAddress">>;

function withDefaults(request: TestRequest): AskedRequest {
  const { method = "GET", clientAddress = EXAMPLE_CLIENT } = request;
  if (isIP(clientAddress) === 0)
    throw new ProblemError([
      problem("config.bad-address", "clientAddress", "is not an IP address", {
        received: clientAddress,
        fix: "Use the IP address that the request comes from.",
      }),
    ]);
  return { ...request, method, clientAddress };
}

/** The client of a request, as far as the header rules use it. */
type ResolvedClient = Pick<ForwardedRequest, "clientAddress" | "forwardedBy" | "trusted">;

function clientOf({ trustedProxies, clientAddressField }: ProxyConfig, asked: AskedRequest): ResolvedClient {
  const isTrusted = withinRanges(trustedProxies);
  const { clientAddress: address } = asked;
  if (!isTrusted(address)) return { clientAddress: address, trusted: false };
  const named = forwardedClient(headerList(asked), clientAddressField.toLowerCase(), isTrusted) ?? address;
  return { clientAddress: named, forwardedBy: named === address ? undefined : address, trusted: true };
}

interface Routed extends RouteMatch {
  readonly config: ProxyConfig;
  readonly asked: AskedRequest;
  readonly client: ResolvedClient;
  readonly url: SplitUrl;
}

function responseOf(routed: Routed): Resolution {
  const { clientAddress } = routed.client;
  const { guard, url, path } = routed;
  const asking = guard?.asking(url.target, path).find(({ policy }) => policy.forwardAuth !== undefined);
  const portal = asking === undefined ? {} : { forwardAuth: asking.policy.forwardAuth!.url };
  const match = { ...matchOf(routed.listener, routed.server, routed.route), ...portal, clientAddress };
  const found = unpaged(routed);
  const page = found.kind === "error" ? pageOf(routed, found.status) : undefined;
  return { ...match, ...found, ...(page === undefined ? {} : { page }) };
}

/** The response, whichever page an error has. */
function unpaged(routed: Routed): ResolutionOutcome {
  const { asked, route, url } = routed;
  const request = {
    method: asked.method,
    target: url.target,
    bodyBytes: bodyLength(asked),
    upgrade: upgradeOf(asked) !== undefined,
    headers: headerList(asked),
    client: routed.client.clientAddress,
    namesUser: credentialsOf(asked) !== undefined,
    certificate: asked.certificateName ?? "",
  };
  const decision = decide(routed, request);
  if (route?.action.type === "proxy" && decision.kind === "proxy")
    return upstreamRequest(routed, route, route.action);
  if (route?.action.type === "staticFiles" && decision.kind === "staticFile")
    return { ...decision, ...encodedFiles(asked, decision.file, route.action) };
  if (decision.kind === "status")
    return withinRanges(decision.allow)(routed.client.clientAddress)
      ? { kind: "status" }
      : { kind: "error", status: 403 };
  return decision as Exclude<typeof decision, { readonly kind: "proxy" }>;
}

type Page = Extract<ResolutionOutcome, { readonly kind: "error" }>["page"];

/** The page of the virtual server's that the client gets instead of the proxy's own. */
function pageOf({ server, asked }: Routed, status: number): Page {
  if (!acceptsHtml(headerList(asked))) return undefined;
  const page = server.errorPages.find(({ statuses }) => statuses.some((one) => one === status));
  if (page === undefined) return undefined;
  return "file" in page ? { file: page.file } : { html: page.html };
}

function matchOf(
  listener: ListenerConfig,
  server: VirtualServerConfig,
  route: RouteConfig | undefined,
): Omit<ResolutionMatch, "clientAddress"> {
  const rules = [...responseFieldRules(server, route, listener.protocol)];
  return {
    listener: listener.name,
    virtualServer: server.name,
    route: route?.name,
    access: route?.access,
    passwordGuard: server.passwordGuard,
    responseHeaders: Object.fromEntries(
      rules.flatMap(([name, field]) => (field === undefined ? [] : [[name, field.value]])),
    ),
    removedResponseHeaders: rules.flatMap(([name, field]) => (field === undefined ? [name] : [])),
  };
}

/** The outcome of a proxied request, by its fields. */
function upstreamRequest(routed: Routed, route: RouteConfig, action: ActionOf<"proxy">): ResolutionOutcome {
  const { config, asked, client, url } = routed;
  const upstream = config.upstreams.find(({ name }) => name === action.upstream)!;
  const servers = serversOf(upstream);
  const chances = hasSeveral(upstream)
    ? serverChances(upstream, headerList(asked), client.clientAddress)
    : undefined;
  const { url: upstreamUrl } = (chances ?? servers)[0]!;
  const request = {
    method: asked.method,
    target: url.target,
    path: routed.path,
    headers: headerList(asked),
    host: url.authority,
    serverName: routed.serverName,
    scheme: url.scheme,
    ...client,
    upgrade: forwardedUpgrade(action.upgrades, upgradeOf(asked)),
    requestId: "(its id)",
    user: bothUsers(certificateIn(routed), userIn(routed)),
  };
  const rules = new ForwardingRules(
    {
      ...route,
      action: withFileValues(action, (file) => `(from ${file})`),
      requestIdField: config.requestId?.field,
    },
    { url: upstreamUrl },
  );
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
  const several = chances === undefined ? {} : { servers: chances };
  const writes = isWrite(route, asked.method, upgradeOf(asked) !== undefined);
  return { kind: "proxy", upstream: upstream.name, upstreamUrl, ...several, writes, requestLine, headers };
}

function certificateIn({ server, asked }: Routed): VerifiedUser | undefined {
  const { certificateName: user } = asked;
  if (server.clientCertificate === undefined) return undefined;
  const identity = user === undefined ? undefined : { certificate: "(the certificate)", chain: "", user };
  return certificateUser(server.clientCertificate, identity);
}

/** The password is taken for right: `resolve` reads no file. */
function userIn({ guard, asked, url, path }: Routed): VerifiedUser | undefined {
  const judges = guard?.asking(url.target, path) ?? [];
  const basics = judges.filter(({ policy }) => policy.basic !== undefined);
  const credentials = credentialsOf(asked);
  const named =
    basics.length === 0 || credentials === undefined ? undefined : verifiedUser(basics, credentials.user);
  return judges.reduce<VerifiedUser | undefined>((user, { policy: { forwardAuth } }) => {
    if (forwardAuth === undefined) return user;
    const fields = forwardAuth.copyFields.flatMap((name) => [name, "(from the portal)"]);
    return bothUsers(user, portalUser(forwardAuth, fields));
  }, named);
}

const credentialsOf = (asked: TestRequest): BasicCredentials | undefined =>
  basicCredentials(fieldOf(asked, "authorization") ?? "");

/** The encoded forms of a file that the client accepts. */
function encodedFiles(
  asked: AskedRequest,
  file: string,
  { precompressed = [] }: ActionOf<"staticFiles">,
): { readonly encodedFiles?: readonly string[] } {
  const codings = file.endsWith("/") ? [] : acceptedCodings(headerList(asked), precompressed);
  return codings.length === 0
    ? {}
    : { encodedFiles: codings.map((coding) => file + CODING_SUFFIXES[coding]) };
}

interface SplitUrl {
  readonly scheme: "http" | "https";
  readonly authority: string;
  readonly target: string;
}

/** Not `new URL()`, which resolves and encodes the very parts to be tested. */
function splitUrl(url: string): SplitUrl {
  // The scheme in any case (RFC 3986, 3.1).
  const match = /^(https?):\/\/([^/?#]+)(.*)/is.exec(url);
  const fix = "Use an absolute URL, such as `https://files.example.org/sync/`.";
  if (match === null)
    throw new ProblemError([
      problem("config.bad-url", url, "is not an absolute URL of http or https", { fix }),
    ]);
  const [, scheme, authority, rest] = match as unknown as [string, string, string, string];
  const target = Buffer.from(rest.startsWith("/") ? rest : `/${rest}`, "utf8").toString("latin1");
  return { scheme: scheme.toLowerCase() as "http" | "https", authority, target };
}

function noListener(config: ProxyConfig, { scheme, authority }: SplitUrl, asked: AskedRequest): never {
  const allowed = config.listeners.map((l) => `${l.name} (${l.protocol}, port ${clientPort(l)})`).join(", ");
  throw new ProblemError([
    problem("config.unknown-reference", `${scheme}://${authority}`, "reaches no listener", {
      received: asked.listener,
      allowed,
      fix: "Use the scheme and the port of a listener in the URL, or add a listener.",
    }),
  ]);
}

function headerList({ headers = {} }: TestRequest): HeaderList {
  return Object.entries(headers).flatMap(([name, values]) =>
    [values].flat().flatMap((v) => [name, String(v)]),
  );
}

/** The upgrade over HTTP/1.1, which clients use for an upgrade unless they ask for it by CONNECT. */
function upgradeOf(request: AskedRequest): string | undefined {
  const connectionUpgrade = connectionOptions(headerList(request))?.has("upgrade") === true;
  const upgrade = fieldOf(request, "upgrade")?.toLowerCase();
  const line = { method: request.method, version: "1.1" } as const;
  return requestedUpgrade(line, { connectionUpgrade, upgrade }, bodyLength(request));
}

/** Bytes of the body; -1 if it is in chunks. */
function bodyLength(request: TestRequest): number {
  return fieldOf(request, "transfer-encoding") === undefined
    ? Number(fieldOf(request, "content-length") ?? 0)
    : -1;
}

/** The last value of a field. */
function fieldOf(request: TestRequest, name: string): string | undefined {
  const headers = headerList(request);
  const at = headers.findLastIndex((field, i) => i % 2 === 0 && field.toLowerCase() === name);
  return at === -1 ? undefined : headers[at + 1];
}
