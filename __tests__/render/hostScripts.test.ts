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
  symlinkSync,
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
  REFUSE_OPEN_DIRECTORY,
  REMOVE_ENDED_SCRIPTS,
  REMOVE_UPLOAD,
  removeLoginDirectory,
} from "../../src/render/hostScripts.js";
import { type Machine, machineScript, programScript, rootScript } from "../../src/render/hostSupport.js";
import { COMMAND_SCRIPT } from "../../src/render/programScripts.js";
import { quote } from "../../src/render/shell.js";

/** The scripts of a delivery, run by a real shell; a small program stands for the runtime. */
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "portico scripts "));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

function sh(script: string, ...args: string[]) {
  const env = { PATH: process.env["PATH"] };
  return spawnSync("/bin/sh", ["-eu", "-c", script, "/none/0c31.sh", ...args], {
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
    [
      programScript({ name: "nft", path: "/none/nft", from: "nftables" }),
      "host: does not have the program `nft` [host.no-program]",
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
    const sh_ = programScript({ name: "sh", path: "/bin/sh", from: "dash" });
    expect(sh(`${sh_}${machineScript(machine)}\n${rootScript(process.geteuid!() !== 0)}`)).toMatchObject({
      stdout: "",
      stderr: "",
      status: 0,
    });
  });
});

/**
 * Tells what it was asked for. On activation it installs itself, and records the document, or the one in the file `other`;
 * on deactivation it goes away, and fails once.
 */
const runtimeOf = (installed: string, told: string, store: string): string => `
import fs from "node:fs";
const [, self, command, ...flags] = process.argv;
if (command === "--version") {
  console.log("portico 0.0.0");
  process.exit();
}
fs.appendFileSync(${JSON.stringify(told)}, [command, ...flags].join(" ") + " " + (process.env.SSH_CONNECTION ?? "-") + "\\n");
if (command === "activate") {
  fs.copyFileSync(self, ${JSON.stringify(installed)});
  fs.mkdirSync(${JSON.stringify(store)}, { recursive: true });
  fs.writeFileSync(${JSON.stringify(store)} + "/programs", process.execPath + "\\n" + ${JSON.stringify(installed)} + "\\n");
  fs.writeFileSync(${JSON.stringify(store)} + "/command", "", { mode: 0o700 });
  const other = ${JSON.stringify(told)} + ".other";
  const document = fs.existsSync(other) ? fs.readFileSync(other, "utf8") : flags[3];
  const identity = { id: "0b7a", construct: "stack/files/Host" };
  const state = { version: 1, activatedAt: "2026-01-02T03:04:05.678Z", deployment: {}, document, identity };
  fs.writeFileSync(${JSON.stringify(store)} + "/state.json", JSON.stringify(state));
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
  const upload = path.join(places.incoming, `${sha256(content)}.upload`);
  writeFileSync(upload, content);
  const recordOther = (document: string) => writeFileSync(`${told}.other`, document);
  const tellings = () => readFileSync(told, "utf8").trimEnd().split("\n");
  return { places, store, installed, upload, recordOther, told: tellings, programs };
}

test("an unfinished deactivation can be finished, although its programs are gone", () => {
  const { places, store, installed, upload, told, programs } = host();
  const session = "203.0.113.1 50000 203.0.113.10 22";
  const activated = sh(activateScript(places, programs), session);
  expect([activated.stderr, activated.status]).toEqual(["", 0]);
  expect(activated.stdout).toBe(
    `the host has the document ${DOCUMENT}, activated at 2026-01-02T03:04:05.678Z\n`,
  );
  expect(existsSync(installed)).toBe(true);
  expect(readdirSync(places.incoming)).toEqual([path.basename(upload)]);

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

describe("the host counts, and not what a program says", () => {
  const other = "e".repeat(64);

  test("an apply fails if the host has the document of another one in the end", () => {
    const { places, recordOther, programs } = host();
    recordOther(other);
    const { status, stdout, stderr } = sh(activateScript(places, programs), "");
    expect([status, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(
      new RegExp(
        `state\\.json: the host has another document \\[activation\\.other-document\\]\n` +
          ` +received: "${other}, activated at 2026-01-02T03:04:05\\.678Z"\n +allowed: +the document of this apply, ${DOCUMENT}\n`,
      ),
    );
    // Nothing of this run is left, and nothing of another one is removed.
    expect(readdirSync(places.incoming)).toEqual([`${programs.runtime.sha256}.upload`]);
  });

  const NODES: [string, (file: string) => void, RegExp][] = [
    ["missing", (file) => rmSync(file), /: is missing \[activation\.lost-program\]/],
    ["empty", (file) => writeFileSync(file, ""), /: is empty \[/],
    [
      "not executable",
      (file) => (writeFileSync(file, "x"), chmodSync(file, 0o644)),
      /cannot be run: its mode .* mounted noexec/,
    ],
    [
      "/bin/true",
      (file) => writeFileSync(file, readFileSync("/bin/true")),
      /: is not Node, or Node does not run on this host \[/,
    ],
    ["a script that succeeds", (file) => writeFileSync(file, "#!/bin/sh\n"), /: is not Node, or Node /],
  ];

  const RUNTIMES: [string, (file: string) => void, RegExp][] = [
    ["missing", (file) => rmSync(file), /: is missing \[activation\.lost-program\]/],
    ["empty", (file) => writeFileSync(file, ""), /: is empty \[/],
    ["damaged", (file) => writeFileSync(file, "import {"), /: is not the runtime of portico, or is damaged/],
    [
      "another program",
      (file) => writeFileSync(file, "1;"),
      /: is not the runtime of portico, or is damaged/,
    ],
  ];

  /** A host with a deployment, and with a Node of its own. */
  function deployed() {
    const made = host();
    const node = path.join(folder, "opt/node");
    symlinkSync(process.execPath, node);
    expect(sh(activateScript(made.places, made.programs), "").status).toBe(0);
    writeFileSync(path.join(made.store, "programs"), `${node}\n${made.installed}\n`);
    const lose = (file: string, how: (file: string) => void): void => {
      const content = readFileSync(file);
      rmSync(file);
      writeFileSync(file, file === node ? "" : content, { mode: 0o755 });
      how(file);
    };
    return { ...made, node, lose };
  }

  test.each(NODES)("an apply with a Node that is %s", (_, how, message) => {
    const { places, programs, node, lose } = deployed();
    lose(node, how);
    const found = { path: node };
    const { status, stdout, stderr } = sh(activateScript(places, { ...programs, node: found }), "");
    expect([status, stdout, stderr]).toEqual([1, "", expect.stringMatching(message)]);
    expect(stderr.startsWith(`${node}: `)).toBe(true);
    expect(readdirSync(places.incoming)).toEqual([`${programs.runtime.sha256}.upload`]);
  });

  test.each(NODES)("a destroy with a Node that is %s", (_, how, message) => {
    const { places, store, node, lose } = deployed();
    lose(node, how);
    const { status, stdout, stderr } = sh(deactivateScript(places, { purge: false }));
    expect([status, stdout, stderr]).toEqual([1, "", expect.stringMatching(message)]);
    expect(stderr.startsWith(`${node}: `)).toBe(true);
    expect(stderr).toMatch(/Nothing was removed, and the services still run\. .*`terraform apply` sends /);
    expect([existsSync(path.join(store, "state.json")), existsSync(places.incoming)]).toEqual([true, true]);
  });

  test.each(RUNTIMES)("a destroy with a runtime that is %s, and without a copy of it", (_, how, message) => {
    const { places, store, installed, lose } = deployed();
    lose(installed, how);
    const { status, stdout, stderr } = sh(deactivateScript(places, { purge: false }));
    expect([status, stdout, stderr]).toEqual([1, "", expect.stringMatching(message)]);
    expect(stderr.startsWith(`${installed}: `)).toBe(true);
    expect([existsSync(path.join(store, "state.json")), existsSync(places.incoming)]).toEqual([true, true]);
  });

  test.each(RUNTIMES)("a destroy with a runtime that is %s uses the store's copy", (_, how) => {
    const { places, store, installed, upload, programs, told, lose } = deployed();
    keepCopy(store, upload, programs.runtime.sha256);
    lose(installed, how);
    // The stand-in fails once if its file is there.
    rmSync(installed, { force: true });
    const { status, stderr } = sh(deactivateScript(places, { purge: false }));
    expect([stderr, status]).toEqual(["", 0]);
    expect(told().at(-1)).toBe("deactivate --identity 0b7a -");
    expect([existsSync(store), existsSync(places.incoming)]).toEqual([false, false]);
  });

  test("a destroy fails if the deployment is still there in the end", () => {
    const { places, store, installed } = deployed();
    writeFileSync(installed, 'console.log("portico 0.0.0");');
    const { status, stderr } = sh(deactivateScript(places, { purge: false }));
    expect([status, stderr]).toEqual([
      1,
      expect.stringMatching(/still on this host.*\[activation\.not-removed\]/),
    ]);
    expect([existsSync(path.join(store, "state.json")), existsSync(places.incoming)]).toEqual([true, true]);
  });

  test("a destroy without Node of a deployment that another one has replaced", () => {
    const { places, store, node } = deployed();
    rmSync(node);
    const state = path.join(store, "state.json");
    writeFileSync(
      state,
      readFileSync(state, "utf8").replace(/"id":"0b7a","construct":"[^"]*"/, '"id":"9f","construct":"b/c"'),
    );
    const { status, stdout } = sh(deactivateScript(places, { purge: false }));
    expect([status, stdout]).toEqual([
      0,
      "nothing was removed: this host has the deployment of b/c, which replaced this one\n",
    ]);
    expect([existsSync(state), existsSync(places.incoming)]).toEqual([true, false]);
  });

  /** The command on the host, which is a file of its own. */
  const command = (store: string, ...args: string[]) => {
    const file = path.join(store, "command");
    writeFileSync(file, COMMAND_SCRIPT, { mode: 0o700 });
    return spawnSync(file, args, { encoding: "utf8" });
  };

  test.each([
    ...NODES.map(([name, ...rest]) => ["Node", name, ...rest] as const),
    ...RUNTIMES.map(([name, ...rest]) => ["runtime", name, ...rest] as const),
  ])("the command with a %s that is %s", (which, _, how, message) => {
    const { store, installed, upload, programs, node, lose } = deployed();
    const file = which === "Node" ? node : installed;
    lose(file, how);
    const { status, stdout, stderr } = command(store, "doctor");
    expect([status, stdout, stderr]).toEqual([1, "", expect.stringMatching(message)]);
    expect(stderr.startsWith(`${file}: `)).toBe(true);
    expect(stderr).toMatch(/^ {4}fix: {6}Run `terraform apply -replace=ADDRESS` /m);
    if (which === "Node") return;
    keepCopy(store, upload, programs.runtime.sha256);
    const copy = path.join(store, "blobs", programs.runtime.sha256);
    expect(command(store, "doctor").stderr).toContain(`Run \`install -m 0755 ${copy} ${installed}\`, which `);
  });

  test("the command without the file that names the programs", () => {
    const { store, told } = deployed();
    expect(command(store, "doctor", "a b").status).toBe(0);
    expect(told().at(-1)).toBe("doctor a b -");
    rmSync(path.join(store, "programs"));
    const { status, stdout, stderr } = command(store, "doctor");
    expect([status, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(
      /^\S.*\/programs: is missing or damaged: it names .* \[activation\.lost-program\]\n/,
    );
  });
});

/** The store's own copy, as an activation keeps it. */
function keepCopy(store: string, upload: string, hash: string): void {
  mkdirSync(path.join(store, "blobs"));
  writeFileSync(path.join(store, "blobs", hash), readFileSync(upload));
  const state = JSON.parse(readFileSync(path.join(store, "state.json"), "utf8"));
  state.deployment.files = [{ path: "/x", mode: "0755", sha256: hash, role: "runtime" }];
  writeFileSync(path.join(store, "state.json"), JSON.stringify(state));
}

test("a program that was not delivered is reported, and nothing is run", () => {
  const { places, store, upload, programs } = host();
  rmSync(upload);
  const { status, stderr } = sh(activateScript(places, programs), "");
  expect(status).toBe(1);
  expect(stderr).toMatch(
    /portico\.mjs was not delivered, or is damaged, or another apply has replaced it: have everything sent again: terraform apply -replace=\S+ of \S+ \S+ that ends in Host_Staging$/m,
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
