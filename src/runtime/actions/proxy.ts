import { guarded } from "../sockets/guarded.js";
import type { Memory } from "../sockets/memory.js";
import {
  type ErrorToken,
  ForwardingRules,
  type ForwardedRequest,
  type VerifiedUser,
  type ProxiedRoute,
} from "../../model/serving.js";
import { respondFailure } from "../dispatch/errorPages.js";
import type { RouteAction, BodySink, Exchange, HeaderList } from "../exchange/exchange.js";
import type { ParsedResponse } from "../codec/http1/responseHead.js";
import type { ConnectionOpener, UpstreamFailure } from "../upstream/responseReader.js";
import type { UpstreamConnection } from "../upstream/upstreamConnection.js";
import { clientConnection } from "../upstream/keptConnections.js";
import type { ConnectRefusal } from "../upstream/outage.js";
import type { ConnectionTaker } from "../upstream/connectionTaker.js";
import type { UpstreamPool } from "../upstream/pool.js";
import { Tunnel, WebSocketTunnel } from "./tunnel.js";
import { Upgrades } from "./upgrades.js";

/** Passes requests to an upstream and its responses back, streaming both ways (decisions 4.1). */
export class ProxyAction implements RouteAction {
  private readonly rules: ForwardingRules;
  private readonly upgrades: Upgrades;

  constructor(
    route: ProxiedRoute,
    private readonly pool: UpstreamPool,
  ) {
    this.rules = new ForwardingRules(route, pool.config);
    this.upgrades = new Upgrades(route.action.upgrades);
  }

  handle(exchange: Exchange): void {
    const upgrade = this.upgrades.of(exchange);
    // Only a CONNECT that asks for a tunnel gets this far.
    if (exchange.request.method === "CONNECT" && upgrade === undefined)
      return respondFailure(exchange, "http_request_error", 501);
    new ProxiedExchange(exchange, this.rules, this.pool, upgrade).start();
  }
}

/** Methods that may be sent twice: RFC 9110, 9.2.2, and the safe ones of WebDAV (RFC 4918, 3253, 5323). */
const IDEMPOTENT = new Set(["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "PROPFIND", "REPORT", "SEARCH"]);

/** How often a request is sent, to one server or to several. */
const SENT_MAX = 2;

/** The data of a request that the header rules use. */
class Facts implements ForwardedRequest {
  readonly method: string;
  readonly target: string;
  readonly path: string;
  readonly plainLines: string | undefined;
  readonly host: string;
  readonly serverName: string;
  readonly scheme: "http" | "https";
  readonly clientAddress: string;
  readonly forwardedBy: string | undefined;
  readonly trusted: boolean;

  readonly requestId: string | undefined;
  readonly user: VerifiedUser | undefined;

  constructor(
    private readonly exchange: Exchange,
    readonly upgrade: string | undefined,
  ) {
    const { request, client } = exchange;
    this.requestId = exchange.requestId;
    this.user = exchange.user;
    // Upstreams speak HTTP/1.1, where an upgrade is a GET (RFC 6455, 4.1).
    this.method = upgrade === undefined ? request.method : "GET";
    this.target = request.target;
    this.path = request.path;
    this.plainLines = request.fields?.plainLines;
    this.host = request.host;
    this.serverName = request.serverName;
    this.scheme = client.scheme;
    this.clientAddress = client.address;
    this.forwardedBy = client.forwardedBy;
    this.trusted = client.trusted;
  }

  /** A getter, so that no list is made for requests whose lines pass as they are. */
  get headers(): HeaderList {
    return this.exchange.request.headers;
  }

  dropped(name: string): void {
    const { exchange } = this;
    const message = `the field "${name}" is dropped; if the application needs it, add it to \`keepFields\` of the route`;
    exchange.route?.errorLog.write("info", message, exchange);
  }
}

/** Most requests take far less than this, and a browser that tries again this late adds little to the load. */
export const RETRY_LATER = { headers: ["Retry-After", "5"] };

/**
 * A request on its way through: the sink of its body and the reader of its response. It holds a place in the upstream's
 * queue or a connection until its exchange is released.
 */
export class ProxiedExchange implements BodySink, ConnectionOpener, ConnectionTaker {
  heldSince: number | undefined = undefined;
  readonly wantsList: boolean;
  protected connection: UpstreamConnection | undefined = undefined;
  protected readonly facts: ForwardedRequest;
  /** Whether body bytes come from the client. */
  private readonly uploading: boolean;
  private tunnel: Tunnel | undefined = undefined;
  /** How often it was sent, and got no response. */
  protected lost = 0;
  /** It did not get a connection at once, so the following steps take time. */
  private waits = false;
  /** It is to end, and may not have begun. */
  private tunnelCloses = false;

  constructor(
    readonly exchange: Exchange,
    protected rules: ForwardingRules,
    protected pool: UpstreamPool,
    upgrade: string | undefined,
  ) {
    const { request } = exchange;
    this.uploading = request.bodyLength !== 0 && upgrade === undefined;
    this.wantsList = exchange.sendLines === undefined;
    this.facts = new Facts(exchange, upgrade);
  }

  start(): void {
    const { exchange } = this;
    const refusal = this.rules.refusal(this.facts);
    if (refusal !== undefined) {
      this.logError(refusal.message);
      return respondFailure(exchange, "http_request_error", refusal.status);
    }
    if (exchange.request.connectionLogin && exchange.requireHttp1 !== undefined) {
      this.logError(LOGIN_OVER_HTTP2);
      return exchange.requireHttp1();
    }
    this.connect();
    this.waits = this.connection === undefined;
  }

  protected connect(): void {
    this.pool.request(this);
  }

  onDrain(): void {
    this.tunnel?.onDrain();
    this.connection?.resume();
  }

  onTunnelClosing(): void {
    this.tunnelCloses = true;
    this.tunnel?.close();
  }

  onReleased(): void {
    this.pool.leave(this);
    this.connection?.destroy();
    this.connection = undefined;
  }

  /** Begins the request: at once, when its turn has come, or another time. */
  onConnection(connection: UpstreamConnection): void {
    const { exchange } = this;
    this.connection = connection;
    if (exchange.request.connectionLogin) this.keepConnection();
    exchange.upstreamServer = this.pool.config.url;
    exchange.upstreamBegunMs = this.waits ? since(exchange) : 0;
    if (connection.opening && this.waitsForOpen) connection.whenOpen(this);
    else this.begin(connection);
  }

  onOpen(): void {
    this.begin(this.connection!);
  }

  /**
   * Whether nothing happens before a connection is established. Of a body that was read, nothing could be sent to
   * another.
   */
  protected get waitsForOpen(): boolean {
    return this.uploading;
  }

  get method(): string {
    return this.facts.method;
  }

  protected begin(connection: UpstreamConnection): void {
    const { exchange } = this;
    const { bodyLength, lengthDeclared } = exchange.request;
    const tunnels = this.facts.upgrade !== undefined;
    const framing = connection.request.framing.beginRequest(bodyLength, lengthDeclared, tunnels);
    connection.begin(this, this.facts.method, this.rules.requestHead(this.facts, framing));
    if (!this.uploading) return connection.finish();
    exchange.readBody(this);
    // Body bytes that came with the head are delivered before this runs, and the head is sent with them.
    process.nextTick(guarded, this, this.flushHead);
  }

  private flushHead(): void {
    this.connection?.request.flush();
  }

  /** An exception here, or in the connection to the upstream, ends this exchange. */
  onFault(error: unknown): void {
    this.exchange.onFault(error);
  }

  onBusy(reason: string): void {
    this.logError(reason);
    const token = this.pool.refuses ? "connection_refused" : "connection_limit_reached";
    respondFailure(this.exchange, token, 503, RETRY_LATER);
  }

  onRefused(reason: string): void {
    this.logError(reason);
    respondFailure(this.exchange, "connection_refused", 502);
  }

  onData(chunk: Buffer, memory: Memory): boolean {
    return this.connection === undefined || this.connection.request.body(chunk, memory);
  }

  onEnd(): void {
    const { connection } = this;
    if (connection === undefined) return;
    if (this.tunnel === undefined) return connection.finish();
    connection.endTunnel();
    this.tunnel.clientEnded();
  }

  onRequestStall(): void {
    this.exchange.pauseBody();
  }

  onRequestDrain(): void {
    this.exchange.resumeBody();
  }

  /** From now on the connection serves only the client connection that logs in on it. */
  private keepConnection(): void {
    this.connection!.onlyFor = clientConnection(this.exchange.client);
  }

  onInformational(head: ParsedResponse): void {
    if (head.fields.connectionLogin) this.keepConnection();
    // A 100 responds to an Expect that was never forwarded.
    if (head.status === 100) return;
    const headers = this.rules.responseHeaders(head.fields.list, this.facts);
    this.exchange.sendInformational(head.status, head.reason, headers);
  }

  onResponseHead(head: ParsedResponse): void {
    const { exchange, facts, connection } = this;
    const { status } = head;
    if (head.fields.connectionLogin) this.keepConnection();
    if (!connection!.reused) exchange.upstreamConnectMs = connection!.connectMs;
    if (status === 101) return this.openTunnel(head);
    // It would grant the client a tunnel that leads nowhere (RFC 8441, 5).
    if (exchange.request.method === "CONNECT" && status < 300)
      return this.refuseResponse(NOT_UPGRADED, "http_upgrade_failed");
    const bodiless = facts.method === "HEAD" || status === 304;
    this.sendHead(head, bodiless ? head.contentLength : Math.max(head.bodyLength, -1));
  }

  protected sendHead(head: ParsedResponse, length: number): void {
    const { exchange } = this;
    const { status, reason, fields } = head;
    if (exchange.sendLines !== undefined && fields.plainLines !== undefined)
      exchange.sendLines(status, reason, fields.plainLines, length);
    else exchange.sendHead(status, reason, this.responseFields(head), length);
  }

  protected responseFields({ fields }: ParsedResponse): HeaderList {
    return this.rules.responseHeaders(fields.list, this.facts);
  }

  get pieceBytesMax(): number {
    return this.exchange.pieceBytesMax;
  }

  onResponseData(chunk: Buffer, memory: Memory): boolean {
    return (this.tunnel ?? this.exchange).sendData(chunk, memory);
  }

  onResponsePause(): void {
    this.exchange.flush();
  }

  onResponseEnd(): void {
    this.connection = undefined;
    this.exchange.end();
  }

  onResponseError(failure: UpstreamFailure): void {
    const { connection } = this;
    this.connection = undefined;
    this.waits = true;
    if (!failure.unsent) this.lost++;
    this.exchange.upstreamConnectMs =
      connection === undefined || connection.reused ? -1 : connection.connectMs;
    if (connection?.refused !== undefined && this.holds(connection.refused, failure.message)) return;
    if (connection !== undefined && this.mayRetry(connection, failure)) return this.retry(failure);
    this.fail(failure);
  }

  /** The connection of a second attempt is a new one. */
  protected retry({ message }: UpstreamFailure): void {
    this.logError(`${message}; the request is sent again`, "info");
    this.pool.replace(this);
  }

  /** @returns whether it waits for another connection, or has been refused */
  protected holds(refusal: ConnectRefusal, reason: string): boolean {
    return this.pool.hold(this, refusal, reason);
  }

  protected fail(failure: UpstreamFailure): void {
    const { exchange } = this;
    this.logError(failure.message);
    respondFailure(exchange, failure.token, failure.status);
  }

  /**
   * A reused connection may have been closed by the upstream just as the request went out (decisions 4.5). A timeout is
   * different: the upstream may be processing the request.
   */
  protected mayRetry(connection: UpstreamConnection, failure: UpstreamFailure): boolean {
    if (!connection.reused || failure.responded || failure.status !== 502) return false;
    if (this.facts.upgrade !== undefined || this.exchange.request.bodyLength !== 0) return false;
    return failure.unsent || this.repeatable;
  }

  /** Whether it may be sent again, although an upstream may have got it: once at most, as it may be the cause of that. */
  protected get repeatable(): boolean {
    const { facts, exchange, lost } = this;
    const tunnels = facts.upgrade !== undefined;
    return lost < SENT_MAX && IDEMPOTENT.has(facts.method) && !tunnels && exchange.request.bodyLength === 0;
  }

  protected logError(message: string, level: "error" | "info" = "error"): void {
    const { exchange } = this;
    exchange.route?.errorLog.write(level, message, exchange, this.pool.config.url);
  }

  private openTunnel(head: ParsedResponse): void {
    const { exchange } = this;
    const { upgrade } = this.facts;
    if (upgrade === undefined || head.upgrade !== upgrade.toLowerCase())
      return this.refuseResponse(NOT_ASKED, "http_protocol_error");
    this.tunnel = head.upgrade === "websocket" ? new WebSocketTunnel(exchange) : new Tunnel(exchange);
    this.connection!.request.framing.openTunnel();
    exchange.sendHead(101, head.reason, this.responseFields(head), -1);
    exchange.flush();
    exchange.readBody(this);
    if (this.tunnelCloses) this.tunnel?.close();
  }

  private refuseResponse(message: string, token: ErrorToken): void {
    this.connection!.destroy();
    this.onResponseError({ status: 502, token, message, responded: true, unsent: false });
  }
}

/** Milliseconds since its head was complete. */
const since = ({ request }: Exchange): number => (performance.now() - request.receivedAt) | 0;

const LOGIN_OVER_HTTP2 =
  "the request has a log-in that belongs to a connection (NTLM, Negotiate), which HTTP/2 does not have: " +
  "the client is asked to use HTTP/1.1 (HTTP_1_1_REQUIRED)";
const NOT_ASKED = "upstream switched protocols without being asked";
const NOT_UPGRADED =
  "upstream responded to a request for a tunnel with success, but did not switch protocols";
