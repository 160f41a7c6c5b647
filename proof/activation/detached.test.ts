import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runDetached } from "../../src/host/activation/index.js";
import { RECORDS } from "../../src/host/activation/detached.js";

/** A command that goes on without its caller; with systemd as a unit, without it as a session of its own. */

const folder = mkdtempSync(join(tmpdir(), "portico detached "));
afterAll(() => rmSync(folder, { recursive: true }));

const isFree = !existsSync(RECORDS) || readdirSync(RECORDS).length === 0;
const asRoot = process.getuid!() === 0 && isFree ? test : test.skip;

/** What a caller has open, and what it does with signals. */
const kept = (): unknown => [
  readdirSync("/proc/self/fd").length,
  process.listenerCount("SIGINT"),
  process.listenerCount("SIGTERM"),
];

async function detached(program: string, node = process.execPath): Promise<unknown> {
  const said: string[] = [];
  const streams = { out: (text: string) => said.push(text), err: (text: string) => said.push(text) };
  return [await runDetached([node, program], ["activate"], streams), ...said];
}

asRoot("its output is repeated; what it is recorded in goes with the last deployment", async () => {
  const program = join(folder, "program.cjs");
  writeFileSync(
    program,
    `const { appendFileSync, readFileSync, statSync } = require("node:fs");
    const [command, , file] = process.argv.slice(2);
    const mode = (path) => (statSync(path).mode & 0o7777).toString(8);
    const group = readFileSync("/proc/self/stat", "latin1").split(") ")[1].split(" ")[2];
    const out = [command, mode(file), mode(${JSON.stringify(RECORDS)}), Number(group) === process.pid].join(" ");
    appendFileSync(file, JSON.stringify({ out }) + "\\n" + JSON.stringify({ exit: 3 }) + "\\n");`,
  );
  for (const [command, left] of [
    ["activate", []],
    ["deactivate", undefined],
  ] as const) {
    const said: string[] = [];
    const streams = { out: (text: string) => said.push(text), err: (text: string) => said.push(text) };
    expect(await runDetached([process.execPath, program], [command], streams)).toBe(3);
    // Nobody else may read the record, and signals of the caller's group do not reach the command.
    expect(said).toEqual([`${command} 600 700 true`]);
    expect(existsSync(RECORDS) ? readdirSync(RECORDS) : undefined).toEqual(left);
  }
});

asRoot.each([
  ["that ends well", 'JSON.stringify({ exit: 3 }) + "\\n"', [3]],
  ["without a word", '""', [1, "it ended without any output: see `journalctl -u 'portico-activation-*'`\n"]],
])("a record that somebody removes under a command %s", async (_what, last, said) => {
  const program = join(folder, "removing.cjs");
  // Only once the caller, whose process the record's name begins with, has it open.
  writeFileSync(
    program,
    `const { appendFileSync, readdirSync, readlinkSync, rmSync } = require("node:fs");
    const file = process.argv.at(-1);
    const open = "/proc/" + parseInt(require("node:path").basename(file)) + "/fd/";
    const links = () => readdirSync(open).map((fd) => { try { return readlinkSync(open + fd); } catch {} });
    const wait = setInterval(() => {
      if (!links().includes(file)) return;
      clearInterval(wait);
      appendFileSync(file, ${last});
      rmSync(file);
    }, 20);`,
  );
  expect(await detached(program)).toEqual(said);
  expect(readdirSync(RECORDS)).toEqual([]);
});

asRoot("a program that cannot be started; nothing is left open", async () => {
  const ended = [1, "it ended without any output: see `journalctl -u 'portico-activation-*'`\n"];
  expect(await detached("none.cjs", "/none/node")).toEqual(ended);
  const before = kept();
  // Somebody else's record, which has nothing to show.
  writeFileSync(join(RECORDS, "4194303-a.record"), "");
  expect(await detached("none.cjs", "/none/node")).toEqual(ended);
  expect(kept()).toEqual(before);
  rmSync(RECORDS, { recursive: true });
});
