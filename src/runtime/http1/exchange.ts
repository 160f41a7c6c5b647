import { guarded } from "../exchange/guarded.js";
import { onePiece, type VirtualServerConfig } from "../../model/serving.js";
import { answerFieldsFor, linesOf } from "../exchange/answerFields.js";
import { type DispatchedExchange, UNROUTED_IDLE_MS } from "../exchange/dispatch.js";
import { respondError, serverHeader } from "../exchange/errorPages.js";
import type { BodySink, ClientInfo, HeaderList, RouteRuntime } from "../exchange/exchange.js";
import { httpDate } from "../exchange/httpDate.js";
import type { BodyOwner } from "../exchange/requestBody.js";
import type { AnswerWriter } from "./answerWriter.js";
import { Http1Body } from "./body.js";
import type { ParsedRequest } from "./requestHead.js";

/** What an exchange needs from the connection that carries it. */
export interface ExchangeConnection {
  /** Nothing is read from the client for now. */
  readonly inputPaused: boolean;
  pauseInput(): void;
  /** Resumes reading where it had stopped. */
  inputWanted(): void;
  /** After a 101: bytes that waited go to the tunnel. */
  openTunnel(): void;
  /** Whether another request may follow the answer that is being sent; decided when its head is. */
  mayKeepAlive(exchange: Http1Exchange): boolean;
  exchangeEnded(exchange: Http1Exchange): void;
  exchangeAborted(exchange: Http1Exchange): void;
  /** Closes in both directions, but keeps reading for a while: unread bytes would turn the close into a reset. */
  linger(): void;
  onFault(error: unknown): void;
}

/** One request on an HTTP/1.1 connection, and its answer. */
export class Http1Exchange implements DispatchedExchange, BodyOwner {
  route: RouteRuntime | undefined = undefined;
  status = 0;
  bodyBytesSent = 0;
  headSent = false;
  closes = false;
  onDrain: (() => void) | undefined = undefined;
  onClientGone: (() => void) | undefined = undefined;
  /** The request body, and after an upgrade the tunnel's bytes; undefined for a request without one. */
  body: Http1Body | undefined;
  /** True once the answer is complete or given up. */
  over = false;
  private continued = false;

  constructor(
    private readonly connection: ExchangeConnection,
    private readonly writer: AnswerWriter,
    readonly request: ParsedRequest,
    readonly client: ClientInfo,
    public server: VirtualServerConfig,
  ) {
    this.body =
      request.bodyLength === 0
        ? undefined
        : new Http1Body(this, request.bodyLength, client.scheme === "http");
  }

  get tunnelled(): boolean {
    return this.status === 101;
  }

  /** The client holds back its body until it gets `100 Continue`. */
  get awaitsContinue(): boolean {
    return this.request.expectContinue && !this.continued;
  }

  get bodyIdleMs(): number {
    return this.route?.config.requestBodyTimeoutMs ?? UNROUTED_IDLE_MS;
  }

  get bodyBytesMax(): number {
    return this.tunnelled ? 0 : (this.route?.config.requestBodyBytesMax ?? 0);
  }

  get bodyHeldBack(): boolean {
    return this.connection.inputPaused || this.awaitsContinue || this.headSent;
  }

  readBody(sink: BodySink): void {
    if (this.over) return;
    if (this.tunnelled) {
      this.body = new Http1Body(this, -1, this.client.scheme === "http", true);
      this.body.attach(sink);
      return this.connection.openTunnel();
    }
    if (this.body === undefined) return process.nextTick(guarded, this, () => this.over || sink.onEnd());
    if (!this.body.ended) this.sendContinue();
    this.body.attach(sink);
  }

  pauseBody(): void {
    this.body?.pause();
  }

  resumeBody(): void {
    this.body?.resume();
  }

  bodyPaused(): void {
    this.connection.pauseInput();
  }

  bodyResumed(): void {
    this.connection.inputWanted();
  }

  /** The kernel's window opens by itself when more is read. */
  bodyConsumed(): void {}

  /**
   * The body will never be complete: the action is notified, and the client gets the status if nothing was sent yet.
   */
  bodyFailed(status: 400 | 408 | 413): void {
    this.body!.abort();
    respondError(this, status);
  }

  stopBody(): void {
    this.connection.linger();
  }

  sendContinue(): void {
    if (!this.awaitsContinue || this.headSent || this.over) return;
    this.continued = true;
    this.writer.interim("HTTP/1.1 100 Continue\r\n\r\n");
  }

  /** HTTP/1.1 clients get no 103: many mistake the first head for the final one (decisions 4.3). */
  sendInformational(): void {}

  sendHead(status: number, reason: string, headers: HeaderList, bodyLength: number): void {
    this.sendLines(status, reason, `${linesOf(headers)}\r\n`, bodyLength);
  }

  sendLines(status: number, reason: string, lines: string, bodyLength: number): void {
    if (this.over || this.headSent) return;
    this.status = status;
    this.headSent = true;
    const { method, version, upgrade } = this.request;
    const { framing } = this.writer;
    // The head of an upgrade is the other protocol's.
    const fields = status === 101 ? undefined : answerFieldsFor(this);
    const hidesServer = fields !== undefined && fields.hidesServer;
    let head = beginning(status, reason, hidesServer ? undefined : serverHeader(this.server));
    head += framing.beginAnswer(method, status, bodyLength, version === "1.1", upgrade);
    if (!framing.isTunnel) {
      if (!this.connection.mayKeepAlive(this)) head += "Connection: close\r\n";
      else if (version === "1.0") head += "Connection: keep-alive\r\n";
    }
    this.writer.head(head + (fields === undefined ? lines : fields.inLines(lines)));
  }

  get pieceBytesMax(): number {
    return this.writer.pieceBytesMax;
  }

  sendData(chunk: Uint8Array, transient = false): boolean {
    if (this.over || chunk.length === 0 || !this.writer.framing.hasBody) return !this.over;
    try {
      const free = this.writer.body(chunk as Buffer, transient);
      this.bodyBytesSent += chunk.length;
      return free;
    } catch (error) {
      this.onFault(error);
      return false;
    }
  }

  flush(): void {
    if (!this.over) this.writer.flush();
  }

  end(): void {
    if (this.over) return;
    if (!this.headSent) return this.abort();
    try {
      this.writer.end();
    } catch (error) {
      return this.onFault(error);
    }
    this.over = true;
    this.connection.exchangeEnded(this);
  }

  abort(): void {
    if (this.over) return;
    this.writer.flush();
    this.over = true;
    this.connection.exchangeAborted(this);
  }

  /** The client is gone, or an internal fault occurred: the action has to give up. */
  release(): void {
    this.body?.abort();
    this.onClientGone?.();
  }

  onFault(error: unknown): void {
    this.connection.onFault(error);
  }
}

/** Status line, `Server` and `Date`: the same for most answers of a second, so the last one is kept. */
function beginning(status: number, reason: string, server: string | undefined): string {
  const date = httpDate();
  if (status !== last.status || date !== last.date || reason !== last.reason || server !== last.server) {
    const by = server === undefined ? "" : `Server: ${server}\r\n`;
    const text = onePiece(`HTTP/1.1 ${status} ${reason}\r\n${by}Date: ${date}\r\n`);
    last = { status, reason, server, date, text };
  }
  return last.text;
}

let last = { status: 0, reason: "", server: "" as string | undefined, date: "", text: "" };
