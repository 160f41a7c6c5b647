import { UNROUTED_IDLE_MS } from "../dispatch/dispatch.js";
import { guarded } from "../sockets/guarded.js";
import {
  ErrorCode,
  Flag,
  FRAME_BYTES_MAX,
  FRAME_HEAD_BYTES,
  FrameType,
  INITIAL_WINDOW_BYTES,
} from "../codec/http2/protocol.js";
import { HpackEncoder, type ResponseHead } from "../codec/http2/hpackEncoder.js";
import { type FloodGuard, FloodKind } from "./floodGuard.js";
import { type ConnectionWindow, type SendingStream, SendScheduler } from "./flowControl.js";
import type { Outbox } from "./outbox.js";
import type { PacedRequest, RequestPace } from "./requestPace.js";
import { ClosedStreams, type StreamStandings } from "./standing.js";

/** What a connection still does with its streams. */
export const enum StreamsState {
  Open,
  /** The last GOAWAY named the last stream that is served. */
  Closing,
  /** Nothing is sent any more. */
  Ended,
}

/** What is known here of an exchange. */
export interface OpenStream extends SendingStream, PacedRequest {
  closed: boolean;
  /** END_STREAM was sent. */
  readonly responded: boolean;
  readonly requestEnded: boolean;
  readonly sendTimeoutMs: number;
  /** The stream is closed: what waits is not sent. */
  dropWaiting(): void;
  /** Resets the stream for a fault of either side. */
  fail(code: ErrorCode): void;
}

/** What the streams tell their connection. */
export interface StreamsOwner<Stream> {
  /** No stream is open any more. */
  onLastClosed(): void;
  /** An exception in an exchange ends its stream only, as long as the connection itself is intact. */
  containFault(stream: Stream, error: unknown): void;
}

/**
 * The streams of one HTTP/2 connection, and what they share: the outbox, the windows, the table of field compression. Sends
 * everything that concerns streams, and closes them. Exchanges, frames and the connection all stand on this; it calls none
 * of them but through the interfaces above.
 */
export class Http2Streams<Stream extends OpenStream> implements StreamStandings {
  readonly open = new Map<number, Stream>();
  readonly closedStreams = new ClosedStreams();
  readonly scheduler: SendScheduler;
  readonly encoder = new HpackEncoder();
  state = StreamsState.Open;
  /** The client's SETTINGS_INITIAL_WINDOW_SIZE. */
  initialSendWindow = INITIAL_WINDOW_BYTES;
  lastStream = 0;
  /** How long the client of the stream that was closed last might be silent. */
  sendTimeoutMs = UNROUTED_IDLE_MS;

  /** @param window receive window for all streams together; larger from the first WINDOW_UPDATE on */
  constructor(
    readonly owner: StreamsOwner<Stream>,
    readonly outbox: Outbox,
    readonly window: ConnectionWindow,
    readonly guard: FloodGuard,
    private readonly pace: RequestPace,
  ) {
    this.scheduler = new SendScheduler(outbox);
  }

  get closing(): boolean {
    return this.state !== StreamsState.Open;
  }

  /** Puts the head of a response into the outbox. @returns why it cannot be sent, if it cannot */
  sendHead(stream: Stream, head: ResponseHead): string | undefined {
    if (stream.closed) return undefined;
    const { outbox, encoder } = this;
    const fault = encoder.check(head);
    if (fault !== undefined) return fault;
    outbox.reserve(FRAME_HEAD_BYTES);
    const from = outbox.at;
    outbox.at += FRAME_HEAD_BYTES;
    encoder.encode(head, outbox);
    stream.flagsAt = from + 4;
    stream.generation = outbox.generation;
    const length = outbox.at - from - FRAME_HEAD_BYTES;
    if (length > FRAME_BYTES_MAX) outbox.splitHead(stream.id, from, length);
    else {
      outbox.at = from;
      outbox.frameHead(length, FrameType.Headers, Flag.EndHeaders, stream.id);
      outbox.at += length;
    }
    return undefined;
  }

  /**
   * Marks the last frame of the stream as its end if it has not been sent yet; otherwise adds an empty one (RFC 9113,
   * 8.1).
   */
  endStream(stream: Stream): void {
    if (stream.closed) return;
    const { outbox } = this;
    if (stream.generation === outbox.generation) outbox.buffer[stream.flagsAt]! |= Flag.EndStream;
    else outbox.numbers(FrameType.Data, Flag.EndStream, stream.id);
  }

  reset(stream: Stream, code: ErrorCode): void {
    if (stream.closed) return;
    this.sendReset(stream.id, code);
    this.closeStream(stream, true);
    // The client sends a body that it need not send. This is counted outside of the action's call.
    if (code === ErrorCode.NoError) process.nextTick(guarded, this, () => this.guard.count(FloodKind.Reset));
  }

  /** Resets a stream that has no exchange. */
  refuse(id: number, code: ErrorCode): void {
    this.sendReset(id, code);
    this.closedStreams.add(id, true);
  }

  streamError(id: number, code: ErrorCode): void {
    const stream = this.open.get(id);
    if (stream === undefined) this.refuse(id, code);
    else stream.fail(code);
    this.guard.count(FloodKind.Reset);
  }

  /** @param here whether this side reset it */
  closeStream(stream: Stream, here = false): void {
    if (stream.closed) return;
    stream.closed = true;
    this.open.delete(stream.id);
    if (stream.undispatched) this.pace.remove(stream);
    this.closedStreams.add(stream.id, here);
    if (!here && stream.responded && stream.requestEnded) this.guard.completed();
    this.scheduler.forget(stream);
    stream.dropWaiting();
    if (stream.body !== undefined) this.consumed(stream.body.close());
    this.sendTimeoutMs = stream.sendTimeoutMs;
    if (this.open.size === 0) this.owner.onLastClosed();
  }

  /** Bytes of bodies were consumed. */
  consumed(bytes: number): void {
    const increment = this.window.consumed(bytes);
    if (increment !== 0) this.openWindow(0, increment);
  }

  openWindow(id: number, increment: number): void {
    if (this.state !== StreamsState.Ended) this.outbox.numbers(FrameType.WindowUpdate, 0, id, increment);
  }

  private sendReset(id: number, code: ErrorCode): void {
    if (this.state !== StreamsState.Ended) this.outbox.numbers(FrameType.RstStream, 0, id, code);
  }
}
