import { ForwardingRules, type ProxiedRoute } from "../../model/serving.js";
import { respondFailure } from "../dispatch/errorPages.js";
import type { RouteAction, Exchange, HeaderList } from "../exchange/exchange.js";
import type { ParsedResponse } from "../codec/http1/responseHead.js";
import type { UpstreamFailure } from "../upstream/responseReader.js";
import type { UpstreamConnection } from "../upstream/upstreamConnection.js";
import type { ConnectRefusal } from "../upstream/outage.js";
import type { UpstreamPool } from "../upstream/pool.js";
import type { UpstreamServers } from "../upstream/upstreamServers.js";
import { ProxiedExchange, RETRY_LATER } from "./proxy.js";
import { Upgrades } from "./upgrades.js";

/** Passes requests to one of several servers of an upstream. */
export class BalancedProxyAction implements RouteAction {
  private readonly upgrades: Upgrades;
  /** The rules for each server, by the URL of the config that names the server. */
  private readonly byUrl = new Map<string, ForwardingRules>();

  constructor(
    private readonly route: ProxiedRoute,
    private readonly servers: UpstreamServers,
  ) {
    this.upgrades = new Upgrades(route.action.upgrades);
  }

  handle(exchange: Exchange): void {
    const upgrade = this.upgrades.of(exchange);
    if (exchange.request.method === "CONNECT" && upgrade === undefined)
      return respondFailure(exchange, "http_request_error", 501);
    new BalancedExchange(exchange, this, this.servers, upgrade).start();
  }

  rulesFor({ config }: UpstreamPool): ForwardingRules {
    const url = config.namedBy ?? config.url;
    let rules = this.byUrl.get(url);
    if (rules === undefined) this.byUrl.set(url, (rules = new ForwardingRules(this.route, { url })));
    return rules;
  }
}

/**
 * A request that may go to one server after another: any request as long as nothing of it was sent, and one that may be
 * repeated once after that. So nothing is sent before a connection is established.
 */
class BalancedExchange extends ProxiedExchange {
  /** The server that has the request; -1 before and after that. */
  private server = -1;
  private passedOver: Set<number> | undefined = undefined;
  /** The server may have got something of it. */
  private begun = false;

  constructor(
    exchange: Exchange,
    private readonly action: BalancedProxyAction,
    private readonly servers: UpstreamServers,
    upgrade: string | undefined,
  ) {
    const { first } = servers;
    super(exchange, action.rulesFor(first), first, upgrade);
  }

  override onReleased(): void {
    super.onReleased();
    this.leaveServer();
  }

  override onConnection(connection: UpstreamConnection): void {
    this.begun = false;
    super.onConnection(connection);
  }

  protected override get waitsForOpen(): boolean {
    return true;
  }

  override onBusy(reason: string): void {
    if (!this.goOn(reason)) super.onBusy(reason);
  }

  override onResponseHead(head: ParsedResponse): void {
    this.servers.responded(this.server);
    super.onResponseHead(head);
  }

  protected override connect(): void {
    const server = this.choose();
    if (server !== -1) return this.connectTo(server);
    this.logError(NONE_LEFT);
    respondFailure(this.exchange, "destination_unavailable", 503, RETRY_LATER);
  }

  protected override begin(connection: UpstreamConnection): void {
    this.begun = true;
    super.begin(connection);
  }

  protected override sendHead(head: ParsedResponse, length: number): void {
    if (this.cookie === undefined) super.sendHead(head, length);
    else this.exchange.sendHead(head.status, head.reason, this.responseFields(head), length);
  }

  protected override responseFields(head: ParsedResponse): HeaderList {
    const { cookie } = this;
    const fields = super.responseFields(head);
    return cookie === undefined ? fields : [...fields, "Set-Cookie", cookie];
  }

  /** A server whose listen queue is full is not out: another server gets the request, or it waits, as for its session. */
  protected override holds(refusal: ConnectRefusal, reason: string): boolean {
    const moves = refusal === "busy" && this.servers.config.sticky === undefined;
    return (moves && this.goOn(reason)) || super.holds(refusal, reason);
  }

  /**
   * A server that ends closes its idle connections, too, and would take the second attempt down with it. But most close
   * one because its time is over: that does not count as a failure of the server, and is no reason to leave a session, or to
   * try a server that failed before. If the other server fails, this one may have the request again.
   */
  protected override retry(failure: UpstreamFailure): void {
    const { balance, sticky } = this.servers.config;
    const stays = failure.unsent || sticky !== undefined || balance === "clientAddress";
    const next = stays ? -1 : this.choose(new Set(this.passedOver).add(this.server), true);
    if (next === -1) super.retry(failure);
    else this.moveTo(next, failure.message);
  }

  protected override fail(failure: UpstreamFailure): void {
    const { message, responded, status } = failure;
    const { begun, repeatable, server } = this;
    if (!responded) this.servers.failed(server, begun, message);
    const mayGoOn = !begun || (!responded && repeatable);
    if (mayGoOn && this.goOn(message)) return;
    if (begun || this.servers.isSingle) return super.fail(failure);
    this.logError(`${message}; ${NONE_LEFT} (${status})`);
    respondFailure(this.exchange, failure.token, 503, RETRY_LATER);
  }

  private get cookie(): string | undefined {
    const { request, client } = this.exchange;
    return this.servers.cookieFor(this.server, request.headers, client.scheme);
  }

  private choose(passedOver = this.passedOver, surely = false): number {
    // A repeated request that was lost is not sent a third time.
    const repeatable = this.repeatable && this.lost === 0;
    const { client, request } = this.exchange;
    return this.servers.choose({ client, headers: request.headers, repeatable, surely }, passedOver);
  }

  /** @returns false if there is no server left for it */
  private goOn(reason: string): boolean {
    (this.passedOver ??= new Set()).add(this.server);
    const next = this.choose();
    if (next === -1) return false;
    this.moveTo(next, reason);
    return true;
  }

  private moveTo(server: number, reason: string): void {
    this.logError(`${reason}; the request goes to another server`);
    this.leaveServer();
    this.connectTo(server);
  }

  private connectTo(server: number): void {
    if (this.exchange.released) return;
    this.server = server;
    this.begun = false;
    this.pool = this.servers.pool(server);
    this.rules = this.action.rulesFor(this.pool);
    this.servers.begun(server);
    this.pool.request(this, this.lost > 0);
  }

  private leaveServer(): void {
    if (this.server !== -1) this.servers.ended(this.server);
    this.server = -1;
  }
}

const NONE_LEFT = "no server of the upstream is left for the request";
