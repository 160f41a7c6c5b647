import {
  asksForDrives,
  DRIVE_FIELDS,
  forwardedClient,
  isBodyTooLong,
  type ProxyConfig,
  Router,
  type VirtualServerConfig,
  withinRanges,
} from "../../model/serving.js";
import type { AccessSteps } from "./access.js";
import type { CertificateStep } from "./clientCertificates.js";
import { type Challenge, challengePath } from "./challenge.js";
import { respondFailure } from "./errorPages.js";
import { isOneTooMany } from "./limits.js";
import { Pauses } from "./pauses.js";
import { RequestIds } from "./requestId.js";
import { reasonPhrase } from "./reasonPhrases.js";
import type { AccessLog, ClientInfo, LoggedExchange, RouteRuntime } from "../exchange/exchange.js";
import type { RequestHead } from "../codec/request.js";
import type { RequestCounts } from "../counting/requestCounts.js";
import type { WorkerCounts } from "../counting/workerCounts.js";

/** Idle time of exchanges without a route: timeouts are a route's. */
export const UNROUTED_IDLE_MS = 30_000;

const CHALLENGE_FIELDS = ["Content-Type", "application/octet-stream"];

/** An exchange whose client, server and route the dispatcher still has to find. */
export interface DispatchedExchange extends LoggedExchange {
  /** Until it is found, the connected peer. */
  client: ClientInfo;
  server: VirtualServerConfig;
  route: RouteRuntime | undefined;
}

/** From an exchange to its route's action; the same for both protocols. */
export class Dispatcher {
  /** Requests that a maintenance or a quiesce refuses. */
  readonly pauses: Pauses;
  private readonly router: Router;
  private readonly clients: RequestClients;
  private readonly ids: RequestIds | undefined;
  /** Responses to the open challenges of http-01, by path. */
  private challenges: ReadonlyMap<string, string> = new Map();
  /** The counts of requests that no route matched. */
  private readonly unrouted: ReadonlyMap<VirtualServerConfig, RequestCounts>;

  constructor(
    readonly config: ProxyConfig,
    private readonly routes: ReadonlyMap<object, RouteRuntime>,
    private readonly mainAccess: AccessLog,
    counts: WorkerCounts,
    private readonly access: AccessSteps,
    /** Undefined if no virtual server asks for certificates. */
    private readonly certificates?: CertificateStep,
  ) {
    this.router = new Router(config);
    this.clients = new RequestClients(config);
    this.ids = config.requestId && new RequestIds(config.requestId);
    this.pauses = new Pauses(config);
    this.unrouted = new Map(config.virtualServers.map((server) => [server, counts.requestsOf(server)]));
  }

  /** The server that responds for a listener before the host is known (decisions 1.2). */
  defaultServer(listener: string): VirtualServerConfig {
    return this.router.defaultServer(listener);
  }

  /** The server for a normalised host name; the default server for the empty one. */
  serverFor(listener: string, serverName: string): VirtualServerConfig {
    return this.router.virtualServer(listener, serverName);
  }

  /** From now on responds to those of http-01 on plain listeners, before routing (RFC 8555, 8.3). */
  setChallenges(challenges: readonly Challenge[]): void {
    this.challenges = new Map(
      challenges.flatMap((one) =>
        one.type === "http-01" ? [[challengePath(one.token), one.keyAuthorization] as const] : [],
      ),
    );
  }

  /** Finds client, server and route, checks what every route checks, and hands the exchange to the action. */
  dispatch(exchange: DispatchedExchange): void {
    const { request } = exchange;
    exchange.client = this.clients.of(exchange.client, request);
    if (this.ids !== undefined) exchange.requestId = this.ids.of(exchange.client, request);
    exchange.server = this.router.virtualServer(exchange.client.listener, request.serverName);
    if (this.challenges.size > 0 && this.respondChallenge(exchange)) return;
    // The client is to ask on a connection of the other name (RFC 9110, 15.5.20).
    if (exchange.client.misdirected?.(request.serverName) === true)
      return respondFailure(exchange, "http_request_error", 421);
    const config = this.router.route(exchange.server, request.path);
    const route = config && this.routes.get(config)!;
    exchange.route = route;
    if (this.certificates !== undefined && !this.certificates.admits(exchange)) return;
    if (route?.guard === undefined || this.access.admits(exchange, route.guard, this.admitted))
      this.proceed(exchange);
  }

  private readonly admitted = (exchange: DispatchedExchange): void => this.proceed(exchange);

  /** Continues with a request that may come in. */
  private proceed(exchange: DispatchedExchange): void {
    const { request, route } = exchange;
    if (asksForDrives(exchange.server, request)) return respondDrives(exchange);
    if (route === undefined) return respondFailure(exchange, "destination_not_found", 404);
    if (this.pauses.active && this.pauses.refuses(exchange, route)) return;
    if (route.limits !== undefined && isOneTooMany(exchange, route.limits)) return;
    if (isBodyTooLong(request.bodyLength, route.config.requestBodyBytesMax))
      return respondFailure(exchange, "http_request_error", 413);
    route.action.handle(exchange);
  }

  private respondChallenge(exchange: DispatchedExchange): boolean {
    const { method, path } = exchange.request;
    const plain = exchange.client.scheme === "http" && (method === "GET" || method === "HEAD");
    const response = plain ? this.challenges.get(path) : undefined;
    if (response === undefined) return false;
    const body = Buffer.from(response);
    exchange.sendHead(200, reasonPhrase(200), CHALLENGE_FIELDS, body.length);
    if (method === "GET") exchange.sendData(body);
    exchange.end();
    return true;
  }

  /** Called exactly once when an exchange is over, however it ended; counts it and writes its access log line. */
  finished(exchange: LoggedExchange): void {
    if (exchange.countedAs !== undefined) exchange.route!.limits!.over(exchange.countedAs);
    this.countsOf(exchange).over(exchange, performance.now());
    const log = exchange.route === undefined ? this.mainAccess : exchange.route.accessLog;
    log.write(exchange);
  }

  /** The counters of its traffic. */
  countsOf({ route, server }: LoggedExchange): RequestCounts {
    return route === undefined ? this.unrouted.get(server)! : route.counts;
  }
}

/** Responds during maintenance, too: Windows remembers a refusal. */
function respondDrives(exchange: DispatchedExchange): void {
  exchange.sendHead(200, reasonPhrase(200), DRIVE_FIELDS, 0);
  exchange.end();
}

/** Finds the client of a request that came through a trusted proxy, whose connections have requests of many clients. */
export class RequestClients {
  private readonly field: string;
  private readonly trusted: (address: string) => boolean;

  constructor(config: Pick<ProxyConfig, "trustedProxies" | "clientAddressField">) {
    this.field = config.clientAddressField.toLowerCase();
    this.trusted = withinRanges(config.trustedProxies);
  }

  /** The client of the request; the connection's own, the same object, unless a trusted proxy names another. */
  of(client: ClientInfo, request: RequestHead): ClientInfo {
    if (!client.trusted) return client;
    const address = forwardedClient(request.headers, this.field, this.trusted);
    if (address === undefined || address === client.address) return client;
    return { ...client, address, port: 0, forwardedBy: client.address };
  }
}
