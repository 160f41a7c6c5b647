import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import os, { tmpdir } from "node:os";
import path from "node:path";
import { formatProblem, otherDeployment } from "../../src/model/index.js";
import {
  activateScript,
  deactivateScript,
  LOGIN_DIRECTORY,
  LOGIN_DIRECTORY_SCRIPT_PATH,
  prepareScript,
  quote,
  REFUSE_OPEN_DIRECTORY,
  REMOVE_ENDED_SCRIPTS,
  REMOVE_UPLOAD,
  removeLoginDirectory,
} from "../../src/render/hostScripts.js";
import { type Machine, machineScript, rootScript } from "../../src/render/hostSupport.js";

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

test("of scripts that have ended nothing is left, and those that run or come in stay", () => {
  const scripts = path.join(folder, LOGIN_DIRECTORY);
  mkdirSync(scripts, { recursive: true });
  for (const [name, content, age] of [
    ["ended.sh", "", 120],
    ["coming-in.sh", "", 0],
    ["running.sh", "sleep 1", 120],
    ["upload", "", 120],
  ] as const) {
    writeFileSync(path.join(scripts, name), content);
    utimesSync(path.join(scripts, name), Date.now() / 1000 - age, Date.now() / 1000 - age);
  }
  expect(sh(`cd '${folder}' && ${REMOVE_ENDED_SCRIPTS}`)).toMatchObject({
    status: 0,
    stdout: "",
    stderr: "",
  });
  expect(readdirSync(scripts).sort()).toEqual(["coming-in.sh", "running.sh", "upload"]);
});

describe("what a host or a user is not, a script says with its code", () => {
  const responses: Readonly<Record<string, string>> = {
    uname: "echo riscv64",
    sudo: "exit 1",
    id: "echo 1000",
  };
  const withPrograms = (script: string) => {
    for (const [name, does] of Object.entries(responses))
      writeFileSync(path.join(folder, name), `#!/bin/sh\n${does}\n`, { mode: 0o755 });
    return sh(`PATH='${folder}':$PATH\n${script}`);
  };

  test.each([
    [
      machineScript("x86_64"),
      "host: has a processor that the delivered Node does not support [host.other-processor]",
    ],
    [rootScript(true), "delivery.user: may not use sudo without a password [delivery.no-root]"],
    [rootScript(false), "delivery.user: is not root, and the delivery does not use sudo [delivery.no-root]"],
  ])("%#", (script, message) => {
    const { status, stderr, stdout } = withPrograms(script);
    expect([status, stdout, stderr]).toEqual([
      1,
      "",
      expect.stringMatching(/^ {4}fix: {6}\S.*\n {4}see: .*\n$/m),
    ]);
    expect(stderr.split("\n")[0]).toBe(message);
  });

  test("and nothing of one that is as it should be", () => {
    const machine = os.machine() as Machine;
    expect(sh(`${machineScript(machine)}\n${rootScript(process.geteuid!() !== 0)}`)).toMatchObject({
      stdout: "",
      stderr: "",
      status: 0,
    });
  });
});

/** Tells what it was asked for; installs itself on activation, and goes away on deactivation, which fails once. */
const runtimeOf = (installed: string, told: string, store: string): string => `
import fs from "node:fs";
const [, self, command, ...flags] = process.argv;
fs.appendFileSync(${JSON.stringify(told)}, [command, ...flags].join(" ") + " " + (process.env.SSH_CONNECTION ?? "-") + "\\n");
if (command === "activate") {
  fs.copyFileSync(self, ${JSON.stringify(installed)});
  fs.mkdirSync(${JSON.stringify(store)}, { recursive: true });
  fs.writeFileSync(${JSON.stringify(store)} + "/programs", process.execPath + "\\n" + ${JSON.stringify(installed)} + "\\n");
  fs.writeFileSync(${JSON.stringify(store)} + "/command", "", { mode: 0o700 });
}
if (command === "deactivate" && fs.existsSync(${JSON.stringify(installed)})) {
  fs.rmSync(${JSON.stringify(installed)});
  process.kill(process.pid, "SIGKILL");
}
if (command === "deactivate") fs.rmSync(${JSON.stringify(store)}, { recursive: true });
`;

const DOCUMENT = "d".repeat(64);

const IDENTITY = { id: "0b7a", construct: "stack/files/Host" };

/** @param help what a runtime says of `deactivate`: releases before 0.1 know no identities */
function host() {
  const store = path.join(folder, "var/lib/portico/deployment");
  const places = { store, incoming: path.join(path.dirname(store), "incoming/one"), identity: IDENTITY };
  const told = path.join(folder, "told");
  // Nothing in a path is a part of a script.
  const installed = path.join(folder, 'opt/$(touch owned) `id` "it\'s"/portico.mjs');
  mkdirSync(path.dirname(installed), { recursive: true });
  const content = runtimeOf(installed, told, store);
  const programs = {
    document: DOCUMENT,
    node: { path: process.execPath },
    runtime: { path: installed, sha256: sha256(content) },
  };
  expect(sh(prepareScript(places))).toMatchObject({ status: 0, stderr: "" });
  writeFileSync(path.join(places.incoming, sha256(content)), content);
  return { places, store, installed, told: () => readFileSync(told, "utf8").trimEnd().split("\n"), programs };
}

test("an unfinished deactivation can be finished, although its programs are gone", () => {
  const { places, store, installed, told, programs } = host();
  const session = "203.0.113.1 50000 203.0.113.10 22";
  const activated = sh(activateScript(places, programs), session);
  expect([activated.stderr, activated.status]).toEqual(["", 0]);
  expect(existsSync(installed)).toBe(true);
  expect(readdirSync(places.incoming)).toEqual([programs.runtime.sha256]);

  const cutOff = sh(deactivateScript(places, { purge: false }));
  expect(cutOff.status).not.toBe(0);
  expect(existsSync(installed)).toBe(false);
  const again = sh(deactivateScript(places, { purge: true }));
  expect([again.stderr, again.status]).toEqual(["", 0]);
  expect(existsSync(path.dirname(store))).toBe(false);
  expect(told()).toEqual([
    `activate --incoming ${places.incoming} --document ${DOCUMENT} --identity 0b7a --construct stack/files/Host ${session}`,
    "deactivate --identity 0b7a -",
    "deactivate --purge --identity 0b7a -",
  ]);
  expect(readdirSync(folder).sort()).toEqual(["opt", "told", "var"]);
  // Nothing is left to do a third time.
  expect(sh(deactivateScript(places, { purge: false }))).toMatchObject({ status: 0, stderr: "" });
});

describe("uploads", () => {
  const state = (identity: unknown) =>
    JSON.stringify({ version: 1, identity, deployment: { name: '"identity":{' } });
  const other = { id: "9f00", construct: "other/files/Host" };

  test.each<[string, string | undefined, boolean, boolean]>([
    ["no deployment", undefined, false, true],
    ["one without an identity", state(undefined), false, true],
    ["the same deployment", state(IDENTITY), false, true],
    ["the same deployment, renamed", state({ ...IDENTITY, construct: "was/here" }), false, true],
    ["one whose id only begins alike", state({ ...other, id: "0b7a1" }), false, false],
    ["another deployment", state(other), false, false],
    ["another deployment, to be taken over", state(other), true, true],
  ])("go to a host with %s, or to none that is another's", (_, content, takeOver, allowed) => {
    const store = path.join(folder, "portico/deployment");
    const incoming = path.join(folder, "portico/incoming/one");
    mkdirSync(store, { recursive: true });
    if (content !== undefined) writeFileSync(path.join(store, "state.json"), content);
    const { status, stderr } = sh(prepareScript({ store, incoming, identity: IDENTITY, takeOver }));
    expect([status, existsSync(incoming)]).toEqual(allowed ? [0, true] : [1, false]);
    if (allowed) expect(stderr).toBe("");
    else {
      expect(stderr).toBe(`${formatProblem(otherDeployment(IDENTITY, "other/files/Host"))}\n`);
    }
  });
});

test("a Node that cannot be run is not reported as missing", () => {
  const { places, programs } = host();
  const node = path.join(folder, "node");
  writeFileSync(node, "x", { mode: 0o644 });
  const { status, stderr } = sh(activateScript(places, { ...programs, node: { path: node } }), "");
  expect([status, stderr]).toEqual([
    1,
    expect.stringMatching(/node cannot be run: its file system is mounted noexec/),
  ]);
});

test("a program that was not delivered is reported, and nothing is run", () => {
  const { places, store, programs } = host();
  rmSync(path.join(places.incoming, programs.runtime.sha256));
  const { status, stderr } = sh(activateScript(places, programs), "");
  expect(status).toBe(1);
  expect(stderr).toMatch(
    /portico\.mjs was not delivered, or is damaged: have everything sent again: terraform apply -replace=\S+ of \S+ \S+ that ends in Host_Staging$/m,
  );
  expect(existsSync(path.join(store, "command"))).toBe(false);
});

test("the script path that creates the login user's directory: Terraform's use of it does so, and runs nothing", () => {
  const run = (command: string) => spawnSync("/bin/sh", ["-c", command], { cwd: folder, encoding: "utf8" });
  // Terraform uploads to the last `/`, and scp takes a directory that is not there for the name of the file.
  const uploaded = path.join(folder, path.posix.dirname(LOGIN_DIRECTORY_SCRIPT_PATH));
  writeFileSync(uploaded, "touch ran\n");
  // As somebody left it.
  mkdirSync(path.join(folder, ".portico"), { mode: 0o777 });
  for (const command of [`chmod 0777 ${LOGIN_DIRECTORY_SCRIPT_PATH}`, LOGIN_DIRECTORY_SCRIPT_PATH]) {
    expect(run(command).status).toBe(0);
    for (const directory of [".portico", ".portico/incoming"]) {
      expect(statSync(path.join(folder, directory)).mode & 0o7777).toBe(0o700);
    }
  }
  expect(readdirSync(folder).sort()).toEqual([".portico", path.basename(uploaded)]);
  expect(run(REMOVE_UPLOAD).status).toBe(0);
  expect(readdirSync(folder)).toEqual([".portico"]);
  // As long as a deployment has its uploads on the host, its scripts run there.
  const incoming = path.join(folder, "uploads/one");
  mkdirSync(incoming, { recursive: true });
  expect(run(removeLoginDirectory({ incoming })).status).toBe(0);
  expect(readdirSync(folder).sort()).toEqual([".portico", "uploads"]);
  rmSync(path.dirname(incoming), { recursive: true });
  expect(run(removeLoginDirectory({ incoming })).status).toBe(0);
  expect(readdirSync(folder)).toEqual([]);
});

test.each([
  [0o700, 0],
  [0o500, 0],
  [0o710, 1],
  [0o701, 1],
  [0o1777, 1],
])("a script in a chosen directory of mode %o: ends with %i", (mode, status) => {
  const directory = path.join(folder, "own");
  mkdirSync(directory);
  const file = path.join(directory, "terraform.sh");
  writeFileSync(file, `#!/bin/sh\n${REFUSE_OPEN_DIRECTORY}\n`, { mode: 0o777 });
  chmodSync(directory, mode);
  const { stderr, ...ended } = spawnSync("/bin/sh", [file], { encoding: "utf8" });
  // Its owner may not even remove what is in it, unless that is root.
  chmodSync(directory, 0o700);
  expect(ended.status).toBe(status);
  const refusal = /^scriptPath: other users can enter .*\/own and change .* mode to 0700\n$/;
  expect(stderr).toMatch(status === 0 ? /^$/ : refusal);
});

test.each(["", "a", "a b", "it's", "''", "$HOME `id` \\", "-n", "a\nb", "*"])(
  "one word for the shell: %j",
  (word) => {
    expect(sh(`printf '<%s>' ${quote(word)}`).stdout).toBe(`<${word}>`);
  },
);
