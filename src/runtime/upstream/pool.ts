import { isIP, type LookupFunction } from "node:net";
import { guarded } from "../sockets/guarded.js";
import type { UpstreamCounts } from "../counting/workerCounts.js";
import {
  type UpstreamAddress,
  upstreamAddress,
  type ServerConfig,
  upstreamScheme,
} from "../../model/serving.js";
import { coarseNow, sweepRegularly } from "../sockets/deadlines.js";
import type { ClientInfo } from "../exchange/exchange.js";
import type { Faults } from "../dispatch/workerContext.js";
import { ClientShares, type ConnectionUser, type ShareTaker } from "./clientShares.js";
import type { ConnectionTaker } from "./connectionTaker.js";
import { type KnownOutage, OutageRecord } from "./knownOutage.js";
import { Outage, type ConnectRefusal } from "./outage.js";
import type { Bodiless } from "../codec/http1/responseHead.js";
import type { UpstreamTlsContents } from "../tls/tlsContents.js";
import { proxyHeaderFor } from "../listen/proxyHeader.js";
import { SharedLookup } from "./sharedLookup.js";
import { UpstreamConnection } from "./upstreamConnection.js";
import { KeptConnections } from "./keptConnections.js";
import { SilentConnections } from "./silentConnections.js";
import { TlsToUpstream } from "./upstreamTls.js";

/**
 * The connections to one upstream: hands out idle ones, most recently used first, and opens new ones up to a limit. When
 * all are in use, or those that one client may have, requests wait: those of one client in the order they came, and the
 * clients take turns. They also wait while the upstream refuses connections, for a time (`outage.ts`), or while the
 * listen queue of its Unix socket is full.
 */
export class UpstreamPool {
  private readonly idleConnections: UpstreamConnection[] = [];
  /** Idle ones on which a client logged in. */
  private readonly kept: KeptConnections<UpstreamConnection>;
  /** Idle ones after a response without a body. */
  private readonly silent: SilentConnections<UpstreamConnection>;
  private readonly all = new Set<UpstreamConnection>();
  private readonly stopSweeping: () => void;
  private readonly address: UpstreamAddress;
  /** Whether the upstream is given by a name, whose address may change. */
  private readonly named: boolean;
  readonly lookup: LookupFunction | undefined;
  readonly tls: TlsToUpstream | undefined;
  private readonly shares: ClientShares<ConnectionTaker>;
  private closing = false;
  /** A connection became free in this turn: waiting requests come first. */
  private serving = false;
  /** Until when no connection is used twice, on the coarse clock. */
  private singleUseUntil = -Infinity;
  private outage: Outage | undefined = undefined;
  readonly record = new OutageRecord();
  /** Tries the upstream while its listen queue is full. */
  private fullQueue: NodeJS.Timeout | undefined = undefined;
  /** Until when the error log has enough lines about that, by `performance.now()`. */
  private fullQueueKnownUntil = -Infinity;
  /** The connection by which the upstream is tried in an outage, or while its listen queue is full. */
  private attempt: UpstreamConnection | undefined = undefined;
  /** Connections that were made before the last outage: they are used no more. */
  private readonly retired = new WeakSet<UpstreamConnection>();

  /**
   * @param warn writes messages about the upstream as a whole to the error log
   * @param counts counters of the server
   * @param tlsContents its TLS material
   */
  constructor(
    readonly config: ServerConfig,
    readonly faults: Faults,
    private readonly warn: (message: string) => void,
    readonly counts: UpstreamCounts,
    tlsContents?: UpstreamTlsContents,
  ) {
    this.address = upstreamAddress(config.url);
    const secure = upstreamScheme(config.url) === "https" && "host" in this.address;
    this.tls = secure ? new TlsToUpstream(this.address.host, config.tls, tlsContents) : undefined;
    this.named = "host" in this.address && isIP(this.address.host) === 0;
    this.lookup = this.named ? new SharedLookup().lookup : undefined;
    this.shares = new ClientShares(config);
    this.kept = new KeptConnections(config.idleConnectionsMax);
    this.silent = new SilentConnections(config.idleConnectionsMax);
    this.stopSweeping = sweepRegularly(this);
  }

  /** Whether the upstream refuses connections at the moment. */
  get refuses(): boolean {
    return this.outage !== undefined;
  }

  /** How many there are by now: a part of the worker's holdings. */
  holdings(): { readonly connections: number; readonly inUse: number; readonly queued: number } {
    const connections = this.all.size;
    const idle = this.idleConnections.length + this.kept.size + this.silent.size;
    return { connections, inUse: connections - idle, queued: this.shares.queued };
  }

  /** Whether the client connection has logged in on a connection here. */
  keepsFor(client: ClientInfo): boolean {
    return this.kept.has(client);
  }

  /**
   * A connection for a request: `onConnection` is called within this call if one is free, or later, or else `onBusy`.
   * Nothing happens if the exchange is over by then.
   *
   * @param again it was sent before, without a response: a used connection is taken only if there is no place for a new one
   */
  request(taker: ConnectionTaker, again = false): void {
    if (!taker.exchange.hold(taker)) return;
    const user = this.shares.userAt(taker.exchange.client.address);
    const mayHave = !this.serving && !this.holding && this.shares.mayUse(user);
    const isNew = again && !this.isFull && this.fullQueue === undefined;
    const connection = !mayHave ? undefined : isNew ? this.open(taker) : this.take(taker);
    if (connection !== undefined) return this.give(connection, taker, user);
    this.enqueue(taker, user);
  }

  /**
   * A new connection in place of one that broke during a request, even if there are idle ones, which may be broken too.
   * It takes over the other's share of the limit, so a retry does not wait again.
   */
  replace(taker: ConnectionTaker): void {
    if (taker.exchange.released) return;
    const user = this.shares.userAt(taker.exchange.client.address);
    if (this.holding || this.fullQueue !== undefined) this.enqueue(taker, user);
    else this.give(this.open(taker), taker, user);
  }

  /**
   * The upstream refused its connection, so nothing was sent. Where that begins an outage, connections that were made before
   * are used no more: a service that restarts is about to close them, which would cost the next request on each.
   *
   * @param reason for the error log
   * @returns whether it waits for another connection, or has been refused
   */
  hold(taker: ConnectionTaker, refusal: ConnectRefusal, reason: string): boolean {
    const { holdMs, queuedRequestsMax, name } = this.config;
    if (taker.exchange.released) return false;
    if (refusal === "busy") return this.awaitRoom(taker, reason);
    this.endFullQueue();
    if (holdMs === 0 || queuedRequestsMax === 0 || this.closing) return false;
    this.record.refused(holdMs, taker);
    if (this.outage === undefined || this.record.isOver(this.outage.began)) {
      this.outage?.stop();
      this.outage = new Outage(this.record.began, holdMs, reason, this);
      this.shares.obstacle = "upstream refuses connections";
      if (this.outage.holding) this.warn(`upstream "${name}" ${this.outage.beginning}`);
      for (const connection of this.all) this.retired.add(connection);
      this.closeIdle();
    }
    if (!this.outage.mayWait(taker)) return false;
    this.enqueue(taker, this.shares.userAt(taker.exchange.client.address));
    return true;
  }

  /** In an outage, or with a full listen queue: opens a connection for the request that is next. */
  tryAgain(): void {
    const next = this.fullQueue === undefined ? this.shares.first() : this.shares.next();
    if (this.shares.queued === 0) this.endFullQueue();
    if (this.attempt !== undefined || next === undefined) return;
    if (this.all.size < this.config.connectionsMax) this.attempt = this.open(next.taker);
  }

  /** A connection was established. */
  opened(): void {
    this.counts.connected();
    this.accepts();
  }

  /** Other workers found this out about its outages. */
  learn(told: KnownOutage): void {
    this.record.learn(told);
    const { outage } = this;
    if (outage !== undefined && this.record.isOver(outage.began)) this.endOutage(outage);
  }

  /** Removes a taker that no longer waits, or never did. */
  leave(taker: ConnectionTaker): void {
    if (this.shares.queued > 0) this.shares.leave(taker, taker.exchange.client.address);
  }

  /** Closes idle connections now and busy ones after their response. */
  close(): void {
    this.closing = true;
    this.outage?.stop();
    this.closeIdle();
    this.stopWhenOver();
  }

  sweep(now: number): void {
    for (const connection of this.all) guarded(connection, connection.sweep, now);
    this.silent.sweep(now);
    this.shares.sweep(now, (taker, reason) => guarded(taker, taker.onBusy, reason));
    if (this.outage?.sweep(now) === true) this.refuseAll(this.outage);
    this.stopWhenOver();
  }

  onFault(error: unknown): void {
    this.faults.report(error);
  }

  /**
   * The connection's response is complete. Here a used connection is judged: it serves other clients only if it is like a
   * new one. What can make it differ:
   *
   * - the client that its PROXY header named: not used again
   * - a log-in that belongs to the connection (`keptConnections.ts`): used again by the same client connection only
   * - a body that may still come, after HEAD, 204 and 304 (`silentConnections.ts`): used again by the same client
   *   connection only, where the server is known to send none
   * - a response that may still come, after bytes of no response, and after a response or a request that is not complete
   *   (`UpstreamConnection.complete`): not used again
   * - another protocol, after an upgrade: a tunnel is never idle
   *
   * @returns whether it will be used again; if not, the caller closes it
   */
  idle(connection: UpstreamConnection): boolean {
    this.shares.unused(connection);
    const { idleConnectionsMax, proxyProtocol } = this.config;
    if (connection === this.attempt) this.attemptSucceeded();
    // A proxy before us may send requests of several clients.
    if (proxyProtocol !== undefined) return false;
    if (this.closing || this.retired.has(connection)) return false;
    const now = coarseNow();
    if (now < this.singleUseUntil) return false;
    const { onlyFor, bodiless } = connection;
    // Unless a request waits for its place.
    if ((onlyFor ?? bodiless) !== undefined && this.isFull && this.shares.queued > 0) return false;
    if (onlyFor !== undefined) return bodiless === undefined && this.kept.keep(connection);
    if (this.named && now - connection.openedAt >= NAMED_REUSE_MS) return false;
    if (bodiless !== undefined) return this.silent.keep(connection, now);
    if (this.idleConnections.length >= idleConnectionsMax) return false;
    this.idleConnections.push(connection);
    this.serveSoon();
    return true;
  }

  private get isFull(): boolean {
    return this.all.size >= this.config.connectionsMax;
  }

  /**
   * Bytes came that belong to no response, on a connection that could have been used for another request. Their request
   * is unknown, and more may follow: they could have been read as the response to the next request. So no connection is
   * used twice for some time. A body of a response that must not have one is the known habit of some servers.
   */
  onStrayBytes(after: Bodiless | undefined): void {
    this.silent.refute();
    if (after !== undefined) return;
    const now = coarseNow();
    if (now >= this.singleUseUntil)
      this.warn(
        `upstream "${this.config.name}" sent bytes that belong to no response: ` +
          `for ${SINGLE_USE_MS / 1_000} s its connections are used for one request each`,
      );
    this.singleUseUntil = now + SINGLE_USE_MS;
    this.closeIdle();
  }

  closed(connection: UpstreamConnection): void {
    this.shares.unused(connection);
    this.all.delete(connection);
    const at = this.idleConnections.indexOf(connection);
    if (at !== -1) this.idleConnections.splice(at, 1);
    this.kept.forget(connection);
    this.silent.forget(connection);
    if (connection === this.attempt) this.attemptFailed(connection.refused);
    this.serveSoon();
    this.stopWhenOver();
  }

  private get holding(): boolean {
    return this.outage !== undefined && this.outage.holding;
  }

  private enqueue(taker: ConnectionTaker, user: ConnectionUser): void {
    const refusal = this.shares.enqueue(user, taker, coarseNow() + this.config.queueTimeoutMs);
    if (refusal !== undefined) taker.onBusy(refusal);
    else if (this.holding) this.outage!.admit(taker);
  }

  /**
   * The listen queue of the upstream is full: it waits as for a connection where all are in use. Connections that exist
   * are used as ever, since the service works.
   */
  private awaitRoom(taker: ConnectionTaker, reason: string): boolean {
    const { name, queueTimeoutMs } = this.config;
    const now = performance.now();
    this.accepts();
    this.fullQueue ??= setInterval(() => guarded(this, this.tryAgain), FULL_TRY_MS).unref();
    this.shares.obstacle = "the listen queue of upstream is full";
    if (now >= this.fullQueueKnownUntil)
      this.warn(
        `upstream "${name}" has a full listen queue: requests wait for up to ${queueTimeoutMs / 1_000} s (${reason})`,
      );
    this.fullQueueKnownUntil = now + KNOWN_MS;
    taker.heldSince ??= now;
    if (now - taker.heldSince < queueTimeoutMs)
      this.enqueue(taker, this.shares.userAt(taker.exchange.client.address));
    else taker.onBusy(reason);
    return true;
  }

  private endFullQueue(): void {
    if (this.fullQueue === undefined) return;
    clearInterval(this.fullQueue);
    this.fullQueue = this.shares.obstacle = undefined;
    this.serveSoon();
  }

  /** Waiting requests connect one after another: many at a time would be refused again. */
  private attemptSucceeded(): void {
    this.attempt = undefined;
    // With a header each needs a connection that is opened for it.
    if (this.config.proxyProtocol !== undefined) this.endFullQueue();
    if (this.fullQueue !== undefined) setImmediate(() => guarded(this, this.tryAgain));
  }

  /** If the connect is no longer refused but fails otherwise, only requests can show the cause. */
  private attemptFailed(refused: ConnectRefusal | undefined): void {
    this.attempt = undefined;
    if (refused !== "busy") this.endFullQueue();
    if (this.holding && refused !== "down") this.accepts();
  }

  private accepts(): void {
    this.record.accepted();
    if (this.outage !== undefined) this.endOutage(this.outage);
  }

  private endOutage(outage: Outage): void {
    outage.stop();
    this.outage = this.attempt = undefined;
    this.shares.obstacle = undefined;
    this.warn(`upstream "${this.config.name}" ${outage.end}`);
    this.serveSoon();
  }

  private refuseAll(outage: Outage): void {
    for (let next: ShareTaker<ConnectionTaker> | undefined; (next = this.shares.first()) !== undefined;) {
      const { taker } = next;
      this.shares.served(next);
      guarded(taker, taker.onRefused, outage.refusal(taker));
    }
  }

  private closeIdle(): void {
    for (const connection of this.idleConnections.splice(0)) connection.destroy();
    this.kept.closeAll();
    this.silent.closeAll();
  }

  private give(connection: UpstreamConnection, taker: ConnectionTaker, user: ConnectionUser): void {
    this.shares.used(connection, user);
    connection.client = taker.exchange.client;
    guarded(taker, taker.onConnection, connection);
  }

  private take(taker: ConnectionTaker): UpstreamConnection | undefined {
    for (;;) {
      const { client } = taker.exchange;
      const idle =
        this.kept.take(client) ?? this.silent.take(client, taker.method) ?? this.idleConnections.pop();
      if (idle === undefined) {
        if (!this.isFull && this.fullQueue === undefined) return this.open(taker);
        // The connection's place is free when it is closed.
        if (this.isFull && this.silent.size > 0) this.silent.dropOldest();
        else if (this.isFull) this.kept.dropOldest();
        return undefined;
      }
      // A connection that was closed stays in the list until its close is reported. A connection whose time is over may
      // have been closed, and the request may be one that is never sent twice.
      if (idle.usable) return idle;
      idle.destroy();
    }
  }

  private open({ exchange }: ConnectionTaker): UpstreamConnection {
    const { proxyProtocol } = this.config;
    const header = proxyProtocol && proxyHeaderFor(proxyProtocol, exchange.client);
    const connection = new UpstreamConnection(this.config, this.address, this, header);
    this.all.add(connection);
    return connection;
  }

  /** Not at once: the connection that became free is still processing the end of its response. */
  private serveSoon(): void {
    if (this.serving || this.holding || this.shares.queued === 0) return;
    this.serving = true;
    process.nextTick(guarded, this, this.serve);
  }

  private serve(): void {
    this.serving = false;
    if (this.holding) return;
    for (let next: ShareTaker<ConnectionTaker> | undefined; (next = this.shares.next()) !== undefined;) {
      const connection = this.take(next.taker);
      if (connection === undefined) return;
      this.shares.served(next);
      this.give(connection, next.taker, next.user);
    }
    this.stopWhenOver();
  }

  private stopWhenOver(): void {
    if (this.closing && this.all.size === 0 && this.shares.queued === 0) this.stopSweeping();
  }
}

/**
 * How long connections to an upstream with a host name are used. Each new one looks up the name again, so that a change
 * of address is noticed even if the connections are never idle (nginx looks up names once, at its start).
 */
const NAMED_REUSE_MS = 10_000;

/** A service with a short listen queue makes room often; a connect that fails costs about 0.1 ms. */
const FULL_TRY_MS = 25;
/** How long a full listen queue is known to those who read the error log. */
const KNOWN_MS = 60_000;

/** How long an upstream that sent too many bytes is taken to have that habit. */
const SINGLE_USE_MS = 60_000;
