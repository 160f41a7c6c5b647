import type { ServerSessionOptions } from "node:http2";
import type { ProxyConfig } from "../../model/index.js";

/** Receive windows (design 5.15): the defaults of 64 KiB allow 1.2 MB/s at a round trip of 50 ms, these 30 MB/s. */
export const STREAM_WINDOW_BYTES = 4 * 1024 * 1024;
export const SESSION_WINDOW_BYTES = 16 * 1024 * 1024;

/** Overhead of a field in SETTINGS_MAX_HEADER_LIST_SIZE (RFC 9113, 6.5.2). */
const FIELD_OVERHEAD = 32;
/** A source hands over at most this at a time, and waits until it is written. */
const QUEUED_BYTES_MAX = 512 * 1024;

/** Settings and limits of every session; what exceeds a limit costs the stream, or the connection if it goes on. */
export function sessionOptions(config: ProxyConfig): ServerSessionOptions & {
  maxSessionInvalidFrames: number;
  maxSessionRejectedStreams: number;
} {
  const { limits } = config;
  return {
    settings: {
      initialWindowSize: STREAM_WINDOW_BYTES,
      maxConcurrentStreams: limits.concurrentStreamsMax,
      // A head within this size but beyond the configured one gets a 400 (requestHead.ts), a longer one a reset.
      maxHeaderListSize: limits.headBytesMax + limits.headerCountMax * FIELD_OVERHEAD,
      enableConnectProtocol: true,
    },
    // As with the size: half as many again are counted and refused with 400.
    maxHeaderListPairs: Math.ceil(limits.headerCountMax * 1.5) + PSEUDO_FIELDS,
    // Answers may be as long as an upstream's head may be; node's own limit would end the whole connection.
    maxSendHeaderBlockLength: responseHeadBytesMax(config),
    // In MB. A session beyond it refuses streams: room for what every stream may have queued.
    maxSessionMemory: 16 + Math.ceil((limits.concurrentStreamsMax * QUEUED_BYTES_MAX) / 1_000_000),
    // Malformed frames, and DATA frames without data, before the connection is closed.
    maxSessionInvalidFrames: 200,
    maxSessionRejectedStreams: 100,
    maxOutstandingPings: 10,
  };
}

const PSEUDO_FIELDS = 5;

function responseHeadBytesMax(config: ProxyConfig): number {
  const longest = config.upstreams.reduce((most, upstream) => Math.max(most, upstream.headBytesMax), 65_536);
  return longest * 2;
}
