import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { buildBundle } from "../../build/bundle.js";
import { descriptorsOf } from "../../testkit/processes.js";
import { nodeOptions } from "../../src/runtime/supervisor/processes/noDebugger.js";

/** No process of ours has a debugger: neither by an option, nor by a signal, at whatever moment that comes. */

let folder: string;
let portico: string;
beforeAll(async () => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "portico-debugger-")));
  portico = (await buildBundle(join(folder, "portico.mjs"))).file;
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const inspects = (value: string): NodeJS.ProcessEnv => ({ ...process.env, NODE_OPTIONS: value });

test.each<[string, readonly string[], NodeJS.ProcessEnv]>([
  ["an option", ["--inspect=127.0.0.1:0"], process.env],
  ["an option with another spelling", ["--inspect_port=0", "--inspect"], process.env],
  ["the environment", [], inspects("--inspect=127.0.0.1:0")],
])("a debugger by %s ends the process before it does anything", (_, options, env) => {
  const ended = spawnSync(process.execPath, [...options, portico, "version"], { env, encoding: "utf8" });
  expect(ended).toMatchObject({
    signal: "SIGKILL",
    stdout: "",
    stderr: expect.stringContaining("portico: refuses to run with a debugger"),
  });
});

/** TCP ports that a process listens on. */
function listensOn(pid: number): number[] {
  const sockets = new Set(descriptorsOf(pid).flatMap((path) => /^socket:\[(\d+)\]$/.exec(path)?.[1] ?? []));
  const lines = readFileSync(`/proc/${process.pid}/net/tcp`, "utf8").split("\n").slice(1);
  return lines.flatMap((line) => {
    const [, local = "", , state, , , , , , inode = ""] = line.trim().split(/\s+/);
    return state === "0A" && sockets.has(inode) ? [parseInt(local.split(":")[1]!, 16)] : [];
  });
}

const isOver = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode !== null || signalCode !== null;

/** Whether a child of root has become another user. */
const isAnother = (pid: number): boolean =>
  /^Uid:\t65534\t/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));

test("a signal at whatever moment of a start opens none: the process continues without, or ends", async () => {
  for (const delay of [0, 4, 8, 12, 16, 20, 25, 30, 40, 60, 90]) {
    // It waits for a request that never comes.
    const child = spawn(process.execPath, [portico, "as-owner", "65534", "65534", ""], {
      stdio: ["pipe", "ignore", "ignore"],
    });
    const over = new Promise((resolve) => child.once("exit", resolve));
    try {
      await sleep(delay);
      child.kill("SIGUSR1");
      while (!isOver(child) && !isAnother(child.pid!)) await sleep(10);
      await sleep(100);
      expect([delay, isOver(child) ? [] : listensOn(child.pid!)]).toEqual([delay, []]);
    } finally {
      child.kill("SIGKILL");
      await over;
    }
  }
});

test("processes that one starts get its options, but none that opens a debugger", () => {
  const { execArgv } = process;
  try {
    process.execArgv = ["--inspect-brk=1", "--import", "tsx", "--inspect_port", "9", "--debug-port=3"];
    expect(nodeOptions()).toEqual(["--import", "tsx"]);
    process.execArgv = ["--max-old-space-size=9", "--inspect-publish-uid", "http", "--expose-gc"];
    expect(nodeOptions()).toEqual(["--max-old-space-size=9", "--expose-gc"]);
  } finally {
    process.execArgv = execArgv;
  }
});
