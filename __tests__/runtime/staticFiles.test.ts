import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type FileCache } from "../../src/runtime/actions/fileCache.js";
import { FileLookup, openFailure } from "../../src/runtime/actions/fileLookup.js";
import { chmodCommand } from "../../src/runtime/files/pathText.js";
import { explainDenial } from "../../src/runtime/files/permissions.js";
import { RedirectAction, RespondAction } from "../../src/runtime/actions/fixedResponses.js";
import { StaticFilesAction } from "../../src/runtime/actions/staticFiles.js";
import type { HeaderList, RouteConfig, ActionOf } from "../../src/model/index.js";
import {
  FakeExchange,
  fakeRoute,
  type FakeOptions,
  PIECE_BYTES,
  type FakeRequest,
  type LoggedError,
  run,
} from "../../testkit/fakeExchange.js";
import { descriptorsOf } from "../../testkit/processes.js";
import { testWith } from "../../testkit/testWith.js";
import { eventually } from "../../testkit/waiting.js";
import { randomText } from "../../testkit/random.js";
import { publicFolder } from "../../testkit/publicFolder.js";

const MODIFIED = new Date("2024-01-02T03:04:05.678Z");
/** More than the cache keeps of one file. */
const UNCACHED_BYTES = 8 * PIECE_BYTES + 1;
const LARGE_BYTES = 24 * PIECE_BYTES + 4_321;
const ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHI";

let base: string;
let media: string;
let large: Buffer;
let errors: LoggedError[];

beforeAll(async () => {
  base = publicFolder("portico-static-");
  media = join(base, "media");
  fs.mkdirSync(join(media, "img", "deep"), { recursive: true });
  fs.mkdirSync(`${media}-old`);
  fs.writeFileSync(`${media}-old/secret`, "secret");
  large = Buffer.from(Uint8Array.from({ length: LARGE_BYTES }, (_, i) => (i * 7 + (i >> 11)) & 0xff));
  fs.symlinkSync("../media-old/secret", join(media, "way-out"));
  write("a.txt", ALPHABET);
  write("empty", "");
  write("large.bin", large);
  write("img/logo.PNG", "png");
  write("html", "no extension");
  write("x.constructor", "x");
  write("grüße 1.css", "css");
  fs.mkdirSync(join(media, "way"));
  fs.writeFileSync(Buffer.concat([Buffer.from(`${media}/`), Buffer.from([0xff, 0xfe])]), "bytes");
  await settled();
});
afterAll(() => fs.rmSync(base, { recursive: true, force: true }));
beforeEach(() => (errors = []));
afterEach(() => jest.restoreAllMocks());

function write(name: string, content: string | Buffer): string {
  const path = join(media, name);
  fs.writeFileSync(path, content);
  fs.utimesSync(path, MODIFIED, MODIFIED);
  return path;
}

/**
 * Waits until a change just made cannot be confused with a next one: then a file has the same entity tag at each look.
 */
const settled = (): Promise<void> => sleep(130);

/** The strong entity tag of a file whose last change is settled. */
function etagOf(name: string): string {
  const { ctimeNs, size, ino } = fs.statSync(join(media, name), { bigint: true });
  return `"${[ctimeNs, size, ino].map((part) => part.toString(16)).join("-")}"`;
}

function action(
  config: Partial<ActionOf<"staticFiles">> = {},
  route: Partial<RouteConfig> = {},
  made = StaticFilesAction,
): StaticFilesAction {
  const full = { type: "staticFiles", directory: media, index: [], symlinks: "inside", ...config } as const;
  return new made({ path: "/syncmedia", match: "segment", ...route } as RouteConfig, full);
}

function get(on: StaticFilesAction, path: string, request: FakeRequest = {}, options: FakeOptions = {}) {
  const target = path.startsWith("/") ? path : `/syncmedia/${path}`;
  return run(on, { target, ...request }, { route: fakeRoute({ name: "media" }, errors), ...options });
}

/** Both ways a file is sent: straight from the disk, and from what the first response left behind. */
async function twice(
  path: string,
  request: FakeRequest = {},
  options: FakeOptions = {},
): Promise<FakeExchange> {
  const on = action();
  const first = await get(on, path, request, options);
  const second = await get(on, path, request, options);
  expect(visible(second)).toEqual(visible(first));
  return second;
}

const visible = (e: FakeExchange) => ({
  status: e.status,
  headers: e.headers,
  length: e.bodyLength,
  body: e.body,
});
const openFiles = (): string[] => descriptorsOf(process.pid).filter((path) => path.startsWith(base));

/** A descriptor is closed after the response, by a thread of its own. */
const filesClosed = (): Promise<void> =>
  eventually(() => openFiles().length === 0, "for files to be closed", { seen: () => openFiles().join() });

describe("a file", () => {
  test("has type, length, validators and ranges (service 5.1)", async () => {
    const e = await twice("img/logo.PNG");
    expect(e.status).toBe(200);
    expect(e.reason).toBe("OK");
    expect(e.text).toBe("png");
    expect(e.headers).toEqual([
      ...["Content-Type", "image/png", "Last-Modified", "Tue, 02 Jan 2024 03:04:05 GMT"],
      ...["ETag", etagOf("img/logo.PNG"), "Accept-Ranges", "bytes"],
    ]);
  });

  test.each([
    ["a.txt", "text/plain"],
    ["html", "application/octet-stream"],
    ["x.constructor", "application/octet-stream"],
    ["empty", "application/octet-stream"],
  ])("%s is of type %s", async (path, type) => {
    expect((await twice(path)).header("content-type")).toBe(type);
  });

  test.each(["a.txt", "empty", "large.bin"])(
    "%s: HEAD announces the length and sends nothing",
    async (path) => {
      const e = await twice(path, { method: "HEAD" });
      expect([e.status, e.bodyLength, e.bodyBytesSent]).toEqual([
        200,
        fs.statSync(join(media, path)).size,
        0,
      ]);
    },
  );

  test.each([
    ["UTF-8", Buffer.from("grüße 1.css"), "css"],
    ["no UTF-8", Buffer.from([0xff, 0xfe]), "bytes"],
  ])("a name that is %s is found by its bytes", async (_, name, content) => {
    for (const symlinks of ["inside", "never"] as const) {
      const e = await get(action({ symlinks }), "x", { path: `/syncmedia/${name.toString("latin1")}` });
      expect(e.text).toBe(content);
    }
  });

  test("Cache-Control is sent if it is configured, also with a 304", async () => {
    const on = action({ cacheControl: "max-age=60" });
    expect((await get(on, "a.txt")).header("cache-control")).toBe("max-age=60");
    const e = await get(on, "a.txt", { headers: { "If-None-Match": "*" } });
    expect([e.status, e.header("cache-control")]).toEqual([304, "max-age=60"]);
  });

  test.each([false, true])("a large one arrives byte for byte (slow client: %s)", async (slow) => {
    const e = await twice("large.bin", {}, { slow });
    expect(e.body.equals(large)).toBe(true);
    await filesClosed();
  });
});

/**
 * From now on a disk fails after so many reads. The descriptor is left alone: closed here, its number would soon be that of
 * another file, which the product closes in its place.
 */
function readsFailAfter(count: number): void {
  const { read } = fs;
  let left = count;
  jest.spyOn(fs, "read").mockImplementation(((...args: Parameters<typeof read>) => {
    if (left-- > 0) return read(...args);
    const error = Object.assign(new Error("EIO: i/o error, read"), {
      code: "EIO",
      errno: -constants.errno.EIO,
    });
    setImmediate(args.at(-1) as unknown as (error: Error) => void, error);
  }) as typeof read);
}

/** Does this each time a file has just been opened, before anything else is done with it; ends when told. */
function whenOpened(path: string, act: () => void): () => void {
  let over = false;
  const look = (): void => {
    if (over) return;
    // The one that opened it hears of it only when this returns.
    for (const until = performance.now() + 2; performance.now() < until;) {
      if (!descriptorsOf(process.pid).includes(path)) continue;
      act();
      break;
    }
    setImmediate(look);
  };
  setImmediate(look);
  return () => (over = true);
}

describe("a file that changes right after it was opened", () => {
  let stop: () => unknown = () => undefined;
  afterEach(() => {
    stop();
    fs.rmSync(join(media, "race"), { recursive: true, force: true });
    fs.rmSync(join(base, "raced"), { recursive: true, force: true });
  });
  const once = (path: string, act: () => void): void => {
    stop = whenOpened(path, () => {
      stop();
      act();
    });
  };
  const raced = (): string => {
    fs.mkdirSync(join(media, "race"));
    return write("race/f", "old");
  };

  test.each(["inside", "never"] as const)(
    "is looked up again where its directory is moved (%s)",
    async (symlinks) => {
      const path = raced();
      once(path, () => {
        fs.renameSync(join(media, "race"), join(base, "raced"));
        fs.mkdirSync(join(media, "race"));
        write("race/f", "new");
      });
      const e = await get(action({ symlinks }), "race/f");
      expect([e.status, e.text, errors]).toEqual([200, "new", []]);
    },
  );

  test("is not found where its directory is gone", async () => {
    once(raced(), () => fs.renameSync(join(media, "race"), join(base, "raced")));
    expect((await get(action(), "race/f")).status).toBe(404);
  });

  // How soon the open file is seen here decides whether that is before it is read, while it is, or before it is sent.
  test("is looked up again where it is replaced, and given up where that goes on", async () => {
    const path = raced();
    const replace = (): void => {
      fs.rmSync(path);
      write("race/f", "new");
    };
    once(path, replace);
    expect((await get(action({ symlinks: "never" }), "race/f")).text).toBe("new");
    let times = 0;
    stop = whenOpened(path, () => (++times === 100 ? stop() : replace()));
    expect((await get(action(), "race/f")).status).toBe(503);
    expect(errors).toEqual([{ level: "crit", message: `"${path}" keeps being replaced` }]);
  });

  test("that is named as if it was deleted is served", async () => {
    write("x (deleted)", "here");
    expect((await get(action(), "x (deleted)")).text).toBe("here");
  });
});

test("a small file that cannot be read is a 500", async () => {
  readsFailAfter(0);
  await jest.isolateModulesAsync(async () => {
    const { StaticFilesAction: OnThisDisk } = await import("../../src/runtime/actions/staticFiles.js");
    expect((await get(action({}, {}, OnThisDisk), "a.txt")).status).toBe(500);
  });
  const message = `read() "${join(media, "a.txt")}" failed (5: I/o error)`;
  expect(errors).toEqual([{ level: "crit", message }]);
  await filesClosed();
});

describe("what does not exist or may not be read", () => {
  const LONG = "n".repeat(256);
  test.each([
    ["missing", "missing", 404, /open\(\) ".*\/missing" failed \(2: No such file or directory\)/],
    ["a file with a slash", "a.txt/", 404, /20: Not a directory/],
    ["below a file", "a.txt/b", 404, /20: Not a directory/],
    ["a name of 256 bytes", LONG, 404, /36: Name too long/],
    ["a path of 8 KiB", `${"d/".repeat(4_096)}x`, 404, /36: Name too long/],
    ["a directory", "img/", 403, /directory index of ".*\/media\/img\/" is forbidden/],
    ["a missing directory", "none/", 404, /No such file/],
  ])("%s", async (_, path, status, log) => {
    const e = await get(action(), path);
    expect(e.status).toBe(status);
    expect(errors).toEqual([{ level: "error", message: expect.stringMatching(log) as string }]);
    expect(e.text).toContain(`<h1>${status} `);
  });

  test.each(["POST", "PUT", "DELETE", "OPTIONS", "PROPFIND"])(
    "%s is refused, also if nothing is there",
    async (method) => {
      for (const path of ["a.txt", "img", "missing"]) {
        const e = await get(action(), path, { method });
        expect([e.status, e.reason, e.header("allow")]).toEqual([405, "Not Allowed", "GET, HEAD"]);
      }
    },
  );

  test("a sibling of the directory is never served (nginx does)", async () => {
    const e = await get(action({}, { match: "prefix" }), "/syncmedia-old/secret");
    expect(e.status).toBe(404);
  });

  test("neither FIFO nor device is served, and neither blocks", async () => {
    execFileSync("mkfifo", [join(media, "pipe")]);
    fs.symlinkSync("/dev/zero", join(media, "zero"));
    expect((await get(action(), "pipe")).status).toBe(404);
    expect((await get(action({ symlinks: "anywhere" }), "zero")).status).toBe(403);
    expect(errors).toEqual([
      { level: "crit", message: `"${join(media, "pipe")}" is not a regular file` },
      {
        level: "error",
        message:
          `"${join(media, "zero")}" is not open to others: it is in "/dev", and nothing from there is sent; ` +
          "use another path, or remove the link or mount that leads there",
      },
    ]);
  });

  test.each([
    ["ENOENT", -2, 404, "(2: No such file or directory)"],
    ["ENOTDIR", -20, 404, "(20: Not a directory)"],
    ["ENAMETOOLONG", -36, 404, "(36: Name too long)"],
    ["EACCES", -13, 403, "(13: Permission denied): "],
    ["EPERM", -1, 403, "(1: Operation not permitted): "],
    ["ENXIO", -6, 404, "(6: No such device or address): not a regular file"],
    ["ENODEV", -19, 404, "(19: No such device): not a regular file"],
    ["EMFILE", -24, 503, "(24: Too many open files)"],
    ["ENFILE", -23, 503, "(23: File table overflow)"],
    ["ENOMEM", -12, 503, "(12: Not enough memory)"],
    ["EIO", -5, 500, "(5: I/o error)"],
    ["ELOOP", -40, 403, "(40: Too many symbolic links encountered)"],
  ])("%s of the system", async (code, errno, status, log) => {
    const level = status < 500 && !log.includes("regular") ? "error" : "crit";
    const failing = action();
    jest
      .spyOn(FileLookup.prototype, "find")
      .mockResolvedValue(
        await openFailure(join(media, "x"), Object.assign(new Error(code), { code, errno })),
      );
    expect((await get(failing, "x")).status).toBe(status);
    expect(errors).toEqual([{ level, message: expect.stringContaining(`failed ${log}`) as string }]);
  });
});

/** Runs without root's right to read everything, and as one of the others. */
async function unprivileged<T>(work: () => Promise<T>): Promise<T> {
  process.seteuid!(65_534);
  try {
    return await work();
  } finally {
    process.seteuid!(0);
  }
}

/** What a shell makes of a word, byte for byte. */
const word = (command: string): string =>
  execFileSync("bash", ["-c", `printf %s ${command}`], { encoding: "latin1" });

test.each([
  "/srv/media",
  "/srv/it's here",
  "/srv/a 'b' \"c\" $d `e` \\f",
  "/srv/gr\xc3\xbc\xc3\x9fe",
  "/srv/\xff\xfe'",
  "/srv/\x01\x1b[2J\n\\'x",
  "/srv/\x0fa",
])("the command that fixes %j names it to a shell", (path) => {
  const command = chmodCommand("o+rx", path);
  expect(command).toMatch(/^chmod o\+rx \$?'/);
  expect(command).not.toMatch(/[\x00-\x1f]/);
  expect(word(command.slice("chmod o+rx ".length))).toBe(path);
});

describe("permissions (service 2.8): 403, and the error log says what fixes it", () => {
  testWith("root").each([
    [
      "the file",
      "locked/sub/f",
      0o600,
      /file ".*\/f" \(mode 0600\) lacks read permission for others; .*chmod o\+r '.*\/f'$/,
    ],
    [
      "its directory",
      "locked/sub",
      0o706,
      /directory ".*\/sub" \(mode 0706\) lacks execute.*chmod o\+rx '.*\/sub'$/,
    ],
    [
      "one further up",
      "locked",
      0o700,
      /directory ".*\/locked" \(mode 0700\) lacks execute.*chmod o\+rx '.*\/locked'$/,
    ],
  ])("%s", async (_, name, mode, log) => {
    fs.mkdirSync(join(media, "locked/sub"), { recursive: true });
    const file = write("locked/sub/f", "x");
    fs.chmodSync(join(media, name), mode);
    const e = await unprivileged(() => get(action(), "locked/sub/f"));
    fs.chmodSync(join(media, "locked"), 0o755);
    fs.chmodSync(join(media, "locked/sub"), 0o755);
    fs.chmodSync(file, 0o644);
    expect(e.status).toBe(403);
    expect(errors).toEqual([{ level: "error", message: expect.stringMatching(log) as string }]);
    expect(errors[0]!.message).toContain("(13: Permission denied)");
    expect((await get(action(), "locked/sub/f")).status).toBe(200);
  });

  test("a directory above that of the route may be closed to others, as a home directory", async () => {
    fs.mkdirSync(join(base, "home/site"), { recursive: true });
    fs.writeFileSync(join(base, "home/site/f"), "x");
    fs.chmodSync(join(base, "home"), 0o700);
    for (const symlinks of ["inside", "anywhere", "never"] as const)
      expect((await get(action({ symlinks, directory: join(base, "home/site") }), "f")).status).toBe(200);
    fs.symlinkSync("../home/site/f", join(media, "home"));
    expect((await get(action({ symlinks: "anywhere" }), "home")).status).toBe(403);
    expect(errors[0]!.message).toMatch(/directory ".*\/home" \(mode 0700\) lacks execute/);
  });

  testWith("root")("for a symbolic link, the place it leads to is named", async () => {
    const vault = join(base, "vault");
    fs.mkdirSync(vault, { mode: 0o700 });
    fs.writeFileSync(join(vault, "f"), "x");
    fs.symlinkSync("../vault", join(media, "vault"));
    await unprivileged(() => get(action({ symlinks: "anywhere" }), "vault/f"));
    expect(errors[0]!.message).toMatch(/directory ".*\/vault" \(mode 0700\) lacks execute/);
    expect(errors[0]!.message).toContain(`'${vault}'`);
  });
});

describe("why a path may not be read", () => {
  const vault = 'v\xff"t';
  const bytes = (...names: string[]): Buffer => Buffer.from(join(base, ...names), "latin1");
  beforeAll(() => {
    fs.mkdirSync(bytes(vault), { mode: 0o700 });
    fs.mkdirSync(join(base, "unlisted"), { mode: 0o755 });
    fs.chmodSync(join(base, "unlisted"), 0o711);
    fs.writeFileSync(bytes(vault, "f"), "x");
    fs.writeFileSync(join(base, "own"), "x");
    if (process.geteuid!() === 0) fs.chownSync(join(base, "own"), 65_534, 65_534);
    fs.chmodSync(join(base, "own"), 0o004);
    for (let i = 0; i < 10; i++)
      fs.symlinkSync(i === 0 ? bytes(vault, "f") : `link${i - 1}`, join(base, `link${i}`));
    fs.symlinkSync("looping", join(base, "looping"));
  });
  const VAULT =
    'directory "BASE/v\ufffd\\x22t" (mode 0700) lacks execute permission for others; ' +
    "fix it with: chmod o+rx $'BASE/v\\xff\"t'";
  testWith("root").each<[name: string, why: string]>([
    ["link0", VAULT],
    ["link7", VAULT],
    ["link8", 'too many symbolic links lead to "BASE/link0"'],
    [`${vault}/f`, VAULT],
    [
      "unlisted/",
      "directory \"BASE/unlisted\" (mode 0711) lacks read permission for others; fix it with: chmod o+rx 'BASE/unlisted'",
    ],
    [
      "own",
      'file "BASE/own" (mode 0004) allows others to read; ' +
        "look at its owner and group, ACLs, and the sandbox of the service",
    ],
    ["missing", "the reason is gone"],
    ["looping", "the reason is gone"],
  ])("%s", async (name, why) => {
    expect(await unprivileged(() => explainDenial(`${base}/${name}`))).toBe(why.replaceAll("BASE", base));
  });
});

describe("symbolic links", () => {
  beforeAll(() => {
    fs.symlinkSync(".", join(media, "self"));
    fs.symlinkSync("/", join(media, "root"));
    fs.symlinkSync("a.txt", join(media, "link-in"));
    fs.symlinkSync("img", join(media, "dir-in"));
    fs.symlinkSync("../media-old/secret", join(media, "link-out"));
    fs.symlinkSync("../media-old", join(media, "dir-out"));
    fs.symlinkSync("loop", join(media, "loop"));
    fs.symlinkSync("gone", join(media, "dangling"));
    fs.symlinkSync("media", join(base, "current"));
  });
  test.each([
    ["link-in", 200, 200, 403],
    ["dir-in/logo.PNG", 200, 200, 403],
    ["link-out", 403, 200, 403],
    ["dir-out/secret", 403, 200, 403],
    ["dir-out", 403, 301, 403],
    ["dir-out/", 403, 403, 403],
    ["dir-in", 301, 301, 403],
    ["self", 301, 301, 403],
    ["root", 403, 301, 403],
    ["img", 301, 301, 301],
    ["a.txt", 200, 200, 200],
    ["loop", 403, 403, 403],
    ["dangling", 404, 404, 404],
  ])("%s: inside %i, anywhere %i, never %i", async (path, inside, anywhere, never) => {
    expect((await get(action(), path)).status).toBe(inside);
    expect((await get(action({ symlinks: "anywhere" }), path)).status).toBe(anywhere);
    expect((await get(action({ symlinks: "never" }), path)).status).toBe(never);
  });

  test.each(["inside", "never"] as const)(
    "the directory itself may be reached through one (%s)",
    async (symlinks) => {
      expect((await get(action({ symlinks, directory: join(base, "current") }), "a.txt")).status).toBe(200);
    },
  );

  test("the refusal says why", async () => {
    await get(action(), "link-out");
    await get(action({ symlinks: "never" }), "dir-in/");
    await get(action({ symlinks: "never" }), "img/");
    expect(errors).toEqual([
      {
        level: "error",
        message:
          `"${media}/link-out" is a symbolic link to "${media}-old/secret", outside "${media}"; ` +
          'allow it with symlinks "anywhere"',
      },
      {
        level: "error",
        message: `"${media}/dir-in/" leads through a symbolic link, and symlinks is "never"`,
      },
      {
        level: "error",
        message: `directory index of "${media}/img/" is forbidden: the route has no \`index\``,
      },
    ]);
  });

  test("a directory whose name is not ASCII can be served", async () => {
    const directory = join(base, "gr\u00fc\u00dfe");
    fs.mkdirSync(directory);
    fs.writeFileSync(join(directory, "f"), "here");
    for (const symlinks of ["inside", "never", "anywhere"] as const)
      expect((await get(action({ directory, symlinks }), "f")).text).toBe("here");
  });

  test("the root directory can be served", async () => {
    for (const symlinks of ["inside", "never"] as const) {
      const on = action({ directory: "/", symlinks }, { path: "/" });
      expect((await get(on, join(media, "a.txt"))).status).toBe(200);
      errors.length = 0;
      expect((await get(on, "/")).status).toBe(403);
      expect(errors[0]!.message).toBe('directory index of "/" is forbidden: the route has no `index`');
    }
  });
});

describe("directories", () => {
  test.each([
    ["/syncmedia/img", undefined, "/syncmedia/img/"],
    ["/syncmedia", undefined, "/syncmedia/"],
    ["/syncmedia/img?a=/b&c", "/syncmedia/img", "/syncmedia/img/?a=/b&c"],
    ["/syncmedia/%69mg", "/syncmedia/img", "/syncmedia/%69mg/"],
    ["/syncmedia//img", "/syncmedia/img", "/syncmedia//img/"],
    ["//evil.example/..%2fsyncmedia/img", "/syncmedia/img", "/syncmedia/img/"],
    ["/\\evil.example/..%2fsyncmedia/img?q", "/syncmedia/img", "/syncmedia/img/?q"],
  ])("%s is redirected to its public path with a slash", async (target, path, location) => {
    const e = await get(action(), target, { path: path ?? target });
    expect([e.status, e.header("location")]).toEqual([301, location]);
    expect(e.header("content-type")).toBe("text/html");
  });

  test("an index file is the response for its directory; the first that exists", async () => {
    const on = action({ index: ["index.html", "index.htm"] });
    expect((await get(on, "img/")).status).toBe(403);
    write("img/index.htm", "second");
    const e = await get(on, "img/");
    expect([e.status, e.text, e.header("content-type")]).toEqual([200, "second", "text/html"]);
    write("img/index.html", "first");
    expect((await get(on, "img/")).text).toBe("first");
    fs.rmSync(join(media, "img/index.html"));
    expect((await get(on, "img/")).text).toBe("second");
    expect((await get(action({ index: ["index.html"] }, { path: "/", match: "exact" }), "/")).status).toBe(
      403,
    );
    // A directory of that name is none, and one that is refused is not passed over.
    fs.mkdirSync(join(media, "img/index.html"));
    expect((await get(on, "img/")).text).toBe("second");
    fs.rmdirSync(join(media, "img/index.html"));
    fs.symlinkSync("../../media-old/secret", join(media, "img/index.html"));
    errors.length = 0;
    expect((await get(on, "img/")).status).toBe(403);
    expect(errors[0]!.message).toContain("img/index.html");
    fs.rmSync(join(media, "img/index.html"));
  });
});

describe("ranges and conditions", () => {
  let etag: string;
  beforeAll(() => (etag = etagOf("a.txt")));
  test.each([
    ["one range", { Range: "bytes=10-12" }, 206, "abc", "bytes 10-12/45"],
    ["its end", { Range: "bytes=-3" }, 206, "GHI", "bytes 42-44/45"],
    ["If-Range with the tag", { Range: "bytes=0-0", "If-Range": "{etag}" }, 206, "0", "bytes 0-0/45"],
    ["If-Range with another", { Range: "bytes=0-0", "If-Range": '"x"' }, 200, ALPHABET, undefined],
    ["another unit", { Range: "lines=1-2" }, 200, ALPHABET, undefined],
  ])("%s", async (_, headers, status, body, where) => {
    const sent = Object.entries(headers).flatMap(([name, value]) => [name, value.replace("{etag}", etag)]);
    const e = await twice("a.txt", { headers: sent });
    expect([e.status, e.text, e.header("content-range")]).toEqual([status, body, where]);
    const last = status === 200 ? ["Accept-Ranges", "bytes"] : ["Content-Range", where];
    expect(e.headers).toEqual([
      ...["Content-Type", "text/plain", "Last-Modified", "Tue, 02 Jan 2024 03:04:05 GMT", "ETag", etag],
      ...last,
    ]);
  });

  test("none that can be satisfied", async () => {
    const e = await twice("a.txt", { headers: { Range: "bytes=45-" } });
    expect([e.status, e.reason, e.header("content-range")]).toEqual([
      416,
      "Requested Range Not Satisfiable",
      "bytes */45",
    ]);
  });

  test.each([
    ["a.txt", "bytes=0-1,-2"],
    ["large.bin", `bytes=0-9,${PIECE_BYTES - 5}-${2 * PIECE_BYTES + 5},-3`],
  ])("several of %s", async (path, range) => {
    for (const slow of [false, true]) {
      const e = await twice2(path, range, slow);
      const [, type, ...rest] = e.headers;
      const boundary = /^multipart\/byteranges; boundary=(\d{20})$/.exec(type!)![1]!;
      expect(rest).toEqual(["Last-Modified", "Tue, 02 Jan 2024 03:04:05 GMT", "ETag", etagOf(path)]);
      const content = fs.readFileSync(join(media, path)).toString("latin1");
      const parts = [...e.text.matchAll(/Content-Range: bytes (\d+)-(\d+)\/(\d+)\r\n\r\n/g)];
      expect(parts).toHaveLength(range.split(",").length);
      for (const part of parts) {
        const [head, first, last, size] = part;
        const expected = content.slice(Number(first), Number(last) + 1);
        expect(Number(size)).toBe(content.length);
        expect(e.text.startsWith(`${expected}\r\n--${boundary}`, part.index + head.length)).toBe(true);
      }
      expect(e.text.endsWith(`\r\n--${boundary}--\r\n`)).toBe(true);
    }
  });
  const twice2 = (path: string, Range: string, slow: boolean) =>
    get(action(), path, { headers: { Range } }, { slow });

  test.each(["bytes=0-9", "bytes=0-1,4-5", "bytes=99999999-"])(
    "HEAD with range %s: only GET has ranges (RFC 9110, 14.2)",
    async (Range) => {
      const e = await twice("large.bin", { method: "HEAD", headers: { Range } });
      expect([e.status, e.bodyLength, e.bodyBytesSent]).toEqual([200, LARGE_BYTES, 0]);
      expect([e.header("content-range"), e.header("accept-ranges")]).toEqual([undefined, "bytes"]);
    },
  );

  test("an empty file has no ranges", async () => {
    expect((await twice("empty", { headers: { Range: "bytes=0-" } })).status).toBe(200);
  });

  test("304 carries the validators and no length", async () => {
    const e = await twice("a.txt", { headers: { "If-None-Match": etag } });
    expect([e.status, e.bodyLength]).toEqual([304, -1]);
    expect(e.headers).toEqual(["Last-Modified", "Tue, 02 Jan 2024 03:04:05 GMT", "ETag", etag]);
  });

  test("412", async () => {
    expect((await twice("a.txt", { headers: { "If-Match": '"x"' } })).status).toBe(412);
  });
});

describe("files that change", () => {
  const at = (offsetMs: number): void => {
    jest.restoreAllMocks();
    const real = Date.now();
    jest.spyOn(Date, "now").mockReturnValue(real + offsetMs);
  };

  testWith("root").each([
    ["small", "x"],
    ["large", randomText(UNCACHED_BYTES)],
  ])(
    "a change of a %s file shows in the next response, and so do removal, return and loss",
    async (_, filler) => {
      const on = action();
      const path = write("changing", `one${filler}`);
      await settled();
      expect((await get(on, "changing")).text).toBe(`one${filler}`);
      fs.writeFileSync(path, `two${filler}`);
      expect((await get(on, "changing")).text).toBe(`two${filler}`);
      await settled();
      const etag = (await get(on, "changing")).header("etag")!;
      fs.chmodSync(path, 0o600);
      expect((await unprivileged(() => get(on, "changing"))).status).toBe(403);
      expect(errors[0]!.message).toContain("lacks read permission");
      fs.rmSync(path);
      const asked: HeaderList[] = [[], ["If-None-Match", etag], ["Range", "bytes=0-0", "If-Range", etag]];
      for (const headers of asked) expect((await get(on, "changing", { headers })).status).toBe(404);
      const { cache } = on as unknown as { cache: FileCache };
      expect(cache.get("/syncmedia/changing")).toBeUndefined();
      write("changing", `3${filler}`);
      expect((await get(on, "changing")).text).toBe(`3${filler}`);
      fs.rmSync(path);
      fs.symlinkSync("../media-old/secret", path);
      expect((await get(on, "changing")).status).toBe(403);
      fs.rmSync(path);
    },
  );

  test.each(["small", "large"])("no two contents of a %s file share a tag or a date", async (kind) => {
    const on = action();
    const size = kind === "small" ? 10 : UNCACHED_BYTES;
    const texts = Array.from({ length: 26 }, () => randomText(size));
    const path = join(media, `turning-${kind}`);
    const contents = new Map<string, string>();
    let last: FakeExchange | undefined;
    for (let n = 0; n < 40; n++) {
      const text = texts[n % texts.length]!;
      // In place, of one length, one after the other within a tick of the clock: nothing but the bytes differs.
      fs.writeFileSync(path, text);
      const e = await get(on, `turning-${kind}`);
      expect(e.body.equals(Buffer.from(text))).toBe(true);
      const etag = e.header("etag")!;
      expect((contents.get(etag) ?? text) === text).toBe(true);
      contents.set(etag, text);
      if (last !== undefined) {
        const [tag, date] = [last.header("etag")!, last.header("last-modified")!];
        const ask = async (headers: Record<string, string>) =>
          (await get(on, `turning-${kind}`, { headers })).status;
        expect(await ask({ "If-None-Match": tag })).toBe(200);
        expect(await ask({ "If-Modified-Since": date })).toBe(200);
        expect(await ask({ Range: "bytes=0-0", "If-Range": tag })).toBe(200);
        expect(await ask({ Range: "bytes=0-0", "If-Range": date })).toBe(200);
      }
      last = e;
    }
  });

  test("a change that keeps size and time is noticed too", async () => {
    const on = action();
    write("same", "aaa");
    await settled();
    const first = await get(on, "same");
    write("same", "bbb");
    await settled();
    const second = await get(on, "same");
    expect([first.text, second.text]).toEqual(["aaa", "bbb"]);
    expect(second.header("last-modified")).toBe(first.header("last-modified"));
    expect(second.header("etag")).not.toBe(first.header("etag"));
  });

  test("a date never names a second that is not over; after that, it is the file's own", async () => {
    const on = action();
    const path = join(media, "dated");
    fs.writeFileSync(path, "x");
    const modified = Math.floor(fs.statSync(path).mtimeMs / 1000) * 1000;
    const dateAt = async (time: number): Promise<string> => {
      jest.restoreAllMocks();
      jest.spyOn(Date, "now").mockReturnValue(time);
      return (await get(on, "dated")).header("last-modified")!;
    };
    expect(await dateAt(modified + 999)).toBe(new Date(modified - 1_000).toUTCString());
    // The file system's clock may still be in the second before.
    expect(await dateAt(modified + 1_099)).toBe(new Date(modified - 1_000).toUTCString());
    expect(await dateAt(modified + 1_100)).toBe(new Date(modified).toUTCString());
    expect(await dateAt(modified + 9_000)).toBe(new Date(modified).toUTCString());
    const future = new Date(modified + 3_600_000);
    fs.utimesSync(path, future, future);
    expect(await dateAt(modified + 9_100)).toBe(new Date(modified + 8_000).toUTCString());
  });

  test.each([
    ["way/steady", "inside"],
    ["way/steady", "never"],
    ["way/steady", "anywhere"],
    ["way-out", "anywhere"],
    ["way/", "inside"],
  ] as const)("an unchanged file is not read again: %s, %s", async (name, symlinks) => {
    const on = action({ symlinks, index: ["steady", "other"] });
    write("way/steady", "x");
    const from = Date.now() + 10_000;
    const now = jest.spyOn(Date, "now").mockReturnValue(from);
    const { text } = await get(on, name);
    const find = jest.spyOn(FileLookup.prototype, "find");
    const reopen = jest.spyOn(FileLookup.prototype, "reopen");
    // The path to it is checked every second, and when the clock is set back.
    for (const [time, checks] of [
      ...[
        [0, 0],
        [999, 0],
        [1_000, 1],
        [1_999, 1],
        [1_998, 1],
        [2_000, 2],
        [1_999, 3],
      ],
    ] as const) {
      now.mockReturnValue(from + time!);
      expect([(await get(on, name)).text, find.mock.calls.length, reopen.mock.calls.length]).toEqual([
        text,
        0,
        checks,
      ]);
    }
    await filesClosed();
  });

  testWith("root")("a file whose directory is closed to others is refused at once", async () => {
    const on = action();
    write("way/closed", "x");
    at(10_000);
    expect((await get(on, "way/closed")).status).toBe(200);
    fs.chmodSync(join(media, "way"), 0o700);
    const { status } = await unprivileged(() => get(on, "way/closed"));
    fs.chmodSync(join(media, "way"), 0o755);
    expect(status).toBe(403);
  });

  test("a path that leads out is noticed after a second, and so is a file that is gone", async () => {
    const on = action();
    write("way/steady", "x");
    at(11_000);
    expect((await get(on, "way/steady")).text).toBe("x");
    // The same inode, reached through a link that was swapped in.
    fs.renameSync(join(media, "way"), join(base, "moved"));
    fs.symlinkSync("../moved", join(media, "way"));
    at(13_000);
    expect((await get(on, "way/steady")).status).toBe(403);
    fs.rmSync(join(media, "way"));
    fs.renameSync(join(base, "moved"), join(media, "way"));
    expect((await get(on, "way/steady")).text).toBe("x");
    fs.rmSync(join(media, "way/steady"));
    at(15_000);
    expect((await get(on, "way/steady")).status).toBe(404);
  });

  test.each([
    ["inside", false],
    ["never", false],
    ["inside", true],
  ] as const)(
    "switching the directory to another does not lead out of it (%s; the old one removed: %s)",
    async (symlinks, gone) => {
      const readlink = fs.promises.readlink;
      const releases = ["one", "two"].map((name) => join(base, `release-${name}-${symlinks}-${gone}`));
      for (const release of releases) {
        fs.mkdirSync(release);
        fs.writeFileSync(join(release, "f"), release);
        fs.symlinkSync("/etc/passwd", join(release, "out"));
      }
      const link = join(base, `switched-${symlinks}-${gone}`);
      let turn = 0;
      const switchOver = (): void => {
        fs.symlinkSync(releases[turn++ % 2]!, `${link}.next`);
        fs.renameSync(`${link}.next`, link);
      };
      switchOver();
      // Right between the question where the directory is and the opening of a file.
      jest.spyOn(fs.promises, "readlink").mockImplementationOnce((async (...args: [string]) => {
        const asked = await readlink(...args);
        switchOver();
        if (gone) fs.rmSync(asked.toString(), { recursive: true });
        return asked;
      }) as never);
      const e = await get(action({ symlinks, directory: link }), "f");
      expect([e.status, e.text]).toEqual([200, releases[gone ? 1 : 0]]);
      if (gone) return;
      // Where it is switched all the time the file is found, and what is outside stays so.
      const storm = setInterval(switchOver, 1);
      const statuses = { f: new Set<number>(), out: new Set<number>() };
      for (let n = 0; n < 100; n++) {
        const on = action({ symlinks, directory: link });
        statuses.f.add((await get(on, "f")).status);
        statuses.out.add((await get(on, "out")).status);
      }
      clearInterval(storm);
      expect([...statuses.f]).toEqual([200]);
      expect([...statuses.out]).toEqual([403]);
    },
  );

  test.each([
    ["small", 10],
    ["large", 400_000],
  ])("length and content of a %s file belong together while it is replaced", async (kind, unit) => {
    const on = action();
    const contents = [0, 1, 2, 3, 4].map((k) => Buffer.alloc(unit * (1 + k), 0x61 + k));
    const replace = (n: number): void => {
      fs.writeFileSync(join(base, "next"), contents[n % 5]!);
      fs.renameSync(join(base, "next"), join(media, `swapped-${kind}`));
    };
    for (let n = 0; n < 60; n++) {
      replace(n);
      // Always stale: every request looks again while the next replacement comes.
      at(n * 2_000);
      const pending = Promise.all([0, 1, 2].map(() => get(on, `swapped-${kind}`)));
      await new Promise((resolve) => setImmediate(resolve));
      replace(n + 1);
      for (const e of await pending) {
        expect(e.status).toBe(200);
        const { body } = e;
        expect(body.length).toBe(unit * (1 + body[0]! - 0x61));
        expect(body.equals(contents[body[0]! - 0x61]!)).toBe(true);
        expect(e.header("etag")).toContain(`-${body.length.toString(16)}-`);
      }
    }
    await filesClosed();
  });

  test("a file that shrinks while it is sent is cut off, not padded or ended", async () => {
    const path = write("shrinking", large);
    const exchange = new FakeExchange(
      { target: "/syncmedia/shrinking" },
      { slow: true, route: fakeRoute({}, errors) },
    );
    const sendData = exchange.sendData.bind(exchange);
    exchange.sendData = (chunk) => {
      fs.truncateSync(path, 10);
      return sendData(chunk);
    };
    action().handle(exchange);
    await exchange.over;
    expect([exchange.status, exchange.aborted, exchange.ended]).toEqual([200, true, false]);
    expect(errors[0]!.message).toContain("the file was truncated while it was sent");
    await filesClosed();
  });
});

describe("clients that leave", () => {
  const settle = (): Promise<void> => sleep(60);

  test.each(["a.txt", "large.bin", "missing", "img"])("%s: while the file is looked up", async (path) => {
    const exchange = new FakeExchange({ target: `/syncmedia/${path}` }, { route: fakeRoute({}, errors) });
    action().handle(exchange);
    exchange.leave();
    await settle();
    expect([exchange.headSent, exchange.aborted]).toEqual([false, false]);
    await filesClosed();
  });

  test("in the middle of a transfer", async () => {
    const exchange = new FakeExchange(
      { target: "/syncmedia/large.bin" },
      { slow: true, route: fakeRoute({}, errors) },
    );
    const sendData = exchange.sendData.bind(exchange);
    exchange.sendData = (chunk) => {
      setImmediate(() => exchange.leave());
      return sendData(chunk);
    };
    action().handle(exchange);
    await exchange.over;
    await settle();
    expect(exchange.bodyBytesSent).toBe(PIECE_BYTES);
    expect([exchange.ended, errors]).toEqual([false, []]);
    await filesClosed();
  });
});

describe("redirect (service 4.3)", () => {
  const redirect = (config: object = {}): RedirectAction =>
    new RedirectAction(
      { type: "redirect", status: 301, scheme: "https", port: 443, keep: "nothing", ...config },
      "/old",
    );
  test.each([
    [
      "as asked",
      {},
      { target: "/sync/a%20b?x=%2F", host: "SYNC.Example:28080" },
      {},
      "https://sync.example/sync/a%20b?x=%2F",
    ],
    ["another port", { port: 8443 }, { target: "/sync/" }, {}, "https://sync.example:8443/sync/"],
    ["to http", { scheme: "http", port: 80 }, { target: "/sync/" }, {}, "http://sync.example/sync/"],
    ["a given host", { host: "other.example" }, { target: "/sync/" }, {}, "https://other.example/sync/"],
    ["an IPv6 literal", {}, { target: "/sync", serverName: "2001:db8::1" }, {}, "https://[2001:db8::1]/sync"],
    ["a path alone", { path: "/new" }, { target: "/old/a?b" }, {}, "https://sync.example/new"],
    [
      "its query",
      { path: "/new", keep: "query" },
      { target: "/old/a?b=/?" },
      {},
      "https://sync.example/new?b=/?",
    ],
    [
      "the rest",
      { path: "/new", keep: "rest" },
      { target: "/old/%61?b" },
      {},
      "https://sync.example/new/%61?b",
    ],
    ["no rest", { path: "/new", keep: "rest" }, { target: "/old?" }, {}, "https://sync.example/new?"],
    [
      "a rest of slashes",
      { path: "/", keep: "rest" },
      { target: "/old//o.example" },
      {},
      "https://sync.example//o.example",
    ],
    ["raw, dots and slashes", {}, { target: "//sync/../x" }, {}, "https://sync.example//sync/../x"],
    ["no Host", {}, { target: "/sync", host: "", serverName: "" }, {}, "https://sync.example/sync"],
    [
      "no Host, no name",
      {},
      { target: "/sync", serverName: "" },
      { server: { serverNames: ["_"] } },
      "https://192.0.2.1/sync",
    ],
    [
      "no Host, no name, IPv6",
      {},
      { target: "/sync", serverName: "" },
      { server: { serverNames: ["_"] }, client: { localAddress: "fe80::1%eth0" } },
      "https://[fe80::1]/sync",
    ],
  ])("%s", async (_, config, request, options, location) => {
    const e = await run(redirect(config), request, options);
    expect([e.status, e.reason, e.header("location")]).toEqual([301, "Moved Permanently", location]);
    expect(e.header("content-type")).toBe("text/html");
    expect(e.text).toContain("<h1>301 Moved Permanently</h1>");
  });

  test("any method; HEAD without a body", async () => {
    expect((await run(redirect({ status: 308 }), { method: "POST" })).status).toBe(308);
    const e = await run(redirect(), { method: "HEAD" });
    expect([e.bodyLength > 100, e.bodyBytesSent]).toEqual([true, 0]);
  });
});

describe("respond", () => {
  const respond = (config: object): RespondAction =>
    new RespondAction({
      type: "respond",
      status: 200,
      contentType: "text/plain",
      body: "",
      ...config,
    });
  test.each([
    [{ body: "grüß" }, "GET", 200, 6, 6, "text/plain"],
    [{ body: "grüß" }, "HEAD", 200, 6, 0, "text/plain"],
    [{ body: "x" }, "GET", 200, 1, 1, "text/plain"],
    [{}, "GET", 200, 0, 0, undefined],
    [{ status: 204 }, "GET", 204, 0, 0, undefined],
    [{ status: 304 }, "GET", 304, -1, 0, undefined],
    [{ status: 503, body: "down" }, "PUT", 503, 4, 4, "text/plain"],
  ])("%j to %s", async (config, method, status, length, sent, type) => {
    const e = await run(respond(config), { method });
    expect([e.status, e.bodyLength, e.bodyBytesSent, e.header("content-type")]).toEqual([
      status,
      length,
      sent,
      type,
    ]);
  });
});
