import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { coarseNow } from "../clock.js";
import { respondError } from "../errorPages.js";
import type { ClientInfo } from "../exchange.js";
import { adopt, readInto, ReceiveBuffer } from "../receiveBuffer.js";
import type { Services } from "../services.js";
import { wasReset } from "../streamBinding.js";
import { TextWriter } from "../textWriter.js";
import { batch } from "../writeBatch.js";
import { ChunkDecoder, type ChunkSink } from "./chunkDecoder.js";
import { Http1Exchange } from "./exchange.js";
import { HeadError } from "./fields.js";
import { HeadReader } from "./headReader.js";
import { parseRequestHead, type ParsedRequest } from "./requestHead.js";

/** What a connection is doing with the bytes that arrive. */
const enum State {
  /** Between requests, or in the middle of a head. */
  Head,
  /** In a request body. */
  Body,
  /** The request is complete, its answer is not: bytes that arrive wait. */
  Answering,
  /** After a 101: bytes go to the sink as they are. */
  Tunnel,
  /** Everything was answered; bytes are discarded so that closing does not reset the last answer away. */
  Lingering,
  Closed,
}

/** A request body that is left over may be read to its end if no more than this is to come; else the connection closes. */
const DRAINED_BYTES_MAX = 65_536;
/** Pieces up to this size are gathered on their way upstream (see `upstream/requestWriter.ts`). */
const SMALL_BYTES_MAX = 16_384;
/** Answers of one turn that are held back to go out together. */
const HELD_TEXT_MAX = 65_536;
/** As nginx's lingering_timeout and lingering_time. */
const LINGER_IDLE_MS = 5_000;
const LINGER_TOTAL_MS = 30_000;
/** How long a draining connection waits for a request that the client may have sent before it could know. */
const DRAIN_IDLE_MS = 1_000;
/** How often a client is looked after while nothing is read from it. */
const LOOK_MS = 5_000;
/** A client that vanished is asked for by the kernel (TCP keep-alive) after this time without a word. */
const SILENT_MS = 30_000;
/**
 * A client that half-closes after a whole request may still read (`nc`), or may be gone: the two look the same until
 * something is written. An answer that makes no progress for this time is given up, as nginx gives it up at once.
 */
const HALF_CLOSED_MS = 1_000;

/** One client connection speaking HTTP/1.1: reads requests one after the other and answers them in order. */
export class Http1Connection implements ChunkSink {
  private state: State = State.Head;
  private readonly socket: Socket;
  private readonly writer: TextWriter;
  private readonly buffer: ReceiveBuffer;
  /** Whether reads go into `buffer`, and not into memory of their own. */
  private reused = true;
  private readonly reader: HeadReader;
  private exchange: Http1Exchange | undefined = undefined;
  /** Bytes of the request body still to come; meaningless while `decoder` is set. */
  private remaining = 0;
  private decoder: ChunkDecoder | undefined = undefined;
  /** Bytes that arrived before anyone wanted them. */
  private stash: Buffer | undefined = undefined;
  private receiving = false;
  private paused = false;
  private halfClosed = false;
  private served = 0;
  /** Deadlines on the coarse clock; Infinity where none runs. */
  private readDeadline = Infinity;
  private writeDeadline = Infinity;
  private lingerUntil = Infinity;
  private lookAt = Infinity;
  private sendTimeoutMs = LINGER_TOTAL_MS;
  private keepAlive = true;

  constructor(
    accepted: Socket,
    private readonly client: ClientInfo,
    private readonly services: Services,
    private readonly registry: { draining: boolean; delete(connection: Http1Connection): void },
  ) {
    const { limits, timeouts } = services.config;
    this.reader = new HeadReader(limits.headBytesMax, limits.requestLineBytesMax);
    this.readDeadline = coarseNow() + timeouts.requestHeadMs;
    this.buffer = new ReceiveBuffer(client.scheme === "https");
    const receive = (chunk: Buffer): void => this.receive(chunk);
    const socket = client.scheme === "http" ? adopt(accepted, this.buffer, receive) : accepted;
    if (client.scheme === "https") {
      this.reused = readInto(accepted as TLSSocket, this.buffer, receive);
      // What was decrypted together with the end of the handshake is in the stream already.
      socket.on("data", receive);
    }
    this.socket = socket;
    this.writer = new TextWriter(socket, this.written);
    if (client.scheme === "http") this.writer.direct();
    socket.on("end", () => this.clientEnded());
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.closed());
    // Whoever counts connections listens on the socket that was accepted, which has nothing left to close.
    if (socket !== accepted) socket.on("close", () => accepted.destroy());
  }

  /** True while bytes that were written have not all reached the kernel. */
  get writePending(): boolean {
    return this.writer.pending;
  }

  write(text: string): void {
    if (this.heldText === "") batch(this);
    this.heldText += text;
    if (this.heldText.length > HELD_TEXT_MAX) this.writeBatched();
  }

  writeBatched(): void {
    const text = this.heldText;
    if (text === "") return;
    this.heldText = "";
    this.writer.write(text);
    this.armWrite();
  }
  private heldText = "";

  /** Text, bytes and text in one system call where the platform allows. */
  writeAround(before: string, bytes: Buffer, after: string): void {
    const { socket } = this;
    this.writeBatched();
    if (before === "" && after === "") socket.write(bytes, this.written);
    else {
      socket.cork();
      if (before !== "") socket.write(before, "latin1");
      socket.write(bytes, after === "" ? this.written : undefined);
      if (after !== "") socket.write(after, "latin1", this.written);
      socket.uncork();
    }
    this.armWrite();
  }

  /** The action took the body: what waited goes to it, unless that would happen inside its own call. */
  bodyWanted(): void {
    if (this.exchange?.tunnelled) this.state = State.Tunnel;
    else if (this.state === State.Body) this.exchange!.sendContinue();
    if (!this.receiving) this.resumeInput();
  }

  pauseInput(): void {
    if (this.paused) return;
    this.paused = true;
    this.readDeadline = Infinity;
    this.lookAt = coarseNow() + LOOK_MS;
    this.socket.pause();
  }

  resumeInput(): void {
    if (this.state === State.Closed) return;
    this.paused = false;
    if (this.state === State.Body) this.armBody();
    if (!this.receiving && this.stash !== undefined) {
      const stash = this.stash;
      this.stash = undefined;
      this.receive(stash);
    }
    // The sink may have paused again while the stash was delivered.
    if (!this.paused) this.socket.resume();
  }

  /** Whether another request may follow the answer that is being sent; decided when its head is. */
  mayKeepAlive(exchange: Http1Exchange, endsByClose: boolean): boolean {
    const { request } = exchange;
    const { keepAliveRequestsMax } = this.services.config.limits;
    // A client that was not told to continue may rightly never send its body.
    const drainable =
      this.state !== State.Body ||
      (this.decoder === undefined && this.remaining <= DRAINED_BYTES_MAX && !exchange.awaitsContinue);
    this.keepAlive =
      request.keepAlive &&
      !endsByClose &&
      drainable &&
      !this.halfClosed &&
      !this.registry.draining &&
      this.served < keepAliveRequestsMax &&
      !exchange.closes;
    return this.keepAlive;
  }

  exchangeEnded(exchange: Http1Exchange): void {
    this.services.dispatcher.finished(exchange);
    if (this.state === State.Tunnel || !this.keepAlive) return this.linger();
    if (this.state === State.Body) {
      // What is left of the body is read and dropped; the next request begins behind it.
      this.exchange!.sink = DISCARD;
      return this.resumeInput();
    }
    this.nextRequest();
  }

  exchangeAborted(reset: boolean): void {
    this.services.dispatcher.finished(this.exchange!);
    // Without a length or chunks only a reset tells the client that the answer is not whole.
    // (TLS sockets cannot be reset; there the missing close_notify tells it.)
    if (reset && this.client.scheme === "http") this.socket.resetAndDestroy();
    else if (reset) this.socket.destroy();
    else this.linger();
  }

  /** Stops taking requests: an idle connection is closed, a busy one after its answer. */
  drain(): void {
    // A request may be on its way already: closing now would cut it unanswered (RFC 9112, 9.6).
    if (this.state === State.Head && this.reader.empty && this.stash === undefined) {
      this.readDeadline = Math.min(this.readDeadline, coarseNow() + DRAIN_IDLE_MS);
    }
  }

  destroy(): void {
    this.socket.destroy();
  }

  sweep(now: number): void {
    if (now >= this.writeDeadline) return void this.socket.destroy();
    if (this.paused && now >= this.lookAt) this.look(now);
    if (now < this.readDeadline && now < this.lingerUntil) return;
    this.readDeadline = Infinity;
    if (this.state === State.Answering && this.writePending) {
      // Half-closed and slow, but reading for all that is known; the write deadline runs.
      this.lingerUntil = now + HALF_CLOSED_MS;
      return;
    }
    if (this.state === State.Lingering && this.writePending) {
      // The time to linger begins when the client has read what it was sent; until then the write deadline runs.
      this.readDeadline = now + LINGER_IDLE_MS;
      this.lingerUntil = now + LINGER_TOTAL_MS;
      return;
    }
    if (this.state === State.Head && !this.reader.empty)
      return this.refuse(new HeadError(408, "request head timed out"));
    if (this.state === State.Body && this.exchange!.over) return this.linger();
    if (this.state === State.Body) return this.bodyFailed(408);
    if (this.state === State.Head && this.exchange === undefined) return this.linger();
    this.socket.destroy();
  }

  /** While an upstream takes no more of an upload, its client may go away, and nobody would be told. */
  private look(now: number): void {
    this.lookAt = now + LOOK_MS;
    this.socket.setKeepAlive(true, SILENT_MS);
    if (!this.writePending && wasReset(this.socket)) this.socket.destroy();
  }

  onBytes(chunk: Buffer, from: number, to: number): void {
    const exchange = this.exchange!;
    const bodyMax = exchange.route?.config.requestBodyBytesMax ?? 0;
    if (bodyMax !== 0) {
      this.counted += to - from;
      if (this.counted > bodyMax && !exchange.over) return this.bodyFailed(413);
    }
    const piece = from === 0 && to === chunk.length ? chunk : chunk.subarray(from, to);
    // Several small pieces of one read wait together to be written; the next read would overwrite them.
    const reread = this.client.scheme === "http" && piece.length <= SMALL_BYTES_MAX;
    if (!exchange.sink!.onData(piece, this.transient || reread)) this.pauseInput();
  }

  private counted = 0;

  private readonly written = (): void => {
    // The connection is gone, though its close is still to be told: nothing more is begun on it.
    if (this.socket.destroyed) return;
    if (this.writePending) {
      this.armWrite();
      return;
    }
    this.writeDeadline = Infinity;
    this.exchange?.onDrain?.();
    if (this.state !== State.Head || this.receiving || !this.paused) return;
    // The time ran no more while input was held.
    const { requestHeadMs, keepAliveMs } = this.services.config.timeouts;
    this.readDeadline = coarseNow() + (this.reader.empty ? keepAliveMs : requestHeadMs);
    this.resumeInput();
  };

  private armWrite(): void {
    // Something is still being written: a half-closed client may be reading it.
    if (this.halfClosed && this.state === State.Answering) this.lingerUntil = coarseNow() + HALF_CLOSED_MS;
    // The last answer may still be on its way when its exchange is over.
    if (this.exchange !== undefined)
      this.sendTimeoutMs = this.exchange.route?.config.sendTimeoutMs ?? LINGER_TOTAL_MS;
    if (!this.writePending) this.writeDeadline = Infinity;
    else this.writeDeadline = coarseNow() + this.sendTimeoutMs;
  }

  private armBody(): void {
    this.readDeadline = coarseNow() + (this.exchange?.route?.config.requestBodyTimeoutMs ?? LINGER_TOTAL_MS);
  }

  private receive(chunk: Buffer): void {
    this.receiving = true;
    let at = 0;
    // Also runs once for a chunk that ends exactly with a head whose body is empty.
    while (at < chunk.length && !this.holds(chunk, at)) at = this.consume(chunk, at);
    this.receiving = false;
    if (this.state === State.Body)
      this.buffer.fit(this.decoder === undefined ? this.remaining : -1, chunk.length);
  }

  /** Whether bytes just read are good only during the read; those of a stash or a TLS socket are ours to keep. */
  private get transient(): boolean {
    return this.buffer.transient && this.reused;
  }

  /** Keeps bytes that nobody may read yet: behind a complete request, or of a body that no one wants so far. */
  private holds(chunk: Buffer, at: number): boolean {
    const waits =
      this.state === State.Answering ||
      (this.state === State.Body && this.exchange!.sink === undefined) ||
      // A client that does not read its answers gets no further ones made.
      (this.state === State.Head && this.writePending);
    if (!waits) return false;
    const rest = chunk.subarray(at);
    // The receive buffer is only ours during this call.
    this.stash = this.stash === undefined ? Buffer.from(rest) : Buffer.concat([this.stash, rest]);
    this.pauseInput();
    return true;
  }

  /** Takes bytes from `at` on and returns where it stopped. */
  private consume(chunk: Buffer, at: number): number {
    switch (this.state) {
      case State.Head:
        return this.readHead(chunk, at);
      case State.Body:
        return this.readBody(chunk, at);
      case State.Tunnel:
        if (!this.exchange!.sink!.onData(chunk.subarray(at), this.transient)) this.pauseInput();
        return chunk.length;
      case State.Lingering:
        this.readDeadline = coarseNow() + LINGER_IDLE_MS;
        return chunk.length;
      default:
        return chunk.length;
    }
  }

  private readHead(chunk: Buffer, at: number): number {
    const { reader } = this;
    let found = false;
    try {
      const fresh = reader.empty;
      found = reader.read(chunk, at);
      if (!found) {
        // From the first byte of a head its whole time runs; more bytes do not prolong it.
        if (fresh && !reader.empty)
          this.readDeadline = coarseNow() + this.services.config.timeouts.requestHeadMs;
        return chunk.length;
      }
      const { next } = reader;
      const request = parseRequestHead(reader, this.services.config.limits, Date.now());
      reader.release();
      this.begin(request);
      return next;
    } catch (error) {
      if (!(error instanceof HeadError)) throw error;
      this.refuse(error, found ? reader.text.slice(0, reader.text.indexOf("\r")) : reader.firstLine());
      return chunk.length;
    }
  }

  private begin(request: ParsedRequest): void {
    this.served++;
    this.readDeadline = Infinity;
    this.counted = 0;
    this.remaining = request.bodyLength;
    this.decoder = request.bodyLength === -1 ? new ChunkDecoder() : undefined;
    this.state = request.bodyLength === 0 ? State.Answering : State.Body;
    const { dispatcher } = this.services;
    const exchange = new Http1Exchange(
      this,
      request,
      this.client,
      dispatcher.defaultServer(this.client.listener),
    );
    this.exchange = exchange;
    dispatcher.dispatch(exchange);
  }

  private readBody(chunk: Buffer, at: number): number {
    if (!this.paused) this.armBody();
    if (this.decoder === undefined) {
      const to = Math.min(chunk.length, at + this.remaining);
      this.remaining -= to - at;
      this.onBytes(chunk, at, to);
      if (this.remaining === 0) this.bodyEnded();
      return to;
    }
    try {
      const next = this.decoder.decode(chunk, at, this);
      if (this.decoder?.done === true) this.bodyEnded();
      return next;
    } catch (error) {
      this.services.logs.mainError.write("info", `client sent ${(error as Error).message}`, this.exchange);
      this.bodyFailed(400);
      return chunk.length;
    }
  }

  private bodyEnded(): void {
    if (this.state !== State.Body) return;
    const exchange = this.exchange!;
    this.readDeadline = Infinity;
    this.state = State.Answering;
    if (exchange.over) this.nextRequest();
    else exchange.sink!.onEnd();
  }

  /** The body will never be complete: the action hears of it, and the client gets the status if nothing was sent yet. */
  private bodyFailed(status: 400 | 408 | 413): void {
    const exchange = this.exchange!;
    const { sink } = exchange;
    exchange.sink = DISCARD;
    if (exchange.over) return this.linger();
    sink?.onAbort();
    if (!exchange.over) respondError(exchange, status);
  }

  private nextRequest(): void {
    this.exchange = undefined;
    this.decoder = undefined;
    this.buffer.release();
    this.state = State.Head;
    if (this.halfClosed) return this.linger();
    const { keepAliveMs } = this.services.config.timeouts;
    this.readDeadline =
      coarseNow() + (this.registry.draining ? Math.min(keepAliveMs, DRAIN_IDLE_MS) : keepAliveMs);
    // Inside `receive` its loop goes on by itself.
    if (!this.receiving && (this.stash !== undefined || this.paused)) this.resumeInput();
  }

  /** Answers a head that cannot be routed, from the default server (nginx-semantics A10), and closes. */
  private refuse(error: HeadError, line = this.reader.firstLine()): void {
    const { dispatcher, logs } = this.services;
    const request = unroutable(line);
    // Where the host could be read, its server answers; else the default server (design 5.12).
    const server = dispatcher.serverFor(this.client.listener, error.serverName ?? "");
    const exchange = new Http1Exchange(this, request, this.client, server);
    this.reader.reset();
    this.exchange = exchange;
    this.state = State.Answering;
    logs.mainError.write("info", `client sent an invalid request: ${error.message}`, exchange);
    respondError(exchange, error.status, { reason: error.page });
  }

  /** Closes in both directions, but reads on for a while: unread bytes would turn the close into a reset. */
  private linger(): void {
    if (this.state === State.Closed || this.state === State.Lingering) return;
    this.state = State.Lingering;
    this.stash = undefined;
    // Its head may be long, and the client may take its time: with thousands of them collecting takes its time too.
    if (this.exchange?.over === true) this.exchange = undefined;
    this.lingerUntil = coarseNow() + LINGER_TOTAL_MS;
    this.readDeadline = coarseNow() + LINGER_IDLE_MS;
    this.writeBatched();
    this.socket.end();
    this.paused = false;
    this.socket.resume();
  }

  private clientEnded(): void {
    this.halfClosed = true;
    const { exchange } = this;
    if (this.state === State.Answering) this.lingerUntil = coarseNow() + HALF_CLOSED_MS;
    else if (this.state === State.Tunnel) exchange!.sink!.onEnd();
    else if (this.state === State.Body && !exchange!.over) this.socket.destroy();
    else {
      this.writeBatched();
      this.socket.end();
    }
  }

  private closed(): void {
    const { exchange, state } = this;
    this.state = State.Closed;
    this.registry.delete(this);
    if (exchange === undefined || exchange.over) return;
    exchange.over = true;
    if (state === State.Body || state === State.Tunnel) exchange.sink?.onAbort();
    exchange.onClientGone?.();
    this.services.dispatcher.finished(exchange);
  }
}

const DISCARD = { onData: () => true, onEnd: () => {}, onAbort: () => {} };

/** Stands in for a request whose head could not be read, for the error page and the log. */
function unroutable(requestLine: string): ParsedRequest {
  return {
    method: "",
    target: "",
    path: "",
    requestLine,
    version: "1.1",
    headers: [],
    host: "",
    serverName: "",
    bodyLength: 0,
    lengthDeclared: false,
    upgrade: undefined,
    receivedAt: Date.now(),
    keepAlive: false,
    expectContinue: false,
  };
}
