import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { withLock } from "../../src/host/activation/lock.js";
import { nextEvent } from "../../testkit/waiting.js";

/** The lock that only one activation has: what its file says, and how long it is waited for. */

let folder: string;
let file: string;
let lines: string[];
const { SSH_CONNECTION } = process.env;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "portico-lock-"));
  file = join(folder, "portico/lock");
  lines = [];
});
afterEach(() => {
  if (SSH_CONNECTION === undefined) delete process.env.SSH_CONNECTION;
  else process.env.SSH_CONNECTION = SSH_CONNECTION;
  rmSync(folder, { recursive: true });
});

const said = (): unknown => JSON.parse(readFileSync(file, "utf8"));
const taken = (lockSeconds: number): Promise<unknown> =>
  withLock(file, { what: "recovery" }, { lockSeconds, report: (line) => void lines.push(line) }, () =>
    Promise.resolve(said()),
  );
test.each([
  [undefined, {}],
  ["", {}],
  ["192.0.2.7 50000 192.0.2.10 22", { from: "192.0.2.7" }],
])("its file says who has it, from a session of %j", async (session, from) => {
  mkdirSync(join(folder, "portico"));
  writeFileSync(file, "x".repeat(1000), { mode: 0o600 });
  if (session === undefined) delete process.env.SSH_CONNECTION;
  else process.env.SSH_CONNECTION = session;
  const since = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  expect(await taken(0)).toEqual({ pid: process.pid, since, what: "recovery", ...from });
});

test("its file is made, for its owner alone; once it is free it can be taken again", async () => {
  for (let i = 0; i < 2; i++) expect(await taken(0)).toMatchObject({ what: "recovery" });
  expect(statSync(file).mode & 0o7777).toBe(0o600);
  expect(lines).toEqual([]);
});

test("it is taken anew where another file system has come over its directory, even with the same inode", async () => {
  const directory = join(folder, "portico");
  const mounted: string[] = [];
  const mount = (): number => {
    execFileSync("mount", ["-t", "tmpfs", "tmpfs", directory]);
    mounted.push(directory);
    writeFileSync(file, "");
    return statSync(file).ino;
  };
  mkdirSync(directory);
  try {
    const first = mount();
    const holder = spawn("flock", [file, "sh", "-c", "echo; exec cat"], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    await nextEvent(holder.stdout, "data");
    const waiting = taken(10);
    while (lines.length === 0) await nextTurn();
    expect(mount()).toBe(first);
    holder.stdin.end();
    // What is at the path says who has it.
    expect(await waiting).toMatchObject({ what: "recovery" });
  } finally {
    for (const each of mounted) execFileSync("umount", ["--lazy", each]);
  }
});
