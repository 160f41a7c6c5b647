import type { IConstruct } from "constructs";
import { configSchema } from "../model/config/config.js";
import { nodesAt } from "../model/config/schema.js";
import { formatPath } from "../model/config/parse.js";
import type { ProxyConfigInput } from "../model/index.js";
import { CATCH_ALL, NameTable } from "../model/serverName.js";
import type { Listener } from "./listener.js";
import { isKnown } from "./props/tokens.js";
import type { Route } from "./route.js";
import type { IUpstream } from "./upstream.js";
import type { VirtualServer } from "./virtualServer.js";
import { warn } from "./warn.js";

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
  for (const upstream of proxy.upstreams) warnOfSeconds(upstream, upstream.render(), ["upstreams", 0]);
  for (const route of proxy.virtualServers.flatMap(({ routes }) => routes)) {
    warnOfSeconds(route, route.render(), ["virtualServers", 0, "routes", 0]);
    warnOfBody(route);
  }
  warnOfSecretUrls(proxy, settings.notifications?.targets ?? []);
  warnOfOneScheme(proxy);
}

/** A value below a second, and so far below the default that seconds were meant. */
function warnOfSeconds(part: IConstruct, fields: object, place: readonly PropertyKey[]): void {
  for (const { path, value } of numbersIn(fields, [])) {
    const name = String(path.at(-1));
    if (!name.endsWith("Ms") || !isKnown(value) || value < 1 || value >= 1_000) continue;
    const byDefault = nodesAt(configSchema, [...place, ...path])[0]?.default;
    if (typeof byDefault !== "number" || value > byDefault / 10) continue;
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
  const found = isKnown(body)
    ? /\$(?:remote_addr|host|request_uri|http_[a-z_]+)\b|\{remote_host\}/.exec(body)?.[0]
    : undefined;
  if (found === undefined) return;
  warn(route, `The body contains \`${found}\`, which the proxy does not replace: clients get it as it is.`);
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
