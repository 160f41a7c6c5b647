import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runDetached } from "../../src/activation/index.js";
import { RECORDS } from "../../src/activation/detached.js";

/** A command that goes on without its caller; with systemd as a unit, without it as a session of its own. */

const folder = mkdtempSync(join(tmpdir(), "portico detached "));
afterAll(() => rmSync(folder, { recursive: true }));

const isFree = !existsSync(RECORDS) || readdirSync(RECORDS).length === 0;
const asRoot = process.getuid!() === 0 && isFree ? test : test.skip;

asRoot("its output is repeated; what it is recorded in goes with the last deployment", async () => {
  const program = join(folder, "program.cjs");
  writeFileSync(
    program,
    `const { appendFileSync } = require("node:fs");
    const [command, , file] = process.argv.slice(2);
    appendFileSync(file, JSON.stringify({ out: command + " is done" }) + "\\n" + JSON.stringify({ exit: 3 }) + "\\n");`,
  );
  for (const [command, left] of [
    ["activate", []],
    ["deactivate", undefined],
  ] as const) {
    const said: string[] = [];
    const streams = { out: (text: string) => said.push(text), err: (text: string) => said.push(text) };
    expect(await runDetached([process.execPath, program], [command], streams)).toBe(3);
    expect(said).toEqual([`${command} is done`]);
    expect(existsSync(RECORDS) ? readdirSync(RECORDS) : undefined).toEqual(left);
  }
});
