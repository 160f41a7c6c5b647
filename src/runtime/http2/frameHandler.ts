import type { ProxyConfig } from "../../model/index.js";
import { coarseNow } from "../exchange/clock.js";
import type { Http2Exchange, StreamConnection } from "./exchange.js";
import { FieldBlock } from "./fieldBlock.js";
import { type FloodGuard, FloodKind } from "./floodGuard.js";
import { type FrameSink, uint31, uint32 } from "./frames.js";
import { HpackDecoder } from "./hpackDecoder.js";
import { FieldKind, type HpackField } from "./hpackTables.js";
import { ConnectionError, ErrorCode, Flag, FrameType, WINDOW_BYTES_MAX } from "./protocol.js";
import { headerListBytesMax, readSettings, type SettingsReceiver } from "./settings.js";
import type { ClosedStreams } from "./closedStreams.js";
import type { HpackEncoder } from "./hpackEncoder.js";

/** What frames change in the connection that they arrive on. */
export interface FramedConnection extends StreamConnection {
  readonly closedStreams: ClosedStreams;
  readonly encoder: HpackEncoder;
  readonly guard: FloodGuard;
  /** The client's SETTINGS_INITIAL_WINDOW_SIZE. */
  initialSendWindow: number;
  /** Highest stream that the client opened. */
  lastStream: number;
  /** Whether new streams are ignored: the client sends them again on another connection. */
  readonly closing: boolean;
  /** A request head arrived. @param complete false if it was too long to be kept whole */
  open(
    id: number,
    fields: readonly HpackField[],
    ended: boolean,
    complete: boolean,
    malformed: boolean,
  ): void;
  resetStream(id: number, code: ErrorCode): void;
  /** The client broke the rules of one stream (RFC 9113, 5.4.2). */
  streamError(id: number, code: ErrorCode): void;
  /** The client answered a PING. */
  pinged(high: number, low: number): void;
}

/** What the frames of a client mean (RFC 9113, 5 and 6), in any state of its streams. */
export class FrameHandler implements FrameSink, SettingsReceiver {
  /** When a head that came in part must be complete, on the coarse clock. */
  blockDeadline = Infinity;
  private readonly decoder: HpackDecoder;
  private readonly block: FieldBlock;
  private readonly headMs: number;
  private readonly streamsMax: number;
  private settingsReceived = false;
  /** The exchange that the current DATA frame belongs to, and how much of its length was not passed on yet. */
  private target: Http2Exchange | undefined = undefined;
  private uncounted = 0;
  private hadData = false;

  constructor(
    private readonly connection: FramedConnection,
    config: ProxyConfig,
  ) {
    const listBytesMax = headerListBytesMax(config);
    this.decoder = new HpackDecoder(listBytesMax);
    // A list that is somewhat too long ends only its stream: it has to be read to keep the table in step.
    this.block = new FieldBlock(4 * listBytesMax);
    this.headMs = config.timeouts.requestHeadMs;
    this.streamsMax = config.limits.concurrentStreamsMax;
  }

  onDataBegin(stream: number, length: number): void {
    this.checkOrder(FrameType.Data, stream);
    if (stream === 0) throw protocolError("DATA on stream 0");
    if (this.isIdle(stream)) throw protocolError("DATA on an idle stream");
    const { connection } = this;
    if (!connection.window.take(length))
      throw new ConnectionError(ErrorCode.FlowControlError, "DATA beyond the connection's window");
    this.uncounted = length;
    this.hadData = false;
    this.target = undefined;
    const exchange = connection.streams.get(stream);
    if (exchange === undefined || exchange.requestEnded) {
      // Frames sent before the client saw our reset are not an error (RFC 9113, 5.1), nor are those that come after our
      // GOAWAY.
      const expected = connection.closing || connection.closedStreams.fate(stream) === "reset here";
      if (exchange !== undefined || !expected) connection.streamError(stream, ErrorCode.StreamClosed);
    } else if (!exchange.takeData(length)) connection.streamError(stream, ErrorCode.FlowControlError);
    else this.target = exchange;
  }

  onDataPiece(chunk: Buffer, from: number, to: number): void {
    const { target } = this;
    this.hadData = true;
    if (target === undefined || target.closed) return;
    this.uncounted -= to - from;
    if (target.body!.data(chunk, from, to, false)) return;
    if (!target.closed) this.connection.streamError(target.id, ErrorCode.ProtocolError);
  }

  onDataEnd(flags: number): void {
    const { target, connection, uncounted } = this;
    this.target = undefined;
    this.uncounted = 0;
    const open = target !== undefined && !target.closed;
    // Padding, or all of it if the body is not wanted.
    if (open && uncounted > 0) target.bodyConsumed(uncounted);
    else if (uncounted > 0) connection.consumed(uncounted);
    // Padding is not data either.
    if (!this.hadData && (!open || (flags & Flag.EndStream) === 0))
      connection.guard.count(FloodKind.EmptyData);
    if (open && (flags & Flag.EndStream) !== 0) this.endRequest(target);
  }

  onFrame(type: number, flags: number, stream: number, bytes: Buffer, from: number, to: number): void {
    this.checkOrder(type, stream, flags);
    switch (type) {
      case FrameType.Headers:
        return this.onHeaders(flags, stream, bytes, from, to);
      case FrameType.Priority:
        return this.onPriority(stream, bytes, from, to);
      case FrameType.RstStream:
        return this.onReset(stream, to - from);
      case FrameType.Settings:
        return this.onSettings(flags, stream, bytes, from, to);
      case FrameType.PushPromise:
        throw protocolError("PUSH_PROMISE from a client");
      case FrameType.Ping:
        return this.onPing(flags, stream, bytes, from, to);
      case FrameType.GoAway:
        // Its streams continue, and this side opens none (RFC 9113, 6.8).
        if (stream !== 0) throw protocolError("GOAWAY on a stream");
        checkSize(to - from >= 8, "GOAWAY of wrong length");
        return this.connection.guard.count(FloodKind.Ignored);
      case FrameType.WindowUpdate:
        return this.onWindowUpdate(stream, bytes, from, to);
      case FrameType.Continuation:
        return this.onContinuation(flags, bytes, from, to);
      default:
        // RFC 9113, 5.5.
        this.connection.guard.count(FloodKind.Ignored);
    }
  }

  onTableSize(bytes: number): void {
    this.connection.encoder.limitTable(bytes);
  }

  /** Windows of streams that are open change by the difference, even below zero (RFC 9113, 6.9.2). */
  onInitialWindow(bytes: number): void {
    const { connection } = this;
    const change = bytes - connection.initialSendWindow;
    connection.initialSendWindow = bytes;
    for (const exchange of connection.streams.values()) {
      exchange.sendWindow += change;
      if (exchange.sendWindow > WINDOW_BYTES_MAX)
        throw new ConnectionError(ErrorCode.FlowControlError, "window too large");
      connection.scheduler.wake(exchange);
    }
  }

  /** RFC 9113, 3.4: SETTINGS first; 6.10: nothing between the frames of a field block. */
  private checkOrder(type: number, stream: number, flags = 0): void {
    if (!this.settingsReceived) {
      if (type !== FrameType.Settings || (flags & Flag.Ack) !== 0)
        throw protocolError("no SETTINGS frame at the start");
      this.settingsReceived = true;
    }
    const { block } = this;
    if (block.stream !== 0 && (type !== FrameType.Continuation || stream !== block.stream))
      throw protocolError("frame in the middle of a field block");
    if (block.stream === 0 && type === FrameType.Continuation)
      throw protocolError("CONTINUATION without HEADERS");
  }

  private isIdle(stream: number): boolean {
    return stream > this.connection.lastStream || (stream & 1) === 0;
  }

  private onHeaders(flags: number, stream: number, bytes: Buffer, from: number, to: number): void {
    if ((stream & 1) === 0) throw protocolError("HEADERS on a stream that is not a client's");
    let padding = 0;
    if ((flags & Flag.Padded) !== 0) {
      checkSize(from < to, "HEADERS of wrong length");
      padding = bytes[from++]!;
    }
    let dependsOnItself = false;
    if ((flags & Flag.Priority) !== 0) {
      checkSize(to - from >= 5, "HEADERS of wrong length");
      dependsOnItself = uint31(bytes, from) === stream;
      from += 5;
    }
    if (padding > to - from) throw protocolError("HEADERS with more padding than payload");
    to -= padding;
    if ((flags & Flag.EndHeaders) !== 0)
      return this.fieldBlock(stream, flags, bytes, from, to, dependsOnItself);
    this.block.begin(stream, dependsOnItself ? flags | DEPENDS_ON_ITSELF : flags, bytes, from, to);
    this.blockDeadline = coarseNow() + this.headMs;
  }

  private onContinuation(flags: number, bytes: Buffer, from: number, to: number): void {
    const { block } = this;
    block.append(bytes, from, to);
    if ((flags & Flag.EndHeaders) === 0) return;
    this.blockDeadline = Infinity;
    const { stream } = block;
    const whole = block.end();
    this.fieldBlock(stream, block.flags, whole, 0, whole.length, (block.flags & DEPENDS_ON_ITSELF) !== 0);
  }

  /** A field block is complete: the head of a request, or its trailers. */
  private fieldBlock(
    stream: number,
    flags: number,
    bytes: Buffer,
    from: number,
    to: number,
    dependsOnItself: boolean,
  ): void {
    const { connection, decoder } = this;
    // Decoded even if the stream does not matter: the table must stay the same as the client's (RFC 9113, 4.3).
    const complete = decoder.decode(bytes, from, to);
    const exchange = connection.streams.get(stream);
    const ended = (flags & Flag.EndStream) !== 0;
    if (exchange !== undefined) return this.onTrailers(exchange, ended, complete);
    if (stream <= connection.lastStream) return this.onLateHeaders(stream);
    connection.lastStream = connection.closing ? connection.lastStream : stream;
    // RFC 9113, 6.8: the client knows that these are not served, and sends them again.
    if (connection.closing) return;
    if (connection.streams.size >= this.streamsMax) {
      connection.resetStream(stream, ErrorCode.RefusedStream);
      connection.closedStreams.add(stream, true);
      return connection.guard.count(FloodKind.Excess);
    }
    connection.open(stream, decoder.fields, ended, complete, dependsOnItself);
  }

  /** Trailers are checked and dropped (RFC 9113, 8.1). */
  private onTrailers(exchange: Http2Exchange, ended: boolean, complete: boolean): void {
    if (exchange.requestEnded) return this.connection.streamError(exchange.id, ErrorCode.StreamClosed);
    const plain = this.decoder.fields.every(
      ({ kind }) => kind === FieldKind.Plain || kind >= FieldKind.Cookie,
    );
    if (!ended || !complete || !plain)
      return this.connection.streamError(exchange.id, ErrorCode.ProtocolError);
    this.endRequest(exchange);
  }

  /** HEADERS for a stream that is closed, or was skipped (RFC 9113, 5.1 and 5.1.1). */
  private onLateHeaders(stream: number): void {
    const fate = this.connection.closedStreams.fate(stream);
    if (fate === "reset here") return this.connection.guard.count(FloodKind.Ignored);
    if (fate === "closed") throw new ConnectionError(ErrorCode.StreamClosed, "HEADERS on a closed stream");
    throw protocolError("HEADERS on a lower stream than before");
  }

  private endRequest(exchange: Http2Exchange): void {
    if (!exchange.body!.end()) return this.connection.streamError(exchange.id, ErrorCode.ProtocolError);
    if (exchange.answered) this.connection.closeStream(exchange);
  }

  /** Priorities are not used (RFC 9113, 5.3.2); a frame must be well-formed all the same. */
  private onPriority(stream: number, bytes: Buffer, from: number, to: number): void {
    if (stream === 0) throw protocolError("PRIORITY on stream 0");
    this.connection.guard.count(FloodKind.Ignored);
    const code =
      to - from !== 5
        ? ErrorCode.FrameSizeError
        : uint31(bytes, from) === stream
          ? ErrorCode.ProtocolError
          : ErrorCode.NoError;
    if (code === ErrorCode.NoError) return;
    // A stream that is not open cannot be reset.
    if (!this.connection.streams.has(stream)) throw new ConnectionError(code, "invalid PRIORITY");
    this.connection.streamError(stream, code);
  }

  private onReset(stream: number, length: number): void {
    checkSize(length === 4, "RST_STREAM of wrong length");
    if (stream === 0 || this.isIdle(stream)) throw protocolError("RST_STREAM on an idle stream");
    const { connection } = this;
    const exchange = connection.streams.get(stream);
    if (exchange !== undefined) {
      connection.closeStream(exchange);
      exchange.leave();
    }
    connection.guard.count(FloodKind.Reset);
  }

  private onSettings(flags: number, stream: number, bytes: Buffer, from: number, to: number): void {
    if (stream !== 0) throw protocolError("SETTINGS on a stream");
    if ((flags & Flag.Ack) !== 0) {
      checkSize(from === to, "SETTINGS with ACK of wrong length");
      return this.connection.guard.count(FloodKind.Ignored);
    }
    // Each value may affect every open stream; no honest client sends more values than there are settings.
    this.connection.guard.count(FloodKind.Answered, 1 + Math.floor((to - from) / (6 * SETTINGS_USUAL)));
    readSettings(bytes, from, to, this);
    // The client applies the change when it has this; whatever may be sent now follows when it was written.
    this.connection.outbox.numbers(FrameType.Settings, Flag.Ack, 0);
  }

  private onPing(flags: number, stream: number, bytes: Buffer, from: number, to: number): void {
    if (stream !== 0) throw protocolError("PING on a stream");
    checkSize(to - from === 8, "PING of wrong length");
    const { connection } = this;
    if ((flags & Flag.Ack) !== 0) {
      connection.guard.count(FloodKind.Ignored);
      return connection.pinged(uint32(bytes, from), uint32(bytes, from + 4));
    }
    connection.guard.count(FloodKind.Answered);
    connection.outbox.frame(FrameType.Ping, Flag.Ack, 0, bytes, from, to);
  }

  private onWindowUpdate(stream: number, bytes: Buffer, from: number, to: number): void {
    checkSize(to - from === 4, "WINDOW_UPDATE of wrong length");
    const increment = uint31(bytes, from);
    const { connection } = this;
    const { scheduler } = connection;
    // A fast download takes any number of them, but none of a few bytes.
    if (increment < INCREMENT_USUAL) connection.guard.count(FloodKind.Ignored);
    if (stream === 0) {
      if (increment === 0) throw protocolError("WINDOW_UPDATE of 0");
      if (!scheduler.grant(increment))
        throw new ConnectionError(ErrorCode.FlowControlError, "window too large");
      return scheduler.pump();
    }
    if (this.isIdle(stream)) throw protocolError("WINDOW_UPDATE on an idle stream");
    const exchange = connection.streams.get(stream);
    if (exchange === undefined) return;
    if (increment === 0) return connection.streamError(stream, ErrorCode.ProtocolError);
    exchange.sendWindow += increment;
    if (exchange.sendWindow > WINDOW_BYTES_MAX)
      return connection.streamError(stream, ErrorCode.FlowControlError);
    scheduler.wake(exchange);
    scheduler.pump();
  }
}

/** Most settings that a useful frame contains. */
const SETTINGS_USUAL = 16;
/** Smallest increment that a client usually sends. */
const INCREMENT_USUAL = 256;

/** Outside the range of a frame's flags, which are a byte. */
const DEPENDS_ON_ITSELF = 0x100;

const protocolError = (what: string): ConnectionError =>
  new ConnectionError(ErrorCode.ProtocolError, `client sent ${what}`);

function checkSize(right: boolean, what: string): void {
  if (!right) throw new ConnectionError(ErrorCode.FrameSizeError, `client sent ${what}`);
}
