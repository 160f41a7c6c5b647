import type { ProxyConfig } from "../../../model/index.js";
import { uint32, writeFrameHead } from "./frames.js";
import { FIELD_OVERHEAD } from "./hpackTables.js";
import {
  ConnectionError,
  ErrorCode,
  FRAME_BYTES_MAX,
  FrameType,
  INITIAL_WINDOW_BYTES,
  WINDOW_BYTES_MAX,
} from "./protocol.js";

/**
 * Receive windows of a stream (decisions 4.9): for a stream that is not read yet, no more than the protocol's default,
 * which a client may use before it has seen our settings. A stream that is read needs more: 64 KiB allow 1.2 MB/s at a
 * round trip of 50 ms.
 */
export const UNREAD_WINDOW_BYTES = INITIAL_WINDOW_BYTES;
export const STREAM_WINDOW_BYTES = 4 * 1024 * 1024;

/**
 * Receive window of a connection (decisions 4.9). It opens again only as bodies are consumed, so it also limits how
 * much a client can make a connection buffer. The part beyond the initial size is on loan (`flowControl.ts`).
 */
export const CONNECTION_WINDOW_BYTES = 512 * 1024;
export const CONNECTION_WINDOW_BYTES_MAX = 16 * 1024 * 1024;

/** Bytes beyond {@link CONNECTION_WINDOW_BYTES} that all connections of a worker may borrow together. */
export function lentWindowBytes({ limits }: ProxyConfig): number {
  return limits.connectionsMax * CONNECTION_WINDOW_BYTES;
}

/** RFC 9113, 6.5.2; RFC 8441, 3. */
const enum Setting {
  HeaderTableSize = 1,
  EnablePush = 2,
  MaxConcurrentStreams = 3,
  InitialWindowSize = 4,
  MaxFrameSize = 5,
  MaxHeaderListSize = 6,
  EnableConnectProtocol = 8,
}

/**
 * Longest list of fields that is taken, each with its overhead (RFC 9113, 6.5.2). A head within it but beyond the
 * configured limit gets a 400 (requestHead.ts), a longer one a reset.
 */
export function headerListBytesMax({ limits }: ProxyConfig): number {
  return limits.headBytesMax + limits.headerCountMax * FIELD_OVERHEAD;
}

/** The first frames of the server: its SETTINGS, and its window for the whole connection. */
export function serverPreface(config: ProxyConfig): Buffer {
  const settings = [
    [Setting.MaxConcurrentStreams, config.limits.concurrentStreamsMax],
    [Setting.InitialWindowSize, UNREAD_WINDOW_BYTES],
    [Setting.MaxHeaderListSize, headerListBytesMax(config)],
    [Setting.EnableConnectProtocol, 1],
  ] as const;
  const length = settings.length * SETTING_BYTES;
  const bytes = Buffer.alloc(9 + length + 9 + 4);
  writeFrameHead(bytes, 0, length, FrameType.Settings, 0, 0);
  let at = 9;
  for (const [name, value] of settings) at = bytes.writeUInt32BE(value, bytes.writeUInt16BE(name, at));
  writeFrameHead(bytes, at, 4, FrameType.WindowUpdate, 0, 0);
  bytes.writeUInt32BE(CONNECTION_WINDOW_BYTES - INITIAL_WINDOW_BYTES, at + 9);
  return bytes;
}

const SETTING_BYTES = 6;

/** Applies a client's SETTINGS. */
export interface SettingsReceiver {
  onTableSize(bytes: number): void;
  onInitialWindow(bytes: number): void;
}

/** Reads the payload of a SETTINGS frame. @throws ConnectionError for values that are out of range */
export function readSettings(bytes: Buffer, from: number, to: number, receiver: SettingsReceiver): void {
  if ((to - from) % SETTING_BYTES !== 0)
    throw new ConnectionError(ErrorCode.FrameSizeError, "SETTINGS of odd length");
  for (let at = from; at < to; at += SETTING_BYTES) {
    const value = uint32(bytes, at + 2);
    switch ((bytes[at]! << 8) | bytes[at + 1]!) {
      case Setting.HeaderTableSize:
        receiver.onTableSize(value);
        break;
      case Setting.EnablePush:
      case Setting.EnableConnectProtocol:
        if (value > 1) throw new ConnectionError(ErrorCode.ProtocolError, "setting is neither 0 nor 1");
        break;
      case Setting.InitialWindowSize:
        if (value > WINDOW_BYTES_MAX)
          throw new ConnectionError(ErrorCode.FlowControlError, "initial window too large");
        receiver.onInitialWindow(value);
        break;
      case Setting.MaxFrameSize:
        // Only its smallest value is ever used: longer frames only make streams wait for each other.
        if (value < FRAME_BYTES_MAX || value > 0xff_ffff)
          throw new ConnectionError(ErrorCode.ProtocolError, "maximum frame size out of range");
        break;
      // The client's limits on pushes, and hints about the length of heads; unknown settings are ignored.
      default:
    }
  }
}
