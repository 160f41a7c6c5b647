import { type ProxyConfig, Router, withinRanges, normalisePath } from "../../model/index.js";
import type { ConfigLog } from "./configLogs.js";
import { type AccessEntry, type LogEntry, textOf } from "./logEntry.js";

/** Which lines of logs are shown; without any of these, all. */
export interface LogFilter {
  /** Name of a route. */
  readonly route?: string;
  /** Name of a virtual server. */
  readonly server?: string;
  readonly status?: (status: number) => boolean;
  /** An address or range. */
  readonly client?: string;
  readonly method?: string;
}

export type Matches = (entry: LogEntry, log: ConfigLog) => boolean;

export function matcherOf(filter: LogFilter, config: ProxyConfig): Matches {
  const within = filter.client === undefined ? undefined : withinRanges([filter.client]);
  const router = new Router(config);
  const method = filter.method?.toUpperCase();
  return (entry, log) => {
    if (
      within !== undefined &&
      (entry.client === undefined || !isAddress(entry.client) || !within(entry.client))
    )
      return false;
    if (entry.kind === "error") return mayBeOf(log, filter);
    if (filter.status !== undefined && !filter.status(entry.status)) return false;
    if (method !== undefined && entry.request?.method !== method) return false;
    return filter.route === undefined && filter.server === undefined
      ? true
      : isOf(entry, log, filter, router);
  };
}

const isAddress = (text: string): boolean => /^[0-9A-Fa-f.:]+$/.test(text);

/** Whether lines of a route, or of a virtual server, can be in a log. */
const mayBeOf = ({ routes }: ConfigLog, { route, server }: LogFilter): boolean =>
  (route === undefined && server === undefined) ||
  routes.some(
    (one) =>
      (route === undefined || one.route.name === route) &&
      (server === undefined || one.server.name === server),
  );

/** A JSON line names route and virtual server; for a combined line, they follow from the path, as far as possible. */
function isOf(entry: AccessEntry, log: ConfigLog, { route, server }: LogFilter, router: Router): boolean {
  const { fields, request } = entry;
  if (fields !== undefined)
    return (
      (route === undefined || textOf(fields["route"]) === route) &&
      (server === undefined || textOf(fields["server"]) === server)
    );
  const path = request === undefined ? undefined : normalisePath(request.target);
  if (path === undefined) return false;
  return log.routes.some(
    (one) =>
      (route === undefined || one.route.name === route) &&
      (server === undefined || one.server.name === server) &&
      router.route(one.server, path) === one.route,
  );
}
