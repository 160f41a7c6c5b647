import type { ProxyConfig } from "../../model/index.js";
import { coarseNow } from "../sockets/deadlines.js";
import { LASTING } from "../sockets/memory.js";
import { countHead, countWork } from "../sockets/turn.js";
import type { Http2Exchange } from "./http2Exchange.js";
import type { Http2Streams } from "./http2Streams.js";
import { FieldBlock, type FrameSink, uint31, uint32 } from "../codec/http2/frames.js";
import { FloodKind, UNDISPATCHED_RESET } from "./floodGuard.js";
import { HpackDecoder } from "../codec/http2/hpackDecoder.js";
import { FieldKind, type HpackField } from "../codec/http2/hpackTables.js";
import { ConnectionError, ErrorCode, Flag, FrameType, WINDOW_BYTES_MAX } from "../codec/http2/protocol.js";
import { headerListBytesMax, readSettings, type SettingsReceiver } from "../codec/http2/settings.js";
import { heeds, Standing, standingOf } from "./standing.js";

/** What frames tell their streams. */
export interface FramesOwner {
  /** A request head arrived. @param complete false if it was too long to be kept whole */
  open(
    id: number,
    fields: readonly HpackField[],
    ended: boolean,
    complete: boolean,
    malformed: boolean,
  ): void;
  /** The client acknowledged a PING. */
  pinged(high: number, low: number): void;
}

/** Handles the frames of a client (RFC 9113, 5 and 6), in any state of its streams. */
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
    private readonly owner: FramesOwner,
    private readonly streams: Http2Streams<Http2Exchange>,
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
    const { streams } = this;
    // Whatever becomes of it, it counts (RFC 9113, 6.8 and 6.9).
    if (!streams.window.take(length))
      throw new ConnectionError(ErrorCode.FlowControlError, "DATA beyond the connection's window");
    // Each frame costs as much as a piece, even one without data.
    countWork(1, 0);
    this.uncounted = length;
    this.hadData = false;
    this.target = undefined;
    const exchange = streams.open.get(stream);
    if (exchange === undefined) heeds(streams, FrameType.Data, stream, length >= USUAL_BYTES);
    else if (exchange.requestEnded) streams.streamError(stream, ErrorCode.StreamClosed);
    else if (!exchange.takeData(length)) streams.streamError(stream, ErrorCode.FlowControlError);
    else {
      this.target = exchange;
      const increment = streams.window.grow(length);
      if (increment > 0) streams.openWindow(0, increment);
    }
  }

  onDataPiece(chunk: Buffer, from: number, to: number): void {
    const { target } = this;
    this.hadData = true;
    if (target === undefined || target.closed) return;
    this.uncounted -= to - from;
    if (target.body!.data(chunk, from, to, LASTING)) return;
    if (!target.closed) this.streams.streamError(target.id, ErrorCode.ProtocolError);
  }

  onDataEnd(flags: number): void {
    const { target, streams, uncounted } = this;
    this.target = undefined;
    this.uncounted = 0;
    const open = target !== undefined && !target.closed;
    // Padding, or all of it if the body is not wanted.
    if (open && uncounted > 0) target.bodyConsumed(uncounted);
    else if (uncounted > 0) streams.consumed(uncounted);
    // Padding is not data either. The end of a body that is not wanted is an honest one.
    if (!this.hadData && (flags & Flag.EndStream) === 0) streams.guard.count(FloodKind.EmptyData);
    if (open && (flags & Flag.EndStream) !== 0) this.endRequest(target);
  }

  onFrame(type: number, flags: number, stream: number, bytes: Buffer, from: number, to: number): void {
    this.checkOrder(type, stream, flags);
    countWork(1, 0);
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
        throw protocolError("PUSH_PROMISE");
      case FrameType.Ping:
        return this.onPing(flags, stream, bytes, from, to);
      case FrameType.GoAway:
        // The client's streams continue, and this side opens none (RFC 9113, 6.8).
        if (stream !== 0) throw protocolError("GOAWAY on a stream");
        checkSize(to - from >= 8, "GOAWAY of wrong length");
        return this.streams.guard.count(FloodKind.Ignored);
      case FrameType.WindowUpdate:
        return this.onWindowUpdate(stream, bytes, from, to);
      case FrameType.Continuation:
        return this.onContinuation(flags, bytes, from, to);
      default:
        // RFC 9113, 5.5.
        this.streams.guard.count(FloodKind.Ignored);
    }
  }

  onTableSize(bytes: number): void {
    this.streams.encoder.limitTable(bytes);
  }

  /** Windows of streams that are open change by the difference, even below zero (RFC 9113, 6.9.2). */
  onInitialWindow(bytes: number): void {
    const { streams } = this;
    const change = bytes - streams.initialSendWindow;
    streams.initialSendWindow = bytes;
    for (const exchange of streams.open.values()) {
      exchange.sendWindow += change;
      if (exchange.sendWindow > WINDOW_BYTES_MAX)
        throw new ConnectionError(ErrorCode.FlowControlError, "window too large");
      streams.scheduler.wake(exchange);
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
    const { streams, decoder } = this;
    // Decoded even if the stream does not matter: the table must stay the same as the client's (RFC 9113, 4.3).
    const complete = decoder.decode(bytes, from, to);
    countHead(decoder.listBytes);
    const exchange = streams.open.get(stream);
    const ended = (flags & Flag.EndStream) !== 0;
    if (exchange !== undefined) return this.onTrailers(exchange, ended, complete);
    if (!heeds(streams, FrameType.Headers, stream)) return;
    streams.lastStream = stream;
    if (streams.open.size >= this.streamsMax) {
      streams.refuse(stream, ErrorCode.RefusedStream);
      return streams.guard.count(FloodKind.Excess);
    }
    this.owner.open(stream, decoder.fields, ended, complete, dependsOnItself);
  }

  /** Trailers are checked and dropped (RFC 9113, 8.1). */
  private onTrailers(exchange: Http2Exchange, ended: boolean, complete: boolean): void {
    if (exchange.requestEnded) return this.streams.streamError(exchange.id, ErrorCode.StreamClosed);
    const plain = this.decoder.fields.every(
      ({ kind }) => kind === FieldKind.Plain || kind >= FieldKind.Cookie,
    );
    if (!ended || !complete || !plain) return this.streams.streamError(exchange.id, ErrorCode.ProtocolError);
    this.endRequest(exchange);
  }

  private endRequest(exchange: Http2Exchange): void {
    if (!exchange.body!.end()) return this.streams.streamError(exchange.id, ErrorCode.ProtocolError);
    if (exchange.responded) this.streams.closeStream(exchange);
  }

  /** Priorities are not used (RFC 9113, 5.3.2); a frame must be well-formed all the same. */
  private onPriority(stream: number, bytes: Buffer, from: number, to: number): void {
    if (stream === 0) throw protocolError("PRIORITY on stream 0");
    const { streams } = this;
    const open = streams.open.has(stream);
    if (!open && !heeds(streams, FrameType.Priority, stream)) return;
    streams.guard.count(FloodKind.Ignored);
    const code =
      to - from !== 5
        ? ErrorCode.FrameSizeError
        : uint31(bytes, from) === stream
          ? ErrorCode.ProtocolError
          : ErrorCode.NoError;
    if (code === ErrorCode.NoError) return;
    // An idle stream cannot be reset (RFC 9113, 6.4).
    if (!open && standingOf(streams, stream) === Standing.Idle)
      throw new ConnectionError(code, "invalid PRIORITY");
    streams.streamError(stream, code);
  }

  private onReset(stream: number, length: number): void {
    checkSize(length === 4, "RST_STREAM of wrong length");
    const { streams } = this;
    const exchange = streams.open.get(stream);
    if (exchange === undefined) return void heeds(streams, FrameType.RstStream, stream);
    streams.closeStream(exchange);
    exchange.leave();
    streams.guard.count(FloodKind.Reset, exchange.undispatched ? UNDISPATCHED_RESET : 1);
  }

  private onSettings(flags: number, stream: number, bytes: Buffer, from: number, to: number): void {
    if (stream !== 0) throw protocolError("SETTINGS on a stream");
    if ((flags & Flag.Ack) !== 0) {
      checkSize(from === to, "SETTINGS with ACK of wrong length");
      return this.streams.guard.count(FloodKind.Ignored);
    }
    // Each value may affect every open stream; no honest client sends more values than there are settings.
    this.streams.guard.count(FloodKind.Acknowledged, 1 + Math.floor((to - from) / (6 * SETTINGS_USUAL)));
    readSettings(bytes, from, to, this);
    // The client applies the change when it has this; whatever may be sent now follows when it was written.
    this.streams.outbox.numbers(FrameType.Settings, Flag.Ack, 0);
  }

  private onPing(flags: number, stream: number, bytes: Buffer, from: number, to: number): void {
    if (stream !== 0) throw protocolError("PING on a stream");
    checkSize(to - from === 8, "PING of wrong length");
    const { streams } = this;
    if ((flags & Flag.Ack) !== 0) {
      streams.guard.count(FloodKind.Ignored);
      return this.owner.pinged(uint32(bytes, from), uint32(bytes, from + 4));
    }
    streams.guard.count(FloodKind.Acknowledged);
    streams.outbox.frame(FrameType.Ping, Flag.Ack, 0, bytes, from, to);
  }

  private onWindowUpdate(stream: number, bytes: Buffer, from: number, to: number): void {
    checkSize(to - from === 4, "WINDOW_UPDATE of wrong length");
    const increment = uint31(bytes, from);
    const { streams } = this;
    const { scheduler } = streams;
    const exchange = streams.open.get(stream);
    if (exchange === undefined && stream !== 0) return void heeds(streams, FrameType.WindowUpdate, stream);
    // A fast download takes any number of them, but none of a few bytes.
    if (increment < USUAL_BYTES) streams.guard.count(FloodKind.Ignored);
    if (exchange === undefined) {
      if (increment === 0) throw protocolError("WINDOW_UPDATE of 0");
      if (!scheduler.grant(increment))
        throw new ConnectionError(ErrorCode.FlowControlError, "window too large");
      return scheduler.pump();
    }
    if (increment === 0) return streams.streamError(stream, ErrorCode.ProtocolError);
    exchange.sendWindow += increment;
    if (exchange.sendWindow > WINDOW_BYTES_MAX)
      return streams.streamError(stream, ErrorCode.FlowControlError);
    scheduler.wake(exchange);
    scheduler.pump();
  }
}

/** Most settings that a useful frame contains. */
const SETTINGS_USUAL = 16;
/** Fewer bytes in a frame, or in the increment of a window, are hardly worth it: such frames are counted. */
const USUAL_BYTES = 256;

/** Outside the range of a frame's flags, which are a byte. */
const DEPENDS_ON_ITSELF = 0x100;

const protocolError = (what: string): ConnectionError =>
  new ConnectionError(ErrorCode.ProtocolError, `client sent ${what}`);

function checkSize(right: boolean, what: string): void {
  if (!right) throw new ConnectionError(ErrorCode.FrameSizeError, `client sent ${what}`);
}
