import { constants, type OutgoingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { VirtualServerConfig } from "../../model/index.js";
import { coarseNow } from "../clock.js";
import type { DispatchedExchange } from "../dispatch.js";
import { respondError, serverHeader } from "../errorPages.js";
import type { BodySink, ClientInfo, HeaderList } from "../exchange.js";
import { httpDate } from "../httpDate.js";
import type { RouteRuntime } from "../routeRuntime.js";
import type { Http2Connection } from "./connection.js";
import type { ParsedRequest } from "./requestHead.js";
import { addResponseFields } from "./responseFields.js";

/** Body pieces up to this size are copied, so that their buffers are free at once and head and body go together. */
const COPIED_BYTES_MAX = 16_384;
/** Copied bytes that may wait for the client before the source is told to stop. */
const PENDING_BYTES_MAX = 65_536;
/** What is left of a request body after the answer is read up to here; a client that sends more is told to stop. */
const DRAINED_BYTES_MAX = 65_536;
const DRAIN_MS = 1_000;
/** Idle times of exchanges without a route, which has no timeouts of its own. */
const UNROUTED_IDLE_MS = 30_000;

const { NGHTTP2_INTERNAL_ERROR, NGHTTP2_NO_ERROR } = constants;
const BODILESS: ReadonlySet<number> = new Set([204, 205, 304]);

/** One request on an HTTP/2 stream, and the writer of its answer. */
export class Http2Exchange implements DispatchedExchange {
  route: RouteRuntime | undefined = undefined;
  status = 0;
  bodyBytesSent = 0;
  headSent = false;
  onDrain: (() => void) | undefined = undefined;
  onClientGone: (() => void) | undefined = undefined;
  /** True once the answer is complete. */
  complete = false;
  /** True once the answer is complete or given up. */
  private over = false;
  private sink: BodySink | undefined = undefined;
  /** The request body has ended, one way or the other. */
  private bodyOver: boolean;
  private bodyBytes = 0;
  private reading = false;
  private paused = false;
  private continued = false;
  /** This side reset the stream, for a reason of its own. */
  private resetHere = false;
  /** Head that was announced by `sendHead` and waits for the first bytes, to go out with them. */
  private fields: OutgoingHttpHeaders | undefined = undefined;
  /** Small body pieces that wait for `flush`, one char a byte. */
  private held = "";
  /** The answer has no body whatever `sendData` is given. */
  private bodiless = false;
  /** The source waits for `onDrain`. */
  private blocked = false;
  /** Deadlines on the coarse clock; Infinity where none runs. */
  private readDeadline = Infinity;
  private writeDeadline = Infinity;

  constructor(
    private readonly connection: Http2Connection,
    private readonly stream: ServerHttp2Stream,
    readonly request: ParsedRequest,
    readonly client: ClientInfo,
    public server: VirtualServerConfig,
    ended: boolean,
  ) {
    this.bodyOver = ended;
    stream.on("error", ignore);
    stream.on("close", () => this.closed());
    endOnlyComplete(stream, this);
  }

  readBody(sink: BodySink): void {
    this.sink = sink;
    this.sendContinue();
    // END_STREAM may have come with the head of an extended CONNECT too.
    if (this.bodyOver) process.nextTick(() => this.over || sink.onEnd());
    else this.startReading();
  }

  pauseBody(): void {
    if (!this.reading || this.paused) return;
    this.paused = true;
    this.readDeadline = Infinity;
    // What the client has in flight still arrives and is kept, one stream window of it at most: node returns a
    // stream's flow control credit only while it is read.
    this.stream.pause();
  }

  resumeBody(): void {
    if (!this.paused) return;
    this.paused = false;
    this.armRead();
    this.stream.resume();
  }

  sendContinue(): void {
    if (!this.request.expectContinue || this.continued || this.headSent || this.gone) return;
    this.continued = true;
    this.attempt(() => this.stream.additionalHeaders({ ":status": 100 }));
  }

  sendInformational(status: number, headers: HeaderList): void {
    // 101 does not exist on streams (RFC 9113, 8.6).
    if (this.headSent || this.gone || status === 101) return;
    const fields = addResponseFields({ ":status": status }, headers);
    this.attempt(() => this.stream.additionalHeaders(fields));
  }

  sendHead(status: number, _reason: string, headers: HeaderList, bodyLength: number): void {
    if (this.over || this.headSent) return;
    // Codes above 599 mean nothing (RFC 9110, 15), and node refuses to send them.
    this.status = status > 599 ? 502 : status;
    this.headSent = true;
    const head = this.request.method === "HEAD";
    this.bodiless = head || BODILESS.has(status);
    const fields: OutgoingHttpHeaders = {
      ":status": this.status,
      server: serverHeader(this.server),
      date: httpDate(),
    };
    if (bodyLength >= 0 && (!this.bodiless || head || status === 304))
      fields["content-length"] = String(bodyLength);
    this.fields = addResponseFields(fields, headers);
  }

  sendData(chunk: Uint8Array, transient = false): boolean {
    if (this.over || this.bodiless || chunk.length === 0) return true;
    this.bodyBytesSent += chunk.length;
    if (this.held.length + chunk.length <= COPIED_BYTES_MAX) {
      this.held += (chunk as Buffer).toString("latin1");
      return this.room();
    }
    this.flush();
    if (this.gone) return true;
    // node:http2 keeps the buffer until the frames are written.
    this.stream.write(transient ? Buffer.from(chunk) : chunk, this.written);
    this.armWrite();
    this.blocked = true;
    return false;
  }

  flush(): void {
    if (this.over || this.gone) return;
    this.respond(false);
    if (this.held === "" || this.gone) return;
    this.stream.write(this.held, "latin1", this.written);
    this.held = "";
    this.armWrite();
  }

  end(): void {
    if (this.over) return;
    this.over = this.complete = true;
    if (!this.gone) {
      const empty = this.held === "";
      if (this.fields !== undefined && empty) this.respond(true);
      else {
        this.respond(false);
        if (empty) this.stream.end();
        else if (!this.gone) this.stream.end(this.held, "latin1");
        this.armWrite();
      }
      if (!this.bodyOver) this.drainBody();
    }
    this.connection.finished(this);
  }

  abort(): void {
    if (this.over) return;
    this.over = true;
    this.readDeadline = this.writeDeadline = Infinity;
    // A reset with an error code cannot be taken for the end of an answer (design 5.8).
    this.reset(NGHTTP2_INTERNAL_ERROR);
    this.connection.finished(this);
  }

  sweep(now: number): void {
    if (now >= this.writeDeadline) {
      this.writeDeadline = Infinity;
      // Nothing is called back when the last bytes of an answer are written.
      if (!this.stream.writableFinished) return this.timedOutSending();
    }
    if (now < this.readDeadline) return;
    this.readDeadline = Infinity;
    if (this.over) this.stopBody();
    else this.bodyFailed(408);
  }

  /** Bytes reached the client's connection: none of its streams is stuck for now. */
  progressed(now: number): void {
    if (this.writeDeadline !== Infinity) this.writeDeadline = now + this.sendTimeoutMs;
  }

  /** The stream can carry nothing any more, though its `close` may be still to come. */
  private get gone(): boolean {
    return this.stream.destroyed || this.stream.closed;
  }

  private get sendTimeoutMs(): number {
    return this.route?.config.sendTimeoutMs ?? UNROUTED_IDLE_MS;
  }

  /** Sends the head if it is still to be sent; afterwards the stream may be gone. */
  private respond(endStream: boolean): void {
    const { fields } = this;
    if (fields === undefined) return;
    this.fields = undefined;
    this.attempt(() => this.stream.respond(fields, endStream || this.bodiless ? LAST : MORE));
  }

  /** Node throws for fields it will not send; that must cost this stream only, whoever called. */
  private attempt(send: () => void): void {
    try {
      send();
    } catch (error) {
      this.route?.errorLog.write("crit", `answer cannot be sent: ${(error as Error).message}`, this);
      this.reset(NGHTTP2_INTERNAL_ERROR);
    }
  }

  private reset(code: number): void {
    this.resetHere = true;
    this.stream.close(code);
  }

  private readonly written = (): void => {
    const pending = this.stream.writableLength;
    this.writeDeadline = pending === 0 ? Infinity : coarseNow() + this.sendTimeoutMs;
    if (!this.blocked || pending > 0) return;
    this.blocked = false;
    if (!this.over) this.onDrain?.();
  };

  private armWrite(): void {
    this.writeDeadline = coarseNow() + this.sendTimeoutMs;
  }

  /** Whether the source may go on while copied bytes wait. */
  private room(): boolean {
    if (this.stream.writableLength <= PENDING_BYTES_MAX) return true;
    this.blocked = true;
    return false;
  }

  private startReading(): void {
    this.reading = true;
    this.armRead();
    this.stream.on("data", (chunk: Buffer) => this.received(chunk));
    this.stream.on("end", () => this.bodyEnded());
  }

  private armRead(): void {
    // Once a tunnel is open, silence means nothing.
    if (this.request.upgrade !== undefined && this.headSent) this.readDeadline = Infinity;
    else this.readDeadline = coarseNow() + (this.route?.config.requestBodyTimeoutMs ?? UNROUTED_IDLE_MS);
  }

  private received(chunk: Buffer): void {
    this.bodyBytes += chunk.length;
    if (this.over) {
      if (this.bodyBytes > DRAINED_BYTES_MAX) this.stopBody();
      return;
    }
    const max = this.route?.config.requestBodyBytesMax ?? 0;
    if (max !== 0 && this.bodyBytes > max) return this.bodyFailed(413);
    this.armRead();
    if (!this.sink!.onData(chunk)) this.pauseBody();
  }

  private bodyEnded(): void {
    // A client's RST_STREAM with NO_ERROR ends the readable side too: such a body is cut off, not complete.
    if (this.gone) return;
    this.bodyOver = true;
    this.readDeadline = Infinity;
    if (!this.over) this.sink!.onEnd();
  }

  /** The body will never be complete: the action hears of it, and the client gets the status if it can. */
  private bodyFailed(status: 408 | 413): void {
    const { sink } = this;
    this.sink = DISCARD;
    sink?.onAbort();
    if (!this.over) respondError(this, status);
  }

  /** After the answer: reads on for a little, so that a client that is nearly done need not be told to stop. */
  private drainBody(): void {
    this.sink = DISCARD;
    this.bodyBytes = 0;
    if (!this.reading) this.startReading();
    else this.resumeBody();
    this.readDeadline = coarseNow() + DRAIN_MS;
  }

  /** RFC 9113, 8.1: after a complete answer, NO_ERROR asks the client to stop sending without losing the answer. */
  private stopBody(): void {
    this.readDeadline = Infinity;
    if (!this.gone) this.reset(NGHTTP2_NO_ERROR);
  }

  private timedOutSending(): void {
    this.leave();
    this.reset(NGHTTP2_INTERNAL_ERROR);
  }

  private closed(): void {
    this.readDeadline = this.writeDeadline = Infinity;
    this.connection.streamClosed(this, !this.resetHere && this.stream.rstCode !== NGHTTP2_NO_ERROR);
    this.leave();
  }

  /** The client is gone before its answer was complete. */
  private leave(): void {
    if (this.over) return;
    this.over = true;
    if (this.reading && !this.bodyOver) this.sink!.onAbort();
    this.onClientGone?.();
    this.connection.finished(this);
  }
}

/**
 * Node ends the writable side of every stream that it closes or destroys, and sends what that amounts to before the
 * RST_STREAM: a DATA frame with END_STREAM, which makes a truncated answer a complete one (design 5.8). Here a stream
 * ends on the wire only if its answer did.
 */
function endOnlyComplete(stream: ServerHttp2Stream, exchange: Http2Exchange): void {
  const final = stream._final;
  stream._final = (callback) => (exchange.complete ? final.call(stream, callback) : callback());
}

const LAST = { endStream: true, sendDate: false };
const MORE = { endStream: false, sendDate: false };
const DISCARD: BodySink = { onData: () => true, onEnd: () => undefined, onAbort: () => undefined };

/** What a stream's error says arrives as its `close` too; without a listener it would end the process. */
function ignore(): void {}
