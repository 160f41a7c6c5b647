import { clientNetwork } from "../net/address.js";
import type { UpstreamConfig } from "./config.js";
import { cookieOf, hashOf, scoreOf } from "../net/sessionHash.js";
import { serversOf, spreadUrls, type UpstreamServerConfig } from "./upstreamServers.js";

/** A server that may receive a request. */
export interface ServerChance {
  /** URL of the server. */
  readonly url: string;
  /** When the server receives the request, or how often, in words. */
  readonly why: string;
}

/**
 * Which of several servers may get a request, the first one first, as long as nothing is known of their states.
 *
 * @param headers names and values in turn
 */
export function serverChances(
  upstream: UpstreamConfig,
  headers: readonly string[],
  clientAddress: string,
): readonly ServerChance[] {
  const servers = serversOf(upstream);
  const main = servers.filter(({ backup }) => !backup);
  const backups = servers.filter(({ backup }) => backup);
  const chances = [
    ...chancesOf(upstream, main, headers, clientAddress),
    ...backups.map(({ url }) => ({ url, why: "backup: gets it while all others are down or drained" })),
  ];
  const spread = new Set(spreadUrls(upstream));
  return chances.map((one) => (spread.has(one.url) ? { ...one, why: `${one.why}; ${SPREAD}` } : one));
}

const SPREAD = "each address of the name is a separate server";

function chancesOf(
  upstream: UpstreamConfig,
  main: readonly UpstreamServerConfig[],
  headers: readonly string[],
  clientAddress: string,
): readonly ServerChance[] {
  const { balance, sticky } = upstream;
  const spread = new Set(spreadUrls(upstream));
  const { applicationCookie, cookie } = sticky ?? {};
  const session = applicationCookie === undefined ? undefined : cookieOf(headers, applicationCookie);
  const hashed = (key: string, what: string): readonly ServerChance[] =>
    spread.size === 0
      ? byHash(main, key, what, unless)
      : reasoned(() => `may get it, by ${what}, which chooses among all addresses`);
  const own = cookie !== undefined && cookieOf(headers, cookie) !== undefined;
  const unless = own ? `unless the cookie ${cookie} names another server: ` : "";
  const reasoned = (why: (server: UpstreamServerConfig) => string): readonly ServerChance[] =>
    main.map((server) => ({ url: server.url, why: unless + why(server) }));
  if (session !== undefined) return hashed(session, `the cookie ${applicationCookie}`);
  switch (balance) {
    case "clientAddress":
      return hashed(clientNetwork(clientAddress), "the client's address");
    case "leastConnections":
      return reasoned(({ weight }) => `has the fewest requests in progress, for its weight of ${weight}`);
    case "roundRobin": {
      if (spread.size > 0)
        return reasoned(({ weight }) => `gets requests in turns, by its weight of ${weight}`);
      const all = main.reduce((sum, { weight }) => sum + weight, 0);
      return reasoned(({ weight }) => `gets ${weight} of ${all} requests, in turns`);
    }
  }
}

function byHash(
  main: readonly UpstreamServerConfig[],
  key: string,
  what: string,
  unless: string,
): readonly ServerChance[] {
  const hash = hashOf(key);
  const score = ({ url, weight }: UpstreamServerConfig): number => scoreOf(hash, hashOf(url), weight);
  return [...main]
    .sort((a, b) => score(b) - score(a))
    .map(({ url }, i) => ({
      url,
      why: unless + (i === 0 ? `gets it, by ${what}` : "gets it while those before it are down or drained"),
    }));
}
