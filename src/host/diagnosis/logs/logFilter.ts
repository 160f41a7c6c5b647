import {
  type ProxyConfig,
  Router,
  serversOfSite,
  withinRanges,
  normalisePath,
} from "../../../model/index.js";
import type { ConfigLog } from "./configLogs.js";
import { type LogEntry, textOf } from "./logEntry.js";

/** Which lines of logs are shown; without any of these, all. */
export interface LogFilter {
  /** Name of a route. */
  readonly route?: string;
  /** Name of a site. */
  readonly site?: string;
  readonly status?: (status: number) => boolean;
  /** An address or range. */
  readonly client?: string;
  readonly method?: string;
}

export type Matches = (entry: LogEntry, log: ConfigLog) => boolean;

export function matcherOf(filter: LogFilter, config: ProxyConfig): Matches {
  const within = filter.client === undefined ? undefined : withinRanges([filter.client]);
  const router = new Router(config);
  const { route, site } = filter;
  const servers = site === undefined ? undefined : serversOfSite(config, site);
  const isOf = (server: string | undefined, of: string | undefined): boolean =>
    (route === undefined || of === route) &&
    (servers === undefined || (server !== undefined && servers.has(server)));
  const method = filter.method?.toUpperCase();
  return (entry, log) => {
    if (
      within !== undefined &&
      (entry.client === undefined || !isAddress(entry.client) || !within(entry.client))
    )
      return false;
    if (entry.kind === "error")
      return (
        (route === undefined && site === undefined) ||
        log.routes.some((one) => isOf(one.server.name, one.route.name))
      );
    if (filter.status !== undefined && !filter.status(entry.status)) return false;
    if (method !== undefined && entry.request?.method !== method) return false;
    if (route === undefined && site === undefined) return true;
    const { fields, request } = entry;
    // A JSON line names route and virtual server; for a combined line, they follow from the path, as far as possible.
    if (fields !== undefined) return isOf(textOf(fields["server"]), textOf(fields["route"]));
    const path = request === undefined ? undefined : normalisePath(request.target);
    return (
      path !== undefined &&
      log.routes.some(
        (one) => isOf(one.server.name, one.route.name) && router.route(one.server, path) === one.route,
      )
    );
  };
}

const isAddress = (text: string): boolean => /^[0-9A-Fa-f.:]+$/.test(text);
