import type { BigIntStats } from "node:fs";
import { Socket } from "node:net";
import fc from "../../proof/kit/property.js";
import {
  describeFile,
  FileCache,
  isSameState,
  type StaticFile,
} from "../../src/runtime/actions/fileCache.js";
import { sweepRegularly } from "../../src/runtime/sockets/deadlines.js";
import { AnswerWriter } from "../../src/runtime/server/http1Writer.js";
import { PieceQueue } from "../../src/runtime/exchange/requestBody.js";
import { ReceiveBuffer } from "../../src/runtime/sockets/receiveBuffer.js";
import { SendPace } from "../../src/runtime/sockets/sendPace.js";

/** What a worker keeps in memory, and how much of it: pieces that wait, buffers, large pieces on loan, files. */

const KIB = 1_024;
const MIB = KIB * KIB;

test("waiting pieces stay unchanged, whatever happens to the memory they came in", () => {
  const step = fc.oneof(
    fc.record({
      bytes: fc.oneof(fc.nat(100), fc.nat(5_000), fc.constantFrom(1_024, 2_047, 2_048, 16_384, 40_000)),
      around: fc.oneof(fc.constant(0), fc.nat(3_000)),
      reused: fc.boolean(),
    }),
    fc.constant("shift" as const),
  );
  const pattern = Buffer.from(Uint8Array.from({ length: 50_000 }, (_, i) => i % 127));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const queue = new PieceQueue();
      const came: Buffer[] = [];
      let next = 0;
      const shift = (): void => {
        const before = queue.bytes;
        const piece = queue.shift();
        expect(queue.bytes).toBe(before - piece.length);
        came.push(piece);
      };
      for (const one of steps) {
        if (one === "shift") {
          if (queue.bytes > 0) shift();
          continue;
        }
        const chunk = Buffer.alloc(one.bytes + 2 * one.around, 0xdb);
        pattern.copy(chunk, one.around, next % 127, (next % 127) + one.bytes);
        next += one.bytes;
        const before = queue.bytes;
        queue.push(chunk, one.around, one.around + one.bytes, one.reused);
        expect(queue.bytes).toBe(before + one.bytes);
        if (one.reused) chunk.fill(0xdb);
      }
      while (queue.bytes > 0) shift();
      const all = Buffer.concat(came);
      expect([all.length, all.findIndex((byte, i) => byte !== i % 127)]).toEqual([next, -1]);
    }),
    { numRuns: 200 },
  );
});

test("small pieces are joined in blocks, each twice as large as the one before, up to 16 KiB", () => {
  const [queue, other] = [new PieceQueue(), new PieceQueue()];
  for (let i = 0; i < 30_000; i++) queue.push(Buffer.from("ab"), 1, 2, false);
  other.push(Buffer.from("c"), 0, 1, false);
  const pieces: Buffer[] = [];
  while (queue.bytes > 0) pieces.push(queue.shift());
  expect(pieces.map(({ length }) => length)).toEqual([1_024, 2_048, 4_096, 8_192, 14_640]);
  expect(pieces.map(({ buffer }) => buffer.byteLength)).toEqual([1_024, 2_048, 4_096, 8_192, 16_384]);
  expect(pieces.every((piece) => piece.equals(Buffer.alloc(piece.length, "b")))).toBe(true);
  expect(String(other.shift())).toBe("c");
});

test.each<[bytes: number, of: number, reused: boolean, copied: boolean]>([
  [2_048, 4_096, false, false],
  [2_048, 4_097, false, true],
  [2_047, 2_047, false, true],
  [2_048, 2_048, true, true],
])("a piece of %i bytes, of %i that were read, reused: %j, is copied: %j", (bytes, of, reused, copied) => {
  const queue = new PieceQueue();
  const chunk = Buffer.alloc(of);
  queue.push(chunk, of - bytes, of, reused);
  expect(queue.shift().buffer !== chunk.buffer).toBe(copied);
});

test("small pieces that wait take up little more than their bytes", () => {
  const queue = new PieceQueue();
  for (let i = 0; i < 8 * KIB; i++) queue.push(Buffer.allocUnsafeSlow(4 * KIB), 5, 6, false);
  const held = new Set<ArrayBufferLike>();
  while (queue.bytes > 0) held.add(queue.shift().buffer);
  expect([...held].reduce((sum, { byteLength }) => sum + byteLength, 0)).toBeLessThan(20 * KIB);
});

describe("a receive buffer", () => {
  const SHARED = 64 * KIB;

  /** The buffer for the next read, as the socket has it. */
  class Socket {
    into: Buffer;
    constructor(readonly buffer: ReceiveBuffer) {
      this.into = buffer.first;
    }
    /** @returns the bytes that were read, and whether they have to be copied */
    read(bytes: number): { readonly chunk: Buffer; readonly transient: boolean } {
      const chunk = this.buffer.read(bytes);
      expect(chunk.buffer).toBe(this.into.buffer);
      expect([chunk.byteOffset, chunk.length]).toEqual([this.into.byteOffset, bytes]);
      const { transient } = this.buffer;
      this.into = this.buffer.next() ?? this.into;
      return { chunk, transient };
    }
  }

  test("is shared, until a transfer is long", () => {
    const [one, other] = [new Socket(new ReceiveBuffer()), new Socket(new ReceiveBuffer())];
    expect(one.into.length).toBe(SHARED);
    const first = one.read(10);
    expect([first.transient, first.chunk.buffer === other.read(4_096).chunk.buffer]).toEqual([true, true]);
    expect(one.buffer.next()).toBeUndefined();
    expect(one.read(5_000).transient).toBe(true);
  });

  test.each<[bytes: number, filled: number, most: number | undefined, length: number]>([
    [-1, SHARED - 1, undefined, SHARED],
    [-1, SHARED, undefined, 128 * KIB],
    [SHARED, SHARED, undefined, SHARED],
    [SHARED + 1, 0, undefined, SHARED + 1],
    [MIB, 0, undefined, 128 * KIB],
    [MIB, 0, 200_000, 200_000],
    [2 * MIB, 0, 2 * MIB, MIB],
    [100, 0, 32 * KIB, 32 * KIB],
    [-1, 32 * KIB - 1, 32 * KIB, 32 * KIB],
    [-1, 32 * KIB, 32 * KIB, 32 * KIB],
  ])("for %i bytes to come after %i, with %j at most, has %i", (bytes, filled, most, length) => {
    const socket = new Socket(new ReceiveBuffer());
    socket.buffer.fit(bytes, filled, most);
    socket.read(1);
    expect(socket.into.length).toBe(length);
    const own =
      bytes > Math.min(SHARED, most ?? SHARED) ||
      (bytes === -1 && filled >= Math.min(SHARED, most ?? SHARED));
    expect(socket.read(1).transient).toBe(!own);
    socket.buffer.release();
    socket.read(1);
    expect(socket.into).toBe(new ReceiveBuffer().first);
  });

  test("has as much of the common one as its receiver's pace allows, whatever others have", () => {
    const sizes = [1, 2, 3, 4, 63, 64, 3, 1].map((kib) => kib * KIB);
    const lengths = sizes.map((most) => {
      const socket = new Socket(new ReceiveBuffer());
      socket.buffer.fit(1, 1, most);
      socket.read(1);
      return socket.into.length;
    });
    expect(lengths).toEqual(sizes);
  });

  test("grows once half a megabyte was read, and is a new one then", () => {
    const socket = new Socket(new ReceiveBuffer());
    socket.buffer.fit(-1, SHARED);
    socket.read(1);
    for (let read = 0; read < 512 * KIB - 1;) {
      const bytes = Math.min(128 * KIB, 512 * KIB - 1 - read);
      read += bytes;
      socket.read(bytes);
      socket.buffer.fit(-1, bytes);
    }
    expect(socket.into.length).toBe(128 * KIB);
    const before = socket.read(1).chunk;
    socket.buffer.fit(-1, 1);
    socket.read(1);
    expect(socket.into.length).toBe(MIB);
    expect(socket.into.buffer).not.toBe(before.buffer);
    // The next transfer begins anew.
    socket.buffer.release();
    socket.read(1);
    socket.buffer.fit(-1, SHARED);
    socket.read(1);
    expect(socket.into.length).toBe(128 * KIB);
  });

  test("that is read in pieces puts each after the one before, until a record no longer fits", () => {
    const RECORD = 16 * KIB;
    const socket = new Socket(new ReceiveBuffer(true));
    socket.buffer.fit(-1, RECORD - 1);
    socket.read(1);
    expect(socket.into.length).toBe(SHARED);
    socket.buffer.fit(-1, RECORD);
    socket.read(1);
    expect(socket.into.length).toBe(MIB);
    const at = (): number => MIB - socket.into.length;
    for (let i = 1; i < 63; i++) {
      expect(socket.read(RECORD).transient).toBe(false);
      expect(at()).toBe(i * RECORD);
    }
    socket.read(RECORD);
    expect(at()).toBe(63 * RECORD);
    socket.read(1);
    expect(at()).toBe(0);
  });
});

describe("large pieces of answers", () => {
  const LARGE = MIB;
  const open: SendPace[] = [];
  const pace = (small: number, copies: 1 | 2, trialBytes?: number): SendPace => {
    const made = new SendPace(small, copies, trialBytes);
    open.push(made);
    return made;
  };
  afterEach(() => {
    for (const one of open.splice(0)) one.close();
  });
  /** Has the client take so much that it is given large pieces, if any are left. */
  const proven = (one: SendPace): SendPace => {
    one.wrote(8 * MIB, false);
    return one;
  };

  test("are for clients that have taken eight megabytes", () => {
    const one = pace(64 * KIB, 1);
    one.wrote(8 * MIB - 1, false);
    expect([one.fast, one.pieceBytesMax]).toEqual([false, 64 * KIB]);
    one.wrote(1, false);
    expect([one.fast, one.pieceBytesMax]).toEqual([true, LARGE]);
    one.rest();
    expect([one.fast, one.pieceBytesMax]).toEqual([false, 64 * KIB]);
  });

  test.each([
    [1, 32],
    [2, 16],
  ] as const)("that are in memory %i times, are lent to %i clients at a time", (copies, clients) => {
    const lent = Array.from({ length: clients + 1 }, () => proven(pace(64 * KIB, copies)));
    expect(lent.map(({ fast }) => fast)).toEqual([...Array<boolean>(clients).fill(true), false]);
    lent[0]!.close();
    lent.at(-1)!.wrote(1, false);
    expect(lent.map(({ fast }) => fast)).toEqual([false, ...Array<boolean>(clients).fill(true)]);
    lent[1]!.rest();
    expect(proven(pace(64 * KIB, copies)).fast).toBe(true);
  });

  test("are on trial for eight clients at a time, that have taken 128 KiB", () => {
    const trials = Array.from({ length: 9 }, () => pace(16 * KIB, 2, 512 * KIB));
    for (const one of trials) one.wrote(128 * KIB - 1, false);
    expect(trials.some(({ onTrial }) => onTrial)).toBe(false);
    for (const one of trials) one.wrote(1, false);
    expect(trials.map(({ onTrial }) => onTrial)).toEqual([...Array<boolean>(8).fill(true), false]);
    // What comes out of a trial leaves its place.
    proven(trials[0]!);
    expect([trials[0]!.fast, trials[0]!.onTrial]).toEqual([true, false]);
    trials[8]!.wrote(1, false);
    expect(trials[8]!.onTrial).toBe(true);
    trials[1]!.rest();
    expect(trials[1]!.onTrial).toBe(false);
    const without = pace(16 * KIB, 2);
    without.wrote(MIB, false);
    expect(without.onTrial).toBe(false);
  });

  test("end where one waits too long, and what was lent comes back with the next small one", () => {
    jest.useFakeTimers();
    const stop = sweepRegularly({ sweep: () => undefined, onFault: () => undefined });
    try {
      const all = Array.from({ length: 32 }, () => proven(pace(64 * KIB, 1)));
      const [slow] = all as [SendPace];
      slow.wrote(LARGE, true);
      jest.advanceTimersByTime(250);
      slow.wrote(LARGE, true);
      jest.advanceTimersByTime(249);
      slow.written();
      expect(slow.fast).toBe(true);
      slow.wrote(LARGE, true);
      jest.advanceTimersByTime(250);
      slow.written();
      expect(slow.fast).toBe(true);
      slow.wrote(LARGE, true);
      jest.advanceTimersByTime(500);
      slow.written();
      expect([slow.fast, slow.pieceBytesMax]).toEqual([false, 64 * KIB]);
      // The large piece in hand may still be written.
      const other = proven(pace(64 * KIB, 1));
      slow.wrote(64 * KIB + 1, false);
      other.wrote(1, false);
      expect(other.fast).toBe(false);
      slow.wrote(64 * KIB, false);
      other.wrote(1, false);
      expect([other.fast, slow.fast]).toEqual([true, false]);
      // It has to show anew that it reads.
      other.close();
      slow.wrote(8 * MIB - 128 * KIB - 2, false);
      expect(slow.fast).toBe(false);
      slow.wrote(1, false);
      expect(slow.fast).toBe(true);
    } finally {
      stop();
      jest.useRealTimers();
    }
  });

  test("are not lent after the end of an answer, whatever is written then, but with the next one at once", () => {
    const [one, other] = [pace(64 * KIB, 1), pace(64 * KIB, 1)];
    one.wrote(8 * MIB, false);
    other.wrote(8 * MIB, true);
    for (const each of [one, other]) {
      each.rest();
      each.written();
    }
    expect([one.fast, other.fast]).toEqual([false, false]);
    const all = Array.from({ length: 32 }, () => proven(pace(64 * KIB, 1)));
    expect(all.every(({ fast }) => fast)).toBe(true);
    all[0]!.close();
    one.wrote(1, false);
    expect(one.fast).toBe(false);
    one.begin();
    one.wrote(1, false);
    expect(one.fast).toBe(true);
  });

  test("that wait at the end of an answer are lent until they are written", () => {
    const all = Array.from({ length: 32 }, () => proven(pace(64 * KIB, 1)));
    const other = proven(pace(64 * KIB, 1));
    all[0]!.wrote(LARGE, true);
    all[0]!.rest();
    other.wrote(1, false);
    expect(other.fast).toBe(false);
    all[0]!.written();
    other.wrote(1, false);
    expect(other.fast).toBe(true);
  });
});

describe("the writer of a client's answers", () => {
  const writers: AnswerWriter[] = [];
  afterEach(() => {
    for (const writer of writers.splice(0)) writer.close();
  });

  /** One whose client has taken enough for large pieces, if any are left. */
  function proven(bytes = 8 * MIB, small = 32 * KIB): AnswerWriter {
    const socket = {
      writableLength: 0,
      destroyed: false,
      write: (_: Buffer, written?: () => void) => (last = { socket, written }),
      cork: () => {},
      uncork: () => {},
    };
    const listener = { onWrite: () => {}, onWritten: () => {}, onFault: () => {} };
    const writer = new AnswerWriter(socket as unknown as Socket, listener);
    writers.push(writer);
    if (small > 32 * KIB) writer.direct();
    expect(writer.pieceBytesMax).toBe(small);
    writer.framing.beginAnswer("GET", 200, bytes, true, undefined);
    expect(writer.body(EIGHT, false)).toBe(true);
    return writer;
  }
  /** What was written last, and what is called once the kernel has taken it. */
  let last: { readonly socket: { writableLength: number }; readonly written: (() => void) | undefined };
  const EIGHT = Buffer.alloc(8 * MIB);

  test("has smaller pieces where TLS makes a copy of each", () => {
    const listener = { onWrite: () => {}, onWritten: () => {}, onFault: () => {} };
    const [plain, secure] = [0, 1].map(() => new AnswerWriter(new Socket(), listener));
    plain!.direct();
    expect([plain!.pieceBytesMax, secure!.pieceBytesMax]).toEqual([64 * KIB, 32 * KIB]);
  });

  test.each(["rest", "close"] as const)("gives back what it was lent: %s", (end) => {
    const all = Array.from({ length: 17 }, () => proven());
    expect(all.map((writer) => writer.pieceBytesMax)).toEqual([...Array<number>(16).fill(MIB), 32 * KIB]);
    all[3]![end]();
    expect([all[3]!.pieceBytesMax, proven().pieceBytesMax]).toEqual([32 * KIB, MIB]);
  });

  test("has larger pieces, and twice as many on loan, without TLS", () => {
    const all = Array.from({ length: 33 }, () => proven(8 * MIB, 64 * KIB));
    expect(all.map((writer) => writer.pieceBytesMax)).toEqual([...Array<number>(32).fill(MIB), 64 * KIB]);
  });

  test("gives back what it was lent for a piece that waits once the kernel has taken it", () => {
    const all = Array.from({ length: 16 }, () => proven(9 * MIB));
    const [{ socket }, waiting] = [last, all.at(-1)!];
    socket.writableLength = MIB;
    expect(waiting.body(EIGHT.subarray(0, MIB), false)).toBe(false);
    const { written } = last;
    waiting.rest();
    expect(proven().pieceBytesMax).toBe(32 * KIB);
    socket.writableLength = 0;
    written!();
    expect(proven().pieceBytesMax).toBe(MIB);
  });
});

const CHECKED = 1_700_000_000_500;
interface Times {
  readonly mtimeMs: number;
  readonly ctimeMs: number;
  readonly wholeSeconds?: boolean;
}

function described(
  { mtimeMs, ctimeMs, wholeSeconds = false }: Times,
  path = "/a",
  size = 0,
  content?: Buffer,
): StaticFile {
  const stats = {
    mtimeMs: BigInt(mtimeMs),
    ctimeMs: BigInt(ctimeMs),
    ctimeNs: BigInt(ctimeMs) * 1_000_000n + (wholeSeconds ? 0n : 1n),
    size: BigInt(size),
    ino: 7n,
  } as BigIntStats;
  return describeFile(path, stats, content, undefined, CHECKED);
}

describe("the state of a file", () => {
  const past = CHECKED - 60_000;
  const whole = Math.floor(CHECKED / 1_000) * 1_000;
  test.each<[what: string, times: Times, settled: boolean]>([
    ["changed long ago", { mtimeMs: past, ctimeMs: past }, true],
    ["changed 101 ms ago", { mtimeMs: past, ctimeMs: CHECKED - 101 }, true],
    ["changed 100 ms ago", { mtimeMs: past, ctimeMs: CHECKED - 100 }, false],
    [
      "changed 2 s ago by a clock of seconds",
      { mtimeMs: past, ctimeMs: whole - 1_000, wholeSeconds: true },
      false,
    ],
    [
      "changed 3 s ago by a clock of seconds",
      { mtimeMs: past, ctimeMs: whole - 2_000, wholeSeconds: true },
      true,
    ],
    ["dated the last full second", { mtimeMs: whole - 1, ctimeMs: past }, true],
    ["dated this second", { mtimeMs: whole, ctimeMs: past }, false],
    ["dated now", { mtimeMs: CHECKED, ctimeMs: past }, false],
    ["dated later", { mtimeMs: CHECKED + 1, ctimeMs: past }, true],
  ])("is settled: %s", (_what, times, settled) => {
    const [one, two] = [described(times), described(times)];
    expect([one.settled, one.etag === two.etag]).toEqual([settled, settled]);
    const named = Date.parse(one.validatorHeaders[1]!);
    expect(named).toBe(Math.min(Math.floor(times.mtimeMs / 1_000) * 1_000, whole - 1_000));
  });

  test("by a clock of seconds two changes in two seconds may look the same", () => {
    const whole = 1_700_000_000_000;
    const settledAfter = (ms: number): boolean => {
      const ctimeMs = BigInt(whole);
      const stats = { mtimeMs: BigInt(past), ctimeMs, ctimeNs: ctimeMs * 1_000_000n, size: 0n, ino: 7n };
      return describeFile("/a", stats as BigIntStats, undefined, undefined, whole + ms).settled;
    };
    expect([settledAfter(2_000), settledAfter(2_001)]).toEqual([false, true]);
  });

  test.each(["ino", "dev", "size", "mtimeNs", "ctimeNs"] as const)("is another with another %s", (field) => {
    const stats = { ino: 1n, dev: 2n, size: 3n, mtimeNs: 4n, ctimeNs: 5n } as BigIntStats;
    expect(isSameState(stats, { ...stats })).toBe(true);
    expect(isSameState(stats, Object.assign({ ...stats }, { [field]: 9n }))).toBe(false);
  });

  test.each([
    ["/a.tar.gz", "application/gzip"],
    ["/a.b/c", "application/octet-stream"],
    ["/a.PNG", "image/png"],
    ["/favicon.ico", "image/x-icon"],
    ["/FAVICON.ICO", "image/x-icon"],
    ["/font.eot", "application/vnd.ms-fontobject"],
    ["/a.", "application/octet-stream"],
    ["/.png", "image/png"],
  ])("the type of %s is %s", (path, type) => {
    expect(described({ mtimeMs: past, ctimeMs: past }, path).contentType).toBe(type);
  });
});

describe("files that are kept", () => {
  const file = (content?: Buffer): StaticFile =>
    described({ mtimeMs: 0, ctimeMs: 0 }, "/a", content?.length ?? 0, content);
  /** Of so many bytes in the cache, with a key of one letter. */
  const weighing = (bytes: number): StaticFile => file(Buffer.alloc(bytes - 2_048 - 2));
  const kept = (cache: FileCache, ...keys: string[]): string => {
    const { files } = cache as unknown as { files: ReadonlyMap<string, unknown> };
    return keys.filter((key) => files.has(key)).join("");
  };

  test("take up 16 MiB at most, names and descriptions counted", () => {
    const cache = new FileCache();
    const one = file();
    for (let i = 10_000; i < 20_000; i++) cache.set(String(i), one);
    const { files } = cache as unknown as { files: ReadonlyMap<string, unknown> };
    expect(files.size).toBe(Math.floor((16 * MIB) / (2_048 + 10)));
  });

  test("go in the order they came, but for those that were asked for since", () => {
    const cache = new FileCache(30_000);
    for (const key of "abc") cache.set(key, weighing(10_000));
    expect(kept(cache, ..."abc")).toBe("abc");
    // Nobody was found unused: the first goes, and all begin anew.
    cache.set("d", weighing(10_000));
    expect(kept(cache, ..."abcd")).toBe("bcd");
    expect(cache.get("b")).toBeDefined();
    cache.set("e", weighing(10_000));
    expect(kept(cache, ..."bcde")).toBe("bde");
    cache.set("f", weighing(10_000));
    expect(kept(cache, ..."bdef")).toBe("bef");
    // What came since then is not the first to go.
    cache.set("g", weighing(10_000));
    expect(kept(cache, ..."befg")).toBe("efg");
    expect(cache.get("x")).toBeUndefined();
  });

  test("are replaced and deleted with their bytes", () => {
    const cache = new FileCache(30_000);
    for (let i = 0; i < 10; i++) cache.set("a", weighing(10_000));
    for (let i = 0; i < 10; i++) {
      cache.set("x", weighing(30_000));
      cache.delete("x");
      cache.delete("x");
      cache.set("a", weighing(10_000));
    }
    cache.set("b", weighing(10_000));
    cache.set("c", weighing(10_000));
    expect(kept(cache, ..."abcx")).toBe("abc");
  });
});
