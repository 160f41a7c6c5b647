import { setTimeout as sleep } from "node:timers/promises";
import { ask } from "../kit/http2Server.js";
import { ACK, END_HEADERS, END_STREAM, frame, Frame, hpack, type RawClient } from "../kit/http2RawClient.js";
import { connectFrames, connectSession } from "./client.js";
import { type Stage, startStage, watchMemory } from "./stage.js";

/**
 * HTTP/2 clients that send frames which cost this side work and get nobody anywhere. Each is told to calm down and cut
 * off, with one line in the log, and others are served meanwhile.
 */
const MIB = 1024 * 1024;
/** At any moment, garbage included, of which a busy machine leaves more. */
const GROWTH_MAX = 128 * MIB;
/** A flood that is not cut off by then goes on for ever. */
const FLOOD_MS = 8_000;
/** How long another client may wait for its answer, on a machine that is as busy as the flood can make it. */
const PATIENCE_MS = 3_000;

let stage: Stage;
beforeAll(async () => (stage = await startStage()));
afterAll(() => stage?.stop());

interface Flood {
  readonly name: string;
  /** Frames that come once, before the others. */
  readonly first?: (client: RawClient) => void;
  /** Bytes of the flood, for the round with this number. */
  readonly round: (number: number) => Buffer;
  /** What the log says, once. */
  readonly complaint: string;
}

const GET: readonly (readonly [string, string])[] = [
  [":method", "GET"],
  [":scheme", "https"],
  [":authority", "sync.example"],
  [":path", "/sync/slow"],
];
const EMPTY = Buffer.alloc(0);
const headers = (stream: number, flags = END_STREAM): Buffer =>
  frame(Frame.HEADERS, END_HEADERS | flags, stream, hpack(GET));
const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};
const CANCEL = uint32(8);
const setting = (name: number, value: number): Buffer => {
  const bytes = Buffer.alloc(6);
  bytes.writeUInt16BE(name);
  bytes.writeUInt32BE(value, 2);
  return bytes;
};
const INITIAL_WINDOW = 4;
const TABLE_SIZE = 1;
const times = (count: number, bytes: (i: number) => Buffer): Buffer =>
  Buffer.concat(Array.from({ length: count }, (_, i) => bytes(i)));
const same = (bytes: Buffer, count = 500) => {
  const many = times(count, () => bytes);
  return (): Buffer => many;
};
/** Odd numbers of streams, 100 a round. */
const streams = (round: number, bytes: (stream: number) => Buffer): Buffer =>
  times(100, (i) => bytes(2 * (100 * round + i) + 1));

const RESETS = "client resets too many streams";
const ANSWERED = "client sends too many SETTINGS or PING frames";
const IGNORED = "client sends too many frames that do nothing";

const FLOODS: readonly Flood[] = [
  {
    name: "rapid reset (CVE-2023-44487)",
    round: (n) => streams(n, (id) => Buffer.concat([headers(id), frame(Frame.RST_STREAM, 0, id, CANCEL)])),
    complaint: RESETS,
  },
  {
    name: "resets that are provoked by WINDOW_UPDATE (CVE-2025-8671)",
    round: (n) =>
      streams(n, (id) => Buffer.concat([headers(id), frame(Frame.WINDOW_UPDATE, 0, id, uint32(0))])),
    complaint: RESETS,
  },
  {
    name: "resets that are provoked by DATA behind the end",
    round: (n) => streams(n, (id) => Buffer.concat([headers(id), frame(Frame.DATA, 0, id, "x")])),
    complaint: RESETS,
  },
  {
    name: "resets that are provoked by malformed heads",
    round: (n) => streams(n, (id) => frame(Frame.HEADERS, END_HEADERS | END_STREAM, id, hpack(GET.slice(1)))),
    complaint: RESETS,
  },
  {
    name: "resets that are provoked by wrong priorities",
    round: (n) =>
      streams(n, (id) => {
        const priority = Buffer.concat([uint32(id), Buffer.of(1)]);
        return Buffer.concat([headers(id), frame(Frame.PRIORITY, 0, id, priority)]);
      }),
    complaint: RESETS,
  },
  {
    name: "streams beyond the limit",
    round: (n) => streams(n, (id) => headers(id, 0)),
    complaint: "client opens too many streams at once",
  },
  { name: "SETTINGS (CVE-2019-9515)", round: same(frame(Frame.SETTINGS, 0, 0, EMPTY)), complaint: ANSWERED },
  {
    name: "SETTINGS of many values, with many streams open",
    first: (client) => client.socket.write(times(100, (i) => headers(2 * i + 1))),
    round: same(
      frame(
        Frame.SETTINGS,
        0,
        0,
        times(2_730, (i) => setting(INITIAL_WINDOW, 65_535 + (i % 2))),
      ),
      20,
    ),
    complaint: ANSWERED,
  },
  {
    name: "SETTINGS that resize the table again and again",
    round: same(
      frame(
        Frame.SETTINGS,
        0,
        0,
        times(2_730, (i) => setting(TABLE_SIZE, 4_096 * (i % 2))),
      ),
      20,
    ),
    complaint: ANSWERED,
  },
  { name: "acknowledged SETTINGS", round: same(frame(Frame.SETTINGS, ACK, 0, EMPTY)), complaint: IGNORED },
  { name: "PING (CVE-2019-9512)", round: same(frame(Frame.PING, 0, 0, "12345678")), complaint: ANSWERED },
  { name: "answered PINGs", round: same(frame(Frame.PING, ACK, 0, "12345678")), complaint: IGNORED },
  {
    name: "empty DATA frames (CVE-2019-9518)",
    first: (client) => client.socket.write(headers(1, 0)),
    round: same(frame(Frame.DATA, 0, 1, EMPTY)),
    complaint: "client sends too many empty DATA frames",
  },
  {
    name: "DATA frames of nothing but padding",
    first: (client) => client.socket.write(headers(1, 0)),
    round: same(frame(Frame.DATA, 8, 1, Buffer.of(3, 0, 0, 0))),
    complaint: "client sends too many empty DATA frames",
  },
  {
    name: "empty CONTINUATION frames (CVE-2024-27316)",
    first: (client) => client.socket.write(frame(Frame.HEADERS, END_STREAM, 1, hpack(GET))),
    round: same(frame(Frame.CONTINUATION, 0, 1, EMPTY)),
    complaint: "field block is too long",
  },
  {
    name: "long CONTINUATION frames",
    first: (client) => client.socket.write(frame(Frame.HEADERS, END_STREAM, 1, hpack(GET))),
    round: same(frame(Frame.CONTINUATION, 0, 1, hpack([["x-a", "b".repeat(16_000)]])), 20),
    complaint: "field block is too long",
  },
  {
    // Few bytes stand for many: each of these indexes is a field of 42.
    name: "small blocks that are long heads",
    round: (n) =>
      streams(n, (id) =>
        frame(
          Frame.HEADERS,
          END_HEADERS | END_STREAM,
          id,
          Buffer.concat([hpack(GET), Buffer.alloc(1_200, 0x82)]),
        ),
      ),
    complaint: RESETS,
  },
  {
    name: "PRIORITY (CVE-2019-9513)",
    round: same(frame(Frame.PRIORITY, 0, 1, Buffer.of(0, 0, 0, 3, 1)), 5_000),
    complaint: IGNORED,
  },
  { name: "frames of an unknown type", round: same(frame(0x42, 0, 0, EMPTY), 5_000), complaint: IGNORED },
  { name: "GOAWAY", round: same(frame(Frame.GOAWAY, 0, 0, Buffer.alloc(8)), 5_000), complaint: IGNORED },
  {
    name: "WINDOW_UPDATE of the connection",
    round: same(frame(Frame.WINDOW_UPDATE, 0, 0, uint32(1)), 5_000),
    complaint: IGNORED,
  },
  {
    name: "WINDOW_UPDATE of a stream that waits",
    first: (client) => client.socket.write(headers(1)),
    round: same(frame(Frame.WINDOW_UPDATE, 0, 1, uint32(1)), 5_000),
    complaint: IGNORED,
  },
  {
    name: "WINDOW_UPDATE of a stream that is closed",
    first: (client) =>
      client.socket.write(Buffer.concat([headers(1), frame(Frame.RST_STREAM, 0, 1, CANCEL)])),
    round: same(frame(Frame.WINDOW_UPDATE, 0, 1, uint32(1)), 5_000),
    complaint: IGNORED,
  },
  {
    name: "late HEADERS of a stream that was reset here",
    first: (client) =>
      client.socket.write(Buffer.concat([headers(1), frame(Frame.WINDOW_UPDATE, 0, 1, uint32(0))])),
    round: same(headers(1), 1_000),
    complaint: IGNORED,
  },
  {
    name: "late DATA of a stream that was reset here",
    first: (client) =>
      client.socket.write(Buffer.concat([headers(1, 0), frame(Frame.WINDOW_UPDATE, 0, 1, uint32(0))])),
    round: same(frame(Frame.DATA, 0, 1, EMPTY), 5_000),
    complaint: "client sends too many empty DATA frames",
  },
];

test.each(FLOODS)("$name", async ({ first, round, complaint }) => {
  // Answers to those requests never come.
  stage.upstream.script = (line, socket) => {
    if (!line.includes("/sync/slow")) socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  };
  const { tls } = stage;
  const logged = tls.errorLog().length;
  const grown = watchMemory(tls);
  const client = await connectFrames(tls.ports.https);
  const other = connectSession(tls.ports.https);
  await ask(other, { ":path": "/sync/", ":authority": "sync.example" });
  let slowest = 0;
  let growth = 0;
  let busy = true;
  const others = (async () => {
    while (busy) {
      const from = Date.now();
      const { status } = await ask(other, { ":path": "/sync/", ":authority": "sync.example" });
      if (status !== 200) throw new Error(`another client got ${status}`);
      slowest = Math.max(slowest, Date.now() - from);
      await sleep(20);
    }
  })();
  try {
    first?.(client);
    const deadline = Date.now() + FLOOD_MS;
    for (let n = 0; Date.now() < deadline && !cutOff(client); n++) {
      if (!client.socket.write(round(n))) await drained(client);
      await new Promise((done) => setImmediate(done));
    }
    expect(ended(client)).toBe("GOAWAY ENHANCE_YOUR_CALM");
  } finally {
    busy = false;
    growth = grown();
    client.destroy();
    await others.finally(() => other.destroy());
  }
  expect(slowest).toBeLessThan(PATIENCE_MS);
  expect(growth).toBeLessThan(GROWTH_MAX);
  const lines = await logLines(logged);
  expect(lines.filter((line) => line.includes("HTTP/2 connection closed"))).toEqual([
    expect.stringContaining(complaint),
  ]);
});

const goAway = (client: RawClient) => client.frames.find(({ type }) => type === Frame.GOAWAY);
const cutOff = (client: RawClient): boolean => client.closed || goAway(client) !== undefined;

function ended(client: RawClient): string {
  const last = goAway(client);
  if (last === undefined) return client.closed ? "closed" : "goes on";
  return last.payload.readUInt32BE(4) === 11
    ? "GOAWAY ENHANCE_YOUR_CALM"
    : `GOAWAY ${last.payload.readUInt32BE(4)}`;
}

function drained(client: RawClient): Promise<void> {
  return new Promise((resolve) => {
    const go = (): void => {
      clearTimeout(timer);
      client.socket.off("drain", go).off("close", go);
      resolve();
    };
    const timer = setTimeout(go, 500);
    client.socket.once("drain", go).once("close", go);
  });
}

/** Lines that were logged since, once the first is in the file, and a second had the time to follow. */
async function logLines(from: number): Promise<string[]> {
  const deadline = Date.now() + 3_000;
  const logged = (): string => stage.tls.errorLog().slice(from);
  while (!logged().includes("connection closed") && Date.now() < deadline) await sleep(20);
  await sleep(SECOND_LINE_MS);
  return logged().split("\n");
}

/** Longer than lines wait to be written together. */
const SECOND_LINE_MS = 300;
