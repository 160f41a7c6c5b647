import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  isTemporary,
  makeDirectory,
  placeBytes,
  placeCopy,
  placeLink,
  placeText,
  removeFile,
  removeIfEmpty,
  removeLinkedIfEmpty,
  removeTree,
  temporaryOf,
} from "../../src/host/activation/durableFiles.js";

/** Changes to the disk: what is there afterwards, also when they fail. In which order they get there is in kill.test.ts. */

let folder: string;
const at = (name: string): string => join(folder, name);
const names = (): string[] => readdirSync(folder).sort();
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "portico-durable-"))));
afterEach(() => rmSync(folder, { recursive: true }));

const failed = (path: string, message: string) =>
  expect.objectContaining({
    problems: [expect.objectContaining({ code: "activation.file-failed", path, message })],
  });

test("files and links are put in place, over what is there, with owner and mode", async () => {
  const before = process.umask(0o077);
  try {
    writeFileSync(at("source"), "source");
    for (const content of ["one", "two"]) {
      // What a process that was killed left.
      for (const name of ["bytes", "copy", "link", "text"]) writeFileSync(temporaryOf(at(name)), "half");
      await placeBytes(at("bytes"), Buffer.from(content), { mode: "0644", uid: 12, gid: 34 });
      await placeCopy(at("source"), at("copy"), { mode: "4750", uid: 56, gid: 78 });
      await placeLink(at("link"), content);
      await placeText(at("text"), content);
      expect(["bytes", "text"].map((name) => readFileSync(at(name), "utf8"))).toEqual([content, content]);
      expect([readFileSync(at("copy"), "utf8"), readlinkSync(at("link"))]).toEqual(["source", content]);
    }
    const owned = (name: string): unknown => {
      const { mode, uid, gid } = statSync(at(name));
      return [(mode & 0o7777).toString(8), uid, gid];
    };
    expect(["bytes", "copy", "text"].map(owned)).toEqual([
      ["644", 12, 34],
      ["4750", 56, 78],
      ["600", process.getuid!(), process.getgid!()],
    ]);
    expect(names()).toEqual(["bytes", "copy", "link", "source", "text"]);
    for (const [name, mode] of [
      ["open", undefined],
      ["closed", "0700"],
    ] as const) {
      await makeDirectory(at(name), mode);
      await makeDirectory(at(name), mode);
      expect((statSync(at(name)).mode & 0o7777).toString(8)).toBe((mode ?? "0755").slice(1));
    }
  } finally {
    process.umask(before);
  }
});

test("what cannot be put in place leaves nothing behind", async () => {
  mkdirSync(at("directory/full"), { recursive: true });
  const ownership = { mode: "0644", uid: 0, gid: 0 };
  await expect(placeBytes(at("directory"), Buffer.from("x"), ownership)).rejects.toEqual(
    failed(at("directory"), "cannot be written (21: Illegal operation on a directory)"),
  );
  await expect(placeCopy(at("none"), at("copy"), ownership)).rejects.toEqual(
    failed(at("copy"), "cannot be written (2: No such file or directory)"),
  );
  await expect(makeDirectory(at("none/below"))).rejects.toEqual(
    failed(at("none/below"), "cannot be made (2: No such file or directory)"),
  );
  expect(names()).toEqual(["directory"]);
});

test("what is removed, and what stays", async () => {
  writeFileSync(at("file"), "");
  mkdirSync(at("full/deep"), { recursive: true });
  symlinkSync("file", at("link"));
  await removeFile(at("link"));
  expect(names()).toEqual(["file", "full"]);
  // Neither is there, the second one below a file.
  await removeFile(at("link"));
  await removeFile(at("file/below"));
  await expect(removeFile(at("full"))).rejects.toEqual(
    failed(at("full"), "cannot be removed (21: Illegal operation on a directory)"),
  );
  expect([await removeIfEmpty(at("full")), await removeIfEmpty(at("none"))]).toEqual([false, false]);
  expect(await removeIfEmpty(at("full/deep"))).toBe(true);
  symlinkSync("nowhere", at("full/link"));
  expect(await removeTree(at("none"))).toBe(false);
  expect(await removeTree(at("full"))).toBe(true);
  expect(names()).toEqual(["file"]);
  expect(lstatSync(at("file")).isFile()).toBe(true);
});

test("a directory that a link leads to goes with the link, if it is empty", async () => {
  mkdirSync(at("private/empty"), { recursive: true });
  mkdirSync(at("private/full/x"), { recursive: true });
  for (const name of ["empty", "full"]) symlinkSync(`private/${name}`, at(name));
  for (const name of ["empty", "full"]) await removeLinkedIfEmpty(at(name));
  expect([names(), readdirSync(at("private"))]).toEqual([["full", "private"], ["full"]]);
});

test("temporary names begin with a dot and stay the same", () => {
  expect(temporaryOf("/etc/a")).toBe(temporaryOf("/etc/a"));
  expect(temporaryOf("/etc/a")).not.toBe(temporaryOf("/etc/b"));
  expect(temporaryOf("/etc/a")).toMatch(/^\/etc\/\.portico-new-[0-9a-f]{16}$/);
  expect([".portico-new-1", "x.portico-new-", "state.json"].map(isTemporary)).toEqual([true, false, false]);
});

/** What this process syncs meanwhile, in order; as strace sees it, which shows paths. */
async function synced(act: () => Promise<unknown>): Promise<string[]> {
  const filter = ["-f", "-y", "-s", "300", "-e", "trace=fsync,fdatasync", "-p", String(process.pid)];
  const strace = spawn("strace", filter, { stdio: ["ignore", "ignore", "pipe"] });
  let text = "";
  const attached = new Promise<void>((done) =>
    strace.stderr.on("data", (data: Buffer) => {
      text += data.toString();
      if (text.includes("attached")) done();
    }),
  );
  await attached;
  await act();
  strace.kill("SIGINT");
  await once(strace, "close");
  return [...text.matchAll(/\bf(?:data)?sync\(\d+<([^>]+)>/g)].map(([, path]) => path!.slice(folder.length));
}

test("each change is on the disk once it is made: bytes before their name, and then the directory", async () => {
  for (const name of ["bytes", "copy", "link", "made", "removed", "empty", "tree", "none"])
    mkdirSync(at(`${name}.d`));
  mkdirSync(at("empty.d/x"));
  mkdirSync(at("tree.d/x/y"), { recursive: true });
  for (const name of ["source", "removed.d/x"]) writeFileSync(at(name), "x");
  const ownership = { mode: "0600", uid: 0, gid: 0 };
  const seen = await synced(async () => {
    await placeBytes(at("bytes.d/x"), Buffer.from("x"), ownership);
    await placeCopy(at("source"), at("copy.d/x"), ownership);
    await placeLink(at("link.d/x"), "y");
    await makeDirectory(at("made.d/x"));
    await removeFile(at("removed.d/x"));
    await removeIfEmpty(at("empty.d/x"));
    await removeTree(at("tree.d/x"));
    // Where nothing changes, nothing is waited for.
    await makeDirectory(at("none.d"));
    await removeFile(at("none.d/x"));
    await removeIfEmpty(at("none.d/x"));
    await removeTree(at("none.d/x"));
  });
  const temporary = temporaryOf("/x").slice(1);
  expect(seen).toEqual([
    `/bytes.d/${temporary}`,
    "/bytes.d",
    `/copy.d/${temporary}`,
    ...["copy", "link", "made", "removed", "empty", "tree"].map((name) => `/${name}.d`),
  ]);
});
