import type { RouteAction, RouteRuntime } from "../exchange/exchange.js";
import {
  AccessGuards,
  type AccessLists,
  type AccessUsers,
  hasSeveral,
  type ProxyConfig,
  redirectsToSlash,
  type RouteConfig,
  type ServerConfig,
  serverConfigsOf,
  type UpstreamConfig,
  withFileValues,
  withinRanges,
} from "../../model/serving.js";
import { BalancedProxyAction } from "./balancedProxy.js";
import { Portals } from "./portals.js";
import { ProxyAction } from "./proxy.js";
import { RedirectAction, RespondAction } from "./fixedResponses.js";
import { SlashRedirect } from "./slashRedirect.js";
import { StatusAction } from "./status.js";
import { StaticFilesAction } from "./staticFiles.js";
import { WorkerCounts } from "../counting/workerCounts.js";
import { compileResponseFields, setServerFields } from "../exchange/responseFields.js";
import { nameFailures } from "../dispatch/errorPages.js";
import { AccessSteps } from "../dispatch/access.js";
import { CertificateStep } from "../dispatch/clientCertificates.js";
import { Dispatcher } from "../dispatch/dispatch.js";
import { isRegistered } from "../dispatch/reasonPhrases.js";
import { Faults, type WorkerContext } from "../dispatch/workerContext.js";
import { WorkerGuards } from "../logIns/workerGuards.js";
import type { LogFiles } from "../logs/logFiles.js";
import { ClientLimits } from "../rates/clientLimits.js";
import type { AskStatus } from "../status/asked.js";
import { type ClientAuthorities, ClientCertificates } from "../tls/clientCertificates.js";
import type { UpstreamTlsContents } from "../tls/tlsContents.js";
import type { OutageNews } from "../upstream/knownOutage.js";
import { UpstreamPool } from "../upstream/pool.js";
import {
  type SeenServer,
  type SeenServers,
  type ServerOrders,
  UpstreamServers,
} from "../upstream/upstreamServers.js";

/** A config made ready to serve: actions compiled, pools opened. One owner closes it. */
export interface CompiledRoutes extends WorkerContext {
  /** Guards against guessing. */
  readonly passwordGuards: WorkerGuards;
  /** The certificates that clients are asked for; undefined if no virtual server asks for one. */
  readonly clientCertificates: ClientCertificates | undefined;
  /** From now on these files of access policies have these contents. */
  setAccessLists(lists: AccessLists): void;
  /** How much each client may ask of routes. */
  readonly limits: ClientLimits;
  setAccessUsers(users: AccessUsers): void;
  /** Closes idle upstream connections now and the others after their responses. */
  close(): void;
  /** The holdings of all pools together. */
  holdings(): {
    readonly upstreamConnections: number;
    readonly upstreamConnectionsInUse: number;
    readonly queuedRequests: number;
  };
  /** All pools that may have connections. */
  pools(): readonly UpstreamPool[];
  /** Applies the master's orders for servers: by upstream, then by URL. */
  orderServers(orders: ServerOrders): void;
  /** The state of these servers as seen by requests, by upstream. */
  seenServers(): SeenServers;
  /** What the other workers do not know yet about outages of upstreams. */
  outageNews(): readonly OutageNews[];
}

/**
 * Builds everything that connections share, from a valid config and opened logs.
 *
 * @param fieldValues values of request fields that are secrets, by their files
 * @param upstreamTls TLS material of upstreams, by their names
 * @param cookieKey key of the cookies that bind clients to servers
 * @param askStatus asks the master for the status, for routes that show it
 * @param accessLists contents of the files that access policies name
 * @param accessUsers users of the files that access policies name
 * @param clientAuthorities contents of the files that `clientCertificate` of virtual servers names
 */
export function compileRoutes(
  config: ProxyConfig,
  logs: LogFiles,
  fieldValues: Readonly<Record<string, string>> = {},
  upstreamTls: Readonly<Record<string, UpstreamTlsContents>> = {},
  cookieKey = "",
  askStatus: AskStatus = () => Promise.resolve(undefined),
  accessLists: AccessLists = {},
  accessUsers: AccessUsers = {},
  clientAuthorities?: ClientAuthorities,
): CompiledRoutes {
  const faults = new Faults(logs.mainError);
  const counts = new WorkerCounts(isRegistered);
  const warn = (message: string): void => logs.mainError.write("warn", message);
  const { upstreams, poolTo } = openUpstreams(config, faults, warn, counts, upstreamTls, cookieKey);
  const portals = new Portals(config, poolTo);
  const pools = (): readonly UpstreamPool[] => [
    ...[...upstreams.values()].flatMap((one) => (one instanceof UpstreamServers ? one.pools : [one])),
    ...portals.pools,
  ];
  const routes = new Map<RouteConfig, RouteRuntime>();
  const guards = new AccessGuards(config, accessLists);
  const limits = new ClientLimits(config);
  const passwordGuards = new WorkerGuards(config, counts);
  const access = new AccessSteps(accessUsers, portals.ask);
  const clientCertificates = clientAuthorities && new ClientCertificates(clientAuthorities);
  const certificates = certificateStep(clientCertificates, counts, logs);
  const upstreamOf = (name: string) => upstreams.get(name)!;
  const valueOf = (file: string): string => fieldValues[file]!;
  nameFailures(config);
  const { requestId } = config;
  const idField = requestId?.response === true ? requestId.field : undefined;
  for (const server of config.virtualServers) {
    if (idField !== undefined) setServerFields(server, idField);
    for (const route of server.routes) {
      const action = createAction(route, upstreamOf, valueOf, requestId?.field, askStatus);
      routes.set(route, {
        config: route,
        server,
        action: passwordGuards.before(server, action),
        guard: guards.of(route),
        limits: limits.of(route),
        responseFields: compileResponseFields(server, route, idField),
        accessLog: logs.accessLogFor(route),
        errorLog: logs.errorLogFor(route),
        counts: counts.requestsOf(server, route),
      });
    }
  }
  return {
    config,
    mainError: logs.mainError,
    faults,
    showsTlsGroup: logs.showsTlsGroup,
    dispatcher: new Dispatcher(config, routes, logs.mainAccess, counts, access, certificates),
    clientCertificates,
    counts,
    limits,
    trusted: withinRanges(config.trustedProxies),
    pools,
    passwordGuards,
    setAccessLists: (lists) => guards.setLists(lists),
    setAccessUsers: (users) => access.setUsers(users),
    close: () => pools().forEach((pool) => pool.close()),
    holdings: () => holdingsOf(pools()),
    orderServers: (orders) => upstreams.forEach((one, name) => applyOrders(one, orders[name] ?? {})),
    seenServers: () => Object.fromEntries([...upstreams].map(([name, one]) => [name, seenOf(one)])),
    outageNews: () => [...upstreams.values()].flatMap(newsOf),
  };
}

function certificateStep(
  certificates: ClientCertificates | undefined,
  counts: WorkerCounts,
  { mainError }: LogFiles,
): CertificateStep | undefined {
  if (certificates === undefined) return undefined;
  return new CertificateStep((server) => certificates.of(server), counts, mainError);
}

/** The config's upstreams, and what opens a pool to another server. */
function openUpstreams(
  config: ProxyConfig,
  faults: Faults,
  warn: (message: string) => void,
  counts: WorkerCounts,
  upstreamTls: Readonly<Record<string, UpstreamTlsContents>>,
  cookieKey: string,
) {
  const poolTo = (server: ServerConfig): UpstreamPool => {
    const ofServer = counts.upstream(server.name, server.url);
    return new UpstreamPool(server, faults, warn, ofServer, upstreamTls[server.name]);
  };
  const open = (upstream: UpstreamConfig): UpstreamPool | UpstreamServers =>
    hasSeveral(upstream)
      ? new UpstreamServers(upstream, faults, warn, upstreamTls[upstream.name], cookieKey, counts)
      : poolTo(serverConfigsOf(upstream)[0]!);
  const upstreams = new Map(config.upstreams.map((upstream) => [upstream.name, open(upstream)]));
  return { upstreams, poolTo };
}

function applyOrders(upstream: UpstreamPool | UpstreamServers, orders: ServerOrders[string]): void {
  if (upstream instanceof UpstreamServers) return upstream.order(orders);
  const { outage } = orders[upstream.config.url] ?? {};
  if (outage !== undefined) upstream.learn(outage);
}

/** An upstream with several servers holds no requests, and so has no news. */
function newsOf(upstream: UpstreamPool | UpstreamServers): readonly OutageNews[] {
  if (upstream instanceof UpstreamServers) return [];
  const outage = upstream.record.takeNews();
  const { name, url } = upstream.config;
  return outage === undefined ? [] : [{ upstream: name, url, outage }];
}

function seenOf(upstream: UpstreamPool | UpstreamServers): readonly SeenServer[] {
  if (upstream instanceof UpstreamServers) return upstream.seen();
  const { inUse, queued } = upstream.holdings();
  // Nothing leaves out the only server.
  return [{ url: upstream.config.url, inProgress: inUse + queued, out: false, ignored: false }];
}

function holdingsOf(pools: readonly UpstreamPool[]): ReturnType<CompiledRoutes["holdings"]> {
  const each = pools.map((pool) => pool.holdings());
  const total = (of: keyof (typeof each)[number]): number => each.reduce((sum, one) => sum + one[of], 0);
  return {
    upstreamConnections: total("connections"),
    upstreamConnectionsInUse: total("inUse"),
    queuedRequests: total("queued"),
  };
}

function createAction(
  route: RouteConfig,
  upstream: (name: UpstreamConfig["name"]) => UpstreamPool | UpstreamServers,
  valueOf: (file: string) => string,
  requestIdField: string | undefined,
  askStatus: AskStatus,
): RouteAction {
  const { action } = route;
  switch (action.type) {
    case "proxy": {
      const proxied = { ...route, action: withFileValues(action, valueOf), requestIdField };
      const to = upstream(action.upstream);
      const proxy =
        to instanceof UpstreamServers ? new BalancedProxyAction(proxied, to) : new ProxyAction(proxied, to);
      return redirectsToSlash(proxied) ? new SlashRedirect(route, proxy) : proxy;
    }
    case "staticFiles":
      return new StaticFilesAction(route, action);
    case "redirect":
      return new RedirectAction(action, route.path);
    case "respond":
      return new RespondAction(action);
    case "status":
      return new StatusAction(route, action, askStatus);
  }
}
