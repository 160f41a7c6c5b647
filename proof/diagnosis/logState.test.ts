import { execFileSync, spawn } from "node:child_process";
import {
  chownSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { logFindings, lostLogDirectories, scarceSpace } from "../../src/host/diagnosis/logState.js";
import { siteConfig } from "../../testkit/siteConfig.js";
import { configOf } from "./site.js";
import { nextEvent } from "../../testkit/waiting.js";

/** What keeps lines from log files; this process is the proxy. */

const REOPEN = "systemctl kill --kill-who=main --signal=SIGUSR1 p.service";
const RESTART = "systemctl restart p.service (systemd creates the directory again)";
let folder: string;
let access: string;
let error: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "portico-logs-"));
  access = join(folder, "access/a.log");
  error = join(folder, "error.log");
  mkdirSync(join(folder, "access"));
  for (const file of [access, error]) writeFileSync(file, "");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function config() {
  const site = siteConfig({ mode: "plain" });
  const virtualServers = site.virtualServers!.map((server) => ({
    ...server,
    routes: server.routes!.map(({ accessLog: _, errorLog: __, ...route }) => route),
  }));
  return configOf({ ...site, virtualServers, logs: { access: { path: access }, error: { path: error } } });
}
const found = (pid: number) =>
  logFindings(config(), pid, "p.service").map(
    ({ at, what, fix }) => `${at.slice(folder.length)} ${what}: ${fix}`,
  );

test("nothing, if all is well", () => {
  expect([found(process.pid), found(0)]).toEqual([[], []]);
});

test("a directory that is gone, whether the proxy runs or not", () => {
  rmSync(join(folder, "access"), { recursive: true });
  for (const pid of [0, process.pid]) {
    expect(lostLogDirectories(config(), pid)).toEqual([join(folder, "access")]);
    expect(found(pid)).toEqual([`/access does not exist: ${RESTART}`]);
  }
});

test("a file that is gone, if the proxy runs: it is made when it starts", () => {
  rmSync(error);
  expect(found(process.pid)).toEqual([`/error.log does not exist: ${REOPEN}`]);
  expect(found(0)).toEqual([]);
});

test("a directory in the place of a file", () => {
  rmSync(error);
  mkdirSync(error);
  for (const pid of [0, process.pid])
    expect(found(pid)).toEqual([`/error.log is a directory: Move ${error} away, then ${REOPEN}`]);
});

test("a link that leads to itself, which the service's user can make", async () => {
  rmSync(error);
  symlinkSync(error, error);
  expect(found(process.pid)).toEqual([`/error.log does not exist: ${REOPEN}`]);
  rmSync(join(folder, "access"), { recursive: true });
  symlinkSync("access", join(folder, "access"));
  expect(found(0)).toEqual([`/access does not exist: ${RESTART}`]);
  expect(await scarceSpace([join(folder, "access")])).toEqual([]);
});

test("a file of another user", () => {
  chownSync(error, 1234, 0);
  const uid = process.getuid!();
  expect(found(process.pid)).toEqual([
    `/error.log belongs to user 1234, but the proxy runs as user ${uid}: ${REOPEN} (the file is set aside)`,
  ]);
  expect(found(0)).toEqual([]);
});

test("something else than a file is whoever's", () => {
  rmSync(error);
  execFileSync("mkfifo", [error]);
  chownSync(error, 1234, 0);
  expect(found(process.pid)).toEqual([]);
});

/** Runs a script in a mount namespace of its own, until it says something. */
async function inNamespace(script: string, act: (pid: number) => void): Promise<void> {
  const child = spawn("unshare", ["-m", "sh", "-c", script], { stdio: ["ignore", "pipe", "inherit"] });
  try {
    await nextEvent(child.stdout, "data");
    act(child.pid!);
  } finally {
    child.kill("SIGKILL");
  }
}

test("a directory that was created again, which the proxy does not see", async () => {
  mkdirSync(join(folder, "old"));
  const mounted = `mount --bind '${folder}/old' '${folder}/access' && echo ready && exec sleep 60`;
  await inNamespace(mounted, (pid) => {
    expect(lostLogDirectories(config(), pid)).toEqual([join(folder, "access")]);
    expect(found(pid)).toEqual([`/access was created again after the proxy started: ${RESTART}`]);
  });
});

test("a file that a worker still writes", async () => {
  await inNamespace(`{ echo ready; exec sleep 60; } 3>>'${access}' & wait`, (pid) => {
    renameSync(access, `${access}.2`);
    writeFileSync(access, "");
    const [worker] = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ");
    try {
      expect(found(pid)).toEqual([`/access/a.log is written as a.log.2: ${REOPEN}`]);
    } finally {
      process.kill(Number(worker), "SIGKILL");
    }
  });
});

test("a file that was rotated without a word to the proxy", () => {
  const fd = openSync(access, "a");
  try {
    expect(found(process.pid)).toEqual([]);
    renameSync(access, `${access}.1`);
    writeFileSync(access, "");
    expect(found(process.pid)).toEqual([`/access/a.log is written as a.log.1: ${REOPEN}`]);
    expect(found(0)).toEqual([]);
  } finally {
    closeSync(fd);
  }
});
