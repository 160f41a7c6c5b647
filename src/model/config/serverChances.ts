import { clientNetwork } from "../address.js";
import type { UpstreamConfig } from "./config.js";
import { cookieOf, hashOf, scoreOf } from "../sessionHash.js";
import { serversOf, type UpstreamServer } from "./upstreamServers.js";

/** A server that may get a request. */
export interface ServerChance {
  /** Where it listens. */
  readonly url: string;
  /** When it gets it, or how often, in words. */
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
  return [
    ...chancesOf(upstream, main, headers, clientAddress),
    ...backups.map(({ url }) => ({ url, why: "backup: gets it while all others are down or drained" })),
  ];
}

function chancesOf(
  { balance, sticky }: UpstreamConfig,
  main: readonly UpstreamServer[],
  headers: readonly string[],
  clientAddress: string,
): readonly ServerChance[] {
  const { applicationCookie, cookie } = sticky ?? {};
  const session = applicationCookie === undefined ? undefined : cookieOf(headers, applicationCookie);
  if (session !== undefined) return byHash(main, session, `the cookie ${applicationCookie}`);
  const own = cookie !== undefined && cookieOf(headers, cookie) !== undefined;
  const unless = own ? `unless the cookie ${cookie} names another server: ` : "";
  const reasoned = (why: (server: UpstreamServer) => string): readonly ServerChance[] =>
    main.map((server) => ({ url: server.url, why: unless + why(server) }));
  switch (balance) {
    case "clientAddress":
      return byHash(main, clientNetwork(clientAddress), "the client's address", unless);
    case "leastConnections":
      return reasoned(({ weight }) => `has the fewest requests in progress, for its weight of ${weight}`);
    case "roundRobin": {
      const all = main.reduce((sum, { weight }) => sum + weight, 0);
      return reasoned(({ weight }) => `gets ${weight} of ${all} requests, in turns`);
    }
  }
}

function byHash(
  main: readonly UpstreamServer[],
  key: string,
  what: string,
  unless = "",
): readonly ServerChance[] {
  const hash = hashOf(key);
  const score = ({ url, weight }: UpstreamServer): number => scoreOf(hash, hashOf(url), weight);
  return [...main]
    .sort((a, b) => score(b) - score(a))
    .map(({ url }, i) => ({
      url,
      why: unless + (i === 0 ? `gets it, by ${what}` : "gets it while those before it are down or drained"),
    }));
}
