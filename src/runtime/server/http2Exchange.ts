import { guarded } from "../sockets/guarded.js";
import { BODILESS, type VirtualServerConfig } from "../../model/serving.js";
import { coarseNow } from "../sockets/deadlines.js";
import { LASTING, Loans, type Memory } from "../sockets/memory.js";
import { responseFieldsFor } from "../exchange/responseFields.js";
import { type DispatchedExchange, type Dispatcher, UNROUTED_IDLE_MS } from "../dispatch/dispatch.js";
import { respondFailure, serverHeader } from "../dispatch/errorPages.js";
import type { BodySink, ClientInfo, HeaderList, RouteRuntime } from "../exchange/exchange.js";
import { FramingError } from "../codec/http1/framing.js";
import { httpDate } from "../dispatch/httpDate.js";
import { Lifetime } from "./lifetime.js";
import { type BodyOwner, RequestBody } from "../exchange/requestBody.js";
import { tally } from "../exchange/tally.js";
import { ReceiveWindow } from "./flowControl.js";
import { ErrorCode } from "../codec/http2/protocol.js";
import type { Http2ParsedRequest } from "../codec/http2/requestFields.js";
import { STREAM_WINDOW_BYTES, UNREAD_WINDOW_BYTES } from "../codec/http2/settings.js";
import type { Http2Streams, OpenStream } from "./http2Streams.js";
import type { ResponseHead } from "../codec/http2/hpackEncoder.js";

/** How long to wait for the rest of an unread body once its response is complete. */
const DRAIN_MS = 1_000;

/**
 * A request on an HTTP/2 stream, and the writer of its response.
 *
 * Frames go into the connection's outbox at once and leave it at the end of the turn; until then the last one may still be
 * made the last of the stream. Data that the client's windows or a full outbox keep back waits here.
 */
export class Http2Exchange extends Lifetime implements DispatchedExchange, OpenStream, BodyOwner {
  route: RouteRuntime | undefined = undefined;
  status = 0;
  bodyBytesSent = 0;
  headSent = false;
  queued = false;
  readonly waiting: Buffer[] = [];
  waitingAt = 0;
  endsAfter = false;
  flagsAt = 0;
  generation = -1;
  private readonly loans = new Loans();
  readonly body: RequestBody | undefined;
  /** Receive window of the stream. */
  private readonly window: ReceiveWindow | undefined;
  /** END_STREAM was sent. */
  responded = false;
  /** The stream is closed: nothing is sent or taken any more. */
  closed = false;
  /** The request waits, because its client resets too many streams. */
  undispatched = false;
  portalFields: HeaderList | undefined = undefined;
  private continued = false;
  /** The response has no body whatever `sendData` is given. */
  private bodiless = false;
  /** Body bytes that may still be sent: as many as were announced (RFC 9113, 8.1.1). */
  private left = Infinity;
  /** The client has to be asked to stop sending once its response is sent. */
  private stopping = false;
  private writeDeadline = Infinity;

  constructor(
    private readonly streams: Http2Streams<Http2Exchange>,
    readonly id: number,
    readonly request: Http2ParsedRequest,
    public client: ClientInfo,
    public server: VirtualServerConfig,
    public sendWindow: number,
    ended: boolean,
    dispatcher: Dispatcher,
  ) {
    super(dispatcher);
    this.body = ended ? undefined : new RequestBody(this, request.bodyLength);
    this.window = ended ? undefined : new ReceiveWindow(UNREAD_WINDOW_BYTES);
  }

  get tunnelled(): boolean {
    return this.request.upgrade !== undefined && this.headSent && this.status < 300;
  }

  /** Whether the client's side of the stream has ended. */
  get requestEnded(): boolean {
    return this.body === undefined || this.body.ended;
  }

  get responseBytes(): number {
    return this.left === Infinity ? -1 : this.bodyBytesSent + this.left;
  }

  get sendTimeoutMs(): number {
    return this.route?.config.sendTimeoutMs ?? UNROUTED_IDLE_MS;
  }

  get bodyIdleMs(): number {
    // In a tunnel, and in a request for one, the client may be silent.
    if (this.request.upgrade !== undefined) return Infinity;
    return this.route?.config.requestBodyTimeoutMs ?? UNROUTED_IDLE_MS;
  }

  get bodyBytesMax(): number {
    return this.request.upgrade === undefined ? (this.route?.config.requestBodyBytesMax ?? 0) : 0;
  }

  get bodyHeldBack(): boolean {
    return this.awaitsContinue || this.window!.exhausted || this.streams.window.exhausted;
  }

  get awaitsBody(): boolean {
    return !this.requestEnded && !this.bodyHeldBack;
  }

  /** The client holds back its body until it gets `100 Continue`. */
  private get awaitsContinue(): boolean {
    return this.request.expectContinue && !this.continued;
  }

  readBody(sink: BodySink): void {
    if (this.released) return;
    this.sendContinue();
    if (this.body !== undefined) this.body.attach(sink);
    else process.nextTick(guarded, this, () => this.released || sink.onEnd());
  }

  pauseBody(): void {
    this.body?.pause();
  }

  resumeBody(): void {
    this.body?.resume();
  }

  sendContinue(): void {
    if (!this.awaitsContinue || this.headSent) return;
    this.continued = true;
    this.writeInterim(100, []);
  }

  sendInformational(status: number, _reason: string, headers: HeaderList): void {
    if (!this.streams.outbox.heldUp) this.writeInterim(status, headers);
  }

  private writeInterim(status: number, headers: HeaderList): void {
    if (!this.headSent && !this.over)
      this.writeHead({ status, server: undefined, date: "", headers, length: -1 });
  }

  sendHead(status: number, _reason: string, headers: HeaderList, bodyLength: number): void {
    if (this.over || this.headSent) return;
    // The head of an upgrade is the other protocol's.
    const fields = status === 101 ? undefined : responseFieldsFor(this);
    // An extended CONNECT is granted by 200 (RFC 8441, 5).
    if (status === 101) status = 200;
    this.status = status;
    this.headSent = true;
    const head = this.request.method === "HEAD";
    if (this.portalFields !== undefined) headers = [...this.portalFields, ...headers];
    this.bodiless = head || BODILESS.has(status);
    const announced = !this.bodiless || head || status === 304 ? bodyLength : -1;
    if (!this.bodiless && bodyLength >= 0) this.left = bodyLength;
    this.writeHead({
      status,
      server: fields !== undefined && fields.hidesServer ? undefined : serverHeader(this.server),
      date: httpDate(),
      headers: fields === undefined ? headers : fields.inList(headers, this.requestId),
      length: announced,
    });
    this.noteHead();
    // An action that responds before it reads does not read at all, unless this opens a tunnel.
    const tunnel = this.request.upgrade !== undefined && status < 300;
    if (this.body !== undefined && !this.body.attached && !tunnel) this.body.discardRest(DRAIN_MS);
  }

  get pieceBytesMax(): number {
    const { outbox, open } = this.streams;
    return outbox.pieceBytesMax(open.size);
  }

  sendData(chunk: Uint8Array, memory: Memory = LASTING): boolean {
    if (this.over || this.bodiless || chunk.length === 0) {
      tally.bytesForNobody += chunk.length;
      return true;
    }
    if (chunk.length > this.left) {
      this.onFault(new FramingError(`${chunk.length} bytes where ${this.left} may follow`));
      return false;
    }
    this.left -= chunk.length;
    this.bodyBytesSent += chunk.length;
    const sent = this.waiting.length > 0 ? 0 : this.streams.scheduler.send(this, chunk);
    if (sent === chunk.length) return true;
    this.waiting.push(this.loans.keep((sent === 0 ? chunk : chunk.subarray(sent)) as Buffer, memory));
    this.streams.scheduler.wake(this);
    this.onProgress();
    return false;
  }

  /** Nothing is held back beyond the end of the turn. */
  flush(): void {}

  end(): void {
    if (this.over) return;
    if (!this.headSent) return this.abort();
    if (this.left > 0 && this.left !== Infinity)
      return this.onFault(new FramingError(`ended ${this.left} bytes before its length`));
    if (this.waiting.length > 0) this.endsAfter = true;
    else this.streams.endStream(this);
    // Logged before the stream is closed: the connection may close with its last stream.
    if (!this.finish()) return;
    if (!this.endsAfter) this.endSent();
    if (!this.closed && !this.requestEnded) this.body!.discardRest(DRAIN_MS);
  }

  abort(): void {
    if (!this.finish()) return;
    // A reset with an error code cannot be taken for the end of a response (decisions 4.2).
    this.streams.reset(this, ErrorCode.InternalError);
  }

  /** Ends an invalid request; it is logged with the status that its response would have had. */
  refuse(status: number, code: ErrorCode): void {
    this.status = status;
    this.errorToken = "http_request_error";
    this.fail(code);
  }

  onProgress(): void {
    this.writeDeadline = coarseNow() + this.sendTimeoutMs;
  }

  onSent(): void {
    this.loans.giveBack();
    this.writeDeadline = Infinity;
    if (this.endsAfter) this.endSent();
    else if (!this.over) this.drained();
  }

  sweep(now: number): void {
    if (now >= this.writeDeadline) return this.fail(ErrorCode.InternalError);
    this.body?.sweep(now);
  }

  /** The stream is closed: what waits is not sent. */
  dropWaiting(): void {
    this.waiting.length = 0;
    this.loans.giveBack();
  }

  /** A DATA frame begins. @returns false if it exceeds the window */
  takeData(bytes: number): boolean {
    return this.window!.take(bytes);
  }

  bodyPaused(): void {}

  /** The body is read: the window opens, unless the rest already fits into it. */
  bodyResumed(): void {
    const { left } = this.body!;
    if (left === -1 || left > UNREAD_WINDOW_BYTES) this.openWindow(this.window!.widen(STREAM_WINDOW_BYTES));
  }

  bodyConsumed(bytes: number): void {
    this.streams.consumed(bytes);
    if (!this.stopping) this.openWindow(this.window!.consumed(bytes));
  }

  private openWindow(increment: number): void {
    if (increment > 0 && !this.closed && !this.requestEnded) this.streams.openWindow(this.id, increment);
  }

  /** RFC 9113, 8.1: after a complete response, NO_ERROR asks the client to stop sending without losing the response. */
  stopBody(): void {
    if (this.closed) return;
    if (this.responded) this.streams.reset(this, ErrorCode.NoError);
    else this.stopping = true;
  }

  requireHttp1(): void {
    this.fail(ErrorCode.Http11Required);
  }

  /** An exception is an internal fault: it ends this stream, and no other of its connection. */
  onFault(error: unknown): void {
    this.streams.owner.containFault(this, error);
  }

  /** Resets the stream for a fault of either side. */
  fail(code: ErrorCode): void {
    if (code !== ErrorCode.InternalError) this.errorToken ??= "http_request_error";
    this.streams.reset(this, code);
    this.leave();
  }

  /** Finds the action that responds. */
  dispatch(dispatcher: Dispatcher): void {
    dispatcher.dispatch(this);
  }

  /** Ends it after an internal fault, with a response if none has begun. */
  giveUp(): void {
    if (this.over) return this.streams.reset(this, ErrorCode.InternalError);
    this.release();
    respondFailure(this, "proxy_internal_error", 500);
  }

  private endSent(): void {
    this.responded = true;
    if (this.requestEnded) this.streams.closeStream(this);
    else if (this.stopping) this.stopBody();
  }

  /** Fields that must not be sent end only this stream. */
  private writeHead(head: ResponseHead): void {
    const fault = this.streams.sendHead(this, head);
    if (fault === undefined) return;
    this.route?.errorLog.write("crit", `response cannot be sent: ${fault}`, this);
    this.headSent = true;
    this.errorToken = "proxy_internal_error";
    // Whatever the action still sends, nothing follows a reset (RFC 9113, 5.1).
    this.bodiless = true;
    this.left = Infinity;
    this.streams.reset(this, ErrorCode.InternalError);
    // Not inside the action's own call.
    process.nextTick(guarded, this, this.leave);
  }
}
