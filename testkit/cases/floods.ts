import {
  ACK, cancel, END_HEADERS, END_STREAM, frame, Frame, hpack, uint32, windowUpdate,
} from "../http2RawClient.js";

/** Frames of one client that cost this side work, and get nobody anywhere. */
export interface Flood {
  readonly name: string;
  /** What comes once, before the others. */
  readonly first?: Buffer;
  /** Bytes of the flood, for the round with this number. */
  readonly round: (number: number) => Buffer;
  /** What the log says, once. */
  readonly complaint: string;
}

const GET: readonly (readonly [string, string])[] = [
  [":method", "GET"], [":scheme", "https"], [":authority", "sync.example"], [":path", "/sync/slow"],
];
const EMPTY = Buffer.alloc(0);
const join = (...bytes: readonly Buffer[]): Buffer => Buffer.concat(bytes);
const headers = (stream: number, flags = END_STREAM): Buffer =>
  frame(Frame.HEADERS, END_HEADERS | flags, stream, hpack(GET));
const times = (count: number, bytes: (i: number) => Buffer): Buffer =>
  join(...Array.from({ length: count }, (_, i) => bytes(i)));
const same = (bytes: Buffer, count = 500) => {
  const many = times(count, () => bytes);
  return (): Buffer => many;
};
const INITIAL_WINDOW = 4;
const TABLE_SIZE = 1;
/** One frame with as many settings as fit. */
const settings = (name: number, value: (i: number) => number): Buffer =>
  frame(Frame.SETTINGS, 0, 0, times(2_730, (i) => join(Buffer.of(0, name), uint32(value(i)))));
/** Streams a round: more than the resets of three seconds, fewer than the requests of a connection. */
const STREAMS = 700;
/** Odd numbers of streams. */
const streams = (bytes: (stream: number) => Buffer) => (round: number): Buffer =>
  times(STREAMS, (i) => bytes(2 * (STREAMS * round + i) + 1));

const RESETS = "client resets too many streams";
const ACKNOWLEDGED = "client sends too many SETTINGS or PING frames";
const IGNORED = "client sends too many frames that do nothing";
const EMPTY_DATA = "client sends too many empty DATA frames";
const LONG_BLOCK = "field block is too long";

export const FLOODS: readonly Flood[] = [
  { name: "rapid reset (CVE-2023-44487)", round: streams((id) => join(headers(id), cancel(id))), complaint: RESETS },
  // An increment of 0 is an error, for which this side resets the stream.
  { name: "resets that are provoked by WINDOW_UPDATE (CVE-2025-8671)",
    round: streams((id) => join(headers(id), windowUpdate(id, 0))), complaint: RESETS },
  { name: "resets that are provoked by DATA behind the end",
    round: streams((id) => join(headers(id), frame(Frame.DATA, 0, id, "x"))), complaint: RESETS },
  { name: "resets that are provoked by malformed heads",
    round: streams((id) => frame(Frame.HEADERS, END_HEADERS | END_STREAM, id, hpack(GET.slice(1)))),
    complaint: RESETS },
  { name: "resets that are provoked by wrong priorities",
    round: streams((id) => join(headers(id), frame(Frame.PRIORITY, 0, id, join(uint32(id), Buffer.of(1))))),
    complaint: RESETS },
  { name: "streams beyond the limit", round: streams((id) => headers(id, 0)),
    complaint: "client opens too many streams at once" },
  { name: "SETTINGS (CVE-2019-9515)", round: same(frame(Frame.SETTINGS, 0, 0, EMPTY)), complaint: ACKNOWLEDGED },
  { name: "SETTINGS of many values, with many streams open", first: times(100, (i) => headers(2 * i + 1)),
    round: same(settings(INITIAL_WINDOW, (i) => 65_535 + (i % 2)), 20), complaint: ACKNOWLEDGED },
  { name: "SETTINGS that resize the table again and again",
    round: same(settings(TABLE_SIZE, (i) => 4_096 * (i % 2)), 20), complaint: ACKNOWLEDGED },
  { name: "acknowledged SETTINGS", round: same(frame(Frame.SETTINGS, ACK, 0, EMPTY)), complaint: IGNORED },
  { name: "PING (CVE-2019-9512)", round: same(frame(Frame.PING, 0, 0, "12345678")), complaint: ACKNOWLEDGED },
  { name: "acknowledged PINGs", round: same(frame(Frame.PING, ACK, 0, "12345678")), complaint: IGNORED },
  { name: "empty DATA frames (CVE-2019-9518)", first: headers(1, 0), round: same(frame(Frame.DATA, 0, 1, EMPTY)),
    complaint: EMPTY_DATA },
  { name: "DATA frames of nothing but padding", first: headers(1, 0),
    round: same(frame(Frame.DATA, 8, 1, Buffer.of(3, 0, 0, 0))), complaint: EMPTY_DATA },
  { name: "empty CONTINUATION frames (CVE-2024-27316)", first: frame(Frame.HEADERS, END_STREAM, 1, hpack(GET)),
    round: same(frame(Frame.CONTINUATION, 0, 1, EMPTY)), complaint: LONG_BLOCK },
  { name: "long CONTINUATION frames", first: frame(Frame.HEADERS, END_STREAM, 1, hpack(GET)),
    round: same(frame(Frame.CONTINUATION, 0, 1, hpack([["x-a", "b".repeat(16_000)]])), 20), complaint: LONG_BLOCK },
  // Few bytes stand for many: each of these indexes is a field of 42.
  { name: "small blocks that are long heads", round: streams((id) =>
      frame(Frame.HEADERS, END_HEADERS | END_STREAM, id, join(hpack(GET), Buffer.alloc(1_200, 0x82)))),
    complaint: RESETS },
  { name: "resets of long heads", round: streams((id) =>
      join(frame(Frame.HEADERS, END_HEADERS | END_STREAM, id, join(hpack(GET), Buffer.alloc(700, 0x90))), cancel(id))),
    complaint: RESETS },
  { name: "PRIORITY (CVE-2019-9513)", round: same(frame(Frame.PRIORITY, 0, 1, Buffer.of(0, 0, 0, 3, 1)), 5_000),
    complaint: IGNORED },
  { name: "frames of an unknown type", round: same(frame(0x42, 0, 0, EMPTY), 5_000), complaint: IGNORED },
  { name: "GOAWAY", round: same(frame(Frame.GOAWAY, 0, 0, Buffer.alloc(8)), 5_000), complaint: IGNORED },
  { name: "WINDOW_UPDATE of the connection", round: same(windowUpdate(0, 1), 5_000), complaint: IGNORED },
  { name: "WINDOW_UPDATE of a stream that waits", first: headers(1), round: same(windowUpdate(1, 1), 5_000),
    complaint: IGNORED },
  { name: "WINDOW_UPDATE of a stream that is closed", first: join(headers(1), cancel(1)),
    round: same(windowUpdate(1, 1), 5_000), complaint: IGNORED },
  { name: "late HEADERS of a stream that was reset here", first: join(headers(1), windowUpdate(1, 0)),
    round: same(headers(1), 1_000), complaint: IGNORED },
  { name: "late DATA of a stream that was reset here", first: join(headers(1, 0), windowUpdate(1, 0)),
    round: same(frame(Frame.DATA, 0, 1, EMPTY), 5_000), complaint: EMPTY_DATA },
];
