import { randomBytes } from "node:crypto";
import {
  ForwardingRules,
  type ForwardedRequest,
  type ProxyActionConfig,
  type RouteConfig,
} from "../../model/serving.js";
import { respondError } from "../errorPages.js";
import type { BodySink, ClientInfo, Exchange, HeaderList, RequestHead } from "../exchange.js";
import type { ParsedResponse } from "../http1/responseHead.js";
import type { Action } from "../routeRuntime.js";
import type { AnswerReader, UpstreamFailure } from "../upstream/answerReader.js";
import type { UpstreamConnection } from "../upstream/connection.js";
import type { UpstreamPool } from "../upstream/pool.js";

/** Passes requests to an upstream and its answers back, streaming both ways (design 5.7). */
export class ProxyAction implements Action {
  private readonly rules: ForwardingRules;
  private readonly webSocket: boolean;

  constructor(
    route: RouteConfig & { readonly action: ProxyActionConfig },
    private readonly pool: UpstreamPool,
  ) {
    this.rules = new ForwardingRules(route, pool.config);
    this.webSocket = route.action.webSocket;
  }

  handle(exchange: Exchange): void {
    const webSocket = this.webSocket && exchange.request.upgrade === "websocket";
    // Extended CONNECT (RFC 8441) exists only to open such tunnels.
    if (exchange.request.method === "CONNECT" && !webSocket) return respondError(exchange, 501);
    new ProxiedExchange(exchange, this.rules, this.pool, webSocket).start(false);
  }
}

/** Methods that may be sent twice: RFC 9110, 9.2.2, and the safe ones of WebDAV (RFC 4918, 3253, 5323). */
const IDEMPOTENT = new Set(["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "PROPFIND", "REPORT", "SEARCH"]);

/** What the header rules need to know of a request. */
class Facts implements ForwardedRequest {
  readonly method: string;
  readonly target: string;
  readonly path: string;
  readonly plainLines: string | undefined;
  readonly host: string;
  readonly serverName: string;
  readonly scheme: "http" | "https";
  readonly clientAddress: string;
  readonly trusted: boolean;

  constructor(
    private readonly request: RequestHead,
    client: ClientInfo,
    readonly webSocket: boolean,
  ) {
    // HTTP/2 opens a WebSocket without method GET and key (RFC 8441, 5); HTTP/1.1 upstreams want both.
    this.method = request.method === "CONNECT" ? "GET" : request.method;
    this.target = request.target;
    this.path = request.path;
    this.plainLines = request.fields?.plainLines;
    this.host = request.host;
    this.serverName = request.serverName;
    this.scheme = client.scheme;
    this.clientAddress = client.address;
    this.trusted = client.trusted;
  }

  /** Not a field: for requests whose lines pass as they are, no list is ever made. */
  get headers(): HeaderList {
    const { headers, method } = this.request;
    return method === "CONNECT"
      ? [...headers, "Sec-WebSocket-Key", randomBytes(16).toString("base64")]
      : headers;
  }
}

/** One request on its way through: the sink of its body and the reader of its answer. */
class ProxiedExchange implements BodySink, AnswerReader {
  readonly wantsList: boolean;
  private connection: UpstreamConnection | undefined = undefined;
  private readonly facts: ForwardedRequest;
  /** Body bytes still come from the client. */
  private uploading: boolean;
  private tunnel = false;
  private retried = false;

  constructor(
    private readonly exchange: Exchange,
    private readonly rules: ForwardingRules,
    private readonly pool: UpstreamPool,
    webSocket: boolean,
  ) {
    const { request, client } = exchange;
    this.uploading = request.bodyLength !== 0 && !webSocket;
    this.wantsList = exchange.sendLines === undefined;
    this.facts = new Facts(request, client, webSocket);
  }

  start(retry: boolean): void {
    const { exchange } = this;
    this.retried = retry;
    exchange.onClientGone = () => this.abandon();
    exchange.onDrain = () => this.connection?.resume();
    const connection = this.pool.acquire(retry);
    this.connection = connection;
    connection.begin(this, this.facts.method, this.rules.requestHead(this.facts, this.framing()));
    if (!this.uploading) return connection.finish();
    exchange.readBody(this);
    // Body bytes that came with the head are delivered before this runs, and take the upstream's head along.
    process.nextTick(() => connection.request.flush());
  }

  onData(chunk: Uint8Array, transient = false): boolean {
    const { connection } = this;
    if (connection === undefined) return true;
    return this.tunnel || this.exchange.request.bodyLength !== -1
      ? connection.request.writeAround("", chunk, "", transient)
      : connection.request.writeAround(`${chunk.length.toString(16)}\r\n`, chunk, "\r\n", transient);
  }

  onEnd(): void {
    const { connection } = this;
    this.uploading = false;
    if (connection === undefined) return;
    if (this.tunnel) return connection.endTunnel();
    if (this.exchange.request.bodyLength === -1) connection.request.write("0\r\n\r\n");
    connection.finish();
  }

  /** A body that broke off is never ended as if complete: the upstream's connection is cut (design 5.8). */
  onAbort(): void {
    this.abandon();
  }

  onRequestStall(): void {
    if (this.uploading || this.tunnel) this.exchange.pauseBody();
  }

  onRequestDrain(): void {
    if (this.uploading || this.tunnel) this.exchange.resumeBody();
  }

  onInformational(head: ParsedResponse): void {
    // A 100 answers an Expect that was never forwarded.
    if (head.status === 103)
      this.exchange.sendInformational(103, this.rules.responseHeaders(head.fields.list, this.facts));
  }

  onAnswerHead(head: ParsedResponse): void {
    const { exchange, rules, facts } = this;
    const { status, reason, fields } = head;
    if (status === 101) return this.openTunnel(head, rules.responseHeaders(fields.list, facts));
    const bodiless = facts.method === "HEAD" || status === 304;
    const length = bodiless ? head.contentLength : Math.max(head.bodyLength, -1);
    if (exchange.sendLines !== undefined && fields.plainLines !== undefined)
      exchange.sendLines(status, reason, fields.plainLines, length);
    else exchange.sendHead(status, reason, rules.responseHeaders(fields.list, facts), length);
  }

  onAnswerData(chunk: Buffer, transient: boolean): boolean {
    return this.exchange.sendData(chunk, transient);
  }

  onAnswerPause(): void {
    this.exchange.flush();
  }

  onAnswerEnd(): void {
    this.connection = undefined;
    this.exchange.end();
  }

  onAnswerError(failure: UpstreamFailure): void {
    const { exchange, connection } = this;
    this.connection = undefined;
    if (connection !== undefined && this.mayRetry(connection, failure)) return this.start(true);
    exchange.route?.errorLog.write(
      "error",
      failure.message,
      exchange,
      `http://${this.rules.upstreamAuthority}`,
    );
    if (exchange.headSent) exchange.abort();
    else respondError(exchange, failure.status);
  }

  /**
   * A reused connection may have been closed by the upstream just as the request went out (design 5.9). A timeout is
   * no such case: there the upstream may be at work on the request.
   */
  private mayRetry(connection: UpstreamConnection, failure: UpstreamFailure): boolean {
    if (this.retried || !connection.reused || failure.answered || failure.status !== 502) return false;
    if (this.facts.webSocket || this.exchange.request.bodyLength !== 0) return false;
    return failure.unsent || IDEMPOTENT.has(this.facts.method);
  }

  private openTunnel(head: ParsedResponse, headers: string[]): void {
    const { exchange } = this;
    if (!this.facts.webSocket || head.upgrade !== "websocket") {
      this.connection!.destroy();
      return this.onAnswerError({
        status: 502,
        message: "upstream switched protocols unasked",
        answered: true,
        unsent: false,
      });
    }
    this.tunnel = true;
    const http2 = exchange.request.method === "CONNECT";
    exchange.sendHead(http2 ? 200 : 101, http2 ? "OK" : head.reason, headers, -1);
    exchange.flush();
    exchange.readBody(this);
  }

  private abandon(): void {
    this.connection?.destroy();
    this.connection = undefined;
  }

  /** The body goes on framed as it came: by its length, or in chunks (RFC 9112, 6.3). */
  private framing(): string {
    const { bodyLength, lengthDeclared } = this.exchange.request;
    if (bodyLength === -1 && !this.facts.webSocket) return "Transfer-Encoding: chunked\r\n";
    return bodyLength > 0 || lengthDeclared ? `Content-Length: ${bodyLength}\r\n` : "";
  }
}
