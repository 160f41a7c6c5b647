import type { TLSSocket } from "node:tls";
import { guarded } from "../sockets/guarded.js";
import { coarseNow } from "../sockets/deadlines.js";
import { UNROUTED_IDLE_MS } from "../dispatch/dispatch.js";
import { respondFailure } from "../dispatch/errorPages.js";
import type { ClientInfo } from "../exchange/exchange.js";
import { closedFor } from "../listen/clientInfo.js";
import { unsentBytes } from "../sockets/node/peer.js";
import { tcpSocketOf, TLS_FLOOD, TlsOverhead } from "../sockets/node/tcpBelowTls.js";
import { PacedReader, type Taker } from "../sockets/pacedReader.js";
import type { WorkerContext } from "../dispatch/workerContext.js";
import { Http2Exchange } from "./http2Exchange.js";
import { FloodGuard, FloodKind } from "./floodGuard.js";
import { RequestPace } from "./requestPace.js";
import { ConnectionWindow, SendScheduler, type WindowLender } from "./flowControl.js";
import { FrameReader } from "../codec/http2/frames.js";
import { type FramedConnection, FrameHandler } from "./frameHandler.js";
import { type ResponseHead, HpackEncoder } from "../codec/http2/hpackEncoder.js";
import type { HpackField } from "../codec/http2/hpackTables.js";
import { ClosedStreams } from "./standing.js";
import { Linger } from "./linger.js";
import { Outbox } from "./outbox.js";
import {
  ConnectionError,
  ErrorCode,
  Flag,
  FRAME_BYTES_MAX,
  FRAME_HEAD_BYTES,
  FrameType,
  INITIAL_WINDOW_BYTES,
} from "../codec/http2/protocol.js";
import { parseRequestHead } from "../codec/http2/requestFields.js";
import { serverPreface } from "../codec/http2/settings.js";

/** How long a draining connection waits for requests that were sent before the client could know (RFC 9113, 6.8). */
const DRAIN_MS = 1_000;
/** No stream has this number: the first GOAWAY of a drain refuses nothing yet. */
const LAST_STREAM_MAX = 0x7fff_ffff;

const enum State {
  Open,
  /** The last GOAWAY named the last stream that is served. */
  Closing,
  /** Input is dropped; the socket is closed once the client has everything. */
  Ended,
}

/** A client connection that speaks HTTP/2: its streams, and their shared state. */
export class Http2Connection implements FramedConnection, Taker {
  readonly streams = new Map<number, Http2Exchange>();
  readonly closedStreams = new ClosedStreams();
  readonly outbox: Outbox;
  readonly scheduler: SendScheduler;
  readonly encoder = new HpackEncoder();
  readonly guard: FloodGuard;
  readonly window: ConnectionWindow;
  initialSendWindow = INITIAL_WINDOW_BYTES;
  lastStream = 0;
  private state = State.Open;
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
  /** When the last stream was closed, and how long its client might be silent. */
  private respondedAt = -Infinity;
  private sendTimeoutMs = UNROUTED_IDLE_MS;
  /** When the write in progress last advanced, and how far it was. */
  private progressAt = -Infinity;
  private progress = "";

  constructor(
    private readonly socket: TLSSocket,
    readonly client: ClientInfo,
    private readonly context: WorkerContext,
    private readonly registry: {
      readonly windows: WindowLender;
      delete(connection: Http2Connection): void;
    },
  ) {
    const { config } = context;
    const { windows } = registry;
    this.window = new ConnectionWindow(windows);
    const fault = (error: unknown): void => this.onFault(error);
    this.outbox = new Outbox(socket, () => guarded(this, this.written), fault);
    this.scheduler = new SendScheduler(this.outbox);
    const calm = (reason: string): void => this.close(ErrorCode.EnhanceYourCalm, reason);
    const { streamResetsPerSecondMax } = config.limits;
    this.guard = new FloodGuard(streamResetsPerSecondMax, calm);
    this.pace = new RequestPace(this.guard, context.dispatcher, streamResetsPerSecondMax);
    this.frames = new FrameHandler(this, config);
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
    return this.state !== State.Open;
  }

  open(
    id: number,
    fields: readonly HpackField[],
    ended: boolean,
    complete: boolean,
    malformed: boolean,
  ): void {
    const { client, initialSendWindow: window } = this;
    const { dispatcher, config, mainError } = this.context;
    const { request, refusal } = parseRequestHead(fields, ended, config.limits, performance.now());
    const server = dispatcher.defaultServer(client.listener);
    const exchange = new Http2Exchange(this, id, request, client, server, window, ended, dispatcher);
    this.streams.set(id, exchange);
    this.outbox.pace.begin();
    this.served++;
    this.requestedAt = coarseNow();
    if (refusal === undefined && complete && !malformed) return this.pace.add(exchange);
    const reason = complete ? (refusal?.reason ?? "stream depends on itself") : "request head too long";
    mainError.write("info", `client sent an invalid request: ${reason}`, exchange);
    if (complete && refusal?.malformed === false && !malformed)
      return respondFailure(exchange, "http_request_error", refusal.status);
    exchange.refuse(400, complete ? ErrorCode.ProtocolError : ErrorCode.EnhanceYourCalm);
    this.guard.count(FloodKind.Reset);
  }

  containFault(exchange: Http2Exchange, error: unknown): void {
    this.context.faults.contain(
      error,
      exchange,
      () => exchange.giveUp(),
      () => this.failed(new ConnectionError(ErrorCode.InternalError, "fault while a stream was given up")),
    );
  }

  sendHead(exchange: Http2Exchange, head: ResponseHead): string | undefined {
    if (exchange.closed) return undefined;
    const { outbox, encoder } = this;
    const fault = encoder.check(head);
    if (fault !== undefined) return fault;
    outbox.reserve(FRAME_HEAD_BYTES);
    const from = outbox.at;
    outbox.at += FRAME_HEAD_BYTES;
    encoder.encode(head, outbox);
    exchange.flagsAt = from + 4;
    exchange.generation = outbox.generation;
    const length = outbox.at - from - FRAME_HEAD_BYTES;
    if (length > FRAME_BYTES_MAX) outbox.splitHead(exchange.id, from, length);
    else {
      outbox.at = from;
      outbox.frameHead(length, FrameType.Headers, Flag.EndHeaders, exchange.id);
      outbox.at += length;
    }
    return undefined;
  }

  endStream(exchange: Http2Exchange): void {
    if (exchange.closed) return;
    const { outbox } = this;
    if (exchange.generation === outbox.generation) outbox.buffer[exchange.flagsAt]! |= Flag.EndStream;
    else outbox.numbers(FrameType.Data, Flag.EndStream, exchange.id);
  }

  reset(exchange: Http2Exchange, code: ErrorCode): void {
    if (exchange.closed) return;
    this.resetStream(exchange.id, code);
    this.closeStream(exchange, true);
    // The client sends a body that it need not send. This is counted outside of the action's call.
    if (code === ErrorCode.NoError) process.nextTick(guarded, this, () => this.guard.count(FloodKind.Reset));
  }

  resetStream(id: number, code: ErrorCode): void {
    if (this.state !== State.Ended) this.outbox.numbers(FrameType.RstStream, 0, id, code);
  }

  streamError(id: number, code: ErrorCode): void {
    const exchange = this.streams.get(id);
    if (exchange === undefined) {
      this.resetStream(id, code);
      this.closedStreams.add(id, true);
    } else exchange.fail(code);
    this.guard.count(FloodKind.Reset);
  }

  closeStream(exchange: Http2Exchange, here = false): void {
    if (exchange.closed) return;
    exchange.closed = true;
    this.streams.delete(exchange.id);
    if (exchange.undispatched) this.pace.remove(exchange);
    this.closedStreams.add(exchange.id, here);
    if (!here && exchange.responded && exchange.requestEnded) this.guard.completed();
    this.scheduler.forget(exchange);
    exchange.dropWaiting();
    if (exchange.body !== undefined) this.consumed(exchange.body.close());
    this.sendTimeoutMs = exchange.sendTimeoutMs;
    if (this.streams.size > 0) return;
    this.outbox.pace.rest();
    this.respondedAt = coarseNow();
    this.idleDeadline = coarseNow() + this.context.config.timeouts.keepAliveMs;
    if (this.state === State.Closing) this.finish();
  }

  consumed(bytes: number): void {
    const increment = this.window.consumed(bytes);
    if (increment !== 0) this.openWindow(0, increment);
  }

  openWindow(stream: number, increment: number): void {
    if (this.state !== State.Ended) this.outbox.numbers(FrameType.WindowUpdate, 0, stream, increment);
  }

  /**
   * Takes no more streams, and closes when the running ones are done. In two steps (RFC 9113, 6.8): requests that the
   * client sent before it could know are still served.
   */
  drain(): void {
    if (this.state !== State.Open || this.drainDeadline !== Infinity) return;
    this.drainDeadline = coarseNow() + DRAIN_MS;
    this.outbox.numbers(FrameType.GoAway, 0, 0, LAST_STREAM_MAX, ErrorCode.NoError);
    // The client responds to the PING after everything that it sent before it saw the GOAWAY.
    this.outbox.numbers(FrameType.Ping, 0, 0, ...DRAIN_PING);
  }

  pinged(high: number, low: number): void {
    if (this.drainDeadline !== Infinity && high === DRAIN_PING[0] && low === DRAIN_PING[1]) this.close();
  }

  running(): readonly Http2Exchange[] {
    return [...this.streams.values()].filter(({ over }) => !over);
  }

  destroy(): void {
    if (this.state !== State.Ended) this.goAway(ErrorCode.NoError);
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
      for (const exchange of this.streams.values()) {
        // A queued stream waits for its turn, not for its client.
        if (progressed && exchange.queued && this.scheduler.window > 0) exchange.onProgress();
        guarded(exchange, exchange.sweep, now);
      }
      if (now >= this.frames.blockDeadline)
        throw new ConnectionError(ErrorCode.EnhanceYourCalm, "request head timed out");
      this.drainAfterLast(allDispatched && now - this.requestedAt >= PAUSE_MS);
      if (now >= this.drainDeadline || (this.streams.size === 0 && now >= this.idleDeadline)) this.close();
    });
  }

  /** A browser (Chromium 156) fails requests that it is about to send when a GOAWAY arrives, so a pause is better. */
  private drainAfterLast(pauses: boolean): void {
    const { keepAliveRequestsMax } = this.context.config.limits;
    if (this.served >= keepAliveRequestsMax * (pauses ? 1 : PAUSELESS_FACTOR)) this.drain();
  }

  /** Sends the GOAWAY that names the last stream, and closes when it is done. @param why for the error log */
  private close(code = ErrorCode.NoError, why?: string): void {
    if (this.state !== State.Open) return;
    this.state = State.Closing;
    if (why !== undefined) this.context.mainError.write("warn", closedFor(why, this.client, "HTTP/2 "));
    this.goAway(code);
    if (this.streams.size === 0) this.finish();
  }

  private goAway(code: ErrorCode): void {
    this.outbox.numbers(FrameType.GoAway, 0, 0, this.lastStream, code);
  }

  private receive(chunk: Buffer): void {
    this.overhead.took(chunk.length);
    if (this.state === State.Ended) return this.linger.extend(this.sendTimeoutMs);
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
    this.scheduler.pump();
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
    if (this.state === State.Ended) return;
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
    this.state = State.Ended;
    this.reader.stopped = true;
    this.input.drop();
    this.outbox.finish();
    this.socket.end(() => this.ended(unwritten));
    this.socket.resume();
  }

  /** The client gets a send timeout to read, unless the last response is older than that. */
  private ended(unwritten: boolean): void {
    if (this.linger.deadline !== Infinity) return;
    const hasRead = !unwritten && coarseNow() - this.respondedAt >= this.sendTimeoutMs;
    this.linger.begin(hasRead, this.sendTimeoutMs);
  }

  private closed(): void {
    this.state = State.Ended;
    this.registry.delete(this);
    this.outbox.close();
    this.abandon();
    this.window.close();
  }

  private abandon(): void {
    for (const exchange of this.streams.values()) {
      this.closeStream(exchange);
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
    const writing = writableLength > 0 || (this.state === State.Ended && !this.linger.begun);
    this.progress = writing ? `${outbox.generation} ${writableLength} ${unsentBytes(socket)}` : "";
    if (this.progress === "" || this.progress !== progress) {
      this.progressAt = now;
      return this.progress !== "";
    }
    let timeoutMs = this.streams.size === 0 ? this.sendTimeoutMs : 0;
    for (const exchange of this.streams.values()) timeoutMs = Math.max(timeoutMs, exchange.sendTimeoutMs);
    if (now - this.progressAt >= timeoutMs) this.socket.destroy();
    return false;
  }
}

/** Time without a new request: longer than between the views of a page that is scrolled. */
const PAUSE_MS = 5_000;
/** A client that makes no pause gets so many times as many requests on a connection. */
const PAUSELESS_FACTOR = 10;

const DRAIN_PING = [0x64726169, 0x6e2e2e2e] as const;

/** With more unread responses than this, the client's requests wait as well. */
const OUTBOX_BYTES_MAX = 1_048_576;
