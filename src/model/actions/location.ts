import { isIPv4 } from "node:net";
import { defaultPort, type Scheme, urlAuthority } from "../net/authority.js";
import { CATCH_ALL, isWildcardName } from "../net/serverName.js";
import { endOfPath, type NormalisedPath, upstreamTarget } from "../net/target.js";

/** The target of a redirect: another scheme, port, host or path. */
export interface RedirectGoal {
  readonly scheme: Scheme;
  /** Undefined for the scheme's own. */
  readonly port?: number | undefined;
  /** Undefined for the requested host. */
  readonly host?: string | undefined;
  /** Undefined for the requested path and query. */
  readonly path?: string | undefined;
  /** What follows the path. */
  readonly keep?: "nothing" | "query" | "rest";
}

/** Port a redirect leads to: its own, or its scheme's. */
export const redirectPort = ({ scheme, port }: RedirectGoal): number => port ?? defaultPort(scheme);

interface Published {
  readonly port: number;
  readonly publishedPort?: number | undefined;
}

/** Port that clients of a listener connect to. */
export const clientPort = ({ port, publishedPort = port }: Published): number => publishedPort;

/** Whether a redirect leads to a listener, as far as its scheme and port tell. */
export const leadsTo = (goal: RedirectGoal, listener: Published & { readonly protocol: Scheme }): boolean =>
  goal.scheme === listener.protocol && redirectPort(goal) === clientPort(listener);

/**
 * The `Location` of a redirect.
 *
 * If the goal has no path, the target is sent byte for byte, so that the client requests the same target next (nginx's
 * `return 301 https://$host$request_uri`). The target has no control bytes, or the protocol would have refused it.
 *
 * @param host requested host, by {@link hostAsked}
 * @param below path of the route
 * @param path normalised path of the target
 */
export function redirectLocation(
  goal: RedirectGoal,
  host: string,
  target: string,
  below: string,
  path: NormalisedPath,
): string {
  const origin = `${goal.scheme}://${urlAuthority(goal.scheme, goal.host ?? host, redirectPort(goal))}`;
  if (goal.path === undefined) return origin + target;
  if (goal.keep === "rest") return origin + upstreamTarget("raw", below, target, path, goal.path);
  return origin + goal.path + (goal.keep === "query" ? target.slice(endOfPath(target)) : "");
}

/**
 * The host without its port, which was the port of this listener. A client of HTTP/1.0 may have named none: then it is
 * the server's own first name or, if it has only the catch-all and wildcards, the address that the client connected to.
 */
export function hostAsked(serverName: string, serverNames: readonly string[], localAddress: string): string {
  if (serverName !== "") return serverName;
  const name = serverNames.find((one) => one !== CATCH_ALL && !isWildcardName(one));
  // A zone id has a meaning only on this host, and an IPv4 client on a mapped address requested IPv4.
  const address = localAddress.split("%")[0]!;
  const unmapped = address.replace("::ffff:", "");
  return name ?? (isIPv4(unmapped) ? unmapped : address);
}
