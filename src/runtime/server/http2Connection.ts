import type { TLSSocket } from "node:tls";
import { guarded } from "../sockets/guarded.js";
import { coarseNow } from "../sockets/deadlines.js";
import { respondFailure } from "../dispatch/errorPages.js";
import type { ClientInfo } from "../exchange/exchange.js";
import { closedFor } from "../listen/clientInfo.js";
import { unsentBytes } from "../sockets/node/peer.js";
import { tcpSocketOf, TLS_FLOOD, TlsOverhead } from "../sockets/node/tcpBelowTls.js";
import { PacedReader, type Taker } from "../sockets/pacedReader.js";
import type { WorkerContext } from "../dispatch/workerContext.js";
import { DRAIN_FIRST_MS } from "./http1Connection.js";
import { Http2Exchange } from "./http2Exchange.js";
import { FloodGuard, FloodKind } from "./floodGuard.js";
import { RequestPace } from "./requestPace.js";
import { ConnectionWindow, type WindowLender } from "./flowControl.js";
import { FrameReader } from "../codec/http2/frames.js";
import { FrameHandler, type FramesOwner } from "./frameHandler.js";
import type { HpackField } from "../codec/http2/hpackTables.js";
import { Http2Streams, StreamsState, type StreamsOwner } from "./http2Streams.js";
import { Linger } from "./linger.js";
import { Outbox } from "./outbox.js";
import { ConnectionError, ErrorCode, FrameType } from "../codec/http2/protocol.js";
import { parseRequestHead } from "../codec/http2/requestFields.js";
import { serverPreface } from "../codec/http2/settings.js";

/** How long a draining connection waits for requests that were sent before the client could know (RFC 9113, 6.8). */
const DRAIN_MS = 1_000;
/** No stream has this number: the first GOAWAY of a drain refuses nothing yet. */
const LAST_STREAM_MAX = 0x7fff_ffff;

/** A client connection that speaks HTTP/2: its streams, and their shared state. */
export class Http2Connection implements FramesOwner, StreamsOwner<Http2Exchange>, Taker {
  readonly streams: Http2Streams<Http2Exchange>;
  private readonly outbox: Outbox;
  private readonly pace: RequestPace;
  /** Requests so far, and when the last one came. */
  private served = 0;
  private requestedAt = -Infinity;
  private readonly overhead: TlsOverhead;
  private readonly input: PacedReader;
  private readonly reader: FrameReader;
  private readonly frames: FrameHandler;
  /** Deadlines on the coarse clock; Infinity if none is set. This one counts while there is no stream. */
  private idleDeadline: number;
  private drainDeadline = Infinity;
  private readonly linger = new Linger();
  /** When the last stream was closed. */
  private respondedAt = -Infinity;
  /** When the write in progress last advanced, and how far it was. */
  private progressAt = -Infinity;
  private progress = "";

  constructor(
    readonly socket: TLSSocket,
    readonly client: ClientInfo,
    private readonly context: WorkerContext,
    private readonly registry: {
      readonly windows: WindowLender;
      delete(connection: Http2Connection): void;
    },
  ) {
    const { config } = context;
    const { windows } = registry;
    const fault = (error: unknown): void => this.onFault(error);
    this.outbox = new Outbox(socket, () => guarded(this, this.written), fault);
    const calm = (reason: string): void => this.close(ErrorCode.EnhanceYourCalm, reason);
    const { streamResetsPerSecondMax } = config.limits;
    const guard = new FloodGuard(streamResetsPerSecondMax, calm);
    this.pace = new RequestPace(guard, context.dispatcher, streamResetsPerSecondMax);
    this.streams = new Http2Streams(this, this.outbox, new ConnectionWindow(windows), guard, this.pace);
    this.frames = new FrameHandler(this, this.streams, config);
    this.reader = new FrameReader(this.frames);
    this.input = new PacedReader(this);
    this.input.attach(socket);
    this.idleDeadline = coarseNow() + config.timeouts.requestHeadMs;
    this.overhead = new TlsOverhead(tcpSocketOf(socket));
    socket.on("data", (chunk: Buffer) => this.receive(chunk));
    socket.on("error", () => socket.destroy());
    socket.on("close", () => guarded(this, this.closed));
    const preface = serverPreface(config);
    this.outbox.reserve(preface.length);
    this.outbox.at += preface.copy(this.outbox.buffer, this.outbox.at);
  }

  get closing(): boolean {
    return this.streams.closing;
  }

  open(
    id: number,
    fields: readonly HpackField[],
    ended: boolean,
    complete: boolean,
    malformed: boolean,
  ): void {
    const { client, streams } = this;
    const window = streams.initialSendWindow;
    const { dispatcher, config, mainError } = this.context;
    const { request, refusal } = parseRequestHead(fields, ended, config.limits, performance.now());
    const server = dispatcher.defaultServer(client.listener);
    const exchange = new Http2Exchange(streams, id, request, client, server, window, ended, dispatcher);
    streams.open.set(id, exchange);
    this.outbox.pace.begin();
    this.served++;
    this.requestedAt = coarseNow();
    if (refusal === undefined && complete && !malformed) return this.pace.add(exchange);
    const reason = complete ? (refusal?.reason ?? "stream depends on itself") : "request head too long";
    mainError.write("info", `client sent an invalid request: ${reason}`, exchange);
    if (complete && refusal?.malformed === false && !malformed)
      return respondFailure(exchange, "http_request_error", refusal.status);
    exchange.refuse(400, complete ? ErrorCode.ProtocolError : ErrorCode.EnhanceYourCalm);
    streams.guard.count(FloodKind.Reset);
  }

  containFault(exchange: Http2Exchange, error: unknown): void {
    this.context.faults.contain(
      error,
      exchange,
      () => exchange.giveUp(),
      () => this.failed(new ConnectionError(ErrorCode.InternalError, "fault while a stream was given up")),
    );
  }

  onLastClosed(): void {
    this.outbox.pace.rest();
    this.respondedAt = coarseNow();
    this.idleDeadline = coarseNow() + this.context.config.timeouts.keepAliveMs;
    if (this.streams.state === StreamsState.Closing) this.finish();
  }

  /**
   * Takes no more streams, and closes when the running ones are done. In two steps (RFC 9113, 6.8): requests that the
   * client sent before it could know are still served.
   */
  drain(): void {
    if (this.streams.state !== StreamsState.Open || this.drainDeadline !== Infinity) return;
    this.drainDeadline = coarseNow() + DRAIN_MS;
    this.outbox.numbers(FrameType.GoAway, 0, 0, LAST_STREAM_MAX, ErrorCode.NoError);
    // The client responds to the PING after everything that it sent before it saw the GOAWAY.
    this.outbox.numbers(FrameType.Ping, 0, 0, ...DRAIN_PING);
  }

  pinged(high: number, low: number): void {
    if (this.drainDeadline !== Infinity && high === DRAIN_PING[0] && low === DRAIN_PING[1]) this.close();
  }

  get waitsSince(): number {
    const { frames, input, outbox, reader, streams } = this;
    const hasStreams = streams.state !== StreamsState.Open || streams.open.size > 0;
    const hasInput = input.hasUnread || reader.isWithin || frames.blockDeadline !== Infinity;
    if (hasStreams || hasInput || outbox.writing) return Infinity;
    const { requestHeadMs, keepAliveMs } = this.context.config.timeouts;
    return this.served === 0
      ? this.idleDeadline - requestHeadMs + DRAIN_FIRST_MS
      : this.idleDeadline - keepAliveMs + READS_MS;
  }

  running(): readonly Http2Exchange[] {
    return [...this.streams.open.values()].filter(({ over }) => !over);
  }

  destroy(): void {
    if (this.streams.state !== StreamsState.Ended) this.goAway(ErrorCode.NoError);
    this.outbox.flush();
    this.socket.destroy();
  }

  sweep(now: number): void {
    if (now >= this.linger.deadline) return void this.socket.destroy();
    if (this.overhead.isFlood()) {
      this.failed(new ConnectionError(ErrorCode.EnhanceYourCalm, TLS_FLOOD));
      return void this.socket.destroy();
    }
    guarded(this, () => {
      const allDispatched = this.pace.sweep();
      const progressed = this.watchWrite(now);
      for (const exchange of this.streams.open.values()) {
        // A queued stream waits for its turn, not for its client.
        if (progressed && exchange.queued && this.streams.scheduler.window > 0) exchange.onProgress();
        guarded(exchange, exchange.sweep, now);
      }
      if (now >= this.frames.blockDeadline)
        throw new ConnectionError(ErrorCode.EnhanceYourCalm, "request head timed out");
      this.drainAfterLast(allDispatched && now - this.requestedAt >= PAUSE_MS);
      if (now >= this.drainDeadline || (this.streams.open.size === 0 && now >= this.idleDeadline))
        this.close();
    });
  }

  /** A browser (Chromium 156) fails requests that it is about to send when a GOAWAY arrives, so a pause is better. */
  private drainAfterLast(pauses: boolean): void {
    const { keepAliveRequestsMax } = this.context.config.limits;
    if (this.served >= keepAliveRequestsMax * (pauses ? 1 : PAUSELESS_FACTOR)) this.drain();
  }

  /** Sends the GOAWAY that names the last stream, and closes when it is done. @param why for the error log */
  private close(code = ErrorCode.NoError, why?: string): void {
    if (this.streams.state !== StreamsState.Open) return;
    this.streams.state = StreamsState.Closing;
    if (why !== undefined) this.context.mainError.write("warn", closedFor(why, this.client, "HTTP/2 "));
    this.goAway(code);
    if (this.streams.open.size === 0) this.finish();
  }

  private goAway(code: ErrorCode): void {
    this.outbox.numbers(FrameType.GoAway, 0, 0, this.streams.lastStream, code);
  }

  private receive(chunk: Buffer): void {
    this.overhead.took(chunk.length);
    if (this.streams.state === StreamsState.Ended) return this.linger.extend(this.streams.sendTimeoutMs);
    this.input.arrived(chunk);
  }

  /** No further requests are read from a client that does not read its responses. */
  get inputPaused(): boolean {
    return this.outbox.at > OUTBOX_BYTES_MAX;
  }

  take(chunk: Buffer): number {
    return this.reader.read(chunk, this.hasEnough);
  }

  private readonly hasEnough = (): boolean => this.inputPaused || this.input.hasEnough();

  private written(): void {
    if (this.socket.isPaused()) this.input.readOn();
    this.streams.scheduler.pump();
    this.outbox.flush();
  }

  /** An exception ends this connection, never the worker. */
  onFault(error: unknown): void {
    if (error instanceof ConnectionError) return this.failed(error);
    const fault = new ConnectionError(ErrorCode.InternalError, "internal fault");
    const cut = (): void => void this.socket.destroy();
    this.context.faults.contain(error, undefined, () => this.failed(fault), cut);
  }

  private failed(error: ConnectionError): void {
    if (this.streams.state === StreamsState.Ended) return;
    const { client, context } = this;
    context.mainError.write(error.level, closedFor(error.message, client, "HTTP/2 "));
    this.goAway(error.code);
    this.linger.refuse();
    this.finish();
    guarded(this, this.abandon);
  }

  /**
   * Writes waiting data and ends. The client may still be sending: its bytes are read, otherwise a reset would follow.
   */
  private finish(): void {
    const unwritten = this.outbox.writing;
    this.streams.state = StreamsState.Ended;
    this.reader.stopped = true;
    this.input.drop();
    this.outbox.finish();
    this.socket.end(() => this.ended(unwritten));
    this.socket.resume();
  }

  /** The client gets a send timeout to read, unless the last response is older than that. */
  private ended(unwritten: boolean): void {
    if (this.linger.deadline !== Infinity) return;
    const hasRead = !unwritten && coarseNow() - this.respondedAt >= this.streams.sendTimeoutMs;
    this.linger.begin(hasRead, this.streams.sendTimeoutMs);
  }

  private closed(): void {
    this.streams.state = StreamsState.Ended;
    this.registry.delete(this);
    this.outbox.close();
    this.abandon();
    this.streams.window.close();
  }

  private abandon(): void {
    for (const exchange of this.streams.open.values()) {
      this.streams.closeStream(exchange);
      exchange.leave();
    }
  }

  /**
   * @returns whether bytes reached the client since the last sweep; a write that is stuck for too long ends the
   * connection
   */
  private watchWrite(now: number): boolean {
    const { outbox, progress, socket } = this;
    const { writableLength } = socket;
    const writing = writableLength > 0 || (this.streams.state === StreamsState.Ended && !this.linger.begun);
    this.progress = writing ? `${outbox.generation} ${writableLength} ${unsentBytes(socket)}` : "";
    if (this.progress === "" || this.progress !== progress) {
      this.progressAt = now;
      return this.progress !== "";
    }
    let timeoutMs = this.streams.open.size === 0 ? this.streams.sendTimeoutMs : 0;
    for (const exchange of this.streams.open.values())
      timeoutMs = Math.max(timeoutMs, exchange.sendTimeoutMs);
    if (now - this.progressAt >= timeoutMs) this.socket.destroy();
    return false;
  }
}

/** What the kernel has of a response takes a slow client less time to read; a window update after the end would cut it. */
const READS_MS = 2_000;
/** Time without a new request: longer than between the views of a page that is scrolled. */
const PAUSE_MS = 5_000;
/** A client that makes no pause gets so many times as many requests on a connection. */
const PAUSELESS_FACTOR = 10;

const DRAIN_PING = [0x64726169, 0x6e2e2e2e] as const;

/** With more unread responses than this, the client's requests wait as well. */
const OUTBOX_BYTES_MAX = 1_048_576;
