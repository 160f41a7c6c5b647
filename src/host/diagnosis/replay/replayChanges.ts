import type { LineRequest } from "../logs/accessLogLine.js";
import type { ReplayOutcome } from "./replayOutcome.js";

/** The properties of a request that can change. `path` is the path upstream. */
export const CHANGES = [
  "virtual server",
  "route",
  "action",
  "upstream",
  "path",
  "file",
  "location",
  "status",
  "body",
] as const;
export type ReplayChange = (typeof CHANGES)[number];

/** The response to a request, without what differs from request to request. */
export interface Summary {
  readonly virtualServer?: string;
  /** Null if none matches. */
  readonly route?: string | null;
  readonly action?: ReplayOutcome["action"];
  readonly upstream?: string;
  /** Servers of the upstream. */
  readonly servers?: string;
  readonly status?: number;
}

/** The differences between two configs for a request; empty if there are none. */
export function changesBetween(before: ReplayOutcome, after: ReplayOutcome): readonly ReplayChange[] {
  if (isSame(before, after)) return NONE;
  const same = before.action === after.action;
  const differs: Readonly<Record<ReplayChange, boolean>> = {
    "virtual server": before.virtualServer !== after.virtualServer,
    route: before.route !== after.route,
    action: !same,
    upstream: same && (before.upstream !== after.upstream || before.servers !== after.servers),
    path: same && after.action === "proxy" && before.to !== after.to,
    file: same && after.action === "staticFile" && before.to !== after.to,
    location: same && after.action === "redirect" && before.to !== after.to,
    status: before.status !== after.status && before.status !== undefined && after.status !== undefined,
    body: same && before.body !== after.body,
  };
  return CHANGES.filter((change) => differs[change]);
}

const NONE: readonly ReplayChange[] = [];

/** True for most requests, so that no list is built for them. */
const isSame = (before: ReplayOutcome, after: ReplayOutcome): boolean =>
  before.action === after.action &&
  before.to === after.to &&
  before.route === after.route &&
  before.virtualServer === after.virtualServer &&
  before.upstream === after.upstream &&
  before.servers === after.servers &&
  before.status === after.status &&
  before.body === after.body;

/** The differences from a log line. A response of an upstream may have any status. */
export function changesFromLog(request: LineRequest, after: ReplayOutcome): readonly ReplayChange[] {
  const { server, route, status } = request;
  const early = BEFORE_ROUTES.has(status);
  const found: ReplayChange[] = [];
  if (server !== undefined && server !== after.virtualServer && !early) found.push("virtual server");
  if (route !== undefined && route !== (after.route ?? null) && !early) found.push("route");
  if (after.status !== undefined && after.status !== status && !early) found.push("status");
  return found;
}

/** Statuses whose cause a log does not show: fields, timeouts, certificates, pauses. And 499: the client left. */
const BEFORE_ROUTES: ReadonlySet<number> = new Set([
  400, 408, 413, 414, 417, 421, 431, 499, 500, 501, 503, 505,
]);

export function summaryOf(outcome: ReplayOutcome): Summary {
  const { virtualServer, route, action, upstream, servers, status } = outcome;
  return {
    ...(virtualServer === undefined ? {} : { virtualServer, route: route ?? null }),
    action,
    ...(upstream === undefined ? {} : { upstream }),
    ...(servers === undefined ? {} : { servers }),
    ...(status === undefined ? {} : { status }),
  };
}

export function summaryOfLogged({ server, route, status }: LineRequest): Summary {
  return {
    ...(server === undefined ? {} : { virtualServer: server }),
    ...(route === undefined ? {} : { route }),
    status,
  };
}
