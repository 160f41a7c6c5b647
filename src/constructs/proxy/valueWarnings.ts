import type { IConstruct } from "constructs";
import { configSchema } from "../../model/config/config.js";
import { nodesAt } from "../../model/config/schema.js";
import { formatPath } from "../../model/config/parse.js";
import {
  type CertificateAuthorityConfig,
  challengeOf,
  clientPort,
  type ListenerConfig,
  type ProxyConfig,
  type ProxyConfigInput,
} from "../../model/index.js";
import { CATCH_ALL, NameTable } from "../../model/net/serverName.js";
import type { Listener } from "./listener.js";
import { isKnown } from "../props/tokens.js";
import type { Route } from "./route.js";
import type { IUpstream } from "./upstream.js";
import type { VirtualServer } from "./virtualServer.js";
import { warn } from "../props/warn.js";

/** Values that may be meant, but are more often a mistake. */

interface Valued extends IConstruct {
  readonly config: ProxyConfigInput;
  readonly listeners: readonly Listener[];
  readonly upstreams: readonly IUpstream[];
  readonly virtualServers: readonly VirtualServer[];
}

/** @internal */
export function warnOfValues(proxy: Valued): void {
  const { listeners: _, upstreams: __, virtualServers: ___, ...settings } = proxy.config;
  warnOfSeconds(proxy, settings, []);
  warnOfWords(proxy, settings);
  for (const upstream of proxy.upstreams) {
    warnOfSeconds(upstream, upstream.render(), ["upstreams", 0]);
    warnOfWords(upstream, upstream.render());
    for (const url of upstream.urls) warnOfPort(upstream, url);
  }
  for (const server of proxy.virtualServers) {
    const { routes: _____, ...own } = server.render();
    warnOfWords(server, own);
    for (const page of own.errorPages ?? [])
      if ("html" in page) warnOfPlaceholder(server, "An error page", page.html);
  }
  for (const listener of proxy.listeners) warnOfOtherPort(listener);
  warnOfSharedCookie(proxy);
  for (const route of proxy.virtualServers.flatMap(({ routes }) => routes)) {
    warnOfSeconds(route, route.render(), ["virtualServers", 0, "routes", 0]);
    warnOfWords(route, route.render());
    warnOfFewBytes(route);
    warnOfBody(route);
  }
  for (const { directory = "" } of settings.certificateAuthorities ?? []) warnOfAuthority(proxy, directory);
  warnOfChallengePorts(proxy);
  warnOfSecretUrls(proxy, settings.notifications?.targets ?? []);
  warnOfOneScheme(proxy);
}

/**
 * A value below a second, and so far below the default that seconds were meant; or hours in seconds, such as 3600: as
 * milliseconds these are no times that anybody chooses.
 */
function warnOfSeconds(part: IConstruct, fields: object, place: readonly PropertyKey[]): void {
  for (const { path, value } of numbersIn(fields, [])) {
    const name = String(path.at(-1));
    if (!name.endsWith("Ms") || !isKnown(value) || value < 1) continue;
    const byDefault = nodesAt(configSchema, [...place, ...path])[0]?.default;
    const isFew = value < 1_000 && typeof byDefault === "number" && value <= byDefault / 10;
    if (!isFew && (value % 1_800 !== 0 || value % 1_000 === 0)) continue;
    warn(
      part,
      `\`${formatPath(path)}\` is ${value} ms, which is ${value / 1_000} s. If ${value} s are meant, use ${value * 1_000}.`,
    );
  }
}

function numbersIn(
  value: unknown,
  path: readonly PropertyKey[],
): { path: readonly PropertyKey[]; value: number }[] {
  if (typeof value === "number") return [{ path, value }];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([step, inner]) =>
    numbersIn(inner, [...path, Array.isArray(value) ? Number(step) : step]),
  );
}

/** A body may explain such a name, or mean its value. */
function warnOfBody(route: Route): void {
  const action = route.render().action;
  const body = action.type === "respond" ? (action.body ?? "") : "";
  warnOfPlaceholder(route, "The body", body);
  if (!isKnown(body) || !/^(?:\.{0,2}|~)\/\S+\.[a-z]{2,5}$/.test(body)) return;
  warn(route, `The body is \`${body}\`, which looks like the path of a file: clients get the path as it is.`);
}

function warnOfPlaceholder(part: IConstruct, what: string, text: string): void {
  const found = isKnown(text) ? PLACEHOLDER.exec(text)?.[0] : undefined;
  if (found === undefined || (what !== "The body" && found.startsWith("{{"))) return;
  warn(part, `${what} contains \`${found}\`, which the proxy does not replace: clients get it as it is.`);
}

const PLACEHOLDER =
  /\$(?:remote_addr|host|request_uri|status|http_[a-z_]+)\b|\{remote_host\}|\{http\.[a-z_.]+\}|\{\{(?:status|reason|message|requestId)\}\}/;

/** A limit of so few bytes lets no form through: megabytes were meant, as other proxies write them. */
function warnOfFewBytes(route: Route): void {
  const { requestBodyBytesMax: max = 0 } = route.render();
  if (!isKnown(max) || max <= 0 || max >= 1_024) return;
  warn(
    route,
    `\`requestBodyBytesMax\` is ${max} bytes. If ${max} MiB are meant, use \`${max} * 1024 * 1024\`.`,
  );
}

/** What JavaScript writes into a text for a value that is not there, such as a variable of the environment. */
const NOTHING = /(?<![A-Za-z0-9])(?:undefined|NaN)(?![A-Za-z0-9])|\[object [A-Za-z]+\]/;

/** Names and texts for people may have the words. */
const PROSE: readonly string[] = ["name", "body", "html", "page"];

function warnOfWords(part: IConstruct, fields: object): void {
  for (const [path, value] of textsIn(fields, [])) {
    const found = isKnown(value) ? NOTHING.exec(value)?.[0] : undefined;
    if (found === undefined) continue;
    warn(
      part,
      `\`${formatPath(path)}\` is ${JSON.stringify(value)}: \`${found}\` is what a template writes for a value that is ` +
        "missing, such as a variable of the environment that is not set.",
    );
  }
}

function textsIn(value: unknown, path: readonly PropertyKey[]): [readonly PropertyKey[], string][] {
  if (typeof value === "string") return [[path, value]];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value)
    .filter(([name]) => !PROSE.includes(name))
    .flatMap(([name, inner]) => textsIn(inner, [...path, Array.isArray(value) ? Number(name) : name]));
}

/** The port of the other scheme: its server closes the connection, or responds with 400. */
function warnOfPort(upstream: IUpstream, url: string): void {
  const [, scheme, port] = /^(https?):\/\/.*?(?::(\d+))?$/.exec(isKnown(url) ? url : "") ?? [];
  const other =
    scheme === "http" && port === "443" ? "https" : scheme === "https" && port === "80" ? "http" : "";
  if (other === "") return;
  warn(
    upstream,
    `${url} is the usual port of ${other}. If the server speaks ${other} there, use ${other}:// in the URL.`,
  );
}

function warnOfOtherPort(listener: Listener): void {
  const { port, protocol, publishedPort = port } = listener.render();
  if (!isKnown([port, publishedPort])) return;
  if (protocol === "http" && publishedPort === 443)
    warn(listener, "Port 443 without TLS: browsers speak TLS on this port. Set `tls`, or use another port.");
  if (protocol === "https" && publishedPort === 80)
    warn(
      listener,
      "Port 80 with TLS: browsers speak plain HTTP on this port. Use another port, such as 443.",
    );
}

/** Directories of Let's Encrypt whose certificates no browser trusts, or that are none. */
function warnOfAuthority(proxy: Valued, directory: string): void {
  if (!isKnown(directory) || !URL.canParse(directory)) return;
  const { hostname, pathname } = new URL(directory);
  const what = hostname.startsWith("acme-staging")
    ? "issues certificates for tests, which browsers refuse"
    : hostname === "acme-v01.api.letsencrypt.org"
      ? "does not exist any more"
      : hostname === "acme-v02.api.letsencrypt.org" && pathname !== "/directory"
        ? "is not the authority's directory, which ends in /directory"
        : undefined;
  if (what === undefined || !hostname.endsWith(".letsencrypt.org")) return;
  warn(proxy, `${directory} ${what}. Without \`directory\`, certificates come from Let's Encrypt.`);
}

/** A public authority connects to the challenge's own port, and to no other. */
function warnOfChallengePorts({ config, listeners }: Valued): void {
  for (const authority of config.certificateAuthorities ?? []) {
    if (authority.roots !== undefined) continue;
    const challenge = challengeOf(config as ProxyConfig, authority as CertificateAuthorityConfig);
    const [protocol, port] = challenge === "http-01" ? (["http", 80] as const) : (["https", 443] as const);
    const asked = listeners.filter((one) => one.protocol === protocol);
    const ports = asked.map((one) => clientPort(one.render() as ListenerConfig));
    if (challenge === "dns-01" || asked.length === 0 || !isKnown(ports) || ports.includes(port)) continue;
    warn(
      asked[0]!,
      `Certificate authorities validate the challenge \`${challenge}\` on port ${port} only, and no ${protocol} listener is on ` +
        `this port. Listen there, let a router forward the port to this listener, or use \`challenge: "dns-01"\`.`,
    );
  }
}

/** Each upstream would replace the other's cookie, which has a path of `/`, and lose its own clients. */
function warnOfSharedCookie({ upstreams }: Valued): void {
  const byCookie = new Map<string, IUpstream>();
  for (const upstream of upstreams) {
    const cookie = upstream.render().sticky?.cookie;
    if (cookie === undefined || !isKnown(cookie)) continue;
    const first = byCookie.get(cookie);
    if (first === undefined) byCookie.set(cookie, upstream);
    else
      warn(
        upstream,
        `\`sticky.cookie\` is ${cookie}, as in ${first.node.path}: a client of both loses its server each time it changes ` +
          "from one to the other. Use a name of its own.",
      );
  }
}

/** Services whose URLs are secrets, and paths that look like one. */
const SECRET_URL =
  /^https:\/\/(?:hooks\.slack\.com|discord(?:app)?\.com\/api\/webhooks|api\.telegram\.org|[^/]*\.webhook\.office\.com)\/|\/(?=[^/]*[0-9])(?=[^/]*[A-Za-z])[A-Za-z0-9_-]{24,}(?:\/|$)/;

function warnOfSecretUrls(
  proxy: Valued,
  targets: readonly { readonly name: string; readonly url?: string | undefined }[],
): void {
  for (const { name, url } of targets) {
    if (url === undefined || !isKnown(url) || !SECRET_URL.test(url)) continue;
    warn(
      proxy,
      `The \`url\` of the target ${name} of \`notifications\` seems to contain a secret, but every user of the host can ` +
        "read the config: write the URL into a file that only root can read, and use `urlFile`.",
    );
  }
}

/** Names that only https serves, where an http listener has no redirect for them. */
function warnOfOneScheme({ listeners, virtualServers }: Valued): void {
  const plain = listeners.filter(({ protocol }) => protocol === "http").map(({ name }) => name);
  if (plain.length === 0) return;
  const isPlain = (server: VirtualServer): boolean =>
    server.listeners.some(({ name }) => plain.includes(name));
  const served = new NameTable<true>();
  for (const server of virtualServers.filter(isPlain)) served.add(server.serverNames, true);
  const redirects = virtualServers.some(
    (server) =>
      isPlain(server) &&
      server.render().default === true &&
      server.routes.some(({ path, action }) => path === "/" && action.render().type === "redirect"),
  );
  if (redirects) return;
  for (const server of virtualServers.filter((one) => !isPlain(one))) {
    const lost = server.serverNames.filter(
      (name) => name !== CATCH_ALL && isKnown(name) && served.find(name) === undefined,
    );
    if (lost.length === 0) continue;
    warn(
      server,
      `Over http, no virtual server has the names ${lost.join(", ")}: their clients get the default server. Add the names ` +
        "to the virtual server that redirects to https.",
    );
  }
}
