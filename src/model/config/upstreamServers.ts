import { isIP } from "node:net";
import { endpoint, upstreamAddress, upstreamScheme } from "../net/authority.js";
import type { UpstreamConfig } from "./config.js";

/** A server of an upstream, in the config. */
export type UpstreamServerConfig = NonNullable<UpstreamConfig["servers"]>[number];

/** An upstream as connections to one of its servers need it. */
export type ServerConfig = UpstreamConfig & {
  readonly url: string;
  /** What responses take it for: the URL of the config, whose name may have several addresses; without it, `url`. */
  readonly namedBy?: string;
};

/** A server of an upstream; for an address of a name, also the URL that has the name. */
export interface KnownServer extends UpstreamServerConfig {
  readonly of?: string;
}

/** Names of a config's URLs by the URLs of their addresses, as far as they are known; other URLs name nothing. */
export type KnownAddresses = Readonly<Record<string, { readonly of?: string }>>;

/** The servers of an upstream, in the order of the config; one for `url`. */
export function serversOf({ url, servers }: UpstreamConfig): readonly UpstreamServerConfig[] {
  return servers ?? (url === undefined ? [] : [{ url, weight: 1, backup: false }]);
}

/** Version of the PROXY protocol that an upstream expects. */
export type ProxyVersion = NonNullable<UpstreamConfig["proxyProtocol"]>;

/** Whether requests are shared out; a single server gets all of them, and is never left out. */
export const hasSeveral = (upstream: UpstreamConfig): boolean =>
  upstream.spread || serversOf(upstream).length > 1;

/** Whether more is known of the servers than the outcomes of requests: workers or checks judge them. */
export const isWatched = (upstream: UpstreamConfig): boolean =>
  hasSeveral(upstream) || upstream.health !== undefined;

/** URLs of an upstream whose addresses are separate servers. */
export const spreadUrls = (upstream: UpstreamConfig): readonly string[] =>
  upstream.spread
    ? serversOf(upstream)
        .map(({ url }) => url)
        .filter(hasName)
    : [];

/** Whether a URL has a name, which may have several addresses. */
export function hasName(url: string): boolean {
  const address = upstreamAddress(url);
  return "host" in address && isIP(address.host) === 0;
}

/** A URL with one of the addresses of its name in place of that, port included. */
export function addressUrl(url: string, address: string): string {
  const to = upstreamAddress(url);
  return "host" in to ? `${upstreamScheme(url)}://${endpoint({ host: address, port: to.port })}` : url;
}

/**
 * The servers of an upstream, in the order of the config: with `spread`, one for each known address of a name. A name of
 * which none is known is one server itself.
 */
export function knownServers(upstream: UpstreamConfig, known: KnownAddresses): readonly KnownServer[] {
  const servers = serversOf(upstream);
  if (!upstream.spread) return servers;
  return servers.flatMap((server) => {
    const urls = Object.entries(known).flatMap(([url, { of }]) => (of === server.url ? [url] : []));
    const addresses = urls.map((url) => ({ ...server, url, of: server.url }));
    return addresses.length > 0 ? addresses : [server];
  });
}

/** The config of connections to each of the servers of an upstream; that of a single one is the upstream's. */
export function serverConfigsOf(upstream: UpstreamConfig): readonly ServerConfig[] {
  const servers = serversOf(upstream);
  if (hasSeveral(upstream)) return servers.map((server) => serverConfig(upstream, server));
  return servers.map(({ url }) => ({ ...upstream, url }));
}

/** The config of connections to one of several servers. */
export function serverConfig(upstream: UpstreamConfig, { url, of }: KnownServer): ServerConfig {
  // With another server to try, a longer wait is not worthwhile, and a refusal needs no wait at all.
  const connectTimeoutMs = Math.min(upstream.connectTimeoutMs, CONNECT_MS);
  const config = { ...upstream, url, connectTimeoutMs, holdMs: 0 };
  if (of === undefined) return config;
  const named = { ...config, namedBy: of };
  const to = upstreamAddress(of);
  if (upstreamScheme(of) !== "https" || !("host" in to)) return named;
  // The server's certificate is for the name.
  return {
    ...named,
    tls: { verify: true, ...upstream.tls, serverName: upstream.tls?.serverName ?? to.host },
  };
}

const CONNECT_MS = 3_000;

/** The URLs of an upstream, which may not be checked yet, each with its field: `url` or `servers[1].url`. */
export function urlsOf({
  url,
  servers,
}: {
  readonly url?: string | undefined;
  readonly servers?: readonly { readonly url: string }[] | undefined;
}): readonly { readonly url: string; readonly at: string }[] {
  if (servers !== undefined)
    return servers.map((server, i) => ({ url: server.url, at: `servers[${i}].url` }));
  return url === undefined ? [] : [{ url, at: "url" }];
}
