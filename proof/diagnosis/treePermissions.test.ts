import { execFileSync, spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { changeModes, checkTrees } from "../../src/host/diagnosis/treePermissions.js";

/** Permissions of trees (service 2.8) on real trees; what others may read is asked of a user that is nobody. */

let base: string;
beforeEach(() => {
  base = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), "portico media ")));
  fs.chmodSync(base, 0o755);
  for (const folder of ["app/media/img", "app/media/css", "data/avatars", "elsewhere"]) {
    fs.mkdirSync(join(base, folder), { recursive: true, mode: 0o755 });
  }
  for (const name of [
    "app/media/img/logo.png",
    "app/media/css/a.css",
    "data/avatars/default.png",
    "elsewhere/x.txt",
  ])
    file(name);
});
afterEach(() => fs.rmSync(base, { recursive: true, force: true }));

const at = (name: string): string => join(base, name);
function file(name: string, mode = 0o644): void {
  fs.writeFileSync(at(name), name);
  fs.chmodSync(at(name), mode);
}
const modeOf = (name: string): number => fs.statSync(at(name)).mode & 0o7777;
const MEDIA = "app/media";
const AVATARS = "data/avatars";
/** Of several trees, each has its name for a code. */
const treesOf = (names: readonly string[]) => names.map((name) => ({ path: at(name), code: name }));
const check = (...names: string[]) => checkTrees(treesOf(names.length === 0 ? [MEDIA] : names));

/** Looks and fixes, as an activation does; paths of what was fixed. */
async function fix(...names: string[]): Promise<string[]> {
  const outcomes = await changeModes((await check(...names)).changes);
  return outcomes.filter(({ why }) => why === undefined).map(({ path }) => path);
}

/** Whether a user without any rights can read a file. */
function nobodyReads(name: string): boolean {
  const nobody = { uid: 65_534, gid: 65_534 };
  return spawnSync("cat", [at(name)], { ...nobody, stdio: "ignore" }).status === 0;
}

test("a tree that is as it should be", async () => {
  const media = await check(MEDIA, AVATARS);
  expect(media).toMatchObject({ violations: [], violationCount: 0, complete: true, unseen: [] });
  // From `/`: the folders on the way, then media, img, css, two files; data, avatars, one file.
  const way = at("app").split("/").length;
  expect(media.looked).toBe(way + 5 + 3);
});

test("every directory on the path and every file: path, mode, what is missing and the command", async () => {
  fs.chmodSync(at("app"), 0o750);
  fs.chmodSync(at("app/media"), 0o754);
  fs.chmodSync(at("app/media/css"), 0o2751);
  fs.chmodSync(at("app/media/img/logo.png"), 0o640);
  fs.chmodSync(at("data/avatars/default.png"), 0o600);
  const { violations, violationCount } = await check(MEDIA, AVATARS);
  expect(violationCount).toBe(5);
  const lacking = (name: string, mode: string, lacks: string, code = MEDIA) => {
    const [kind, bits] = name.endsWith(".png") ? ["file", "r"] : ["directory", "rx"];
    const path = at(name);
    return { path, code, kind, mode, lacks, fix: `chmod o+${bits} '${path}'`, outside: false };
  };
  expect(violations).toEqual(
    expect.arrayContaining([
      lacking("app", "0750", "read and execute"),
      lacking("app/media", "0754", "execute"),
      lacking("app/media/css", "2751", "read"),
      lacking("app/media/img/logo.png", "0640", "read"),
      lacking("data/avatars/default.png", "0600", "read", AVATARS),
    ]),
  );
  expect(modeOf("app")).toBe(0o750);
});

test("the commands fix it, as pasted into a shell, whatever the names are", async () => {
  const names = ["it's", 'a"b', "new\nline", "-rf", "grüße $HOME `x`", "\\x"];
  for (const name of names) file(`app/media/${name}`, 0o600);
  const bytes = Buffer.concat([Buffer.from(at("app/media/")), Buffer.from([0xff, 0x27, 0xfe])]);
  fs.writeFileSync(bytes, "x", { mode: 0o600 });
  fs.chmodSync(at("app"), 0o700);
  const before = await check();
  expect(before.violationCount).toBe(names.length + 2);
  execFileSync("bash", ["-c", before.violations.map((v) => v.fix).join("\n")]);
  expect(await check()).toMatchObject({ violationCount: 0 });
  expect(names.filter((name) => !nobodyReads(`app/media/${name}`))).toEqual([]);
  expect(fs.statSync(bytes).mode & 0o777).toBe(0o604);
});

test("fixed on request, no wider than the service requires", async () => {
  fs.chmodSync(at("app"), 0o2700);
  fs.chmodSync(at("app/media/img"), 0o711);
  fs.chmodSync(at("app/media/img/logo.png"), 0o4600);
  fs.chmodSync(at("data"), 0o750);
  fs.chmodSync(at("data/avatars/default.png"), 0o440);
  expect(nobodyReads("app/media/img/logo.png")).toBe(false);
  expect(await fix(MEDIA, AVATARS)).toHaveLength(5);
  expect(
    ["app", "app/media/img", "app/media/img/logo.png", "data", "data/avatars/default.png"].map(modeOf),
  ).toEqual([0o2705, 0o715, 0o4604, 0o755, 0o444]);
  expect([nobodyReads("app/media/img/logo.png"), nobodyReads("data/avatars/default.png")]).toEqual([
    true,
    true,
  ]);
  expect(await check(MEDIA, AVATARS)).toMatchObject({ violationCount: 0 });
});

test("what a link in a tree leads to, if it is in another tree, is of that tree and is fixed", async () => {
  fs.symlinkSync("../../data/avatars", at("app/media/avatars"));
  fs.chmodSync(at("data/avatars/default.png"), 0o600);
  const { violations, changes } = await check(MEDIA, AVATARS);
  const path = at("data/avatars/default.png");
  expect(violations).toMatchObject([{ path, code: AVATARS, outside: false }]);
  expect(changes).toEqual([{ path, from: 0o600, to: 0o604 }]);
});

test("replacing a file with a link while it is fixed achieves nothing", async () => {
  // Another process swaps a file for a link to one that nobody may read, as fast as it can.
  const secret = at("elsewhere/x.txt");
  fs.chmodSync(secret, 0o600);
  const swap = `
import os, sys
base, secret = sys.argv[1], sys.argv[2]
while True:
    for i in range(20):
        path = f"{base}/{i}"
        try: os.unlink(path)
        except OSError: pass
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
        os.unlink(path); os.symlink(secret, path)
`;
  fs.mkdirSync(at("app/media/race"));
  const swapper = spawn("python3", ["-c", swap, at("app/media/race"), secret], { stdio: "ignore" });
  try {
    const until = Date.now() + 2_000;
    while (Date.now() < until) await fix();
  } finally {
    swapper.kill("SIGKILL");
    await new Promise((resolve) => swapper.once("exit", resolve));
  }
  expect(modeOf("elsewhere/x.txt")).toBe(0o600);
});

test("a directory that is named twice is checked once", async () => {
  file("app/media/a", 0o600);
  expect((await check(MEDIA, MEDIA)).violations).toHaveLength(1);
});

test("what lies behind a directory that others can change is not reached, and each is named once", async () => {
  fs.chmodSync(at("app"), 0o777);
  const why = `${at("app")}: belongs to root, but users other than root may change it: root does not follow the path further`;
  expect(await check(MEDIA, "app/avatars")).toEqual({
    violations: [],
    violationCount: 0,
    changes: [],
    looked: 0,
    complete: true,
    unseen: ["app/media", "app/avatars"].map((name) => ({ path: at(name), why })),
    unreached: [],
  });
  const change = { path: at("app/media/img/logo.png"), from: 0o644, to: 0o645 };
  expect(await changeModes([change])).toEqual([{ ...change, why: expect.stringContaining(why) }]);
  expect(await check("x".repeat(300))).toMatchObject({
    unseen: [{ why: "(36: Name too long)" }],
  });
});
