import type { ProxyConfig, VirtualServerConfig } from "./config.js";
import { nearest } from "../text/nearest.js";
import { type Problem, problem } from "../text/problem.js";
import { isWildcardName } from "../net/serverName.js";

/** Which site something belongs to. All commands ask here. */

/** The site of the application that has the names of the host; an entry of a deployment without `site` belongs to it. */
export const OWN_SITE = "application";

type ServerOfSite = Pick<VirtualServerConfig, "name" | "site">;
type ConfigServers = Pick<ProxyConfig, "virtualServers">;

/** A virtual server without `site` is a site of its own. */
export const siteOf = ({ name, site = name }: ServerOfSite): string => site;

/** Names of the virtual servers of a site. */
export const serversOfSite = ({ virtualServers }: ConfigServers, site: string): ReadonlySet<string> =>
  new Set(virtualServers.flatMap((server) => (siteOf(server) === site ? [server.name] : [])));

/** The virtual servers with a route to an upstream. */
export const serversWithUpstream = (
  { virtualServers }: ConfigServers,
  upstream: string,
): VirtualServerConfig[] =>
  virtualServers.filter(({ routes }) =>
    routes.some(({ action }) => action.type === "proxy" && action.upstream === upstream),
  );

/** The virtual servers with a name that a certificate is for. */
export const serversWithName = (
  { virtualServers }: ConfigServers,
  names: readonly string[],
): VirtualServerConfig[] =>
  virtualServers.filter(({ serverNames }) =>
    serverNames.some((served) =>
      names.some(
        (name) => name === served || (isWildcardName(name) && name === served.replace(/^[^.]+/, "*")),
      ),
    ),
  );

/**
 * The sites of virtual servers, each once, as far as the config says which servers belong together: only then is
 * output grouped.
 */
export function shownSites(
  { virtualServers }: ConfigServers,
  servers: readonly ServerOfSite[] = virtualServers,
): string[] {
  const named = new Set(virtualServers.map(({ site }) => site));
  return [...new Set(servers.map(siteOf))].filter((site) => named.has(site));
}

/** Settings files, or other entries of a deployment, of one site, or all. */
export const entriesOfSite = <T extends { readonly site?: string | undefined }>(
  all: readonly T[],
  wanted?: string,
): readonly T[] => all.filter(({ site = OWN_SITE }) => wanted === undefined || site === wanted);

/** The problem of a name that no site has. */
export function unknownSite(received: string | undefined, known: Iterable<string>): Problem | undefined {
  const sites = [...new Set(known)];
  if (received === undefined || sites.includes(received)) return undefined;
  const near = nearest(received, sites);
  const fix = near === undefined ? {} : { fix: `Did you mean \`${near}\`?` };
  const more = { received, allowed: sites.join(", ") || "there is no site", ...fix };
  return problem("control.unknown-site", "--site", "is not the name of a site", more);
}

/** The same for the sites of a config. */
export const siteNotIn = (
  { virtualServers }: ConfigServers,
  received: string | undefined,
): Problem | undefined => unknownSite(received, virtualServers.map(siteOf));
