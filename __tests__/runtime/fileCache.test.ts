import type { BigIntStats } from "node:fs";
import {
  describeFile,
  FileCache,
  isSameState,
  type StaticFile,
} from "../../src/runtime/actions/fileCache.js";

/** Files that a worker keeps in memory, and how much of them. */

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
  return describeFile(path, stats, content, {}, CHECKED);
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
      return describeFile("/a", stats as BigIntStats, undefined, {}, whole + ms).settled;
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
  /** Which there are after what came and, with `?`, was asked for. */
  const kept = (history: string): string => {
    const cache = new FileCache(30_000);
    for (const step of history.split(" "))
      if (step.startsWith("?")) cache.get(step.slice(1));
      else cache.set(step, weighing(10_000));
    return [..."abcdefg"].filter((key) => cache.get(key) !== undefined).join("");
  };

  test("take up 16 MiB at most, names and descriptions counted", () => {
    const cache = new FileCache();
    const one = file();
    const keys = Array.from({ length: 10_000 }, (_, i) => String(10_000 + i));
    for (const key of keys) cache.set(key, one);
    const there = keys.filter((key) => cache.get(key) !== undefined);
    expect(there).toHaveLength(Math.floor((16 * 1_048_576) / (2_048 + 10)));
  });

  test.each([
    ["a b c", "abc"],
    // Nobody was found unused: the first goes, and all begin anew.
    ["a b c d", "bcd"],
    ["a b c d ?b e", "bde"],
    ["a b c d ?b e f", "bef"],
    // What came since then is not the first to go.
    ["a b c d ?b e f g", "efg"],
    ["?a", ""],
  ])("go in the order they came, but for those that were asked for since: %s leaves %s", (history, left) => {
    expect(kept(history)).toBe(left);
  });
});
