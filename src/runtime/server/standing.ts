import { type FloodGuard, FloodKind } from "./floodGuard.js";
import { ConnectionError, ErrorCode, FrameType } from "../codec/http2/protocol.js";

/** The standing of a stream that is not open (RFC 9113, 5.1 and 6.8). */
export const enum Standing {
  /** The client has not opened it, or never can. */
  Idle,
  /** The client opened a later one, or this one was closed so long ago that it is no longer recorded. */
  Skipped,
  /** Closed by the client: it ended its request and has the response, or gave it up. */
  Ended,
  /** Reset by this side: the client may have sent frames before it received the reset. */
  Reset,
  /** Above the last stream of our GOAWAY. */
  Refused,
}

/** The state of a connection that determines the standing of its streams. */
export interface StreamStandings {
  readonly closedStreams: ClosedStreams;
  readonly guard: FloodGuard;
  /** Highest stream that the client opened; that was served, once `closing`. */
  lastStream: number;
  /** Whether a GOAWAY named that one: later streams are ignored, the client sends them again on another connection. */
  readonly closing: boolean;
  /** The client broke the rules of one stream (RFC 9113, 5.4.2). */
  streamError(id: number, code: ErrorCode): void;
}

const enum Verdict {
  /** The frame is handled as on an open stream; HEADERS open the stream. */
  Heeded,
  Ignored,
  /** A stream error. */
  Rejected,
  /** A connection error of type STREAM_CLOSED. */
  Closed,
  /** A connection error of type PROTOCOL_ERROR. */
  Forbidden,
}

type Verdicts = Readonly<Record<Standing, Verdict>>;
/** Frames on a stream that is not open. CONTINUATION is part of HEADERS; unknown types are ignored everywhere. */
export type StreamFrame =
  | FrameType.Data
  | FrameType.Headers
  | FrameType.Priority
  | FrameType.RstStream
  | FrameType.WindowUpdate;

/** RFC 9113, 5.1 by state, 6 by frame, and 6.8 for streams that a GOAWAY refused. */
const VERDICTS: Readonly<Record<StreamFrame, Verdicts>> = {
  [FrameType.Data]: {
    [Standing.Idle]: Verdict.Forbidden,
    [Standing.Skipped]: Verdict.Rejected,
    [Standing.Ended]: Verdict.Rejected,
    [Standing.Reset]: Verdict.Ignored,
    [Standing.Refused]: Verdict.Ignored,
  },
  [FrameType.Headers]: {
    [Standing.Idle]: Verdict.Heeded,
    [Standing.Skipped]: Verdict.Forbidden,
    [Standing.Ended]: Verdict.Closed,
    [Standing.Reset]: Verdict.Ignored,
    [Standing.Refused]: Verdict.Ignored,
  },
  [FrameType.Priority]: {
    [Standing.Idle]: Verdict.Heeded,
    [Standing.Skipped]: Verdict.Heeded,
    [Standing.Ended]: Verdict.Heeded,
    [Standing.Reset]: Verdict.Ignored,
    [Standing.Refused]: Verdict.Ignored,
  },
  [FrameType.RstStream]: {
    [Standing.Idle]: Verdict.Forbidden,
    [Standing.Skipped]: Verdict.Ignored,
    [Standing.Ended]: Verdict.Ignored,
    [Standing.Reset]: Verdict.Ignored,
    [Standing.Refused]: Verdict.Ignored,
  },
  [FrameType.WindowUpdate]: {
    [Standing.Idle]: Verdict.Forbidden,
    [Standing.Skipped]: Verdict.Ignored,
    [Standing.Ended]: Verdict.Ignored,
    [Standing.Reset]: Verdict.Ignored,
    [Standing.Refused]: Verdict.Ignored,
  },
};

export function standingOf(
  { lastStream, closing, closedStreams }: StreamStandings,
  stream: number,
): Standing {
  // This side pushes nothing, so no stream with an even number ever exists.
  if ((stream & 1) === 0) return Standing.Idle;
  // Which of these the client opened is not recorded: the client may have opened any before it received the GOAWAY.
  if (stream > lastStream) return closing ? Standing.Refused : Standing.Idle;
  return closedStreams.standing(stream);
}

/**
 * Decides on a frame of a stream that is not open, and counts it.
 *
 * @param paid true for a frame that costs the client more than ignoring it costs this side
 * @returns whether to read it as one on an open stream
 * @throws ConnectionError if the client could know that it must not send it, or has sent too many
 */
export function heeds(connection: StreamStandings, type: StreamFrame, stream: number, paid = false): boolean {
  const standing = standingOf(connection, stream);
  switch (VERDICTS[type][standing]) {
    case Verdict.Heeded:
      return true;
    case Verdict.Ignored:
      if (!paid) connection.guard.count(FloodKind.Ignored);
      return false;
    case Verdict.Rejected:
      connection.streamError(stream, ErrorCode.StreamClosed);
      return false;
    case Verdict.Closed:
      throw new ConnectionError(ErrorCode.StreamClosed, `client sent ${NAMES[type]} on a closed stream`);
    case Verdict.Forbidden:
      throw new ConnectionError(
        ErrorCode.ProtocolError,
        `client sent ${NAMES[type]} on ${standing === Standing.Idle ? "an idle stream" : "a lower stream than before"}`,
      );
  }
}

const NAMES: Readonly<Record<StreamFrame, string>> = {
  [FrameType.Data]: "DATA",
  [FrameType.Headers]: "HEADERS",
  [FrameType.Priority]: "PRIORITY",
  [FrameType.RstStream]: "RST_STREAM",
  [FrameType.WindowUpdate]: "WINDOW_UPDATE",
};

/** The streams that were closed last, and by which side: those that ended do not push out those that were reset. */
export class ClosedStreams {
  private readonly resets = new Int32Array(192);
  private readonly ended = new Int32Array(64);
  private resetsAt = 0;
  private endedAt = 0;
  /** Highest stream that was reset here and is no longer among them: any below it may have been. */
  private forgotten = 0;

  /** @param here whether this side reset it */
  add(id: number, here: boolean): void {
    if (!here) {
      this.ended[this.endedAt] = id;
      this.endedAt = (this.endedAt + 1) % this.ended.length;
      return;
    }
    this.forgotten = Math.max(this.forgotten, this.resets[this.resetsAt]!);
    this.resets[this.resetsAt] = id;
    this.resetsAt = (this.resetsAt + 1) % this.resets.length;
  }

  /** The standing of a stream that is not open, up to the last opened one. */
  standing(id: number): Standing.Skipped | Standing.Ended | Standing.Reset {
    if (this.resets.includes(id)) return Standing.Reset;
    if (this.ended.includes(id)) return Standing.Ended;
    return id <= this.forgotten ? Standing.Reset : Standing.Skipped;
  }
}
