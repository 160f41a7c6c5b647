/** Numbers of RFC 9113, and its errors. */

export const enum FrameType {
  Data = 0,
  Headers = 1,
  Priority = 2,
  RstStream = 3,
  Settings = 4,
  PushPromise = 5,
  Ping = 6,
  GoAway = 7,
  WindowUpdate = 8,
  Continuation = 9,
}

export const enum Flag {
  Ack = 0x1, // oxlint-disable-line typescript/no-duplicate-enum-values -- by frame type
  EndStream = 0x1,
  EndHeaders = 0x4,
  Padded = 0x8,
  Priority = 0x20,
}

/** RFC 9113, 7. */
export const enum ErrorCode {
  NoError = 0,
  ProtocolError = 1,
  InternalError = 2,
  FlowControlError = 3,
  StreamClosed = 5,
  FrameSizeError = 6,
  RefusedStream = 7,
  CompressionError = 9,
  EnhanceYourCalm = 11,
  Http11Required = 13,
}

/** An error that ends the connection (RFC 9113, 5.4.1). The message goes to the error log, never to the peer. */
export class ConnectionError extends Error {
  constructor(
    readonly code: ErrorCode,
    message: string,
  ) {
    super(message);
  }

  /** How severe it is for an administrator: a fault of the proxy, an attack, or another client that broke the rules. */
  get level(): "crit" | "warn" | "info" {
    if (this.code === ErrorCode.InternalError) return "crit";
    return this.code === ErrorCode.EnhanceYourCalm ? "warn" : "info";
  }
}

export const FRAME_HEAD_BYTES = 9;
/** The largest frame payload both sides must accept (RFC 9113, 4.2); this side never asks for more. */
export const FRAME_BYTES_MAX = 16_384;
/** RFC 9113, 6.9.2: every window before SETTINGS say otherwise. */
export const INITIAL_WINDOW_BYTES = 65_535;
/** RFC 9113, 6.9.1. */
export const WINDOW_BYTES_MAX = 0x7fff_ffff;
