import { guarded } from "../sockets/guarded.js";
import { countWork } from "../sockets/turn.js";
import { LASTING, type Memory } from "../sockets/memory.js";
import { onePiece, type VirtualServerConfig } from "../../model/serving.js";
import { responseFieldsFor, linesOf } from "../exchange/responseFields.js";
import { type DispatchedExchange, type Dispatcher, UNROUTED_IDLE_MS } from "../dispatch/dispatch.js";
import { serverHeader } from "../dispatch/errorPages.js";
import {
  type BodySink,
  type ClientInfo,
  type HeaderList,
  headerValue,
  type RouteRuntime,
} from "../exchange/exchange.js";
import { httpDate } from "../dispatch/httpDate.js";
import { Lifetime } from "./lifetime.js";
import { tally } from "../exchange/tally.js";
import { type BodyOwner, RequestBody } from "../exchange/requestBody.js";
import type { ResponseWriter } from "./http1Writer.js";
import type { Http1ParsedRequest } from "../codec/http1/requestHead.js";
import { ChunkDecoder, type ChunkSink } from "../codec/http1/chunkDecoder.js";

/** The interface of a connection for its exchange. */
export interface ExchangeConnection {
  /** Nothing is read from the client for now. */
  readonly inputPaused: boolean;
  pauseInput(): void;
  /** Resumes reading where it had stopped. */
  inputWanted(): void;
  /** After a 101: bytes that waited go to the tunnel. */
  openTunnel(): void;
  /** Whether another request may follow the response that is being sent; decided when its head is. */
  mayKeepAlive(exchange: Http1Exchange): boolean;
  /** The exchange's response is complete, and the exchange is over. */
  exchangeEnded(exchange: Http1Exchange): void;
  /** The exchange's response was given up, and the exchange is over. */
  exchangeAborted(exchange: Http1Exchange): void;
  /** Closes in both directions, but keeps reading for a while: unread bytes would turn the close into a reset. */
  linger(): void;
  onFault(error: unknown): void;
}

/** A request on an HTTP/1.1 connection, and its response. */
export class Http1Exchange extends Lifetime implements DispatchedExchange, BodyOwner {
  route: RouteRuntime | undefined = undefined;
  status = 0;
  bodyBytesSent = 0;
  headSent = false;
  closes = false;
  body: Http1Body | undefined;
  portalFields: HeaderList | undefined = undefined;
  private continued = false;
  /** `sendData` returned false, so its caller waits. */
  private heldBack = false;

  constructor(
    private readonly connection: ExchangeConnection,
    private readonly writer: ResponseWriter,
    readonly request: Http1ParsedRequest,
    public client: ClientInfo,
    public server: VirtualServerConfig,
    dispatcher: Dispatcher,
  ) {
    super(dispatcher);
    this.body = request.bodyLength === 0 ? undefined : new Http1Body(this, request.bodyLength);
  }

  get tunnelled(): boolean {
    return this.status === 101;
  }

  /** The client holds back its body until it gets `100 Continue`. */
  get awaitsContinue(): boolean {
    return this.request.expectContinue && !this.continued;
  }

  get responseBytes(): number {
    const left = this.headSent ? this.writer.framing.bytesLeft : Infinity;
    return left === Infinity ? -1 : this.bodyBytesSent + left;
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

  get awaitsBody(): boolean {
    const ends = this.body === undefined || this.body.ended;
    return !ends && !this.connection.inputPaused && !this.awaitsContinue;
  }

  readBody(sink: BodySink): void {
    if (this.released) return;
    if (this.tunnelled) {
      const { bodyBytesReceived } = this;
      this.body = new Http1Body(this, -1, true);
      this.body.received = bodyBytesReceived;
      this.body.attach(sink);
      return this.connection.openTunnel();
    }
    if (this.body === undefined) return process.nextTick(guarded, this, () => this.released || sink.onEnd());
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

  /** The kernel opens the window when more is read. */
  bodyConsumed(): void {}

  stopBody(): void {
    this.connection.linger();
  }

  sendContinue(): void {
    if (!this.awaitsContinue || this.headSent || this.over) return;
    this.continued = true;
    this.writer.interim("HTTP/1.1 100 Continue\r\n\r\n");
  }

  /**
   * HTTP/1.0 has none (RFC 9110, 15.2). Only browsers get early hints: programs that take 103 for the response are as many
   * as those that use hints are few (RFC 8297, 3).
   */
  sendInformational(status: number, reason: string, headers: HeaderList): void {
    if (this.over || this.headSent || this.writer.heldUp || this.request.version === "1.0") return;
    if (status === 103 && headerValue(this.request.headers, "sec-fetch-mode") === undefined) return;
    this.writer.interim(`HTTP/1.1 ${status} ${reason}\r\n${linesOf(headers)}\r\n`);
  }

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
    const fields = status === 101 ? undefined : responseFieldsFor(this);
    const hidesServer = fields !== undefined && fields.hidesServer;
    let head = beginning(status, reason, hidesServer ? undefined : serverHeader(this.server));
    this.noteHead();
    head += framing.beginResponse(method, status, bodyLength, version === "1.1", upgrade);
    if (!framing.isTunnel) {
      if (!this.connection.mayKeepAlive(this)) head += "Connection: close\r\n";
      else if (version === "1.0") head += "Connection: keep-alive\r\n";
    }
    if (this.portalFields !== undefined) lines = linesOf(this.portalFields) + lines;
    this.writer.head(head + (fields === undefined ? lines : fields.inLines(lines, this.requestId)));
  }

  get pieceBytesMax(): number {
    return this.writer.pieceBytesMax;
  }

  sendData(chunk: Uint8Array, memory: Memory = LASTING): boolean {
    if (this.over || chunk.length === 0 || !this.writer.framing.hasBody) {
      tally.bytesForNobody += chunk.length;
      return !this.over;
    }
    try {
      const free = this.writer.body(chunk as Buffer, memory);
      this.bodyBytesSent += chunk.length;
      if (!free) this.heldBack = true;
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
    if (this.finish()) this.connection.exchangeEnded(this);
  }

  abort(): void {
    if (this.over) return;
    this.writer.flush();
    if (this.finish()) this.connection.exchangeAborted(this);
  }

  /** All data was written: of this response, or still of the previous one. */
  onWritten(): void {
    if (!this.heldBack) return;
    this.heldBack = false;
    this.drained();
  }

  onFault(error: unknown): void {
    this.connection.onFault(error);
  }
}

/** Status line, `Server` and `Date`: the same for most responses of a second, so the last one is kept. */
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

/** A request body as HTTP/1.1 frames it (RFC 9112, 6.3): of a known length, or in chunks. */
class Http1Body extends RequestBody implements ChunkSink {
  private readonly decoder: ChunkDecoder | undefined;
  /** The memory that the bytes of the current read are in. */
  private memory: Memory = LASTING;

  /** @param length bytes that follow; -1 for chunks, and for a tunnel */
  constructor(owner: BodyOwner, length: number, tunnel = false) {
    super(owner, length);
    this.decoder = length === -1 && !tunnel ? new ChunkDecoder() : undefined;
  }

  /** Whether the bytes that were read contain all of it. */
  get complete(): boolean {
    return this.decoder === undefined ? this.left === 0 : this.decoder.done;
  }

  /**
   * Takes the body's bytes from `chunk[at..]`.
   *
   * @param memory that the bytes are in
   * @returns index of the first byte that is not part of the body
   * @throws ChunkError
   */
  read(chunk: Buffer, at: number, memory: Memory): number {
    this.memory = memory;
    if (this.decoder !== undefined) {
      const next = this.decoder.decode(chunk, at, this);
      countWork(1, this.decoder.framingBytes);
      return next;
    }
    countWork(1, 0);
    const to = this.left === -1 ? chunk.length : Math.min(chunk.length, at + this.left);
    this.onBytes(chunk, at, to);
    return to;
  }

  onBytes(chunk: Buffer, from: number, to: number): void {
    this.data(chunk, from, to, this.memory);
  }
}
