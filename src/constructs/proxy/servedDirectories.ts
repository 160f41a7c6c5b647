import { posix } from "node:path";
import type { IConstruct } from "constructs";
import { type Problem, problem, upstreamAddress } from "../../model/index.js";
import { isKnown } from "../props/tokens.js";
import type { HostPaths } from "../../render/index.js";
import type { Route } from "./route.js";
import type { IUpstream } from "./upstream.js";
import type { VirtualServer } from "./virtualServer.js";

/** A directory of a route. */
interface RouteDirectory {
  readonly route: Pick<Route, "node">;
  readonly directory: string;
}

/** The directories that routes serve. */
export const servedBy = (routes: readonly Route[]): RouteDirectory[] =>
  routes.flatMap((route) => {
    const { directory } = route.action;
    return directory === undefined || !isKnown(directory) ? [] : [{ route, directory }];
  });

/** Whether a path is that of the directory, or below it. */
export const isWithin = (path: string, directory: string): boolean =>
  path === directory || path.startsWith(directory.endsWith("/") ? directory : `${directory}/`);

/** Directories whose whole content is private: of the system, and of its administrators. */
const PRIVATE = ["/etc", "/root", "/proc", "/sys", "/dev", "/boot", "/run/portico", "/var/lib/portico"];

/**
 * Problems of directories that would be served with private files.
 *
 * @param files private files on the host: keys, secrets, settings
 */
export function privateDirectoryProblems(
  served: readonly RouteDirectory[],
  files: readonly string[],
): Problem[] {
  return served.flatMap(({ route, directory }) => {
    const inside = [...files.filter(isKnown), ...PRIVATE].find((path) => isWithin(path, directory));
    const around = PRIVATE.find((path) => isWithin(directory, path));
    if (inside === undefined && around === undefined) return [];
    const message =
      inside === undefined ? `is inside ${around}, which is private` : `contains ${inside}, which is private`;
    const more = { received: directory, allowed: "a directory of files that every client may read" };
    return [problem("config.private-directory", `${route.node.path}.action`, message, more)];
  });
}

interface HostedProxy extends IConstruct {
  readonly paths: HostPaths;
  readonly upstreams: readonly Pick<IUpstream, "node" | "urls">[];
  readonly virtualServers: readonly VirtualServer[];
}

/**
 * Problems of logs that the unit of a proxy hides: the proxy writes in its log directory only, and has a private /tmp.
 * A directory below the log directory belongs to the proxy's user, who could replace it with a link; logrotate would
 * follow that as root.
 */
export function unreachable(proxy: HostedProxy, logs: readonly string[]): Problem[] {
  const { logDirectory } = proxy.paths;
  const outside = logs.filter(
    (path) => isKnown([path, logDirectory]) && posix.dirname(path) !== posix.resolve(logDirectory),
  );
  return [
    ...outside.map((received) =>
      problem("unit.no-access", proxy.node.path, "has a log file that is not in its log directory", {
        received,
        allowed: `a file in ${logDirectory}, but not in a directory below it`,
        fix: "Use a path in the log directory, or set another log directory as `paths.logDirectory`.",
      }),
    ),
    ...hiddenDirectoryProblems(servedBy(proxy.virtualServers.flatMap(({ routes }) => routes))),
    ...hiddenSocketProblems(proxy.upstreams),
    ...hiddenPageProblems(proxy.virtualServers),
  ];
}

function hiddenPageProblems(servers: readonly VirtualServer[]): Problem[] {
  return servers.flatMap(({ errorPageFiles }) =>
    errorPageFiles.flatMap(([at, received]) => {
      const hidden = isKnown(received) ? HIDDEN.find((path) => isWithin(received, path)) : undefined;
      if (hidden === undefined) return [];
      const message = `is below ${hidden}, which is hidden from the service`;
      const more = { received, allowed: "a file elsewhere, such as /etc/portico/pages/down.html" };
      return [problem("unit.no-access", at, message, more)];
    }),
  );
}

function hiddenSocketProblems(upstreams: HostedProxy["upstreams"]): Problem[] {
  const urls = upstreams.flatMap(({ node, urls: all }) => all.map((url) => ({ node, url })));
  return urls.flatMap(({ node, url }) => {
    if (!isKnown(url)) return [];
    const leads = upstreamAddress(url);
    const hidden = "path" in leads ? HIDDEN.find((path) => isWithin(leads.path, path)) : undefined;
    if (hidden === undefined) return [];
    const message = `is below ${hidden}, which is hidden from the service`;
    const more = { received: url, allowed: "a socket elsewhere, such as unix:/run/app/web.sock" };
    return [problem("unit.no-access", `${node.path}.url`, message, more)];
  });
}

/** Directories that the unit of the proxy sees as empty (systemd.exec(5), PrivateTmp=). */
const TEMPORARY = ["/tmp", "/var/tmp"];
/** It sees none of these, unless files are served from a home (ProtectHome=). */
const HIDDEN = [...TEMPORARY, "/home", "/root", "/run/user"];

function hiddenDirectoryProblems(served: readonly RouteDirectory[]): Problem[] {
  return served.flatMap(({ route, directory }) => {
    const hidden = TEMPORARY.find((path) => isWithin(directory, path));
    if (hidden === undefined) return [];
    const message = `is below ${hidden}, where the service sees an empty directory (PrivateTmp=)`;
    const more = { received: directory, allowed: "a directory elsewhere, such as /srv/files" };
    return [problem("unit.no-access", `${route.node.path}.action`, message, more)];
  });
}
