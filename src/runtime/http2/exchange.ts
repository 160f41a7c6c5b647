import type { VirtualServerConfig } from "../../model/index.js";
import { coarseNow } from "../clock.js";
import type { DispatchedExchange } from "../dispatch.js";
import { respondError, serverHeader } from "../errorPages.js";
import type { BodySink, ClientInfo, HeaderList } from "../exchange.js";
import { httpDate } from "../httpDate.js";
import type { RouteRuntime } from "../routeRuntime.js";
import type { Http2Connection } from "./connection.js";
import type { SendingStream } from "./flowControl.js";
import { ErrorCode } from "./protocol.js";
import { type BodyOwner, RequestBody } from "./requestBody.js";
import type { ParsedRequest } from "./requestHead.js";

/** Idle times of exchanges without a route, which has no timeouts of its own. */
export const UNROUTED_IDLE_MS = 30_000;

const BODILESS: ReadonlySet<number> = new Set([204, 205, 304]);

/**
 * One request on an HTTP/2 stream, and the writer of its answer.
 *
 * Frames go into the connection's outbox at once and leave it at the end of the turn; until then the last one may
 * still be made the last of the stream. Data that the client's windows or a full outbox keep back waits here.
 */
export class Http2Exchange implements DispatchedExchange, SendingStream, BodyOwner {
  route: RouteRuntime | undefined = undefined;
  status = 0;
  bodyBytesSent = 0;
  headSent = false;
  onDrain: (() => void) | undefined = undefined;
  onClientGone: (() => void) | undefined = undefined;
  queued = false;
  readonly waiting: Buffer[] = [];
  waitingAt = 0;
  endsBehind = false;
  flagsAt = 0;
  generation = -1;
  /** The request body, unless END_STREAM came with the head. */
  readonly body: RequestBody | undefined;
  /** END_STREAM was sent. */
  answered = false;
  /** The stream is closed: nothing is sent or taken any more. */
  closed = false;
  /** The answer is complete or given up, and logged. */
  private over = false;
  private continued = false;
  /** The answer has no body whatever `sendData` is given. */
  private bodiless = false;
  /** The client is to be told to stop sending once its answer is out. */
  private stopping = false;
  private writeDeadline = Infinity;

  constructor(
    private readonly connection: Http2Connection,
    readonly id: number,
    readonly request: ParsedRequest,
    readonly client: ClientInfo,
    public server: VirtualServerConfig,
    public sendWindow: number,
    ended: boolean,
  ) {
    this.body = ended ? undefined : new RequestBody(this, request.bodyLength);
  }

  /** Whether the client's side of the stream has ended. */
  get requestEnded(): boolean {
    return this.body === undefined || this.body.ended;
  }

  get sendTimeoutMs(): number {
    return this.route?.config.sendTimeoutMs ?? UNROUTED_IDLE_MS;
  }

  get bodyIdleMs(): number {
    // Once a tunnel is open, silence means nothing.
    if (this.request.upgrade !== undefined && this.headSent) return Infinity;
    return this.route?.config.requestBodyTimeoutMs ?? UNROUTED_IDLE_MS;
  }

  get bodyBytesMax(): number {
    return this.route?.config.requestBodyBytesMax ?? 0;
  }

  readBody(sink: BodySink): void {
    this.sendContinue();
    if (this.body !== undefined) this.body.attach(sink);
    else process.nextTick(() => this.over || sink.onEnd());
  }

  pauseBody(): void {
    this.body?.pause();
  }

  resumeBody(): void {
    this.body?.resume();
  }

  sendContinue(): void {
    if (!this.request.expectContinue || this.continued || this.headSent) return;
    this.continued = true;
    this.sendInformational(100, []);
  }

  sendInformational(status: number, headers: HeaderList): void {
    // 101 does not exist on streams (RFC 9113, 8.6).
    if (this.headSent || this.over || status === 101) return;
    this.writeHead(status, undefined, headers, -1);
  }

  sendHead(status: number, _reason: string, headers: HeaderList, bodyLength: number): void {
    if (this.over || this.headSent) return;
    this.status = status;
    this.headSent = true;
    const head = this.request.method === "HEAD";
    this.bodiless = head || BODILESS.has(status);
    const announced = !this.bodiless || head || status === 304 ? bodyLength : -1;
    this.writeHead(status, serverHeader(this.server), headers, announced);
  }

  sendData(chunk: Uint8Array, transient = false): boolean {
    if (this.over || this.bodiless || chunk.length === 0) return true;
    this.bodyBytesSent += chunk.length;
    const sent = this.waiting.length > 0 ? 0 : this.connection.scheduler.send(this, chunk);
    if (sent === chunk.length) return true;
    if (transient) chunk = Buffer.from(sent === 0 ? chunk : chunk.subarray(sent));
    else if (sent > 0) this.waitingAt = sent;
    this.waiting.push(chunk as Buffer);
    this.connection.scheduler.wake(this);
    this.onProgress();
    return false;
  }

  /** Nothing is held back beyond the end of the turn. */
  flush(): void {}

  end(): void {
    if (this.over) return;
    if (!this.headSent) return this.abort();
    this.over = true;
    if (this.waiting.length > 0) this.endsBehind = true;
    else this.connection.endStream(this);
    // Logged before the stream is closed: with the last one the connection may go as well.
    this.connection.finished(this);
    if (!this.endsBehind) this.endSent();
    if (!this.closed && !this.requestEnded) this.body!.discardRest();
  }

  abort(): void {
    if (this.over) return;
    this.over = true;
    this.connection.finished(this);
    // A reset with an error code cannot be taken for the end of an answer (design 5.8).
    this.connection.reset(this, ErrorCode.InternalError);
  }

  /** Ends a request that is no valid one; it is logged as what it would have been answered with. */
  refuse(status: number, code: ErrorCode): void {
    this.over = true;
    this.status = status;
    this.connection.finished(this);
    this.connection.reset(this, code);
  }

  onProgress(): void {
    this.writeDeadline = coarseNow() + this.sendTimeoutMs;
  }

  onSent(): void {
    this.writeDeadline = Infinity;
    if (this.endsBehind) this.endSent();
    else if (!this.over) this.onDrain?.();
  }

  sweep(now: number): void {
    if (now >= this.writeDeadline) {
      this.writeDeadline = Infinity;
      return this.fail(ErrorCode.InternalError);
    }
    this.body?.sweep(now);
  }

  bodyConsumed(bytes: number, increment: number): void {
    this.connection.consumed(bytes);
    if (increment > 0 && !this.closed) this.connection.openWindow(this.id, increment);
  }

  bodyFailed(status: 408 | 413): void {
    this.body!.abort();
    if (this.over) return;
    respondError(this, status);
  }

  /** RFC 9113, 8.1: after a complete answer, NO_ERROR asks the client to stop sending without losing the answer. */
  stopBody(): void {
    if (this.closed) return;
    if (this.answered) this.connection.reset(this, ErrorCode.NoError);
    else this.stopping = true;
  }

  /** Resets the stream for a fault of either side. */
  fail(code: ErrorCode): void {
    this.connection.reset(this, code);
    this.leave();
  }

  /** The stream is closed, or its connection, before the answer was complete. */
  leave(): void {
    if (this.over) return;
    this.over = true;
    this.body?.abort();
    this.onClientGone?.();
    this.connection.finished(this);
  }

  private endSent(): void {
    this.answered = true;
    this.writeDeadline = Infinity;
    if (this.requestEnded) this.connection.closeStream(this);
    else if (this.stopping) this.stopBody();
  }

  /** Fields that may not be sent cost this stream only. */
  private writeHead(status: number, server: string | undefined, headers: HeaderList, length: number): void {
    const head = { status, server, date: server === undefined ? "" : httpDate(), headers, length };
    const fault = this.connection.sendHead(this, head);
    if (fault === undefined) return;
    this.route?.errorLog.write("crit", `answer cannot be sent: ${fault}`, this);
    this.headSent = true;
    this.connection.reset(this, ErrorCode.InternalError);
    // Not inside the action's own call.
    process.nextTick(() => this.leave());
  }
}
