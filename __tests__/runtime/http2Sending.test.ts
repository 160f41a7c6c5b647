import type { TLSSocket } from "node:tls";
import { sweepRegularly } from "../../src/runtime/sockets/deadlines.js";
import { SendScheduler, type SendingStream } from "../../src/runtime/server/flowControl.js";
import { Outbox } from "../../src/runtime/server/outbox.js";

/** How answers share a connection over HTTP/2: frames, turns and windows. */

const FRAME = 16_384;
/** DATA that waits to be written at most, of a client that has not shown that it reads; heads of frames included. */
const SLOW = FRAME - 512;

/** What was written, as frames; a write ends when it is told to. */
class Wire {
  readonly frames: string[] = [];
  /** Bytes of each write. */
  readonly sizes: number[] = [];
  done: (() => void) | undefined;
  write(bytes: Buffer, done?: () => void): boolean {
    this.sizes.push(bytes.length);
    const before = Buffer.from(bytes);
    this.done = () => {
      // Nothing else is put where a write still reads.
      expect(bytes.equals(before)).toBe(true);
      done?.();
    };
    for (let at = 0; at < bytes.length;) {
      const length = bytes.readUIntBE(at, 3);
      const data = bytes.toString("latin1", at + 9, at + 9 + length);
      const letters = [...new Set(data)].join("");
      this.frames.push(
        `${bytes.readUInt32BE(at + 5)} ${letters}${length}${bytes[at + 4] === 1 ? " end" : ""}`,
      );
      at += 9 + length;
    }
    return false;
  }
}

let wire: Wire;
let outbox: Outbox;
let scheduler: SendScheduler;
let written: number;
beforeEach(() => {
  wire = new Wire();
  written = 0;
  outbox = new Outbox(
    wire as unknown as TLSSocket,
    () => {
      written++;
      scheduler.pump();
      outbox.flush();
    },
    (error) => {
      throw error;
    },
  );
  scheduler = new SendScheduler(outbox);
  scheduler.window = 10_000_000;
});
afterEach(() => outbox.close());

interface Stream extends SendingStream {
  endsAfter: boolean;
  progressed: number;
  sent: number;
}

function stream(id: number, window = 10_000_000): Stream {
  const made: Stream = {
    id,
    sendWindow: window,
    queued: false,
    waiting: [],
    waitingAt: 0,
    endsAfter: false,
    flagsAt: 0,
    generation: -1,
    progressed: 0,
    sent: 0,
    onProgress: () => void made.progressed++,
    onSent: () => void made.sent++,
  };
  return made;
}

/** What does not go out at once waits, as an exchange has it. */
function send(to: Stream, bytes: Buffer): number {
  const sent = to.waiting.length > 0 ? 0 : scheduler.send(to, bytes);
  if (sent === bytes.length) return sent;
  to.waitingAt = to.waiting.length > 0 ? to.waitingAt : sent;
  to.waiting.push(bytes);
  scheduler.wake(to);
  return sent;
}
const letters = (letter: string, count: number): Buffer => Buffer.alloc(count, letter);

/** Ends writes until nothing more comes. */
function drain(): void {
  outbox.flush();
  for (let i = 0; wire.done !== undefined && i < 1_000; i++) {
    const { done } = wire;
    wire.done = undefined;
    done();
  }
}

test.each([0, 1, 47, 48, 49, 1_000])("%i bytes go out in one frame", (count) => {
  const one = stream(5);
  expect(send(one, letters("a", count))).toBe(count);
  drain();
  expect(wire.frames).toEqual(count === 0 ? [] : [`5 a${count}`]);
  expect([one.sendWindow, scheduler.window]).toEqual([10_000_000 - count, 10_000_000 - count]);
  expect([one.progressed, one.sent]).toEqual([0, 0]);
});

test("waiting streams take turns, one frame each, and end with their last one", () => {
  const [one, two] = [stream(1), stream(3)];
  one.endsAfter = two.endsAfter = true;
  scheduler.window = 0;
  for (const [to, letter] of [
    [one, "a"],
    [two, "b"],
  ] as const)
    expect(send(to, letters(letter, 3 * FRAME))).toBe(0);
  expect([one.queued, two.queued]).toEqual([true, true]);
  expect(scheduler.grant(1_000_000)).toBe(true);
  scheduler.pump();
  drain();
  const streams = wire.frames.map((frame) => frame[0]);
  // In no run of frames does one get two while the other waits.
  expect(streams.slice(0, 6).join("")).toBe("131313");
  const bytes = (id: string): number =>
    wire.frames
      .filter((frame) => frame.startsWith(id))
      .reduce((sum, frame) => sum + Number(/\d+/.exec(frame.slice(2))![0]), 0);
  expect([bytes("1"), bytes("3")]).toEqual([3 * FRAME, 3 * FRAME]);
  const ends = wire.frames.filter((frame) => frame.endsWith(" end"));
  expect(ends.map((frame) => frame[0])).toEqual(["1", "3"]);
  expect([one.sent, two.sent, one.waiting, two.waiting]).toEqual([1, 1, [], []]);
  expect(one.progressed).toBeGreaterThan(0);
});

test("several pieces of a stream go out in their order, and only the last is the end", () => {
  const one = stream(1, 0);
  for (const letter of "abc") send(one, letters(letter, 10));
  one.endsAfter = true;
  expect(one.queued).toBe(false);
  one.sendWindow = 25;
  scheduler.wake(one);
  scheduler.wake(one);
  scheduler.pump();
  drain();
  expect(wire.frames).toEqual(["1 a10", "1 b10", "1 c5"]);
  expect([one.waiting.length, one.waitingAt, one.sent, one.progressed, one.sendWindow]).toEqual([
    1, 5, 0, 3, 0,
  ]);
  one.sendWindow = 5;
  scheduler.wake(one);
  scheduler.pump();
  drain();
  expect([wire.frames.at(-1), one.sent, one.waitingAt]).toEqual(["1 c5 end", 1, 0]);
});

test("a request that comes while others wait is served after them", () => {
  const [one, two] = [stream(1), stream(3)];
  scheduler.window = 0;
  send(one, letters("a", 10));
  scheduler.window = 100;
  expect(send(two, letters("b", 10))).toBe(0);
  scheduler.pump();
  drain();
  expect(wire.frames).toEqual(["1 a10", "3 b10"]);
});

test("the connection's window applies to all streams, a stream's only to itself", () => {
  const [one, two] = [stream(1, 5), stream(3)];
  scheduler.window = 12;
  expect([send(one, letters("a", 10)), send(two, letters("b", 10))]).toEqual([5, 7]);
  drain();
  expect(wire.frames).toEqual(["1 a5", "3 b7"]);
  expect([one.queued, two.queued]).toEqual([false, true]);
  scheduler.grant(100);
  scheduler.pump();
  drain();
  expect(wire.frames.slice(2)).toEqual(["3 b3"]);
});

test("a stream that is dropped sends nothing more, and delays no other", () => {
  const [one, two] = [stream(1), stream(3)];
  scheduler.window = 0;
  send(one, letters("a", 10));
  send(two, letters("b", 10));
  scheduler.forget(one);
  scheduler.forget(stream(5));
  expect([one.queued, two.queued]).toEqual([false, true]);
  scheduler.grant(100);
  scheduler.pump();
  drain();
  expect(wire.frames).toEqual(["3 b10"]);
});

test("a byte is sent where a window has a byte", () => {
  const [one, two] = [stream(1, 1), stream(3)];
  scheduler.window = 0;
  send(one, letters("a", 2));
  send(two, letters("b", 2));
  for (const more of [one, undefined, undefined, one, undefined]) {
    scheduler.grant(1);
    if (more !== undefined) more.sendWindow = 1;
    scheduler.wake(one);
    scheduler.pump();
    drain();
  }
  expect(wire.frames).toEqual(["1 a1", "3 b1", "3 b1", "1 a1"]);
  expect([one.sent, two.sent, scheduler.window]).toEqual([1, 1, 1]);
});

test("a frame that was put in is kept where there must be more room, and amended until it is written", () => {
  outbox.numbers(8, 0, 0x0102_0305, 7, 0xffff_ffff);
  outbox.frame(0, 0, 0x7fff_ffff, letters("a", 20_000), 1, 20_000);
  const { generation } = outbox;
  outbox.flush();
  expect(wire.frames).toEqual([`${0x0102_0305} \0\x07\xff8`, `${0x7fff_ffff} a19999`]);
  expect(outbox.generation).not.toBe(generation);
});

test("nothing is written where nothing waits, or after the end", () => {
  outbox.flush();
  outbox.finish();
  expect(wire.sizes).toEqual([]);
  send(stream(1), letters("a", 10));
  outbox.finish();
  outbox.flush();
  expect([wire.sizes, wire.frames]).toEqual([[19], ["1 a10"]]);
  const last = wire.done!;
  send(stream(3), letters("b", 10));
  outbox.close();
  outbox.flush();
  expect([wire.sizes, outbox.at]).toEqual([[19], 0]);
  // Another connection does not get the memory that the last write still reads.
  const others = Array.from(
    { length: 3 },
    () => new Outbox(wire as unknown as TLSSocket, last, outbox.onFault),
  );
  for (const other of others) other.numbers(8, 0, 5, 7);
  last();
  for (const other of others) other.close();
});

test("what waited for a write goes out before more is put in", () => {
  send(stream(1), letters("a", 60_000));
  outbox.flush();
  scheduler.pump();
  expect(outbox.at).toBe(SLOW);
  wire.done!();
  expect([wire.frames.length, outbox.at]).toEqual([2, SLOW]);
});

describe("a client that has shown that it reads", () => {
  const TRIAL_FROM = 131_072;

  test("gets large writes until its answer is complete", () => {
    expect(outbox.pieceBytesMax(1)).toBe(2 * FRAME);
    const one = stream(1);
    send(one, letters("a", 400_000));
    drain();
    const large = 8 * (FRAME + 9);
    const small = Array<number>(9).fill(SLOW);
    expect(wire.sizes).toEqual([...small, large, 400_000 - 9 * (SLOW - 9) - 8 * FRAME + 8 * 9]);
    expect([1, 3, 4, 5].map((streams) => outbox.pieceBytesMax(streams))).toEqual([
      131_072, 43_690, 32_768, 32_768,
    ]);
    // What would be sent at once is sent whole.
    expect(send(stream(3), letters("b", 50_000))).toBe(50_000);
    drain();
    expect(wire.frames.slice(-4)).toEqual([...Array<string>(3).fill(`3 b${FRAME}`), "3 b848"]);
    outbox.pace.rest();
    expect(send(stream(5), letters("c", 50_000))).toBe(SLOW - 9);
    expect(outbox.pieceBytesMax(1)).toBe(2 * FRAME);
  });

  test("may be sent pieces of a megabyte when it has read many", () => {
    outbox.pace.wrote(8 * 1024 * 1024, true);
    outbox.pace.written();
    expect([1, 8, 64].map((streams) => outbox.pieceBytesMax(streams))).toEqual([1_048_576, 131_072, 32_768]);
    expect(send(stream(1), letters("a", 50_000))).toBe(50_000);
  });

  test.each([
    [250, 131_072],
    [500, 2 * FRAME],
  ])("and then takes %i ms for a write, gets pieces of %i bytes", (ms, bytes) => {
    jest.useFakeTimers({ doNotFake: ["nextTick", "setImmediate"] });
    const stop = sweepRegularly({ sweep: () => undefined, onFault: () => undefined });
    try {
      send(stream(1), letters("a", 400_000));
      drain();
      expect(outbox.pieceBytesMax(1)).toBe(131_072);
      send(stream(3), letters("b", 10));
      outbox.flush();
      jest.advanceTimersByTime(ms);
      wire.done!();
      expect(outbox.pieceBytesMax(1)).toBe(bytes);
    } finally {
      stop();
      jest.useRealTimers();
    }
  });

  test("gives back what it has borrowed when it is gone", () => {
    for (let i = 0; i < 9; i++) {
      const gone = new Outbox(wire as unknown as TLSSocket, () => undefined, outbox.onFault);
      gone.pace.wrote(TRIAL_FROM, true);
      gone.pace.written();
      expect([i, gone.pace.onTrial]).toEqual([i, true]);
      gone.close();
    }
  });
});

test("the largest window is 2^31 - 1", () => {
  scheduler.window = 0;
  expect([scheduler.grant(0x7fff_ffff), scheduler.grant(1)]).toEqual([true, false]);
});

test("of a long answer as much is written as a small buffer has, until the client has read", () => {
  const one = stream(1);
  expect(send(one, letters("a", 40_000))).toBe(SLOW - 9);
  outbox.flush();
  expect(wire.frames).toEqual([`1 a${SLOW - 9}`]);
  // Nothing more while the write is under way.
  scheduler.pump();
  outbox.flush();
  expect([wire.frames.length, written, outbox.writing]).toEqual([1, 0, true]);
  wire.done!();
  expect([written, wire.frames.length]).toEqual([1, 2]);
});

test.each([1, 100, 5_000])("where as many bytes are left as a frame has, it is sent: %i", (left) => {
  send(stream(1), letters("a", SLOW - 9 - 9 - left));
  expect(send(stream(3), letters("b", left))).toBe(left);
});

test.each([
  [2_048, 2_048],
  [2_047, 0],
])("where %i bytes are left, a frame that does not fit has %i of them", (left, sent) => {
  send(stream(1), letters("a", SLOW - 9 - 9 - left));
  expect(send(stream(3), letters("b", 5_000))).toBe(sent);
  // Whoever comes next waits behind it.
  expect(send(stream(5), letters("c", 100))).toBe(0);
  drain();
  expect(wire.frames.slice(1)).toEqual(
    sent === 0 ? ["3 b5000", "5 c100"] : [`3 b${sent}`, `3 b${5_000 - sent}`, "5 c100"],
  );
});
