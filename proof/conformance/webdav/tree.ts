import { spawn, spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { CREDENTIALS } from "./litmus.js";

/** Names that need encoding, quoting or care somewhere on the way. */
const NAMES = [
  "plain.txt",
  "with space.txt",
  "100%.txt",
  "%41.txt",
  "a+b&c=d.txt",
  "hash#tag.txt",
  "question?.txt",
  "semi;colon,comma.txt",
  'it\'s "quoted".txt',
  "umlaut ä ö ü ß.txt",
  "日本語 файл.txt",
  "emoji 🙂.txt",
  "dir/with/many/levels/deep.txt",
  "dir/with/space here/x.txt",
  "..dots..txt",
  "empty",
];
const SMALL_FILES = 100;
const LARGE_BYTES = 64 * 2 ** 20;

type Hashes = Readonly<Record<string, string>>;

/** Every file below a folder and its SHA-256. */
function hashes(folder: string): Hashes {
  const found = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile())
    // Servers keep properties beside the files.
    .filter((path) => !path.includes("/.DAV/"))
    .map((path) => [relative(folder, path), createHash("sha256").update(readFileSync(path)).digest("hex")]);
  return Object.fromEntries(found.sort(([a], [b]) => (a! < b! ? -1 : 1))) as Hashes;
}

const foldersOf = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) =>
    statSync(join(folder, name)).isDirectory(),
  );

function makeTree(folder: string): void {
  const write = (name: string, content: Buffer): void => {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), content);
  };
  for (const name of NAMES) write(name, name === "empty" ? Buffer.alloc(0) : randomBytes(3000));
  for (let i = 0; i < SMALL_FILES; i++) write(`small/${i % 10}/${i}.bin`, randomBytes(10 + i * 37));
  write("large.bin", randomBytes(LARGE_BYTES));
}

async function rclone(...args: string[]): Promise<string> {
  const all = [
    "--config",
    "/dev/null",
    "--no-check-certificate",
    "--retries",
    "1",
    "--low-level-retries",
    "1",
    ...args,
  ];
  const pass = spawnSync("rclone", ["obscure", CREDENTIALS.password], { encoding: "utf8" }).stdout.trim();
  const env = { ...process.env, RCLONE_WEBDAV_USER: CREDENTIALS.user, RCLONE_WEBDAV_PASS: pass };
  const child = spawn("rclone", all, { env, stdio: ["ignore", "pipe", "pipe"] });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (data) => (stdout += data));
  child.stderr.on("data", (data) => (stderr += data));
  const code = await new Promise((done) => child.once("close", done));
  if (code !== 0) throw new Error(`rclone ${args.join(" ")} exited with ${code}\n${stderr.slice(-2000)}`);
  return stdout;
}

export interface TreeResult {
  readonly files: number;
  readonly bytes: number;
  /** Nothing if all is as it should be. */
  readonly problems: readonly string[];
}

/**
 * A tree of awkward names goes up with rclone, is listed, renamed (files and folders), copied on the server, and comes
 * down again; each time what is there is compared by checksum, on the server's own disk too.
 *
 * @param transfers files that go up at once
 */
export async function treeThrough(url: string, root: string, transfers: number): Promise<TreeResult> {
  const folder = mkdtempSync(join(tmpdir(), "portico-tree-"));
  const problems: string[] = [];
  const same = (what: string, seen: unknown, expected: unknown): void => {
    if (JSON.stringify(seen) !== JSON.stringify(expected))
      problems.push(`${what}: ${difference(seen, expected)}`);
  };
  try {
    const [up, down] = [join(folder, "up"), join(folder, "down")];
    makeTree(up);
    const there = (path: string): string => `:webdav,url="${url}",vendor=other:${path}`;
    const stored = (): Hashes => hashes(join(root, "tree"));
    // One after the other: two that make the same folder at once are more than some servers can take.
    for (const name of foldersOf(up)) await rclone("mkdir", there(`tree/${name}`));
    await rclone("copy", "--transfers", String(transfers), up, there("tree"));
    let expected = hashes(up);
    same("after the upload", stored(), expected);
    same("the listing", await listing(there("tree")), sizes(up));
    for (const [from, to] of [
      ["plain.txt", "renamed ü #1.txt"],
      ["large.bin", "dir/large renamed.bin"],
      ["small/3", "small renamed/3 %"],
    ] as const) {
      await rclone("moveto", there(`tree/${from}`), there(`tree/${to}`));
      expected = renamed(expected, from, to);
    }
    same("after renaming", stored(), expected);
    await rclone("copyto", there("tree/100%.txt"), there("tree/copy of 100%.txt"));
    expected = sorted({ ...expected, "copy of 100%.txt": expected["100%.txt"]! });
    same("after copying", stored(), expected);
    await rclone("copy", there("tree"), down);
    same("after the download", hashes(down), expected);
    await rclone("purge", there("tree"));
    same("after removing", readdirSync(root).includes("tree"), false);
    return { files: Object.keys(expected).length, bytes: total(down), problems };
  } catch (error) {
    return { files: 0, bytes: 0, problems: [...problems, (error as Error).message] };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function listing(remote: string): Promise<Record<string, number>> {
  const entries = JSON.parse(await rclone("lsjson", "--recursive", "--files-only", remote)) as {
    readonly Path: string;
    readonly Size: number;
  }[];
  return sorted(Object.fromEntries(entries.map(({ Path, Size }) => [Path, Size])));
}

const sizes = (folder: string): Record<string, number> =>
  Object.fromEntries(Object.keys(hashes(folder)).map((name) => [name, statSync(join(folder, name)).size]));

const total = (folder: string): number => Object.values(sizes(folder)).reduce((sum, size) => sum + size, 0);

const sorted = <T>(files: Readonly<Record<string, T>>): Record<string, T> =>
  Object.fromEntries(Object.entries(files).sort(([a], [b]) => (a < b ? -1 : 1)));

const renamed = (files: Hashes, from: string, to: string): Hashes =>
  sorted(
    Object.fromEntries(
      Object.entries(files).map(([name, hash]) => [
        name === from || name.startsWith(`${from}/`) ? to + name.slice(from.length) : name,
        hash,
      ]),
    ),
  );

/** The first entries that are on one side only. */
function difference(seen: unknown, expected: unknown): string {
  const lines = (value: unknown): string[] =>
    typeof value === "object" && value !== null
      ? Object.entries(value).map(([k, v]) => `${k} ${v}`)
      : [String(value)];
  const [here, there] = [lines(seen), lines(expected)];
  const more = here.filter((line) => !there.includes(line));
  const less = there.filter((line) => !here.includes(line));
  return `more: ${more.slice(0, 5).join(", ") || "-"}; missing: ${less.slice(0, 5).join(", ") || "-"}`;
}
