import { execFileSync, spawn } from "node:child_process";
import { chownSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "../../src/cli/program.js";
import { CONFIG, Site, type SiteFiles, siteFiles } from "./site.js";
import { nextEvent } from "../../testkit/waiting.js";

/** `portico activate`, `deactivate` and `recover` below a folder: what they print, and how they end. */

let site: Site;
let one: SiteFiles;
beforeAll(async () => {
  one = await siteFiles("1");
});
beforeEach(() => {
  site = new Site();
});
afterEach(() => site.remove());

/** What this process does with signals. */
const listeners = (): number[] => ["SIGINT", "SIGTERM", "SIGHUP"].map((name) => process.listenerCount(name));
const before = listeners();
afterEach(() => expect(listeners()).toEqual(before));

async function portico(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ["", ""];
  const output = { out: (t: string) => void (out += t), err: (t: string) => void (err += t) };
  const code = await run([...args, "--root", site.root], output);
  return { code, out, err };
}

/** The certificate of the site has another name: what is warned of is on standard error, and fails nothing. */
const WARNING: unknown = expect.stringMatching(
  /^warning: [^\n]* does not cover 192\.0\.2\.10 \[files\.name-not-covered\]\n(?: {4}[^\n]*\n)+$/,
);

const incoming = (): string[] => ["--incoming", site.incoming];

test.each(["SIGINT", "SIGTERM"])("%s ends it, and a lost connection does not", async (signal) => {
  site.deliver(one);
  await portico("activate", ...incoming());
  rmSync(site.at(CONFIG));
  const lock = site.at("/var/lib/portico/lock");
  const holder = spawn("flock", [lock, "sh", "-c", "echo; exec cat"], { stdio: ["pipe", "pipe", "inherit"] });
  await nextEvent(holder.stdout, "data");
  writeFileSync(lock, "");
  const held = await portico("activate", ...incoming(), "--wait", "0");
  expect([held.code, held.out, held.err]).toEqual([
    1,
    "",
    expect.stringMatching(
      /lock: is still held after 0 s, by another activation \[[^]*\nnothing was changed\n$/,
    ),
  ]);
  let during: number[] = [];
  let err = "";
  const out = (line: string): void => {
    if (!line.startsWith("waiting for ")) return;
    during = listeners();
    process.emit("SIGHUP");
    process.emit(signal as NodeJS.Signals, signal as NodeJS.Signals);
    holder.stdin.end();
  };
  const args = ["activate", ...incoming(), "--root", site.root];
  expect(await run(args, { out, err: (text) => void (err += text) })).toBe(1);
  expect(during).toEqual(before.map((count) => count + 1));
  expect(err).toMatch(
    new RegExp(`^interrupted by ${signal} \\[activation\\.interrupted\\]\n[^]*\nnothing was changed\n$`),
  );
  expect(existsSync(site.at(CONFIG))).toBe(false);
});

test("an error that nobody expected is one, and is recorded with where it came from", async () => {
  const file = site.at("/file");
  site.write("/file", "");
  const output = { out: () => undefined, err: () => undefined };
  await expect(run(["recover", "--root", file], output)).rejects.toThrow("ENOTDIR");
  const record = site.at("/record");
  expect(await run(["recover", "--root", file, "--record", record], output)).toBe(1);
  const entries = readFileSync(record, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as unknown);
  expect(entries.slice(1)).toEqual([{ err: expect.stringMatching(/^Error: ENOTDIR.*\n/) }, { exit: 1 }]);
});

test("--json is one document on standard output, and the steps are on standard error", async () => {
  site.deliver(one);
  const { code, out, err } = await portico("activate", ...incoming(), "--json");
  expect(code).toBe(0);
  expect(JSON.parse(out)).toEqual({
    ok: true,
    steps: [{ do: "files" }],
    preview: [],
    drift: [],
    files: expect.arrayContaining([{ path: CONFIG, role: "config", why: expect.any(String) }]),
    settings: [],
    responses: [],
    warnings: [expect.objectContaining({ code: "files.name-not-covered" })],
    problems: [],
  });
  expect(err).toMatch(/^write files\n/m);
  const gone = await portico("deactivate", "--json");
  expect([gone.code, JSON.parse(gone.out)]).toEqual([0, { ok: true, removed: "all", problems: [] }]);
});

test("a refusal changes nothing, and says so", async () => {
  site.deliver({ ...one, [CONFIG]: { role: "config", content: "{" } });
  const { code, out, err } = await portico("activate", ...incoming());
  expect({ code, out }).toEqual({ code: 1, out: "" });
  expect(err).toMatch(/\[config\.not-json\][^]*\nnothing was changed\n$/);
  const asJson = await portico("activate", ...incoming(), "--json");
  expect([asJson.code, JSON.parse(asJson.out)]).toMatchObject([
    1,
    { ok: false, rolledBack: false, problems: [{ code: "config.not-json" }] },
  ]);
});

test.each([false, true])("a write that fails is rolled back and reported; as JSON: %s", async (asJson) => {
  const folder = site.at("/usr/share/portico/default");
  mkdirSync(folder, { recursive: true });
  site.deliver(one);
  execFileSync("mount", ["-t", "tmpfs", "-o", "ro,size=64k", "tmpfs", folder]);
  try {
    const { code, out, err } = await portico("activate", ...incoming(), ...(asJson ? ["--json"] : []));
    expect(code).toBe(1);
    const path = join(folder, "index.html");
    if (asJson)
      expect(JSON.parse(out)).toMatchObject({
        ok: false,
        rolledBack: true,
        problems: [{ code: "activation.file-failed", path }],
      });
    else {
      const start = `${path}: cannot be written (30: Read-only file system) [activation.file-failed]\n`;
      const end = "not activated; the host is as it was before\n";
      expect([err.slice(0, start.length), err.slice(-end.length)]).toEqual([start, end]);
    }
  } finally {
    execFileSync("umount", [folder]);
  }
  expect(existsSync(site.at(CONFIG))).toBe(false);
});

test("deactivate reports that the deployment is gone, and then that there is none", async () => {
  expect(await portico("deactivate")).toEqual({ code: 0, out: "nothing is deployed here\n", err: "" });
  site.deliver(one);
  await portico("activate", ...incoming());
  const { code, out, err } = await portico("deactivate");
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out).toMatch(/\nthe deployment is gone\n$/);
  expect(existsSync(site.at(CONFIG))).toBe(false);
});

test("only --purge removes the logs too", async () => {
  for (const options of [[], ["--purge"]]) {
    site.write("/var/log/portico/error.log", "x");
    site.deliver(one);
    await portico("activate", ...incoming());
    await portico("deactivate", ...options);
    expect(existsSync(site.at("/var/log/portico/error.log"))).toBe(options.length === 0);
  }
});

test("--purge removes the logs of earlier deployments, also of one that was rolled back", async () => {
  const { content, ...config } = one[CONFIG]!;
  const logs = ["former", "refused"].map((name) => `/var/log/portico/${name}.log`);
  const logging = (path: string): SiteFiles => ({
    ...one,
    [CONFIG]: { ...config, content: content.replaceAll("/var/log/portico/error.log", path) },
  });
  for (const log of logs) for (const end of ["", ".1", ".2.gz"]) site.write(`${log}${end}`, "x");
  site.deliver(logging(logs[0]!));
  expect((await portico("activate", ...incoming())).code).toBe(0);
  site.deliver(one);
  expect((await portico("activate", ...incoming())).code).toBe(0);
  site.deliver({ ...logging(logs[1]!), "/usr/share/portico/more/page.html": { role: "page", content: "x" } });
  const folder = site.at("/usr/share/portico/more");
  mkdirSync(folder, { recursive: true });
  execFileSync("mount", ["-t", "tmpfs", "-o", "ro,size=64k", "tmpfs", folder]);
  try {
    expect((await portico("activate", ...incoming())).code).toBe(1);
  } finally {
    execFileSync("umount", [folder]);
  }
  expect((await portico("deactivate", "--purge")).code).toBe(0);
  const left = logs.flatMap((log) =>
    ["", ".1", ".2.gz"].filter((end) => existsSync(site.at(`${log}${end}`))),
  );
  expect(left).toEqual([]);
});

test("--purge does not follow a link that the service's user has made of a directory of logs", async () => {
  const { content, ...config } = one[CONFIG]!;
  const nested = content.replaceAll("/var/log/portico/error.log", "/var/log/portico/site/error.log");
  site.write("/var/log/other/error.log", "another daemon's");
  site.write("/var/log/portico/access.log", "x");
  site.deliver({ ...one, [CONFIG]: { ...config, content: nested } });
  await portico("activate", ...incoming());
  symlinkSync("../other", site.at("/var/log/portico/site"));
  chownSync(site.at("/var/log/portico"), 42_424, 42_424);
  const { code, err } = await portico("deactivate", "--purge");
  expect([code, err]).toEqual([1, expect.stringContaining("/var/log/portico/site: is a link that")]);
  expect(site.read("/var/log/other/error.log")).toBe("another daemon's");
});

test.each([[[]], [["--json"]]])("what could not be removed is named, and fails it: %j", async (options) => {
  const log = site.at("/var/log/portico/error.log");
  site.write("/var/log/portico/error.log", "x");
  site.deliver(one);
  await portico("activate", ...incoming());
  execFileSync("mount", ["--bind", log, log]);
  try {
    const { code, out, err } = await portico("deactivate", "--purge", ...options);
    expect(code).toBe(1);
    if (options.length === 0)
      expect(err).toMatch(/error\.log[^]*\ncould not remove everything: the problems above name the rest\n$/);
    else
      expect(JSON.parse(out)).toMatchObject({
        ok: false,
        rolledBack: false,
        problems: [{ path: expect.stringContaining("error.log") }],
      });
  } finally {
    execFileSync("umount", [log]);
  }
  expect(existsSync(site.at(CONFIG))).toBe(false);
});

test("recover has nothing to do if nothing was interrupted", async () => {
  expect(await portico("recover")).toEqual({ code: 0, out: "nothing was interrupted\n", err: "" });
  const { code, out } = await portico("recover", "--json");
  expect([code, JSON.parse(out)]).toEqual([0, { ok: true, recovered: null, problems: [] }]);
});

test("--again uses the last deployment, --document another name", async () => {
  site.deliver(one);
  await portico("activate", ...incoming());
  rmSync(site.at(CONFIG));
  expect((await portico("activate", "--again", "--dry-run")).out).toContain(CONFIG);
  expect(await portico("activate", "--again")).toMatchObject({ code: 0, err: WARNING });
  expect(site.read(CONFIG)).toBe(one[CONFIG]!.content);
  const { code, err } = await portico("activate", ...incoming(), "--document", "0".repeat(64));
  expect(code).toBe(1);
  expect(err).toContain("0".repeat(64));
});
