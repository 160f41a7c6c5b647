import type { UpstreamConfig } from "./config.js";

/** One of the servers of an upstream. */
export type UpstreamServer = NonNullable<UpstreamConfig["servers"]>[number];

/** An upstream as connections to one of its servers need it. */
export type ServerConfig = UpstreamConfig & { readonly url: string };

/** The servers of an upstream, in the order of the config; one for `url`. */
export function serversOf({ url, servers }: UpstreamConfig): readonly UpstreamServer[] {
  return servers ?? (url === undefined ? [] : [{ url, weight: 1, backup: false }]);
}

/** The config of connections to each of the servers of an upstream; that of a single one is the upstream's. */
export function serverConfigsOf(upstream: UpstreamConfig): readonly ServerConfig[] {
  if (upstream.url !== undefined) return [upstream as ServerConfig];
  const servers = serversOf(upstream);
  if (servers.length === 1) return [{ ...upstream, url: servers[0]!.url }];
  const connectTimeoutMs = Math.min(upstream.connectTimeoutMs, CONNECT_MS);
  return servers.map(({ url }) => ({ ...upstream, url, connectTimeoutMs }));
}

/** With another server to try, it is not worth while to wait longer. */
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
