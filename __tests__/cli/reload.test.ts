import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "../../src/cli/program.js";
import { problem } from "../../src/model/index.js";
import type { ControlOutcome } from "../../src/runtime/supervisor/control/control.js";

/** `portico reload`: what it hands over first, and what is left of that when the response is no. */

const ACCEPTED: ControlOutcome = { ok: true, value: { message: "reloaded", warnings: [] } };
const REFUSED: ControlOutcome = { ok: false, problems: [problem("config.bad-name", "a", "is none")] };

let folder: string;
let master: Server;
let response: ControlOutcome;
/** What was asked, and the key that was there to be read then. */
let asked: [request: unknown, key: string | undefined][];

const at = (name: string): string => join(folder, name);
const current = (): string | undefined =>
  existsSync(at("set/current")) ? readFileSync(at("set/current/key.pem"), "utf8") : undefined;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "portico-reload-"));
  asked = [];
  master = createServer((socket) =>
    socket.once("data", (request) => {
      asked.push([JSON.parse(String(request)), current()]);
      socket.end(`${JSON.stringify(response)}\n`);
    }),
  ).listen(at("control.sock"));
  await once(master, "listening");
});

afterEach(() => {
  master.close();
  rmSync(folder, { recursive: true, force: true });
});

async function reload(outcome: ControlOutcome, ...options: string[]) {
  response = outcome;
  let [out, err] = ["", ""];
  const output = { out: (text: string) => void (out += text), err: (text: string) => void (err += text) };
  const code = await run(["reload", "--control", at("control.sock"), ...options], output);
  return { code, out, err };
}

const directory = (): string[] => ["--credential-directory", at("set")];
const credential = (): string[] => ["--credential", `key.pem:${at("key")}`];
const pid = ["--pid", String(process.pid)];

function handingOver(outcome: ControlOutcome, key: string) {
  writeFileSync(at("key"), key);
  return reload(outcome, ...credential(), ...directory(), ...pid);
}

test("files that were accepted stay, with those before them", async () => {
  for (const key of ["one", "two", "three"])
    expect(await handingOver(ACCEPTED, key)).toEqual({ code: 0, out: "reloaded\n", err: "" });
  expect(asked).toEqual(["one", "two", "three"].map((key) => [{ command: "reload" }, key]));
  expect(current()).toBe("three");
  expect(readdirSync(at("set"))).toHaveLength(3);
});

test("files that were refused are taken back: the next start reads those before them", async () => {
  await handingOver(ACCEPTED, "one");
  const { code, out, err } = await handingOver(REFUSED, "two");
  expect({ code, out }).toEqual({ code: 1, out: "" });
  expect(err).toMatch(
    /^a: is none \[config\.bad-name\]\n[^]*\nreload failed: 1 problem; the current config stays in force\n$/,
  );
  expect(asked.at(-1)).toEqual([{ command: "reload" }, "two"]);
  expect(current()).toBe("one");
  expect(readdirSync(at("set"))).toHaveLength(2);
});

test("a warning is printed beside the outcome, which is a success", async () => {
  const warnings = [problem("files.certificate-expires-soon", "a.pem", "ends tomorrow")];
  const { code, out, err } = await reload({ ok: true, value: { message: "reloaded", warnings } });
  expect({ code, out }).toEqual({ code: 0, out: "reloaded\n" });
  expect(err).toMatch(/^warning: a\.pem: ends tomorrow \[files\.certificate-expires-soon\]\n/);
});

test("without files nothing is handed over, wherever it would be", async () => {
  expect(await reload(ACCEPTED, ...directory(), ...pid)).toMatchObject({ code: 0 });
  expect(asked).toEqual([[{ command: "reload" }, undefined]]);
  expect(existsSync(at("set"))).toBe(false);
});

test.each<[what: string, options: () => string[], text: string]>([
  ["a process that is gone", () => [...credential(), ...directory(), "--pid", "4194305"], "--pid: "],
  ["a file that is not there", () => ["--credential", "a:/none/a", ...directory(), ...pid], "/none/a: "],
])("without its files a reload is not asked for: %s", async (_, options, text) => {
  writeFileSync(at("key"), "one");
  const { code, out, err } = await reload(ACCEPTED, ...options());
  expect({ code, out, asked, key: current() }).toEqual({ code: 1, out: "", asked: [], key: undefined });
  expect(err).toContain(text);
  expect(err).toMatch(/\nreload failed: 1 problem\n$/);
});
