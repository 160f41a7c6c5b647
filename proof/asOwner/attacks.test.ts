import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { build } from "esbuild";
import { buildBundle } from "../../build/bundle.js";
import { identityOf } from "../../src/host/asOwner/acting.js";
import { asOwner, ownerProgram } from "../../src/host/asOwner/asOwner.js";
import { temporaryBeside } from "../../src/host/asOwner/ownerFile.js";
import { changeModes, checkTrees } from "../../src/host/diagnosis/treePermissions.js";
import { unfollowedLinks } from "../../src/host/diagnosis/unfollowedLinks.js";
import { findImageFile } from "../../src/host/diagnosis/expected/imageFile.js";
import { planModes } from "../../src/host/activation/treeModes.js";
import { planEdits } from "../../src/host/activation/settingsEdits.js";
import { Store } from "../../src/host/activation/store.js";
import type { Deployment, Problem, ProxyConfig } from "../../src/model/index.js";
import { applyEdits, planSettings } from "../../src/host/applicationSettings/index.js";
import { CONFIG, Site, type SiteFiles, siteFiles } from "../activation/site.js";
import { FILE_SYNC_ROWS } from "../../src/applications/index.js";
import { wantedFiles } from "../applicationSettings/oracle.js";
import { eventually } from "../../testkit/waiting.js";

/**
 * What a local user who owns the application's tree can make of what root does in it: nothing. The user is one that
 * this machine does not know, and every attack runs as that user against a real tree.
 */

const APP = 42_424;
const ROOT_TEXT = "root's own\n";

let folder: string;
let base: string;
/** The command as it is deployed, and what of it a child runs: alone it starts in half the time. */
let portico: string;
let childAlone: string;
let one: SiteFiles;
let attackers: ChildProcess[] = [];

beforeAll(async () => {
  folder = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), "portico owner ")));
  fs.chmodSync(folder, 0o755);
  one = await siteFiles("1");
  // Where a deployment keeps it, nobody else can enter.
  const store = join(folder, "store");
  fs.mkdirSync(store, { mode: 0o700 });
  portico = (await buildBundle(join(store, "portico.mjs"))).file;
  childAlone = join(store, "child.cjs");
  const contents = `import { runAsOwner } from "./child.js";
    import { refuseDebugger } from "../../runtime/supervisor/processes/noDebugger.js";
    refuseDebugger();
    void runAsOwner(process.argv.slice(3));`;
  await build({
    stdin: { contents, resolveDir: join(__dirname, "../../src/host/asOwner") },
    outfile: childAlone,
    bundle: true,
    platform: "node",
    charset: "ascii",
  });
});
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

beforeEach(() => {
  ownerProgram.path = childAlone;
  base = fs.mkdtempSync(join(folder, "host-"));
  fs.chmodSync(base, 0o755);
  for (const name of ["root", "root/etc", "root/secret"]) fs.mkdirSync(join(base, name), { mode: 0o755 });
  write("root/etc/passwd", ROOT_TEXT, 0o644, 0);
  write("root/secret/key.png", ROOT_TEXT, 0o600, 0);
  for (const name of ["app", "app/conf", "app/media"]) own(name);
  write("app/conf/network.conf", "[General]\nSERVICE_URL = http://old\n");
  write("app/conf/fileserver.conf", "[fileserver]\nport = 8082\n");
  write("app/conf/web_settings.py", "SECRET_KEY = 'secret-of-the-application'\n\nDATABASES = {}\n", 0o600);
});
afterEach(async () => {
  await endAttacks();
  fs.rmSync(base, { recursive: true, force: true });
});

async function endAttacks(): Promise<void> {
  for (const attacker of attackers) {
    const ended = new Promise((resolve) => attacker.once("exit", resolve));
    attacker.kill("SIGKILL");
    await ended;
  }
  attackers = [];
}

const at = (name: string): string => join(base, name);
const tree = (name: string, code = "media") => ({ path: at(name), code });

function own(name: string, mode = 0o755): void {
  fs.mkdirSync(at(name), { mode });
  fs.chownSync(at(name), APP, APP);
}

function write(name: string, content: string, mode = 0o644, owner = APP): void {
  fs.writeFileSync(at(name), content);
  fs.chownSync(at(name), owner, owner);
  fs.chmodSync(at(name), mode);
}

const files = () => ({
  networkDaemon: at("app/conf/network.conf"),
  webApplication: at("app/conf/web_settings.py"),
  fileServer: at("app/conf/fileserver.conf"),
});

const source = (named: Partial<ReturnType<typeof files>> = {}) => ({
  files: wantedFiles({ ...files(), ...named }),
});

/** Edits the settings as an activation does; the problems, if there are any. */
async function edit(named: Partial<ReturnType<typeof files>> = {}): Promise<readonly Problem[]> {
  const outcome = await applyEdits(await planSettings(source(named)));
  return outcome.ok ? [] : outcome.problems;
}

/** Runs code for ever as the application's user, `fs` and `at` at hand. */
function attack(code: string): void {
  const script = `const fs = require("fs"); const at = (name) => ${JSON.stringify(`${base}/`)} + name;
    const quietly = (act) => { try { act(); } catch {} };
    for (;;) { ${code} }`;
  const identity = { uid: APP, gid: APP };
  attackers.push(spawn(process.execPath, ["-e", script], { ...identity, cwd: "/", stdio: "ignore" }));
}

/** How often what an attack runs against is done. */
const TURNS = 6;

/** Everything of root's below the base: owner, mode and content. */
function rootsOwn(): Record<string, string> {
  const names = fs.readdirSync(at("root"), { recursive: true }).map((name) => `root/${String(name)}`);
  return Object.fromEntries(
    names.map((name) => {
      const found = fs.lstatSync(at(name));
      const { uid, gid, mode } = found;
      const content = found.isFile() ? fs.readFileSync(at(name), "utf8") : "";
      return [name, JSON.stringify([uid, gid, mode, content])];
    }),
  );
}

test("a link of the user's in place of a served directory, or above it, is named with its target", async () => {
  own("app/media/sub");
  const served = (directory: string, symlinks: "inside" | "never" | "anywhere" = "inside") => {
    const action = { type: "staticFiles", directory, symlinks, index: [] };
    return unfollowedLinks({ virtualServers: [{ routes: [{ action }] }] } as unknown as ProxyConfig);
  };
  expect(await served(at("app/media/sub"))).toEqual([]);
  for (const name of ["app/media/sub", "app/media"]) {
    fs.renameSync(at(name), `${at(name)}-old`);
    fs.symlinkSync(at("root"), at(name));
    fs.lchownSync(at(name), APP, APP);
    fs.mkdirSync(at("root/sub"), { recursive: true });
    const target = at(name === "app/media" ? "root/sub" : "root");
    const found = [{ directory: at("app/media/sub"), uid: APP, target }];
    expect(await served(at("app/media/sub"))).toEqual(found);
    expect(await served(at("app/media/sub"), "never")).toEqual(found);
    expect(await served(at("app/media/sub"), "anywhere")).toEqual([]);
  }
  // Root's own link, which the user cannot change, is followed.
  fs.symlinkSync(at("app"), at("root/current"));
  expect(await served(at("root/current/conf"))).toEqual([]);
});

test("the child has that user's identity and no more: no group, no capability, none of our environment", async () => {
  ownerProgram.path = portico;
  const acting = { uid: APP, path: "/" };
  const { content } = await asOwner("read", { path: "/proc/self/status", label: "x" }, acting);
  const status = Buffer.from(content, "base64").toString();
  expect(status).toMatch(new RegExp(`^Uid:\t${APP}\t${APP}\t${APP}\t${APP}$`, "m"));
  expect(status).toMatch(/^Gid:\t65534\t65534\t65534\t65534$/m);
  expect(status).toMatch(/^Groups:[ \t]*$/m);
  expect(status.match(/^Cap(?:Prm|Eff|Amb):\t0+$/gm)).toHaveLength(3);
  // What it inherits, nobody of that user may look at: it cannot be traced, nor can its memory be read.
  const pid = /^Pid:\t(\d+)$/m.exec(status)![1];
  expect(pid).not.toBe(String(process.pid));
  const environment = await asOwner("read", { path: "/proc/self/environ", label: "x" }, acting).catch(
    (error: Error) => error.message,
  );
  expect(environment).toMatch(/Permission denied/);
  const known = Number(execFileSync("id", ["-u", "backup"]).toString());
  const groups = execFileSync("id", ["-G", "backup"]).toString().trim().split(" ").map(Number);
  expect(await identityOf(known)).toEqual({ uid: known, gid: groups[0], groups });
});

test("the child has the groups that it is given, creates files for itself alone, and refuses to keep capabilities", () => {
  const request = JSON.stringify({ operation: "read", request: { path: "/proc/self/status", label: "x" } });
  const child = (groups: readonly string[], ...before: readonly string[]) => {
    const [program, ...args] = [
      ...before,
      process.execPath,
      portico,
      "as-owner",
      String(APP),
      "7",
      ...groups,
    ];
    return spawnSync(program!, args, { input: request, encoding: "utf8" });
  };
  const statusOf = (groups: readonly string[]): string => {
    const { response } = JSON.parse(child(groups).stdout) as { response: { content: string } };
    return Buffer.from(response.content, "base64").toString();
  };
  expect(statusOf(["8,9"])).toMatch(/^Umask:\t0077$[^]*^Gid:\t7\t7\t7\t7$[^]*^Groups:\t8 9 *$/m);
  expect(statusOf([])).toMatch(/^Groups:[ \t]*$/m);
  const kept = child([], "setpriv", "--securebits", "+no_setuid_fixup");
  expect(kept).toMatchObject({ stdout: "", stderr: expect.stringContaining(`could not become user ${APP}`) });
});

test("the child lets no debugger in, and nobody else into its memory, once it is the user's process", async () => {
  // It waits for its request for as long as the user needs.
  const args = [portico, "as-owner", String(APP), "65534", ""];
  const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "pipe"] });
  try {
    let [said, complaint] = ["", ""];
    child.stdout.on("data", (data: Buffer) => (said += data.toString()));
    child.stderr.on("data", (data: Buffer) => (complaint += data.toString()));
    const status = (): string => fs.readFileSync(`/proc/${child.pid}/status`, "utf8");
    while (!status().includes(`\nUid:\t${APP}\t`)) await sleep(10);
    const attackOn = `const pid = ${child.pid}; const net = require("net"); const fs = require("fs");
      const tried = (act) => { try { return String(act()); } catch (error) { return error.code; } };
      const found = ["mem", "environ", "fd", "maps", "cwd"].map((name) => {
        const path = "/proc/" + pid + "/" + name;
        if (name === "cwd") return tried(() => fs.readlinkSync(path));
        return tried(() => (name === "fd" ? fs.readdirSync(path) : fs.closeSync(fs.openSync(path, "r+"))));
      });
      const signals = ["SIGUSR1", "SIGSTOP", "SIGUSR1", "SIGCONT", "SIGUSR1"];
      const sent = signals.map((signal) => tried(() => process.kill(pid, signal)));
      const ask = (left) => {
        const socket = net.connect(9229, "127.0.0.1");
        socket.on("connect", () => console.log(JSON.stringify({ found, sent, debugger: true })) || process.exit());
        socket.on("error", () => {
          if (left > 0) setTimeout(ask, 50, left - 1);
          else console.log(JSON.stringify({ found, sent, debugger: false }));
        });
      };
      ask(20);`;
    const identity = { uid: APP, gid: APP };
    const attacker = spawn(process.execPath, ["-e", attackOn], { ...identity, cwd: "/" });
    expect(JSON.parse(await text(attacker.stdout))).toEqual({
      found: Array<string>(5).fill("EACCES"),
      sent: Array<string>(5).fill("true"),
      debugger: false,
    });
    const request = { path: files().networkDaemon, label: "x" };
    const closed = new Promise((resolve) => child.once("close", resolve));
    child.stdin.end(JSON.stringify({ operation: "read", request }));
    await closed;
    expect([JSON.parse(said), complaint]).toEqual([
      { response: expect.objectContaining({ target: files().networkDaemon, uid: APP }) },
      "",
    ]);
  } finally {
    child.kill("SIGKILL");
  }
});

test("the settings of an application that owns its tree are edited by the application's user", async () => {
  ownerProgram.path = portico;
  expect(await edit()).toEqual([]);
  for (const [file, mode] of [
    [files().networkDaemon, 0o644],
    [files().webApplication, 0o600],
  ] as const) {
    const { uid, gid, mode: now } = fs.statSync(file);
    // A user that the machine does not know has no group of its own to give.
    expect([uid, now & 0o7777, [APP, 65_534].includes(gid)]).toEqual([APP, mode, true]);
  }
  expect(fs.readFileSync(files().webApplication, "utf8")).toContain("SITE_ROOT = '/sync/'");
  expect(fs.readdirSync(at("app/conf"))).toHaveLength(3);
});

describe("a settings path that is", () => {
  test.each<[string, () => void, string, RegExp]>([
    [
      "a symlink to a file that only root reads",
      () => fs.symlinkSync(at("root/secret/key.png"), at("app/conf/x")),
      "files.unreadable",
      /Permission denied/,
    ],
    [
      "a symlink to a file of root's that everyone can read",
      () => fs.symlinkSync(at("root/etc/passwd"), at("app/conf/x")),
      "settings.bad-syntax|files.foreign-owner",
      /belongs to user 0|cannot be read/,
    ],
    [
      "a FIFO, which would be waited for",
      () => execFileSync("mkfifo", [at("app/conf/x")]),
      "files.unreadable",
      /Permission denied|is not a regular file/,
    ],
    [
      "a FIFO of its own",
      () => {
        execFileSync("mkfifo", [at("app/conf/x")]);
        fs.chownSync(at("app/conf/x"), APP, APP);
      },
      "files.unreadable",
      /is not a regular file/,
    ],
    [
      "a file of /proc without size and without end",
      () => fs.symlinkSync("/proc/self/pagemap", at("app/conf/x")),
      "files.unreadable",
      /is larger than 4194304 bytes|Permission denied|Operation not permitted/,
    ],
    ["a device", () => fs.symlinkSync("/dev/zero", at("app/conf/x")), "files.unreadable", /regular file/],
    [
      "a hard link to a file of root's",
      () => fs.linkSync(at("root/etc/passwd"), at("app/conf/x")),
      "settings.bad-syntax|files.foreign-owner",
      /belongs to user 0|cannot be read/,
    ],
    [
      "below a directory that leads to root's",
      () => {
        fs.rmSync(at("app/conf"), { recursive: true });
        fs.symlinkSync(at("root/etc"), at("app/conf"));
        write("root/etc/x", "A = 1\n", 0o644, 0);
      },
      "files.foreign-owner|files.unreadable",
      /belongs to user 0/,
    ],
  ])("%s is refused at once, and nothing of root's changes", async (_what, prepare, codes, message) => {
    prepare();
    const before = rootsOwn();
    const since = Date.now();
    const problems = await edit({ webApplication: at("app/conf/x") });
    const told = problems.filter(({ path }) => path.startsWith(at("app/conf/x")));
    expect(told[0]?.message).toMatch(message);
    expect(told[0]?.code).toMatch(new RegExp(`^(?:${codes})$`));
    expect(Date.now() - since).toBeLessThan(15_000);
    expect(rootsOwn()).toEqual(before);
  });

  test("in a directory of root's that others can change, or in /tmp and missing", async () => {
    fs.mkdirSync(at("root/shared"));
    fs.chmodSync(at("root/shared"), 0o777);
    write("root/shared/x.py", "A = 1\n", 0o644, 0);
    expect(await edit({ webApplication: at("root/shared/x.py") })).toEqual([
      expect.objectContaining({
        code: "files.shared-directory",
        path: at("root/shared"),
        fix: expect.stringContaining("chmod go-w"),
      }),
    ]);
    fs.chmodSync(at("root/shared"), 0o1777);
    expect(await edit({ webApplication: at("root/shared/absent.py") })).toEqual([
      expect.objectContaining({ code: "files.shared-directory" }),
    ]);
    expect(await edit({ webApplication: at("root/shared/x.py") })).toEqual([]);
    fs.chownSync(at("root/shared/x.py"), APP, APP);
    expect(await edit({ webApplication: at("root/shared/x.py") })).toEqual([]);
  });
});

test("a directory that is swapped during the edit leaves nothing in root's directories", async () => {
  attack(`
    quietly(() => fs.renameSync(at("app/conf"), at("app/conf.real")));
    quietly(() => fs.symlinkSync(at("root/etc"), at("app/conf")));
    quietly(() => fs.unlinkSync(at("app/conf")));
    quietly(() => fs.renameSync(at("app/conf.real"), at("app/conf")));`);
  const before = rootsOwn();
  for (let i = 0; i < TURNS; i++) {
    await edit();
    expect(rootsOwn()).toEqual(before);
  }
});

test("a race for setuid during a copy of attributes achieves nothing", async () => {
  fs.copyFileSync("/bin/true", at("root/program"));
  fs.chmodSync(at("root/program"), 0o4755);
  attack(`
    for (const name of fs.readdirSync(at("app/conf"))) {
      const path = at("app/conf/" + name);
      if (name.startsWith(".portico")) quietly(() => fs.linkSync(path, at("app/" + process.hrtime.bigint())));
      quietly(() => fs.renameSync(path, at("app/kept")));
      quietly(() => fs.symlinkSync(at("root/program"), path));
      quietly(() => fs.unlinkSync(path));
      quietly(() => fs.renameSync(at("app/kept"), path));
    }`);
  const before = rootsOwn();
  for (let i = 0; i < TURNS; i++) await edit();
  await endAttacks();
  expect(rootsOwn()).toEqual(before);
  const found = execFileSync("find", [at("app"), "-uid", "0", "-o", "-perm", "/6000"]).toString();
  expect(found).toBe("");
});

describe("media:", () => {
  test("root does not follow a symlink above the media root", async () => {
    fs.rmSync(at("app/media"), { recursive: true });
    fs.symlinkSync(at("root/secret"), at("app/media"));
    const before = rootsOwn();
    const { changes, violations } = await checkTrees([tree("app/media")]);
    expect(violations).toEqual([
      expect.objectContaining({ path: at("root/secret/key.png"), notFixable: "it belongs to user 0" }),
    ]);
    expect(changes).toEqual([]);
    // Nor does it when it comes only after the look.
    const outcome = await changeModes([{ path: at("app/media/key.png"), from: 0o600, to: 0o604 }]);
    expect(outcome[0]?.why).toMatch(/Permission denied|replaced|no such/i);
    expect(rootsOwn()).toEqual(before);
  });

  test("root does not follow a symlink that everyone may make, not even on the way", async () => {
    fs.mkdirSync(at("root/shared"));
    fs.chmodSync(at("root/shared"), 0o1777);
    fs.chmodSync(at("root/secret"), 0o700);
    fs.symlinkSync(at("root/secret"), at("root/shared/app"));
    fs.lchownSync(at("root/shared/app"), APP, APP);
    const before = rootsOwn();
    const { changes } = await checkTrees([tree("root/shared/app")]);
    expect(changes).toEqual([]);
    await changeModes(changes);
    expect(rootsOwn()).toEqual(before);
  });

  test("root does not follow one in its own media either, nor is told to open what it leads to", async () => {
    fs.mkdirSync(at("root/shared"));
    fs.chmodSync(at("root/shared"), 0o1777);
    fs.symlinkSync(at("root/secret/key.png"), at("root/shared/a.png"));
    fs.lchownSync(at("root/shared/a.png"), APP, APP);
    const { changes, violations } = await checkTrees([tree("root/shared")]);
    expect(changes).toEqual([]);
    expect(violations.map(({ path, fix }) => [path, fix])).toEqual([
      [at("root/secret/key.png"), expect.stringContaining("remove the link")],
    ]);
  });

  test("a path that is longer than the system takes is one that was not seen, and no more", async () => {
    let deep = at("app/media");
    for (let i = 0; i < 15; i++) deep = join(deep, "x".repeat(250));
    fs.mkdirSync(deep, { recursive: true });
    execFileSync("chown", ["-R", `${APP}:${APP}`, at("app/media")]);
    execFileSync("chmod", ["-R", "755", at("app/media")]);
    const before = process.cwd();
    process.chdir(deep);
    try {
      fs.mkdirSync("y".repeat(250));
      fs.writeFileSync(join("y".repeat(250), "z".repeat(250)), "");
    } finally {
      process.chdir(before);
    }
    const seen = await checkTrees([tree("app/media")]);
    execFileSync("rm", ["-rf", at("app/media")]);
    expect(seen).toMatchObject({ unreached: [], unseen: [{ why: "(36: Name too long)" }] });
  });

  test("a tree whose directories are swapped in the meantime", async () => {
    own("app/media/a");
    write("app/media/a/key.png", "x", 0o600);
    attack(`
      quietly(() => fs.renameSync(at("app/media/a"), at("app/b")));
      quietly(() => fs.symlinkSync(at("root/secret"), at("app/media/a")));
      quietly(() => fs.unlinkSync(at("app/media/a")));
      quietly(() => fs.renameSync(at("app/b"), at("app/media/a")));`);
    const before = rootsOwn();
    for (let i = 0; i < TURNS; i++) {
      await changeModes((await checkTrees([tree("app/media")])).changes);
    }
    expect(rootsOwn()).toEqual(before);
  });

  test("permissions are set and undone as the owner of each directory", async () => {
    fs.chmodSync(at("app"), 0o750);
    write("app/media/a.png", "x", 0o640);
    write("app/media/roots.png", "x", 0o600, 0);
    // Root's own tree, with a directory of the application's in it.
    fs.mkdirSync(at("root/media"), { mode: 0o755 });
    write("root/media/b.png", "x", 0o600, 0);
    fs.mkdirSync(at("root/media/avatars"), { mode: 0o700 });
    fs.chownSync(at("root/media/avatars"), APP, APP);
    write("root/media/avatars/c.png", "x", 0o600);
    for (const [trees, paths, left] of [
      [[tree("app/media")], ["app", "app/media/a.png"], ["app/media/roots.png"]],
      [
        [tree("root/media"), tree("root/media/avatars", "avatars")],
        ["root/media/avatars", "root/media/avatars/c.png", "root/media/b.png"],
        [],
      ],
    ] as const) {
      const seen = await checkTrees(trees);
      expect(seen.unseen).toEqual([]);
      expect(seen.changes.map(({ path }) => path).sort()).toEqual(paths.map(at));
      expect((await changeModes(seen.changes)).filter(({ why }) => why !== undefined)).toEqual([]);
      const after = await checkTrees(trees);
      expect(after.violations.map(({ path }) => path)).toEqual(left.map(at));
      const back = seen.changes.map(({ path, from, to }) => ({ path, from: to, to: from }));
      expect((await changeModes(back.toReversed())).filter(({ why }) => why !== undefined)).toEqual([]);
      expect((await checkTrees(trees)).changes).toEqual(seen.changes);
    }
  });

  test("trees of several owners: each knows of the others, and what both see is counted once", async () => {
    fs.chmodSync(base, 0o711);
    fs.mkdirSync(at("root/avatars"), { mode: 0o755 });
    write("root/avatars/a.png", "x", 0o600, 0);
    write("app/media/b.png", "x", 0o600);
    fs.symlinkSync(at("root/avatars"), at("app/media/avatars"));
    const trees = [tree("app/media"), tree("root/avatars", "avatars")];
    const seen = await checkTrees(trees);
    expect(seen.violations.map(({ path, code, outside }) => [path, code, outside])).toEqual([
      [base, "media", false],
      [at("root/avatars/a.png"), "avatars", false],
      [at("app/media/b.png"), "media", false],
    ]);
    // The way to the base twice; root, avatars and its file; app, media and its file.
    const looked = 2 * base.split("/").length + 6;
    expect(seen).toMatchObject({ violationCount: 3, looked, complete: true, unseen: [] });
    expect(await checkTrees(trees, looked - 1)).toMatchObject({
      looked: looked - 1,
      complete: false,
    });
    // Root does not help an owner who cannot read his own.
    own("root/closed", 0o300);
    expect(await changeModes([{ path: at("root/closed"), from: 0o300, to: 0o305 }])).toMatchObject([
      { why: "(13: Permission denied)" },
    ]);
    expect(fs.statSync(at("root/closed")).mode & 0o777).toBe(0o300);
  });

  test("the search for an image runs as the owner of the tree", async () => {
    own("app/media/icons", 0o700);
    write("app/media/icons/ü b.png", "x", 0o600);
    expect(await findImageFile(at("app/media"))).toEqual({ imagePath: "icons/%C3%BC%20b.png" });
    fs.mkdirSync(at("root/media"));
    fs.renameSync(at("app/media/icons"), at("root/media/icons"));
    expect(await findImageFile(at("root/media"))).toEqual({ imagePath: "icons/%C3%BC%20b.png" });
    fs.rmSync(at("root/media"), { recursive: true });
    fs.symlinkSync(at("root/secret"), at("app/media/secret"));
    expect(await findImageFile(at("app/media"))).toEqual({});
  });
});

test("an image is looked for in the directories of twenty owners at most", async () => {
  fs.mkdirSync(at("root/many"));
  for (let i = 10; i < 35; i++) own(`root/many/${i}`);
  write("root/many/32/late.png", "x");
  expect(await findImageFile(at("root/many"))).toEqual({});
  write("root/many/28/early.png", "x");
  expect(await findImageFile(at("root/many"))).toEqual({ imagePath: "28/early.png" });
});

test("a child has half a minute, unless the caller says otherwise", async () => {
  const program = ownerProgram.path;
  jest.useFakeTimers({ doNotFake: ["nextTick", "setImmediate", "performance"] });
  try {
    ownerProgram.path = join(folder, "hangs.mjs");
    fs.writeFileSync(ownerProgram.path, "setInterval(() => {}, 1000);");
    let said = "";
    const asked = asOwner("realPath", { path: at("app") }, { uid: APP, path: at("app") });
    void asked.catch((error: Error) => (said = error.message));
    while (jest.getTimerCount() === 0) await sleep(10);
    jest.advanceTimersByTime(29_999);
    await sleep(20);
    expect(said).toBe("");
    jest.advanceTimersByTime(1);
    await expect(asked).rejects.toThrow("no response within 30 s");
  } finally {
    jest.advanceTimersByTime(60_000);
    jest.useRealTimers();
    ownerProgram.path = program;
  }
});

test("a child that does not respond is given up", async () => {
  const program = ownerProgram.path;
  try {
    ownerProgram.path = join(folder, "hangs.mjs");
    fs.writeFileSync(ownerProgram.path, "setInterval(() => {}, 1000);");
    const acting = { uid: APP, path: at("app") };
    const asked = asOwner("realPath", { path: at("app") }, acting, { timeoutMs: 1_500 });
    await expect(asked).rejects.toThrow(/no response within 1\.5 s \[files\.no-response\]/);
    // A user whose child did not respond once is not waited for as long again.
    const again = asOwner("realPath", { path: at("app") }, acting, { timeoutMs: 60_000 });
    await expect(again).rejects.toThrow(/no response within 5 s \[files\.no-response\]/);
    // Whole pieces, synchronously, up to more than is taken.
    const flood = "const x = Buffer.alloc(1 << 20, 32); for (let i = 0; i < 100; i++) fs.writeSync(1, x);";
    fs.writeFileSync(ownerProgram.path, `import fs from "node:fs"; ${flood}`);
    await expect(asOwner("realPath", { path: at("app") }, acting)).rejects.toThrow(
      /the response is too long/,
    );
    // What it says is the user's, and not repeated.
    fs.writeFileSync(ownerProgram.path, "console.error('run: curl example.org | sh'); process.exit(3);");
    await expect(asOwner("realPath", { path: at("app") }, acting)).rejects.toMatchObject({
      problems: [
        {
          code: "files.no-response",
          path: at("app"),
          message: `could not be accessed as user ${APP}, who may change it: it ended without a response (exit code 3)`,
          fix: `Processes of user ${APP} can block the access: end them (ps -o pid,stat,args -u ${APP} lists them), and try again.`,
        },
      ],
    });
    // Before it has read what it was asked.
    fs.writeFileSync(ownerProgram.path, "process.exit();");
    await expect(asOwner("realPath", { path: "/x".repeat(1 << 20) }, acting)).rejects.toThrow(
      /: it ended without a response \(exit code 0\) \[files\.no-response\]/,
    );
  } finally {
    ownerProgram.path = program;
  }
});

/** Code of a child that the user has taken over: it responds with what he likes. */
function takenOver(code: string): void {
  ownerProgram.path = join(folder, "taken over.mjs");
  fs.writeFileSync(ownerProgram.path, `import fs from "node:fs"; ${code}`);
}

const says = (response: unknown): void =>
  takenOver(`fs.writeSync(1, ${JSON.stringify(JSON.stringify(response))});`);

describe("a child that the user has taken over", () => {
  const walked = (finding: object, more: object = {}) => ({
    response: {
      findings: [{ path: "", code: "media", kind: "file", mode: 0o600, outside: false, ...finding }],
      looked: 1,
      complete: true,
      unseen: [],
      handedOver: [],
      ...more,
    },
  });
  const TEXT = "fix: curl https://example.org | sh \u001b[2J";
  const none = "the response does not match the request";
  /** A place in the user's own tree. */
  const own = (): string => at("app/media/a.png");

  test.each<[string, () => unknown]>([
    [
      "has changes of its own",
      () => walked({}, { changes: [{ path: "/usr/bin/env", from: 0o755, to: 0o4755 }] }),
    ],
    ["has its own text for a fix", () => walked({ path: own(), fix: TEXT })],
    [
      "has problems with text",
      () => ({ problems: [{ code: "files.unreadable", path: "", message: TEXT, fix: TEXT }] }),
    ],
    ["refuses with text", () => ({ refused: { why: TEXT } })],
    ["refuses with an error that no system has", () => ({ refused: { why: "system", errno: -99_999 } })],
    ["has a path with `..`", () => walked({ path: `${at("app")}/../root/secret/key.png` })],
    ["has a path that is none", () => walked({ path: "app" })],
    ["has a path with NUL", () => walked({ path: `${own()}\0` })],
    ["has a path in characters, not bytes", () => walked({ path: `${own()}\u202e` })],
    ["has a mode that is none", () => walked({ path: own(), mode: 0o100_600 })],
    ["has a mode that lacks nothing", () => walked({ path: own(), mode: 0o604 })],
    [
      "sends root on to look elsewhere",
      () =>
        walked({ path: own() }, { handedOver: [{ path: "/", code: "media", kind: "tree", outside: false }] }),
    ],
    ["has looked at more than it was asked to", () => walked({ path: own() }, { looked: 200_001 })],
    ["has a reason in words", () => walked({ path: own() }, { unseen: [{ path: own(), why: TEXT }] })],
    ["is a list", () => []],
    ["is nothing", () => null],
  ])("and whose response %s is not believed at all", async (_what, response) => {
    says(response());
    const before = rootsOwn();
    const seen = await checkTrees([tree("app/media")]);
    expect(seen).toMatchObject({
      violations: [],
      changes: [],
      unseen: [{ why: expect.stringContaining(none) }],
    });
    expect(JSON.stringify(seen)).not.toContain("curl");
    expect(rootsOwn()).toEqual(before);
  });

  test.each<[string, string]>([
    [
      "empty lists without end",
      `const x = Buffer.from("[" + "[],".repeat(1 << 20)); for (let i = 0; i < 15; i++) fs.writeSync(1, x);`,
    ],
    ["lists in lists", `fs.writeSync(1, "[".repeat(30e6));`],
    ["no JSON", `fs.writeSync(1, "\x1b]0;title\x07");`],
    ["half of a response", `fs.writeSync(1, '{"response": {"findings": [');`],
  ])("and that says %s costs no memory, and nothing is believed", async (_what, code) => {
    takenOver(code);
    const before = process.memoryUsage().heapUsed;
    const seen = await checkTrees([tree("app/media")]);
    expect(seen).toMatchObject({ changes: [], unseen: [{ why: expect.stringContaining(none) }] });
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(100e6);
  });

  test("and that says one byte at a time has no more time for that", async () => {
    takenOver(`setInterval(() => fs.writeSync(1, " "), 20);`);
    const acting = { uid: APP, path: at("app") };
    const asked = asOwner("realPath", { path: at("app") }, acting, { timeoutMs: 1_000 });
    await expect(asked).rejects.toThrow(/no response within 1 s \[files\.no-response\]/);
  });

  test.each(["root/secret/key.png", "app/media/link/key.png", "app/media/a.png"])(
    "and that names files of root's gets none of them changed, and root is not told to: %s",
    async (name) => {
      const path = at(name);
      fs.symlinkSync(at("root/secret"), at("app/media/link"));
      fs.symlinkSync(at("root/secret/key.png"), at("app/media/a.png"));
      says(walked({ path }));
      const { violations, changes } = await checkTrees([tree("app/media")]);
      expect(changes).toEqual([]);
      expect(violations).toEqual([
        {
          path,
          code: "media",
          kind: "file",
          mode: "0600",
          lacks: "read",
          outside: true,
          fix: "a link in the tree leads there: remove the link, unless every user may read its target",
        },
      ]);
    },
  );

  test("and that names files of its own gets them changed by that user, and by no one else", async () => {
    write("app/media/a.png", "x", 0o600);
    says(walked({ path: own(), mode: 0o4600 }));
    const { changes } = await checkTrees([tree("app/media")]);
    expect(changes).toEqual([{ path: own(), from: 0o600, to: 0o604, uid: APP }]);
    ownerProgram.path = childAlone;
    expect(await changeModes(changes)).toEqual(changes);
    expect(fs.statSync(own()).mode & 0o7777).toBe(0o604);
    // Whatever comes into the place of the file, and whatever a record says of the mode.
    const roots = { path: at("root/secret/key.png"), from: 0o600, to: 0o4755, uid: APP };
    const before = rootsOwn();
    expect(await changeModes([roots])).toEqual([{ ...roots, why: "(13: Permission denied)" }]);
    expect(await changeModes([{ ...changes[0]!, from: 0o604, to: 0o6755 }])).toMatchObject([{ path: own() }]);
    expect(fs.statSync(own()).mode & 0o7777).toBe(0o755);
    expect(rootsOwn()).toEqual(before);
  });

  test("and that says an image is elsewhere has no request made for it", async () => {
    for (const image of ["../secret.png", "/etc/x.png", "a//b.png", "a.txt", "./a.png"]) {
      says({ response: { image, handedOver: [] } });
      const imageUnseen = expect.objectContaining({ code: "files.no-response" });
      expect([image, await findImageFile(at("app/media"))]).toEqual([image, { imageUnseen }]);
    }
  });

  test("and that calls its file one of root's does not have its content written there", async () => {
    write("root/etc/roots.conf", "[General]\nSERVICE_URL = http://roots\n", 0o644, 0);
    const roots = at("root/etc/roots.conf");
    const content = Buffer.from("[fileserver]\nevil = 1\n").toString("base64");
    says({ response: { target: roots, content, version: "1:1:1:1:1", uid: APP, links: 1 } });
    await edit({ fileServer: roots, networkDaemon: at("app/conf/network.conf") });
    const { files: planned } = await planSettings(source({ fileServer: roots }));
    expect(planned.map(({ source: { name }, content: now }) => [name, now.includes("evil")])).toEqual([
      ["network-daemon", true],
      ["web-application", true],
      ["file-server", false],
    ]);
    expect(fs.readFileSync(roots, "utf8")).not.toContain("evil");
  });
});

describe("a user who stops the child", () => {
  /** As by a signal at the first moment at which the user may send one. */
  const freeze = (): void => takenOver(`process.kill(process.pid, "SIGSTOP"); setInterval(() => {}, 1000);`);

  test("is named, with what to do, and not waited for", async () => {
    freeze();
    const acting = { uid: APP, path: at("app") };
    const ask = (timeoutMs: number) =>
      asOwner("realPath", { path: at("app") }, acting, { timeoutMs }).catch((error: unknown) => error);
    expect(await ask(60_000)).toMatchObject({
      problems: [
        {
          code: "files.no-response",
          message: expect.stringMatching(/: Portico's child process \d+ was stopped$/),
          fix: `Processes of user ${APP} can block the access: end them (ps -o pid,stat,args -u ${APP} lists them), and try again.`,
        },
      ],
    });
    ownerProgram.path = childAlone;
    expect(await ask(60_000)).toBe(at("app"));
  });

  test("holds up no deployment but one that changes his files", async () => {
    const settings = { ...source(), apply: true };
    const store = new Store("/");
    const deployment = { settings } as unknown as Deployment;
    freeze();
    const [same, first] = await Promise.all([
      planEdits(store, deployment, {
        deployment: JSON.parse(JSON.stringify(deployment)) as Deployment,
        settings: [],
      }),
      planEdits(store, deployment, undefined),
    ]);
    const named = Object.values(files()).map((path) =>
      expect.objectContaining({ code: "files.no-response", path }),
    );
    expect(same).toEqual({ edits: [], plan: { files: [], problems: [] }, unreached: named });
    expect([first.plan.problems, first.unreached]).toEqual([named, []]);
    const trees = [{ ...tree("app/media"), fix: true }];
    expect(await planModes({ trees } as unknown as Deployment)).toMatchObject({
      changes: [],
      unreached: [{ code: "files.no-response", path: at("app/media") }],
    });
  });
});

test("a child is asked once, in a session of its own, and knows nothing of us but the request", async () => {
  const program = ownerProgram.path;
  const { execPath } = process;
  try {
    ownerProgram.path = join(folder, "says.mjs");
    const session = `fs.readFileSync("/proc/self/stat", "utf8").split(") ")[1].split(" ")[3]`;
    fs.writeFileSync(
      ownerProgram.path,
      `import fs from "node:fs"; const { env, argv, pid } = process;
      const input = JSON.parse(fs.readFileSync(0, "utf8"));
      const isLeader = ${session} === String(pid);
      fs.writeFileSync(${JSON.stringify(at("said"))},
        JSON.stringify({ input, env, args: argv.slice(2), cwd: process.cwd(), isLeader }));
      console.log(JSON.stringify({ response: null }));`,
    );
    const backup = Number(execFileSync("id", ["-u", "backup"]).toString());
    const groups = execFileSync("id", ["-G", "backup"]).toString().trim().split(" ");
    const request = { path: at("app") };
    expect(await asOwner("realPath", request, { uid: backup, path: at("app") })).toBeNull();
    expect(JSON.parse(fs.readFileSync(at("said"), "utf8"))).toEqual({
      input: { operation: "realPath", request },
      env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C.UTF-8", UV_USE_IO_URING: "0" },
      args: ["as-owner", String(backup), groups[0], groups.join(",")],
      cwd: "/",
      isLeader: true,
    });
    // A program that it started, and that outlives it and our patience, keeps nothing open here.
    const handles = (): number =>
      process.getActiveResourcesInfo().filter((each) => /Pipe|Timeout/.test(each)).length;
    fs.writeFileSync(
      ownerProgram.path,
      `import { spawn } from "node:child_process"; import fs from "node:fs";
      const { pid } = spawn("sleep", ["600"], { detached: true, stdio: "inherit" });
      fs.writeFileSync(${JSON.stringify(at("pids"))}, pid + " " + process.pid);
      setInterval(() => {}, 1000);`,
    );
    const before = handles();
    const asked = asOwner("realPath", request, { uid: APP, path: at("app") }, { timeoutMs: 2_500 });
    await expect(asked).rejects.toThrow(/no response within 2\.5 s/);
    const [left, child] = fs.readFileSync(at("pids"), "utf8").split(" ").map(Number);
    try {
      const isGone = (): boolean => !fs.existsSync(`/proc/${child}`) && handles() === before;
      await eventually(isGone, "until the child and its handles are gone");
    } finally {
      process.kill(left!, "SIGKILL");
    }
    process.execPath = join(folder, "absent");
    await expect(asOwner("realPath", request, { uid: APP, path: at("app") })).rejects.toThrow(/ENOENT/);
  } finally {
    ownerProgram.path = program;
    process.execPath = execPath;
  }
});

/** Calls that open, change or start something. */
const CALLS =
  "open,openat,creat,execve,rename,renameat,renameat2,unlink,unlinkat,rmdir,chmod,fchmodat,chown,lchown,fchownat,link," +
  "linkat,symlink,symlinkat,mkdir,mkdirat,truncate,setuid,setresuid,clone,clone3,fork,vfork,fsync";

/**
 * Runs the command traced.
 *
 * @returns calls in a directory by anybody but its owner, how many there were by that one, what of it was written to disk,
 *   and how often that one's groups were looked up
 */
function traced(
  directory: string,
  ...args: readonly string[]
): { by: number; wrong: string[]; synced: Set<string>; lookUps: number } {
  const log = join(base, "trace");
  const strace = ["-f", "--seccomp-bpf", "-qq", "-y", "-s", "300", "-o", log, "-e", `trace=${CALLS}`];
  const { error } = spawnSync("strace", [...strace, process.execPath, portico, ...args], {
    stdio: "ignore",
  });
  if (error !== undefined) throw error;
  const lines = fs.readFileSync(log, "utf8").split("\n");
  const parents = new Map<string, string>();
  for (const line of lines) {
    const made = /^(\d+) +(?:<\.\.\. )?(?:clone3?|v?fork)\b.* = (\d+)$/.exec(line);
    if (made !== null) parents.set(made[2]!, made[1]!);
  }
  const became = new Map<string, string>();
  const userOf = (thread: string | undefined): string =>
    thread === undefined ? "0" : (became.get(thread) ?? userOf(parents.get(thread)));
  // One for each process, wherever on its path it looks for the program.
  const lookUps = new Set(lines.flatMap((line) => /^\d+(?= +execve\("[^"]*\/id", )/.exec(line) ?? [])).size;
  const outcome = { by: 0, wrong: [] as string[], synced: new Set<string>(), lookUps };
  for (const line of lines) {
    const synced = / fsync\(\d+<([^>]*)>/.exec(line)?.[1];
    if (synced?.startsWith(`${directory}/`)) outcome.synced.add(synced);
    const user = /^(\d+) +set(?:res)?uid\((\d+)/.exec(line);
    if (user !== null) became.set(user[1]!, user[2]!);
    if (!line.includes(`"${directory}/`) || / execve\(/.test(line.split(directory)[0]!)) continue;
    if (userOf(/^\d+/.exec(line)![0]) === String(APP)) outcome.by++;
    else outcome.wrong.push(line);
  }
  return outcome;
}

test("no process of root opens, changes or starts anything there: traced from deployment to destroy", async () => {
  const site = new Site(base);
  fs.chmodSync(site.root, 0o755);
  fs.renameSync(at("app"), site.at("/app"));
  const conf = (name: string): string => `/app/conf/${name}`;
  const named = {
    networkDaemon: conf("network.conf"),
    webApplication: conf("web_settings.py"),
    fileServer: conf("fileserver.conf"),
  };
  write(`${site.root.slice(base.length + 1)}/app/media/a.png`, "x", 0o600);
  const original = fs.readFileSync(site.at(named.webApplication), "utf8");
  const deployed = (host: string): void => {
    const files = wantedFiles(named, { origins: [{ scheme: "https", host, port: 443 }] });
    site.deliver(one, { settings: { files, apply: true } });
  };
  const store = ["--root", site.root];
  for (const host of ["first.example.org", "second.example.org"]) {
    deployed(host);
    const run = traced(site.at("/app"), "activate", "--incoming", site.incoming, ...store);
    expect(run.wrong).toEqual([]);
    expect(run.by).toBeGreaterThan(10);
    expect(run.lookUps).toBe(1);
    const edited = [named.networkDaemon, named.webApplication].map((name) => site.at(name));
    expect([...run.synced]).toEqual(
      expect.arrayContaining([site.at("/app/conf"), ...edited.map(temporaryBeside)]),
    );
    expect(site.read(named.networkDaemon)).toContain(host);
  }
  // Of this host, as far as doctor is concerned; it finds and reads both.
  const document = join(base, "deployment.json");
  fs.writeFileSync(
    document,
    JSON.stringify({
      ...JSON.parse(site.read("/etc/portico/deployment.json")),
      trees: [{ path: site.at("/app/media"), code: "media", message: "x" }],
      rows: [...FILE_SYNC_ROWS, { code: "media", title: "x" }],
      settings: { files: wantedFiles(named).map((one) => ({ ...one, path: site.at(one.path) })) },
    }),
  );
  const doctor = traced(site.at("/app"), "doctor", "--deployment", document, "--config", site.at(CONFIG));
  expect(doctor.wrong).toEqual([]);
  expect(doctor.by).toBeGreaterThan(3);
  const end = traced(site.at("/app"), "deactivate", ...store);
  expect(end.wrong).toEqual([]);
  expect(end.by).toBeGreaterThan(5);
  expect(fs.readFileSync(site.at(named.webApplication), "utf8")).toBe(original);
  expect(fs.readdirSync(site.at("/app/conf"))).toHaveLength(3);
});
