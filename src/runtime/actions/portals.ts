import {
  bothUsers,
  type ForwardAuthConfig,
  type PolicyJudge,
  portalCookies,
  portalHead,
  portalRefusal,
  portalUpstream,
  portalUser,
  type ProxyConfig,
  type ServerConfig,
} from "../../model/serving.js";
import type { AskPortal, PortalFailure, PortalOutcomes } from "../dispatch/access.js";
import type { ParsedResponse } from "../codec/http1/responseHead.js";
import type { Exchange } from "../exchange/exchange.js";
import { guarded } from "../sockets/guarded.js";
import type { ConnectionTaker } from "../upstream/connectionTaker.js";
import type { UpstreamPool } from "../upstream/pool.js";
import type { ResponseReader, UpstreamFailure } from "../upstream/responseReader.js";
import type { UpstreamConnection } from "../upstream/upstreamConnection.js";
import { reasonPhrase } from "../dispatch/reasonPhrases.js";

/** The portals of access policies, each with connections of its own. */
export class Portals {
  private readonly byPolicy: ReadonlyMap<string, UpstreamPool>;

  constructor({ accessPolicies = {} }: ProxyConfig, poolTo: (server: ServerConfig) => UpstreamPool) {
    this.byPolicy = new Map(
      Object.entries(accessPolicies).flatMap(([name, { forwardAuth }]) =>
        forwardAuth === undefined ? [] : [[name, poolTo(portalUpstream(name, forwardAuth))] as const],
      ),
    );
  }

  get pools(): readonly UpstreamPool[] {
    return [...this.byPolicy.values()];
  }

  readonly ask: AskPortal = (exchange, judge, outcomes) => {
    new PortalStep(exchange, judge, this.byPolicy.get(judge.name)!, outcomes).ask();
  };
}

/** A longer body is not passed on: it would be kept in memory for each client that waits. */
const BODY_BYTES_MAX = 65_536;

/**
 * A request that waits for a portal's response. It holds a place in the queue to the portal, or a connection, until its
 * exchange is released. Nothing of the request's body is read meanwhile.
 */
class PortalStep implements ConnectionTaker, ResponseReader {
  heldSince: number | undefined = undefined;
  readonly wantsList = true;
  readonly method = "GET";
  readonly pieceBytesMax = BODY_BYTES_MAX;
  private readonly config: ForwardAuthConfig;
  private connection: UpstreamConnection | undefined = undefined;
  private head: ParsedResponse | undefined = undefined;
  private readonly pieces: Buffer[] = [];
  private bytes = 0;
  private timer: NodeJS.Timeout | undefined = undefined;
  private again = false;
  private over = false;

  constructor(
    readonly exchange: Exchange,
    judge: PolicyJudge,
    private readonly pool: UpstreamPool,
    private readonly outcomes: PortalOutcomes,
  ) {
    this.config = judge.policy.forwardAuth!;
  }

  ask(): void {
    if (this.exchange.released) return;
    // A timer, because a portal that sends a byte now and then never is idle for long.
    this.timer = setTimeout(() => guarded(this, this.timedOut), this.config.timeoutMs);
    this.pool.request(this);
  }

  onConnection(connection: UpstreamConnection): void {
    const { exchange } = this;
    this.connection = connection;
    const { request, client, user } = exchange;
    // Framing of a request without a body needs no field.
    connection.request.framing.beginRequest(0, false, false);
    const head = portalHead(this.config, {
      method: request.method,
      target: request.target,
      headers: request.headers,
      host: request.host,
      scheme: client.scheme,
      clientAddress: client.address,
      // A log-in of a connection would be that of all whose requests the connection asks about.
      withheld: request.connectionLogin ? AUTHORIZATION : user?.dropped,
    });
    connection.begin(this, this.method, head);
    connection.finish();
  }

  onBusy(reason: string): void {
    this.fail({ status: 503, token: "connection_limit_reached", message: reason });
  }

  onRefused(reason: string): void {
    this.fail({ status: 502, token: "connection_refused", message: reason });
  }

  onInformational(): void {
    // Nothing of it concerns the client.
  }

  onResponseHead(head: ParsedResponse): void {
    const { status } = head;
    const isUsable = status >= 200 && status < 500 && status !== 304 && !head.fields.connectionLogin;
    if (isUsable) this.head = head;
    else
      this.fail({
        status: 502,
        token: "http_protocol_error",
        message: head.fields.connectionLogin
          ? "the portal asks for a log-in that belongs to a connection (NTLM, Negotiate)"
          : `the portal responded with ${status}`,
      });
  }

  onResponseData(chunk: Buffer): boolean {
    const { head } = this;
    if (this.over || head === undefined) return true;
    this.bytes += chunk.length;
    if (this.bytes <= BODY_BYTES_MAX) {
      // The memory of the chunk is used again.
      this.pieces.push(Buffer.from(chunk));
      return true;
    }
    this.pieces.length = 0;
    this.decide(head);
    return true;
  }

  onResponsePause(): void {
    // It takes the body as a whole.
  }

  onResponseEnd(): void {
    this.connection = undefined;
    if (this.head !== undefined) this.decide(this.head);
  }

  onResponseError(failure: UpstreamFailure): void {
    const { connection } = this;
    this.connection = undefined;
    const mayRetry = connection?.reused === true && !failure.responded && failure.status === 502;
    // The portal may have closed it just as the request went out.
    if (mayRetry && !this.again && !this.over) {
      this.again = true;
      return this.pool.replace(this);
    }
    const status = failure.status === 504 ? 503 : 502;
    this.fail({ status, token: failure.token, message: failure.message });
  }

  onRequestStall(): void {
    // The request is short, and has been handed over as a whole.
  }

  onRequestDrain(): void {
    // The same.
  }

  onDrain(): void {
    // It sends nothing while it waits.
  }

  onReleased(): void {
    this.giveBack();
  }

  onFault(error: unknown): void {
    this.exchange.onFault(error);
  }

  private timedOut(): void {
    const message = `the portal did not respond within ${this.config.timeoutMs} ms`;
    this.fail({ status: 503, token: "http_response_timeout", message });
  }

  private decide({ status, reason, fields }: ParsedResponse): void {
    const { exchange, outcomes } = this;
    if (this.over) return;
    this.end();
    if (status >= 300)
      return outcomes.refused({
        status,
        reason: reason === "" ? reasonPhrase(status) : reason,
        fields: portalRefusal(fields.list),
        body: Buffer.concat(this.pieces),
      });
    const cookies = portalCookies(fields.list);
    if (cookies.length > 0) exchange.portalFields = [...(exchange.portalFields ?? []), ...cookies];
    exchange.user = bothUsers(exchange.user, portalUser(this.config, fields.list));
    outcomes.admitted();
  }

  private fail(failure: PortalFailure): void {
    if (this.over) return;
    this.end();
    this.outcomes.failed(failure);
  }

  private end(): void {
    this.giveBack();
    this.exchange.letGo(this);
  }

  private giveBack(): void {
    this.over = true;
    clearTimeout(this.timer);
    this.pool.leave(this);
    this.connection?.destroy();
    this.connection = undefined;
  }
}

const AUTHORIZATION = new Set(["authorization"]);
