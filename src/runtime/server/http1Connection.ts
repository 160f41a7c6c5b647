import type { Socket } from "node:net";
import { guarded } from "../sockets/guarded.js";
import { coarseNow } from "../sockets/deadlines.js";
import { respondFailure } from "../dispatch/errorPages.js";
import type { ClientInfo } from "../exchange/exchange.js";
import type { WorkerContext } from "../dispatch/workerContext.js";
import { closedFor } from "../listen/clientInfo.js";
import { TLS_FLOOD } from "../sockets/node/tcpBelowTls.js";
import { ResponseWriter, type WriteListener } from "./http1Writer.js";
import { ChunkError } from "../codec/http1/chunkDecoder.js";
import { countHead } from "../sockets/turn.js";
import type { Taker } from "../sockets/pacedReader.js";
import { ClientInput } from "../sockets/clientInput.js";
import { type ExchangeConnection, Http1Exchange } from "./http1Exchange.js";
import { HeadError } from "../codec/http1/fields.js";
import { HeadReader } from "../codec/http1/headReader.js";
import { type Http1ParsedRequest, parseRequestHead, unroutable } from "../codec/http1/requestHead.js";

/** How a connection handles the bytes that arrive. */
const enum State {
  /** Between requests, or in the middle of a head. */
  Head,
  /** In a request body. */
  Body,
  /** The request is complete, its response is not: bytes that arrive wait. */
  Responding,
  /** After a 101: bytes go to the sink as they are. */
  Tunnel,
  /** All responses are sent; bytes are discarded, because closing with unread bytes would reset the last response. */
  Lingering,
}

/** These are nginx's lingering_timeout and lingering_time. */
const LINGER_IDLE_MS = 5_000;
const LINGER_TOTAL_MS = 30_000;
/** How long a draining connection waits for a request that the client may have sent before it could know. */
const DRAIN_IDLE_MS = 1_000;
/**
 * The same for the first request of a connection: clients send a request again if a connection ends that was used
 * before (RFC 9112 section 9.3.1), and fail if a new one does. nginx waits client_header_timeout for it.
 */
export const DRAIN_FIRST_MS = 10_000;
/**
 * A client that half-closes after a complete request may still read (`nc`), or may be gone: the two look the same until
 * something is written. A response that makes no progress for this time is given up; nginx gives it up at once.
 */
const HALF_CLOSED_MS = 1_000;

/** A client connection that speaks HTTP/1.1: reads requests one after the other and responds to them in order. */
export class Http1Connection implements ExchangeConnection, Taker, WriteListener {
  private state: State = State.Head;
  private readonly input: ClientInput;
  private readonly writer: ResponseWriter;
  private readonly reader: HeadReader;
  private exchange: Http1Exchange | undefined = undefined;
  private receiving = false;
  private halfClosed = false;
  private served = 0;
  /** Deadlines on the coarse clock; Infinity if none is set. */
  private readDeadline = Infinity;
  private writeDeadline = Infinity;
  private lingerUntil = Infinity;
  private sendTimeoutMs = LINGER_TOTAL_MS;
  private keepAlive = true;

  constructor(
    readonly socket: Socket,
    readonly client: ClientInfo,
    private readonly context: WorkerContext,
    private readonly registry: { draining: boolean; delete(connection: Http1Connection): void },
  ) {
    const { limits, timeouts } = context.config;
    this.reader = new HeadReader(limits.headBytesMax, limits.requestLineBytesMax);
    this.readDeadline = coarseNow() + timeouts.requestHeadMs;
    const secure = client.scheme === "https";
    this.input = new ClientInput(socket, secure, this);
    this.writer = new ResponseWriter(socket, this);
    if (!secure) this.writer.direct();
    socket.on("end", () => guarded(this, this.clientEnded));
    socket.on("error", () => socket.destroy());
    socket.on("close", () => guarded(this, this.closed));
  }

  get inputPaused(): boolean {
    return this.input.paused;
  }

  get waitsSince(): number {
    const waits =
      this.state === State.Head && this.reader.empty && !this.input.hasUnread && !this.writer.pending;
    if (!waits) return Infinity;
    const { requestHeadMs, keepAliveMs } = this.context.config.timeouts;
    return this.readDeadline - (this.served === 0 ? requestHeadMs - DRAIN_FIRST_MS : keepAliveMs);
  }

  /** The client has ended its side, and all that it sent before was read. */
  private get inputOver(): boolean {
    return this.halfClosed && !this.input.hasUnread && !this.receiving;
  }

  /** Reads on after bytes that were read before there was a connection. */
  continueAfter(read: Buffer): void {
    this.input.begin(read);
    this.input.resume();
  }

  openTunnel(): void {
    this.state = State.Tunnel;
    this.inputWanted();
  }

  inputWanted(): void {
    if (this.input.paused) this.input.resume();
  }

  pauseInput(): void {
    if (this.input.paused) return;
    this.readDeadline = Infinity;
    this.input.pause();
  }

  mayKeepAlive(exchange: Http1Exchange): boolean {
    const { request, body } = exchange;
    const { keepAliveRequestsMax } = this.context.config.limits;
    // A client that got no `100 Continue` may never send its body.
    const drainable = this.state !== State.Body || (body!.drainable && !exchange.awaitsContinue);
    this.keepAlive =
      request.keepAlive &&
      !this.writer.framing.endsByClose &&
      drainable &&
      !this.inputOver &&
      !this.registry.draining &&
      this.served < keepAliveRequestsMax &&
      !exchange.closes;
    return this.keepAlive;
  }

  exchangeEnded(exchange: Http1Exchange): void {
    this.writer.rest();
    if (!this.keepAlive || !this.writer.framing.atBoundary) return this.linger();
    if (this.state !== State.Body) return this.nextRequest();
    // The rest of the body is read and dropped; the next request begins after it.
    exchange.body!.discardRest(exchange.bodyIdleMs);
    this.inputWanted();
  }

  exchangeAborted(): void {
    this.writer.rest();
    const { framing } = this.writer;
    // If a response has neither a length nor chunks, only a reset shows the client that it is not whole.
    // (TLS sockets cannot be reset; there the missing close_notify shows it.)
    if (!framing.endsByClose || framing.isTunnel) this.linger();
    else if (this.client.scheme === "http") this.socket.resetAndDestroy();
    else this.socket.destroy();
  }

  /** An exception is an internal fault: it ends this connection only. */
  onFault(error: unknown): void {
    const { exchange } = this;
    this.context.faults.contain(
      error,
      exchange,
      () => {
        if (exchange === undefined || exchange.over) return void this.socket.destroy();
        exchange.release();
        respondFailure(exchange, "proxy_internal_error", 500);
      },
      () => this.socket.destroy(),
    );
  }

  /** Stops taking requests: an idle connection is closed, a busy one after its response. */
  drain(): void {
    // A request may already be on its way: closing now would cut it without a response (RFC 9112, 9.6).
    if (this.state === State.Head && this.reader.empty && !this.input.hasUnread) {
      const waits = this.served === 0 ? DRAIN_FIRST_MS : DRAIN_IDLE_MS;
      this.readDeadline = Math.min(this.readDeadline, coarseNow() + waits);
    }
  }

  running(): readonly Http1Exchange[] {
    return this.exchange === undefined || this.exchange.over ? [] : [this.exchange];
  }

  destroy(): void {
    this.socket.destroy();
  }

  sweep(now: number): void {
    if (now >= this.writeDeadline) return void this.socket.destroy();
    if (this.input.isFlood()) {
      this.context.mainError.write("warn", closedFor(TLS_FLOOD, this.client));
      return void this.socket.destroy();
    }
    if (this.state === State.Body) this.exchange!.body!.sweep(now);
    if (this.input.paused) this.input.look(now, this.writer.pending);
    if (now < this.readDeadline && now < this.lingerUntil) return;
    if (this.state === State.Responding && this.writer.pending) {
      // Half-closed and slow, but as far as we know it is reading; the write deadline runs.
      this.lingerUntil = now + HALF_CLOSED_MS;
      return;
    }
    if (this.state === State.Lingering && this.writer.pending) {
      // The time to linger begins when the client has read the responses; until then the write deadline runs.
      this.readDeadline = now + LINGER_IDLE_MS;
      this.lingerUntil = now + LINGER_TOTAL_MS;
      return;
    }
    if (this.state === State.Head && !this.reader.empty)
      return this.refuse(new HeadError(408, "request head timed out"));
    if (this.state === State.Head) return this.linger();
    this.socket.destroy();
  }

  onWritten(): void {
    if (this.writer.pending) return this.onWrite();
    this.writeDeadline = Infinity;
    this.exchange?.onWritten();
    if (this.state !== State.Head || this.receiving || !this.input.paused) return;
    // The time did not run while input was held.
    const { requestHeadMs, keepAliveMs } = this.context.config.timeouts;
    this.readDeadline = coarseNow() + (this.reader.empty ? keepAliveMs : requestHeadMs);
    this.input.resume();
  }

  onWrite(): void {
    // Something is still being written: a half-closed client may be reading it.
    if (this.halfClosed && this.state === State.Responding) this.lingerUntil = coarseNow() + HALF_CLOSED_MS;
    // The last response may still be on its way when its exchange is over.
    if (this.exchange !== undefined)
      this.sendTimeoutMs = this.exchange.route?.config.sendTimeoutMs ?? LINGER_TOTAL_MS;
    if (!this.writer.pending) this.writeDeadline = Infinity;
    else this.writeDeadline = coarseNow() + this.sendTimeoutMs;
  }

  take(chunk: Buffer): number {
    this.receiving = true;
    let at = 0;
    while (at < chunk.length && !this.leaves(at)) at = this.consume(chunk, at);
    this.receiving = false;
    if (this.inputOver && at === chunk.length) this.clientEnded();
    if (this.state !== State.Body) return at;
    const body = this.exchange!.body!;
    if (body.attached) this.input.fit(body.left, chunk.length);
    return at;
  }

  /** Whether bytes after a complete request must not be read yet. */
  private leaves(at: number): boolean {
    const waits =
      this.state === State.Responding ||
      // No further responses are made for a client that does not read its responses.
      (this.state === State.Head && this.writer.pending);
    if (waits) this.pauseInput();
    const isMessage = this.state === State.Head || this.state === State.Body;
    return waits || (isMessage && at > 0 && this.input.hasEnough());
  }

  /** Takes bytes from `at` on and returns where it stopped. */
  private consume(chunk: Buffer, at: number): number {
    switch (this.state) {
      case State.Head:
        return this.readHead(chunk, at);
      case State.Body:
        return this.readBody(chunk, at);
      case State.Tunnel:
        return this.exchange!.body!.read(chunk, at, this.input.memory);
      case State.Lingering:
        this.readDeadline = coarseNow() + LINGER_IDLE_MS;
        return chunk.length;
      default:
        return chunk.length;
    }
  }

  private readHead(chunk: Buffer, at: number): number {
    const { reader } = this;
    const request = this.parseHead(chunk, at);
    if (request === undefined) return chunk.length;
    const { next } = reader;
    countHead(next - at);
    reader.release();
    this.begin(request);
    return next;
  }

  /** @returns undefined if the head is not complete, or was refused */
  private parseHead(chunk: Buffer, at: number): Http1ParsedRequest | undefined {
    const { reader, context } = this;
    const { limits, timeouts } = context.config;
    let found = false;
    try {
      const fresh = reader.empty;
      found = reader.read(chunk, at);
      if (found) return parseRequestHead(reader, limits, performance.now());
      // The time for a head runs from its first byte; more bytes do not extend it.
      if (fresh && !reader.empty) this.readDeadline = coarseNow() + timeouts.requestHeadMs;
    } catch (error) {
      if (!(error instanceof HeadError)) throw error;
      this.refuse(error, found ? reader.text.slice(0, reader.text.indexOf("\r")) : reader.firstLine());
    }
    return undefined;
  }

  private begin(request: Http1ParsedRequest): void {
    this.served++;
    this.readDeadline = Infinity;
    this.state = request.bodyLength === 0 ? State.Responding : State.Body;
    const { dispatcher } = this.context;
    const server = dispatcher.defaultServer(this.client.listener);
    const exchange = new Http1Exchange(this, this.writer, request, this.client, server, dispatcher);
    this.exchange = exchange;
    dispatcher.dispatch(exchange);
    exchange.body?.begin();
  }

  private readBody(chunk: Buffer, at: number): number {
    const exchange = this.exchange!;
    const body = exchange.body!;
    let next = chunk.length;
    try {
      next = body.read(chunk, at, this.input.memory);
    } catch (error) {
      if (!(error instanceof ChunkError)) throw error;
      // After a failure, the rest of the input is ignored.
      if (this.state !== State.Body) return chunk.length;
      this.context.mainError.write("info", `client sent ${error.message}`, exchange);
      exchange.bodyFailed(400);
    }
    if (this.state !== State.Body || !body.complete) return next;
    this.state = State.Responding;
    body.end();
    if (exchange.over && this.exchange === exchange) this.nextRequest();
    return next;
  }

  private nextRequest(): void {
    this.exchange = undefined;
    this.input.release();
    this.state = State.Head;
    if (this.inputOver) return this.linger();
    const { keepAliveMs } = this.context.config.timeouts;
    this.readDeadline =
      coarseNow() + (this.registry.draining ? Math.min(keepAliveMs, DRAIN_IDLE_MS) : keepAliveMs);
    // Inside `receive` its loop continues.
    if (!this.receiving && (this.input.hasUnread || this.input.paused)) this.input.resume();
  }

  /** Responds to a head that cannot be routed, from the default server (decisions 1.2), and closes. */
  private refuse(error: HeadError, line = this.reader.firstLine()): void {
    const { dispatcher, mainError } = this.context;
    // If the host could be read, its server responds; otherwise the default server (decisions 1.6).
    const server = dispatcher.serverFor(this.client.listener, error.serverName);
    const exchange = new Http1Exchange(this, this.writer, unroutable(line), this.client, server, dispatcher);
    this.reader.release();
    this.reader.reset();
    mainError.write("info", `client sent an invalid request: ${error.message}`, exchange);
    respondFailure(exchange, "http_request_error", error.status, { reason: error.page });
  }

  linger(): void {
    this.state = State.Lingering;
    this.input.drop();
    // The head may be long and the client slow; with thousands of them, garbage collection would be slow too.
    this.exchange = undefined;
    this.lingerUntil = coarseNow() + LINGER_TOTAL_MS;
    this.readDeadline = coarseNow() + LINGER_IDLE_MS;
    this.writer.writeBatched();
    this.socket.end();
    this.input.resume();
  }

  private clientEnded(): void {
    this.halfClosed = true;
    const { exchange } = this;
    // It asked whether its body is wanted, and has a final response: it sends none, and reads on (RFC 9110, 10.1.1).
    if (this.state === State.Body && exchange!.headSent && exchange!.awaitsContinue)
      this.state = State.Responding;
    if (this.state === State.Responding) this.lingerUntil = coarseNow() + HALF_CLOSED_MS;
    // Requests wait here for the client to read the responses before them.
    else if (!this.inputOver) return;
    else if (this.state === State.Tunnel) exchange!.body!.end();
    else if (this.state === State.Body && !exchange!.over) {
      // The responses before it may not have left yet.
      exchange!.errorToken = "client_gone";
      exchange!.abort();
    } else {
      this.writer.writeBatched();
      this.socket.end();
    }
  }

  private closed(): void {
    this.writer.close();
    this.registry.delete(this);
    this.exchange?.leave();
  }
}
