import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { activateScript, deactivateScript, prepareScript } from "../../src/render/hostScripts.js";

/** The scripts of a delivery, run by a real shell; a small program stands for the runtime. */
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "portico scripts "));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

function sh(script: string, ...args: string[]) {
  const env = { PATH: process.env["PATH"] };
  return spawnSync("/bin/sh", ["-eu", "-c", script, "script", ...args], {
    encoding: "utf8",
    env,
    timeout: 30_000,
  });
}

/** Tells what it was asked for; installs itself on activation, and goes away on deactivation, which fails once. */
const runtimeOf = (installed: string, told: string): string => `
import fs from "node:fs";
const [, self, command] = process.argv;
fs.appendFileSync(${JSON.stringify(told)}, command + " " + (process.env.SSH_CONNECTION ?? "-") + "\\n");
if (command === "activate") fs.copyFileSync(self, ${JSON.stringify(installed)});
if (command === "deactivate" && fs.existsSync(${JSON.stringify(installed)})) {
  fs.rmSync(${JSON.stringify(installed)});
  process.kill(process.pid, "SIGKILL");
}
`;

function host() {
  const store = path.join(folder, "var/lib/portico/deployment");
  const places = { store, incoming: path.join(store, "incoming") };
  const told = path.join(folder, "told");
  // Nothing in a path is a part of a script.
  const installed = path.join(folder, 'opt/$(touch owned) `id` "it\'s"/portico.mjs');
  mkdirSync(path.dirname(installed), { recursive: true });
  const content = runtimeOf(installed, told);
  const programs = {
    node: { path: process.execPath },
    runtime: { path: installed, sha256: sha256(content) },
  };
  expect(sh(prepareScript(places))).toMatchObject({ status: 0, stderr: "" });
  writeFileSync(path.join(places.incoming, sha256(content)), content);
  return { places, store, installed, told: () => readFileSync(told, "utf8").trimEnd().split("\n"), programs };
}

test("what was deactivated half can be deactivated to the end, though its programs are gone", () => {
  const { places, store, installed, told, programs } = host();
  const session = "203.0.113.1 50000 203.0.113.10 22";
  const activated = sh(activateScript(places, programs), session);
  expect([activated.stderr, activated.status]).toEqual(["", 0]);
  expect(existsSync(installed)).toBe(true);
  expect(readdirSync(store).sort()).toEqual(["command", "incoming", "programs"]);

  const cutOff = sh(deactivateScript(places, { purge: false }));
  expect(cutOff.status).not.toBe(0);
  expect(existsSync(installed)).toBe(false);
  const again = sh(deactivateScript(places, { purge: true }));
  expect([again.stderr, again.status]).toEqual(["", 0]);
  expect(existsSync(path.dirname(store))).toBe(false);
  expect(told()).toEqual([`activate ${session}`, "deactivate -", "deactivate -"]);
  expect(readdirSync(folder).sort()).toEqual(["opt", "told", "var"]);
  // Nothing is left to do a third time.
  expect(sh(deactivateScript(places, { purge: false }))).toMatchObject({ status: 0, stderr: "" });
}, 60_000);

test("a program that was not delivered is told, and nothing is run", () => {
  const { places, store, programs } = host();
  rmSync(path.join(places.incoming, programs.runtime.sha256));
  const { status, stderr } = sh(activateScript(places, programs), "");
  expect(status).toBe(1);
  expect(stderr).toMatch(/portico\.mjs was not delivered, or is damaged: deliver it again by terraform/);
  expect(existsSync(path.join(store, "command"))).toBe(false);
});
