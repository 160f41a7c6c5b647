import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join, posix } from "node:path";
import { descriptorsOf } from "../../testkit/processes.js";
import { type Acting, actingOn, identityOf } from "../../src/host/asOwner/acting.js";
import { runAsOwner } from "../../src/host/asOwner/child.js";
import { findImage } from "../../src/host/asOwner/imageSearch.js";
import { described } from "../../src/host/asOwner/treeFindings.js";
import {
  entriesIn,
  type TreeTask,
  realPathOf,
  walkTrees,
  type WalkRequest,
} from "../../src/host/asOwner/treeWalk.js";
import { changeModes, type ModeChange } from "../../src/host/asOwner/modes.js";
import {
  readOwnerFile,
  replaceOwnerFile,
  sweepBeside,
  temporaryBeside,
} from "../../src/host/asOwner/ownerFile.js";
import { ProblemError } from "../../src/model/index.js";
import { mountAs } from "./fuse.js";

/** What is done as the owner of a tree, in this process: as root, and as a user without any rights. */

const USER = 65_534;

let base: string;
beforeEach(() => {
  base = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), "portico-operations-")));
  fs.chmodSync(base, 0o755);
});
afterEach(() => fs.rmSync(base, { recursive: true, force: true }));

const at = (name: string): string => join(base, name);

function folder(name: string, mode = 0o755, owner = 0): void {
  fs.mkdirSync(at(name), { recursive: true });
  fs.chownSync(at(name), owner, owner);
  fs.chmodSync(at(name), mode);
}

function file(name: string, mode = 0o644, owner = 0): void {
  fs.writeFileSync(at(name), name);
  fs.chownSync(at(name), owner, owner);
  fs.chmodSync(at(name), mode);
}

async function asUser<T>(act: () => Promise<T>): Promise<T> {
  process.seteuid!(USER);
  try {
    return await act();
  } finally {
    process.seteuid!(0);
  }
}

/** Files below the base that this process has open. */
const leftOpen = (): string[] => descriptorsOf(process.pid).filter((path) => path.startsWith(base));

/** Problems as they are reported, or the message of another error. */
const refusal = (act: Promise<unknown>): Promise<unknown> =>
  act.then(
    () => "done",
    (error: Error) => (error instanceof ProblemError ? error.problems : error.message),
  );

/** One problem, as {@link refusal} gives it. */
const oneProblem = (code: string, path: string, message: string, fix?: string) => [
  expect.objectContaining({ code, path, message, ...(fix === undefined ? {} : { fix }) }),
];

/** So many links that lead to each other, the last one to `target`; the name of the first. */
function chain(length: number, target: string): string {
  for (let i = 1; i <= length; i++)
    fs.symlinkSync(i === length ? target : `link-${length}-${i + 1}`, at(`link-${length}-${i}`));
  return at(`link-${length}-1`);
}

describe("the user to act as:", () => {
  const acting = (path: string): Promise<Acting> => actingOn(path);

  test("root follows links, `.` and `..` as long as only root can change the way", async () => {
    folder("a/b");
    file("a/b/file", 0o644, USER);
    folder("a/ü");
    fs.symlinkSync("a/ü/../b", at("relative"));
    fs.symlinkSync(at("a"), at("absolute"));
    for (const [name, resolved] of [
      ["a//b/./file", "a/b/file"],
      ["relative/file", "a/b/file"],
      ["absolute/b/../b", "a/b"],
      ["a/b/file/below", "a/b/file/below"],
      ["a/absent/below/it", "a/absent/below/it"],
    ] as const)
      expect(await acting(`${base}/${name}`)).toEqual({ uid: 0, path: at(resolved) });
    expect(await acting("/")).toEqual({ uid: 0, path: "/" });
    await expect(acting(`${base}/${"x".repeat(300)}`)).rejects.toThrow("ENAMETOOLONG");
  });

  test("40 links are followed, not 41", async () => {
    folder("end");
    expect(await acting(chain(40, "end"))).toEqual({ uid: 0, path: at("end") });
    await expect(acting(chain(41, "end"))).rejects.toThrow("too many symbolic links");
  });

  test("the owner of the first directory on the way that is not root's", async () => {
    folder("theirs/below", 0o755, USER);
    folder("theirs", 0o755, USER + 1);
    expect(await acting(at("theirs/below/x"))).toEqual({ uid: USER + 1, path: at("theirs/below/x") });
    fs.symlinkSync("theirs/below", at("to-theirs"));
    fs.lchownSync(at("to-theirs"), USER, USER);
    expect(await acting(at("to-theirs/x"))).toEqual({ uid: USER + 1, path: at("theirs/below/x") });
  });

  test("where everyone may add files, the owner of a file or link; an absent file is refused", async () => {
    folder("sticky", 0o1777);
    file("sticky/theirs", 0o644, USER);
    file("sticky/roots");
    fs.symlinkSync("/etc/passwd", at("sticky/link"));
    fs.lchownSync(at("sticky/link"), USER, USER);
    expect(await acting(at("sticky/theirs"))).toEqual({ uid: USER, path: at("sticky/theirs") });
    expect(await acting(at("sticky/link"))).toEqual({ uid: USER, path: at("sticky/link") });
    expect(await acting(at("sticky/roots"))).toEqual({ uid: 0, path: at("sticky/roots") });
    expect(await refusal(acting(at("sticky/absent")))).toEqual(
      oneProblem(
        "files.shared-directory",
        at("sticky"),
        "belongs to root, but every user may put files there: root does not follow the path further",
        `Make the application's user the owner of the directory, or remove the permission: chmod go-w ${at("sticky")}`,
      ),
    );
  });

  test.each([0o775, 0o757, 0o777])(
    "a directory of root's that others can change is refused: %o",
    async (mode) => {
      folder("shared", mode);
      const message =
        "belongs to root, but users other than root may change it: root does not follow the path further";
      const shared = oneProblem("files.shared-directory", at("shared"), message);
      expect(await refusal(acting(at("shared/x")))).toEqual(shared);
    },
  );

  const withFuse = fs.existsSync("/dev/fuse") ? test : test.skip;
  withFuse("who has mounted a file system that shows root's directories", async () => {
    folder("mounted", 0o755, USER);
    const unmount = await mountAs(USER, at("mounted"));
    try {
      expect(await acting(at("mounted/conf/x"))).toEqual({ uid: USER, path: at("mounted/conf/x") });
    } finally {
      await unmount();
    }
  });

  test("a process that is not root acts as itself", async () => {
    expect(await asUser(() => acting("/tmp/./x"))).toEqual({ uid: USER, path: "/tmp/./x" });
  });

  test("a user that is not known has no groups", async () => {
    expect(await identityOf(42_424)).toEqual({ uid: 42_424, gid: 65_534, groups: [] });
  });

  test.each([
    ["root", "0", "0", ""],
    ["no user", "x", "1", ""],
    ["a part of one", "1.5", "1", ""],
    ["a negative one", "-5", "1", ""],
    ["no group", "1", "x", ""],
  ])("nobody becomes %s", async (_what, ...args) => {
    await expect(runAsOwner(args)).rejects.toThrow("no user was named");
  });
});

describe("trees:", () => {
  const task = (name: string, more: Partial<TreeTask> = {}): TreeTask => ({
    path: Buffer.from(posix.join(base, name)).toString("latin1"),
    code: "media",
    kind: "tree",
    outside: false,
    ...more,
  });
  const walk = async (tasks: readonly TreeTask[], more: Partial<WalkRequest> = {}) => {
    const walked = await walkTrees({ tasks, roots: [], entriesMax: 100_000, ...more });
    return { ...described(walked), handedOver: walked.handedOver };
  };
  /** How many directories there are on the way to the base, `/` and the base among them. */
  const onTheWay = (): number => base.split("/").length;
  const found = (name: string, more: object) => ({
    path: at(name),
    code: "media",
    kind: "file",
    mode: "0600",
    lacks: "read",
    fix: `chmod o+r '${at(name)}'`,
    outside: false,
    ...more,
  });
  const directory = { kind: "directory", mode: "0700", lacks: "read and execute" };

  test("a walk reports violations in the order of their names, changes, and what other users have to check", async () => {
    for (const name of ["b", "c", "a"]) file(name, 0o600);
    for (const name of ["tree/z", "tree/y", "tree/x", "tree/sticky", "out/below"]) folder(name);
    folder("tree/sticky", 0o1777);
    folder("tree/shared", 0o777);
    folder("tree/theirs", 0o700, USER);
    for (const name of ["tree/y/2", "tree/x/3", "tree/z/1", "tree/y/1", "tree/shared/1"]) file(name, 0o600);
    for (const name of ["tree/sticky/1", "out/below/1", "out/linked"]) file(name, 0o600);
    file("tree/fine", 0o604);
    fs.linkSync(at("out/linked"), at("tree/linked"));
    for (const [name, mode] of [
      ["tree/x", 0o751],
      ["tree/z", 0o754],
    ] as const)
      fs.chmodSync(at(name), mode);
    file("out/other", 0o600);
    fs.symlinkSync("../out/linked", at("tree/to-linked"));
    fs.symlinkSync("../out", at("tree/a-link"));
    fs.symlinkSync("../out/below/1", at("tree/to-out-again"));
    fs.symlinkSync("y/1", at("tree/within"));
    fs.symlinkSync("absent", at("tree/to-nowhere"));
    fs.symlinkSync("to-itself", at("tree/to-itself"));
    execFileSync("mkfifo", ["-m", "600", at("tree/pipe")]);
    expect(await walk([task("tree")])).toEqual({
      violations: [
        found("out/linked", { outside: true }),
        found("out/other", { outside: true }),
        found("out/below/1", { outside: true }),
        found("tree/linked", { notFixable: "it has other hard links, which may be outside" }),
        found("tree/theirs", { ...directory, fix: `chmod o+rx '${at("tree/theirs")}'` }),
        found("tree/x", { kind: "directory", mode: "0751", fix: `chmod o+rx '${at("tree/x")}'` }),
        found("tree/z", {
          ...directory,
          mode: "0754",
          lacks: "execute",
          fix: `chmod o+rx '${at("tree/z")}'`,
        }),
        found("tree/sticky/1", {}),
        found("tree/x/3", {}),
        found("tree/y/1", {}),
        found("tree/y/2", {}),
        found("tree/z/1", {}),
      ],
      violationCount: 12,
      changes: [
        { path: at("tree/theirs"), from: 0o700, to: 0o705 },
        { path: at("tree/x"), from: 0o751, to: 0o755 },
        { path: at("tree/z"), from: 0o754, to: 0o755 },
        ...["sticky/1", "x/3", "y/1", "y/2", "z/1"].map((name) => ({
          path: at(`tree/${name}`),
          from: 0o600,
          to: 0o604,
        })),
      ],
      looked: onTheWay() + 19,
      complete: true,
      unseen: [{ path: at("tree/to-itself"), why: "(40: Too many symbolic links encountered)" }],
      handedOver: ["shared", "theirs"].map((name) => task(`tree/${name}`, { kind: "below" })),
    });
    expect(leftOpen()).toEqual([]);
  });

  test("the way to a tree, and what is handed over on it", async () => {
    folder("theirs/deep/tree", 0o755, USER);
    folder("theirs", 0o750, USER);
    fs.symlinkSync(at("theirs"), at("link"));
    fs.symlinkSync("link/./deep", at("deep"));
    const theirs = found("theirs", {
      ...directory,
      mode: "0750",
      fix: `chmod o+rx '${at("theirs")}'`,
    });
    expect(await walk([task("deep//tree")])).toEqual({
      violations: [theirs],
      violationCount: 1,
      changes: [{ path: at("theirs"), from: 0o750, to: 0o755 }],
      looked: onTheWay() + 1,
      complete: true,
      unseen: [],
      handedOver: [task("theirs/deep/tree", { kind: "below" })],
    });
    // Of what is outside a tree, a link says more than a place.
    folder("tree");
    fs.symlinkSync("../theirs/deep", at("tree/out"));
    expect(await walk([task("tree", { code: "avatars" })])).toMatchObject({
      violations: [{ path: at("theirs"), code: "avatars", outside: true }],
      changes: [],
      handedOver: [task("theirs/deep", { kind: "link", code: "avatars", outside: true })],
    });
    const [below, link] = [
      task("tree", { kind: "below" }),
      task("tree/out", { kind: "link", outside: true }),
    ];
    // Nothing on the way to what was handed over is looked at again.
    expect(await walk([below])).toMatchObject({ looked: onTheWay() + 1, handedOver: [{ kind: "link" }] });
    expect(await walk([link])).toMatchObject({ looked: onTheWay() + 1, handedOver: [{ kind: "link" }] });
    expect(await walk([link], { roots: [at("theirs")] })).toMatchObject({ looked: 0, handedOver: [] });
    expect(await walk([link], { roots: [at("theirs/deep")] })).toMatchObject({ looked: 0 });
    expect(await walk([link], { roots: [at("theirs/dee")] })).toMatchObject({ looked: onTheWay() + 1 });
    expect(await walk([link], { roots: ["/"] })).toMatchObject({ looked: 0 });
  });

  test("40 links on the way are followed, not 41", async () => {
    folder("tree");
    const first = posix.relative(base, chain(40, "tree"));
    expect(await walk([task(first)])).toMatchObject({ looked: onTheWay() + 1, unseen: [] });
    const other = posix.relative(base, chain(41, "tree"));
    expect(await walk([task(other)])).toMatchObject({
      looked: onTheWay(),
      unseen: [{ path: at(other), why: "(too many symbolic links)" }],
    });
  });

  test("a tree inside another has its own code, and is checked once", async () => {
    folder("media/data/avatars");
    file("media/data/avatars/a", 0o600);
    file("media/data/b", 0o600);
    fs.symlinkSync("loop", at("media/data/avatars/loop"));
    const avatars = task("media/data/avatars", { code: "avatars" });
    const { violations, looked, unseen } = await walk([task("media"), avatars]);
    expect(violations).toEqual([
      found("media/data/avatars/a", { code: "avatars" }),
      found("media/data/b", {}),
    ]);
    expect([looked, unseen.length]).toEqual([onTheWay() + 5, 1]);
    // A tree that is not there is a place that was not seen, and no more.
    expect(await walk([task("absent"), avatars])).toMatchObject({ unseen: { length: 2 }, violationCount: 1 });
  });

  test("names beyond ASCII, in links too", async () => {
    folder("tree/ü");
    folder("oüt/ä");
    file("tree/ü/ß", 0o600);
    file("oüt/ä/ö", 0o600);
    fs.symlinkSync("tree/ü", at("to-ü"));
    fs.symlinkSync("../../oüt/ä", at("tree/ü/link"));
    const { violations, changes, unseen } = await walk([task("to-ü")]);
    expect([violations, unseen]).toEqual([[found("oüt/ä/ö", { outside: true }), found("tree/ü/ß", {})], []]);
    expect(await changeModes({ changes })).toEqual([null]);
    expect(fs.statSync(at("tree/ü/ß")).mode & 0o777).toBe(0o604);
  });

  test("of each kind of finding a thousand are named, and all are counted", async () => {
    folder("tree");
    for (let i = 0; i <= 1_000; i++) {
      fs.writeFileSync(at(`tree/${i}`), "", { mode: 0o600 });
      fs.symlinkSync(`loop-${i}`, at(`tree/loop-${i}`));
    }
    const { violations, violationCount, changes, unseen } = await walk([task("tree")]);
    expect([violations.length, violationCount, changes.length, unseen.length]).toEqual([
      1_000, 1_001, 1_001, 1_000,
    ]);
  });

  test("no more entries than the limit are checked, and nothing is followed after that", async () => {
    folder("tree/a/b");
    file("tree/a/c", 0o600);
    file("tree/d", 0o600);
    fs.symlinkSync("loop", at("tree/a/loop"));
    folder("tree/e", 0o777);
    const all = onTheWay() + 6;
    expect(await walk([task("tree")], { entriesMax: all })).toMatchObject({
      looked: all,
      complete: true,
      violationCount: 2,
      unseen: [{ path: at("tree/a/loop") }],
      handedOver: [{ path: at("tree/e") }],
    });
    // At `d`, before what is in `a`.
    expect(await walk([task("tree")], { entriesMax: onTheWay() + 2 })).toMatchObject({
      looked: onTheWay() + 2,
      complete: false,
      violationCount: 0,
      unseen: [],
      handedOver: [],
    });
  });

  test("a user enters every directory that lets him, and cannot fix what is not his", async () => {
    folder("tree/shared", 0o777);
    folder("tree/closed", 0o700);
    folder("tree/listed", 0o744);
    file("tree/listed/file");
    folder("tree/own", 0o700, USER);
    file("tree/shared/roots", 0o600);
    file("tree/own/file", 0o600, USER);
    const closed = { ...directory, fix: `chmod o+rx '${at("tree/closed")}'` };
    expect(await asUser(() => walk([task("tree")]))).toEqual({
      violations: [
        found("tree/closed", { ...closed, notFixable: "it belongs to user 0" }),
        found("tree/listed", {
          ...directory,
          mode: "0744",
          lacks: "execute",
          fix: `chmod o+rx '${at("tree/listed")}'`,
          notFixable: "it belongs to user 0",
        }),
        found("tree/own", { ...directory, fix: `chmod o+rx '${at("tree/own")}'` }),
        found("tree/own/file", {}),
        found("tree/shared/roots", { notFixable: "it belongs to user 0" }),
      ],
      violationCount: 5,
      changes: [
        { path: at("tree/own"), from: 0o700, to: 0o705 },
        { path: at("tree/own/file"), from: 0o600, to: 0o604 },
      ],
      looked: onTheWay() + 7,
      complete: true,
      unseen: ["closed", "listed/file"].map((name) => ({
        path: at(`tree/${name}`),
        why: "(13: Permission denied)",
      })),
      handedOver: [],
    });
  });

  test("of a directory with more names than there is room for, some are taken", async () => {
    for (const name of ["ü", "b", "a"]) file(name);
    const ue = Buffer.from("ü").toString("latin1");
    const entries = ["a", "b", ue].map((name) => ({ name, isFile: true, isDirectory: false }));
    expect(await entriesIn(base, 3)).toEqual({ entries, isAll: true });
    const { entries: some, isAll } = await entriesIn(base, 2);
    expect([some.length, isAll]).toEqual([2, false]);
    await expect(entriesIn(at("absent"))).rejects.toMatchObject({ errno: -2 });
    expect(leftOpen()).toEqual([]);
  });

  test("the real path of a tree", async () => {
    folder("ü");
    fs.symlinkSync("ü", at("link"));
    expect(await realPathOf({ path: at("link") })).toBe(Buffer.from(at("ü")).toString("latin1"));
    expect(await realPathOf({ path: at("absent") })).toBeNull();
  });

  test.each<[name: string, isImage: boolean]>([
    ...["a.png", "a.svg", "a.gif", "a.jpg", "a.jpeg", "a.ico", "a.webp", "A.PNG"].map(
      (name): [string, boolean] => [name, true],
    ),
    ...["a.png.txt", "png", "apng", "a.jpg~"].map((name): [string, boolean] => [name, false]),
  ])("an image by its name: %s, %j", async (name, isImage) => {
    file(name);
    expect(await findImage({ directory: base })).toEqual({ image: isImage ? name : null, handedOver: [] });
  });

  test("the first image by depth and name, without links and what other users have to search", async () => {
    for (const name of ["c/d", "b", "a.png", "x/y"]) folder(name);
    for (const name of ["c/d/deep.png", "c/2.png", "c/1.png"]) file(name);
    fs.symlinkSync("c/1.png", at("link.png"));
    fs.symlinkSync("c", at("a"));
    expect(await findImage({ directory: base })).toEqual({ image: "c/1.png", handedOver: [] });
    folder("b", 0o755, USER);
    file("theirs.txt", 0o644, USER);
    folder("x/y", 0o777);
    folder("x", 0o1777);
    for (const name of ["c/1.png", "c/2.png", "c/d/deep.png"]) fs.rmSync(at(name));
    expect(await findImage({ directory: base })).toEqual({ image: null, handedOver: ["b", "x/y"] });
    expect(await asUser(() => findImage({ directory: base }))).toEqual({ image: null, handedOver: [] });
    expect(await findImage({ directory: at("absent") })).toEqual({ image: null, handedOver: [] });
  });

  test("an image is looked for in 500 folders", async () => {
    for (let i = 100; i < 600; i++) folder(String(i));
    file("598/a.png");
    expect(await findImage({ directory: base })).toEqual({ image: "598/a.png", handedOver: [] });
    fs.renameSync(at("598/a.png"), at("599/a.png"));
    expect(await findImage({ directory: base })).toEqual({ image: null, handedOver: [] });
  });

  test("permissions that are as expected are changed, of what is where it should be", async () => {
    folder("tree/below", 0o700);
    for (const name of ["file", "other", "linked"]) file(`tree/${name}`, 0o600);
    fs.linkSync(at("tree/linked"), at("tree/linked-too"));
    fs.symlinkSync("file", at("tree/link"));
    fs.symlinkSync("tree", at("to-tree"));
    execFileSync("mkfifo", ["-m", "600", at("tree/pipe")]);
    const change = (name: string, to = 0o604, from = 0o600): ModeChange => ({ path: at(name), from, to });
    expect(
      await changeModes({
        changes: [
          change("tree/file"),
          change("tree/below", 0o705, 0o700),
          change("tree/other", 0o604, 0o640),
          change("tree/linked"),
          change("tree/link"),
          change("to-tree/other"),
          change("tree/pipe"),
          change("tree/absent"),
        ],
      }),
    ).toEqual([null, null, "changed", "links", -40, "replaced", "replaced", -2]);
    const modes = ["file", "below", "other", "linked", "pipe"].map(
      (name) => fs.statSync(at(`tree/${name}`)).mode,
    );
    expect(modes.map((mode) => mode & 0o7777)).toEqual([0o604, 0o705, 0o600, 0o600, 0o600]);
    expect(leftOpen()).toEqual([]);
  });
});

describe("a settings file", () => {
  const LABEL = "/the/label.py";
  const bytes = (name: string): string => Buffer.from(at(name)).toString("latin1");
  const read = (name: string) => readOwnerFile({ path: bytes(name), label: LABEL });
  const replace = async (name: string, content: string, version?: string) =>
    replaceOwnerFile({
      label: LABEL,
      target: bytes(name),
      version: version ?? (await read(name)).version,
      content: Buffer.from(content).toString("base64"),
    });
  const PATH = process.env["PATH"];
  afterEach(() => void (process.env["PATH"] = PATH));
  /** Puts a program of the test's own in front of `cp`, or hides it. */
  function withCp(script?: string): void {
    folder("bin");
    if (script !== undefined) fs.writeFileSync(at("bin/cp"), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    process.env["PATH"] = script === undefined ? at("bin") : `${at("bin")}:${PATH}`;
  }
  const conf = (): string[] => fs.readdirSync(at("conf")).sort();
  const stateOf = (name: string) => {
    const { uid, gid, mode } = fs.statSync(at(name));
    return [fs.readFileSync(at(name), "utf8"), uid, gid, mode & 0o7777];
  };
  beforeEach(() => {
    folder("conf");
    file("conf/ü", 0o640, USER);
  });

  test("is read with its real path, version, owner and number of links", async () => {
    fs.symlinkSync("conf/ü", at("link"));
    fs.linkSync(at("conf/ü"), at("hard"));
    const { dev, ino, size, mtimeNs, ctimeNs } = fs.statSync(at("hard"), { bigint: true });
    expect(await read("link")).toEqual({
      target: bytes("conf/ü"),
      content: Buffer.from("conf/ü").toString("base64"),
      version: `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`,
      uid: USER,
      links: 2,
    });
    expect(leftOpen()).toEqual([]);
  });

  test("is regular, and not larger than 4 MiB", async () => {
    fs.truncateSync(at("conf/ü"), 4 * 1024 * 1024);
    expect((await read("conf/ü")).content).toHaveLength(Math.ceil((4 * 1024 * 1024) / 3) * 4);
    fs.truncateSync(at("conf/ü"), 4 * 1024 * 1024 + 1);
    const problemOf = (message: string, fix?: string) => oneProblem("files.unreadable", LABEL, message, fix);
    const tooLarge = problemOf("is larger than 4194304 bytes", "Use the path of a settings file.");
    expect(await refusal(read("conf/ü"))).toEqual(tooLarge);
    execFileSync("mkfifo", [at("pipe")]);
    for (const name of ["conf", "pipe"])
      expect(await refusal(read(name))).toEqual(
        problemOf("is not a regular file", "Use the path of a file."),
      );
    expect(await refusal(read("absent"))).toEqual(problemOf("cannot be read (2: No such file or directory)"));
  });

  test.each<[string, string | undefined]>([
    ["with cp(1)", 'exec /bin/cp "$@"'],
    ["without it", undefined],
  ])("is replaced with the same owner, group and mode, %s", async (_what, script) => {
    fs.rmSync(at("conf/ü"));
    file("conf/a", 0o640, USER);
    fs.chownSync(at("conf/a"), USER, USER - 1);
    fs.chmodSync(at("conf/a"), 0o2640);
    // Left by a run that was killed.
    fs.writeFileSync(temporaryBeside(at("conf/a")), "secret");
    withCp(script);
    const { version } = await replace("conf/a", "new");
    expect(leftOpen()).toEqual([]);
    expect(stateOf("conf/a")).toEqual(["new", USER, USER - 1, 0o2640]);
    expect(conf()).toEqual(["a"]);
    expect(version).toBe((await read("conf/a")).version);
  });

  test("of which only the group differs gets it too", async () => {
    file("conf/a", 0o640);
    fs.chownSync(at("conf/a"), 0, USER);
    withCp();
    await replace("conf/a", "new");
    expect(stateOf("conf/a")).toEqual(["new", 0, USER, 0o640]);
  });

  test("that was changed by somebody else stays", async () => {
    file("conf/a");
    const message = "was changed by another process meanwhile";
    const changed = oneProblem("settings.changed-meanwhile", LABEL, message);
    expect(await refusal(replace("conf/a", "new", "another"))).toEqual(changed);
    // Whoever owns it: it may have another owner by now.
    expect(await asUser(() => refusal(replace("conf/a", "new", "another")))).toEqual(changed);
    withCp(`echo more >> '${at("conf/a")}'`);
    expect(await refusal(replace("conf/a", "new"))).toEqual(changed);
    expect(stateOf("conf/a")).toEqual(["conf/amore\n", 0, 0, 0o644]);
    expect(conf()).toEqual(["a", "ü"]);
    // Even if what was written meanwhile is gone as well.
    withCp(`rm "$5"; echo more >> '${at("conf/a")}'`);
    expect(await refusal(replace("conf/a", "new"))).toEqual(changed);
  });

  test("of somebody else is not replaced by a user", async () => {
    file("conf/a");
    const message = `belongs to user 0, but its directory belongs to user ${USER}`;
    const fix = `Make the same user the owner of both, for example: chown ${USER} ${LABEL}`;
    const foreign = oneProblem("files.foreign-owner", LABEL, message, fix);
    expect(await asUser(() => refusal(replace("conf/a", "new")))).toEqual(foreign);
    expect(stateOf("conf/a")[0]).toBe("conf/a");
  });

  test.each<[mode: number, kept: boolean]>([
    [0o644, true],
    [0o640, false],
    [0o664, false],
  ])("whose group a user cannot give, with mode %o: kept %j", async (mode, kept) => {
    fs.chownSync(at("conf"), USER, USER);
    file("conf/a", mode, USER);
    fs.chownSync(at("conf/a"), USER, 0);
    withCp();
    // The test keeps root's groups, but a user's new file has the group of the process.
    process.setegid!(USER);
    const groups = process.getgroups!();
    process.setgroups!([]);
    try {
      const outcome = await asUser(() => refusal(replace("conf/a", "new")));
      const message = "would not keep its owner, group and mode";
      const fix = `Make user ${USER} a member of group 0, or change the group: chgrp $(id -g ${USER}) ${LABEL}`;
      expect(outcome).toEqual(kept ? "done" : oneProblem("settings.write-failed", LABEL, message, fix));
    } finally {
      process.setgroups!(groups);
      process.setegid!(0);
    }
    expect(stateOf("conf/a")).toEqual(kept ? ["new", USER, USER, mode] : ["conf/a", USER, 0, mode]);
    expect(conf()).toEqual(["a", "ü"]);
  });

  test.each(["chown 1", "chgrp 1", "chmod 600"])(
    "is not replaced by one with other attributes: %s",
    async (change) => {
      file("conf/a", 0o640);
      withCp(`shift 3; ${change} "$2"`);
      expect(await refusal(replace("conf/a", "new"))).toMatchObject([{ code: "settings.write-failed" }]);
      expect(conf()).toEqual(["a", "ü"]);
    },
  );

  test("that cannot be written is reported", async () => {
    fs.rmSync(at("conf/ü"));
    const message = "cannot be written (2: No such file or directory)";
    const failed = oneProblem("settings.write-failed", LABEL, message);
    expect(await refusal(replace("conf/ü", "new", "1"))).toEqual(failed);
  });

  test("has one name for what a killed run leaves, and that is removed", async () => {
    // Other releases of the program look for the same.
    expect(temporaryBeside("/a/settings.py")).toBe("/a/.portico-settings-dc2c79b556e950ac");
    fs.renameSync(at("conf/ü"), at("conf/a"));
    fs.symlinkSync("conf/a", at("link"));
    for (const name of ["conf/a", "link", "absent"]) fs.writeFileSync(temporaryBeside(at(name)), "secret");
    await sweepBeside({ path: at("link"), label: LABEL });
    expect(conf()).toEqual(["a"]);
    expect(fs.existsSync(temporaryBeside(at("link")))).toBe(true);
    await sweepBeside({ path: at("absent"), label: LABEL });
    expect(fs.existsSync(temporaryBeside(at("absent")))).toBe(false);
    await sweepBeside({ path: at("absent"), label: LABEL });
  });
});
