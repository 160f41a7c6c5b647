import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
} from "node:fs";
import path from "node:path";
import { build } from "esbuild";
import { recoverHost } from "../../src/host/activation/index.js";
import type { DeploymentInput } from "../../src/model/index.js";
import { applicationSettingsFiles, applicationSettingsValues } from "../../src/applications/index.js";
import { Random, SEED } from "../../testkit/random.js";
import { CONFIG, KEY, otherPair, Site, SITES, sha256, type SiteFiles, siteFiles } from "./site.js";

/**
 * An activation killed at a change it makes to the disk: strace holds the n-th such system call when it is entered, and
 * there it gets its SIGKILL. Whatever n, each file is exactly the old or the new one, and the next activation comes
 * through, of the same deployment and of the one before.
 */
const CALLS =
  "rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,symlink,symlinkat,link,linkat,fsync,fdatasync,fchmod,chmod,fchown,chown,copy_file_range,sendfile,pwrite64,ftruncate";

/** The same in both deployments. */
const NODE: SiteFiles = { "/usr/lib/portico/node": { role: "node", mode: "0755", content: "node" } };

let folder: string;
let program: string;
let one: SiteFiles;
let two: SiteFiles;

beforeAll(async () => {
  folder = mkdtempSync(path.join(SITES, "portico kill "));
  program = path.join(folder, "folderEntry.cjs");
  await build({
    entryPoints: [path.join(__dirname, "folderEntry.ts")],
    outfile: program,
    bundle: true,
    platform: "node",
    target: "node20",
    charset: "ascii",
    logLevel: "error",
  });
  const leaving: SiteFiles = {
    ...NODE,
    "/etc/motd": { role: "other", content: "one" },
    "/srv/only/one": { role: "other", content: "one" },
  };
  one = await siteFiles("1", leaving);
  const coming: SiteFiles = { ...NODE, "/srv/other/two": { role: "other", content: "two", mode: "0640" } };
  two = await siteFiles("the second", { ...coming, ...(await otherPair()) });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Run {
  readonly status: number | null;
  /** Whether it was, when it had entered the change; it has not made it then. */
  readonly killed: boolean;
  /** Changes to the disk, in order. */
  readonly calls: readonly string[];
}

/** A change, told by the name of its system call and how many of the name there were, itself included. */
interface Change {
  readonly call: string;
  readonly name: string;
  readonly nth: number;
}

/** What runs on a site: `folderEntry.ts`. */
type What = "activate" | "deactivate" | "purge";

/** Runs it, traced; with `killAt` it is killed at that change. */
async function run(site: Site, what: What, killAt?: Change): Promise<Run> {
  // A filter in the kernel spares it two stops at each of the thousands of other calls. At the stop of a filter a signal
  // by strace itself would be lost: strace only holds the call, for longer than any kill takes.
  const filter = ["-f", "--seccomp-bpf", "-qq", "-y", "-s", "300", "-e", `trace=${CALLS}`];
  const hold = killAt === undefined ? [] : [`-einject=${killAt.name}:delay_enter=60s:when=${killAt.nth}`];
  // One thread makes all changes, so that they have an order.
  const env = { ...process.env, UV_THREADPOOL_SIZE: "1" };
  const command = [process.execPath, program, what, site.root, site.incoming];
  const strace = spawn("strace", [...filter, ...hold, ...command], {
    env,
    stdio: ["ignore", "ignore", "pipe"],
  });
  let [text, killed] = ["", ""];
  strace.stderr.on("data", (data: Buffer) => {
    text += data.toString();
    const held = killed !== "" || killAt === undefined ? undefined : heldAt(text, killAt);
    if (held === undefined) return;
    killed = held;
    process.kill(Number(held), "SIGKILL");
    // It would wait until the call has been held for long enough.
    strace.kill("SIGKILL");
  });
  // Both have closed it, so both are gone.
  const [status] = (await once(strace, "close")) as [number | null];
  const lines = text.split("\n");
  const threads = lines.map((line) => PREFIX.exec(line)?.[1] ?? "");
  // Of one that was killed early, another thread may have made as many.
  const busiest = killed || threads.toSorted((a, b) => count(threads, b) - count(threads, a))[0]!;
  const calls = lines.filter((line, i) => threads[i] === busiest && line.includes("("));
  return {
    status,
    killed: killed !== "",
    calls: calls.map((line) => line.replace(PREFIX, "").replaceAll(site.root, "")),
  };
}

const PREFIX = /^\[pid +(\d+)\] /;

/** The thread that has entered a change, as strace counts: each thread's calls of the name. */
function heldAt(text: string, { name, nth }: Change): string | undefined {
  const threads = [...text.matchAll(/^\[pid +(\d+)\] (\w+)\(/gm)]
    .filter(([, , call]) => call === name)
    .map(([, thread]) => thread!);
  return threads.find((thread) => count(threads, thread) >= nth);
}

const count = (all: readonly string[], one_: string): number => all.filter((each) => each === one_).length;

const CONF = "/opt/sync/conf";
const SETTINGS = {
  networkDaemon: `${CONF}/network.conf`,
  webApplication: `${CONF}/web_settings.py`,
  fileServer: `${CONF}/fileserver.conf`,
};

function settingsFor(host: string): Pick<DeploymentInput, "settings"> {
  const values = applicationSettingsValues({
    origins: [{ scheme: "https", host, port: 443 }],
    pathPrefix: "sync",
    enableSettingsViaWeb: false,
    fileServerHost: "127.0.0.1",
    fileServerPort: 8082 + host.length,
  });
  return { settings: { files: applicationSettingsFiles(values, SETTINGS), apply: true } };
}

const deliverOne = (site: Site) => site.deliver(one, settingsFor("one.example.org"));
const deliverTwo = (site: Site) => site.deliver(two, settingsFor("the-second.example.org"));

/** A site in its first state, with the second one delivered. */
async function prepared(): Promise<Site> {
  const site = new Site(folder);
  site.write("/etc/motd", "before portico\n", 0o640);
  site.write(SETTINGS.networkDaemon, "[General]\nSERVICE_URL = http://old/sync\nID = 1\n", 0o640);
  site.write(SETTINGS.webApplication, "SECRET_KEY = 'x'\nSITE_ROOT = '/old/'\n\nDATABASES = {}\n", 0o640);
  site.write(SETTINGS.fileServer, "[fileserver]\nport = 8082\n");
  deliverOne(site);
  await site.activate();
  deliverTwo(site);
  site.lines.length = 0;
  return site;
}

function copyOf(site: Site): Site {
  const copy = new Site(folder);
  rmSync(copy.root, { recursive: true });
  cpSync(site.root, copy.root, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
  return copy;
}

/** What a purge takes along. */
const LOGS = ["error.log", "error.log.1", "error.log-20260101.gz"];

const isTemporary = (name: string): boolean => /^\.portico-(?:new|settings)-/.test(path.basename(name));

/** Whether a file is one of those it may be, and nothing private is open to others. */
function expectOldOrNew(site: Site, states: readonly Record<string, string>[], at: string): void {
  const now = site.snapshot();
  for (const [name, state] of Object.entries(now)) {
    if (isTemporary(name)) {
      if (path.dirname(name) === path.dirname(KEY)) expectPrivate(site.at(name));
      continue;
    }
    const allowed = states.map((s) => s[name]);
    if (!allowed.includes(state))
      throw new Error(`${at}: ${name} is ${state}, none of ${allowed.join(" | ")}`);
  }
  for (const blob of readdirSync(site.at("/var/lib/portico/deployment/blobs"))) {
    if (!isTemporary(blob)) expectPrivate(site.at(`/var/lib/portico/deployment/blobs/${blob}`));
  }
}

function expectPrivate(file: string): void {
  // Between creation and chmod a certificate may be as open as its source; a key's source never is.
  if (readFileSync(file, "utf8").includes("PRIVATE KEY")) expect(statSync(file).mode & 0o077).toBe(0);
}

/** A copy of a site on which it was killed at a change, which it has not made then. */
async function killedAt(template: Site, what: What, change: Change): Promise<Site> {
  for (let attempt = 1; ; attempt++) {
    const site = copyOf(template);
    const { killed, calls } = await run(site, what, change);
    // The results of others tell that strace shows them; a call of another thread may come last.
    const unmade = calls.filter((call) => call.startsWith(`${change.name}(`) && !/ = -?\d/.test(call));
    // Seldom strace shows a call that it holds only when it lets go of it, and the kill comes too late.
    if (killed && unmade.length === 0 && attempt < 3) {
      site.remove();
      continue;
    }
    const last = unmade.length === 1 ? [] : calls.slice(-4);
    expect([change.call, killed, unmade.length, last]).toEqual([change.call, true, 1, []]);
    const [, removed] = /^(?:unlink|rmdir)\w*\((?:AT_FDCWD[^,]*, )?"([^"]+)".* = 0$/.exec(change.call) ?? [];
    if (removed !== undefined)
      expect([removed, lstatSync(site.at(removed), { throwIfNoEntry: false }) !== undefined]).toEqual([
        removed,
        true,
      ]);
    return site;
  }
}

function changesOf(calls: readonly string[]): Change[] {
  const names = calls.map((call) => call.split("(")[0]!);
  return names.map((name, i) => ({ call: calls[i]!, name, nth: count(names.slice(0, i + 1), name) }));
}

/**
 * Which changes to kill at: every eighth of them, from one on that the seed chooses, or with `PORTICO_KILL_EVERY=1` all
 * (which takes minutes). Of those to the copies that are checked, which nothing depends on, only some.
 */
function killPoints(calls: readonly string[]): Change[] {
  const every = Number(process.env.PORTICO_KILL_EVERY ?? 8);
  const first = new Random().pick(every);
  return changesOf(calls)
    .filter(({ call }, i) => !call.includes("/staging") || i % 8 === 0)
    .filter((_, i) => i % every === first);
}

test("an activation, killed at any change", async () => {
  const template = await prepared();
  const old = template.snapshot();
  const full = copyOf(template);
  const complete = await run(full, "activate");
  expect(complete.status).toBe(0);
  const fresh = full.snapshot();
  expect(full.read(CONFIG)).toBe(two[CONFIG]!.content);
  expect(full.read("/etc/motd")).toBe("before portico\n");
  full.remove();
  const points = killPoints(complete.calls);
  expect(complete.calls.length).toBeGreaterThan(120);
  for (const [n, change] of points.entries()) {
    const at = `killed at ${change.call} (PORTICO_SEED=${SEED})`;
    const site = await killedAt(template, "activate", change);
    expectOldOrNew(site, [old, fresh], at);
    if (n % 4 === 1) {
      // As a boot does it.
      await recoverHost({ root: site.root, lockSeconds: 10, report: (line) => void site.lines.push(line) });
      // A directory that is empty now goes with the next activation.
      const files = (state: Record<string, string>) =>
        Object.fromEntries(Object.entries(state).filter(([, what]) => what !== "dir"));
      expect([at, [old, fresh].map(files)]).toEqual([at, expect.arrayContaining([files(site.snapshot())])]);
      expect(existsSync(site.at("/var/lib/portico/deployment/journal.json"))).toBe(false);
    }
    if (n % 2 === 0) deliverOne(site);
    await site.activate();
    expect(site.lines.filter((line) => line.includes("another program or person"))).toEqual([]);
    expect([at, site.snapshot()]).toEqual([at, n % 2 === 0 ? old : fresh]);
    expect(readdirSync(site.at("/var/lib/portico/deployment")).sort()).toEqual([
      "blobs",
      "logs.json",
      "state.json",
    ]);
    site.remove();
  }
  template.remove();
}, 600_000);

test("a deactivation, killed at any change", async () => {
  const template = await prepared();
  const old = template.snapshot();
  const full = copyOf(template);
  const complete = await run(full, "deactivate");
  expect(complete.status).toBe(0);
  const gone = full.snapshot();
  expect(Object.keys(gone).filter((name) => name.includes("portico"))).toEqual([]);
  full.remove();
  for (const [n, change] of killPoints(complete.calls).entries()) {
    const at = `killed at ${change.call} (PORTICO_SEED=${SEED})`;
    const site = await killedAt(template, "deactivate", change);
    if (n % 2 === 0) {
      await site.deactivate();
      expect([at, site.snapshot()]).toEqual([at, gone]);
      expect(readdirSync(site.at("/var/lib/portico"))).toEqual(["incoming"]);
    } else {
      deliverOne(site);
      await site.activate();
      expect([at, site.snapshot()]).toEqual([at, old]);
    }
    site.remove();
  }
  template.remove();
}, 600_000);

test.each([
  { first: "purge", then: false, logChanges: LOGS.length + 2 },
  { first: "deactivate", then: true, logChanges: 0 },
] as const)(
  "$first, killed halfway, then with purge $then: logs and certificates are removed",
  async ({ first, then, logChanges }) => {
    const template = await prepared();
    for (const name of LOGS) template.write(`/var/log/private/portico/${name}`, "x");
    // As systemd has it for a dynamic user.
    symlinkSync("private/portico", template.at("/var/log/portico"));
    for (const name of ["ca/account.json", "certificates/ca-1/certificate.pem"])
      template.write(`/var/lib/private/portico-certificates/acme/${name}`, "x");
    symlinkSync("private/portico-certificates", template.at("/var/lib/portico-certificates"));
    const [full, purged] = [copyOf(template), copyOf(template)];
    const complete = await run(full, first);
    expect(complete.status).toBe(0);
    expect(await purged.deactivate(true)).toEqual([]);
    const gone = purged.snapshot();
    expect(Object.keys(gone).filter((name) => name.includes("portico"))).toEqual([]);
    full.remove();
    purged.remove();
    const points = changesOf(complete.calls).filter(({ call }) =>
      /^(?:unlink|rmdir).*(?:\/var\/log|portico-certificates|portico\.json|journal\.json|state\.json)/.test(
        call,
      ),
    );
    expect(points.filter(({ call }) => call.includes("/var/log"))).toHaveLength(logChanges);
    expect(points.filter(({ call }) => call.includes("portico.json"))).not.toEqual([]);
    for (const change of points) {
      const at = `killed at ${change.call}`;
      const site = await killedAt(template, first, change);
      await site.deactivate(then);
      expect([at, site.snapshot()]).toEqual([at, gone]);
      site.remove();
    }
    template.remove();
  },
);

test("what is written is on the disk before anything relies on it", async () => {
  const site = await prepared();
  const { calls } = await run(site, "activate");
  const store = "/var/lib/portico/deployment";
  const renames = calls.flatMap((call, i) => {
    const [, from, to] = /^rename\w*\("([^"]+)", "([^"]+)"/.exec(call) ?? [];
    return to === undefined ? [] : [{ i, from: from!, to }];
  });
  expect(renames.length).toBeGreaterThan(10);
  for (const { i, from, to } of renames) {
    const synced = (file: string, since: number, until: number): boolean =>
      calls
        .slice(since, until)
        .some((call) => new RegExp(`^f(data)?sync\\(\\d+<${escaped(file)}>\\)`).test(call));
    // A file's bytes before its name, the name before the next change.
    expect([to, synced(from, 0, i)]).toEqual([to, true]);
    expect([to, synced(path.dirname(to), i, i + 2)]).toEqual([to, true]);
  }
  // What is removed or made is on the disk before the next change, too; except for copies that nothing depends on.
  const changed = calls.flatMap((call, i) => {
    const [, file] = /^(?:unlink|rmdir|mkdir)\w*\((?:AT_FDCWD[^,]*, )?"([^"]+)"[^]*= 0$/.exec(call) ?? [];
    return file === undefined || /\/(?:staging|incoming|blobs)(?:\/|$)|\.portico-/.test(file)
      ? []
      : [{ i, file }];
  });
  expect(changed.map(({ file }) => file)).toEqual(
    expect.arrayContaining(["/srv/other", "/srv/only/one", "/srv/only", `${store}/journal.json`]),
  );
  for (const { i, file } of changed) {
    const synced = new RegExp(`^fsync\\(\\d+<${escaped(path.dirname(file))}>\\)`);
    expect([file, calls.slice(i + 1, i + 3).some((call) => synced.test(call))]).toEqual([file, true]);
  }
  const at = (file: string): number => renames.find(({ to }) => to === file)!.i;
  const outside = renames.filter(({ to }) => !to.startsWith(store)).map(({ i }) => i);
  const blobs = renames.filter(({ to }) => to.startsWith(`${store}/blobs/`)).map(({ i }) => i);
  // Node is large: where it stays as it is it is not copied.
  expect(blobs.length).toBeGreaterThan(0);
  expect(renames.filter(({ to }) => to.endsWith(sha256("node")))).toEqual([]);
  const closed = calls.findIndex((call) => call.startsWith(`unlink("${store}/journal.json"`));
  expect(Math.max(...blobs)).toBeLessThan(at(`${store}/journal.json`));
  expect(at(`${store}/journal.json`)).toBeLessThan(Math.min(...outside));
  expect(Math.max(...outside)).toBeLessThan(at(`${store}/state.json`));
  expect(at(`${store}/state.json`)).toBeLessThan(closed);
  site.remove();
});

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
