import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  differences,
  type FileState,
  hashOf,
  observe,
  sameState,
} from "../../src/host/activation/fileState.js";

/** What is at a path, and how two states differ. */

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "portico-state-"))));
afterEach(() => rmSync(folder, { recursive: true }));

test("what is at a path", async () => {
  const at = (name: string): string => join(folder, name);
  writeFileSync(at("file"), "x");
  chmodSync(at("file"), 0o4640);
  symlinkSync("nowhere", at("link"));
  mkdirSync(at("directory"));
  expect(await observe(at("file"))).toEqual({
    kind: "file",
    sha256: createHash("sha256").update("x").digest("hex"),
    mode: "4640",
    uid: process.getuid!(),
    gid: process.getgid!(),
  });
  chmodSync(at("file"), 0o040);
  expect(await observe(at("file"))).toMatchObject({ mode: "0040" });
  expect(await observe(at("link"))).toEqual({ kind: "link", target: "nowhere" });
  expect(await observe(at("none"))).toEqual({ kind: "absent" });
  expect(await observe(at("none/below"))).toEqual({ kind: "absent" });
  expect(await observe(at("directory"))).toBe("unfit");
  expect(await observe(at("file/below"))).toBe("unfit");
  await expect(observe(at("a".repeat(256)))).rejects.toThrow("ENAMETOOLONG");
});

test("a file that reports no size is read all the same, and none stays open", async () => {
  const open = (): number => readdirSync("/proc/self/fd").length;
  const before = open();
  const content = readFileSync("/proc/version");
  expect(await hashOf("/proc/version")).toBe(createHash("sha256").update(content).digest("hex"));
  expect(open()).toBe(before);
});

test("a pipe that took the place of a file since it was looked at is not waited for", async () => {
  execFileSync("mkfifo", [join(folder, "pipe")]);
  await expect(hashOf(join(folder, "pipe"))).rejects.toThrow("not a regular file");
});

const FILE: FileState = { kind: "file", sha256: "a", mode: "0644", uid: 1, gid: 2 };
const LINK: FileState = { kind: "link", target: "a" };
const ABSENT: FileState = { kind: "absent" };

test.each<[FileState, FileState, string[]]>([
  [ABSENT, ABSENT, []],
  [LINK, { ...LINK }, []],
  [FILE, { ...FILE }, []],
  [ABSENT, FILE, ["nothing instead of a file"]],
  [LINK, ABSENT, ["a link instead of nothing"]],
  [LINK, { ...LINK, target: "b" }, ["target"]],
  [FILE, { ...FILE, sha256: "b" }, ["content"]],
  [FILE, { ...FILE, mode: "0600" }, ["mode 0644 instead of 0600"]],
  [FILE, { ...FILE, uid: 3 }, ["owner 1:2 instead of 3:2"]],
  [FILE, { ...FILE, gid: 3 }, ["owner 1:2 instead of 1:3"]],
  [FILE, { ...FILE, sha256: "b", mode: "0600" }, ["content", "mode 0644 instead of 0600"]],
])("%j and %j differ in %j", (a, b, expected) => {
  expect(differences(a, b)).toEqual(expected);
  expect(sameState(a, b)).toBe(expected.length === 0);
});
