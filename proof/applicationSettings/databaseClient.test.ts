import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { descriptorsOf } from "../../testkit/processes.js";
import { type DatabaseAccess, readOverrides } from "../../src/host/applicationSettings/index.js";

/** How the database's command-line client is called, and what is made of what it says. */

const PATH = process.env["PATH"];
let folder: string;
beforeEach(() => {
  folder = fs.mkdtempSync(join(tmpdir(), "portico-client-"));
  process.env["PATH"] = `${folder}:/bin`;
});
afterEach(() => {
  process.env["PATH"] = PATH;
  fs.rmSync(folder, { recursive: true, force: true });
});

/** A client that runs a script. */
function client(script: string, name = "mariadb", mode = 0o755): void {
  fs.writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`, { mode });
}
const ask = (more: Partial<DatabaseAccess> = {}, names = ["SERVICE_URL", "FILE_SERVER_ROOT"]) =>
  readOverrides({ host: "db", port: 3307, name: "sync", user: "reader", password: "pw", ...more }, names);
const seen = (name: string): string[] => fs.readFileSync(join(folder, name), "utf8").trimEnd().split("\n");

/** Temporary files that this process has open; also some of other tests, which ran in it before. */
const openHere = (): string[] =>
  descriptorsOf(process.pid)
    .filter((file) => file.includes("/portico-"))
    .sort();

test("its arguments, its environment and its options", async () => {
  const before = openHere();
  const message = [
    "SERVICE_URL\\t2f61",
    "OTHER\\t2f61",
    "FILE_SERVER_ROOT\\tNULL",
    "SERVICE_URL",
    "FILE_SERVER_ROOT\\t",
  ];
  client(
    `cd ${folder}; printf '%s\\n' "$@" > args; env > env; cat /dev/fd/3 > options; printf '${message.join("\\n")}'`,
  );
  expect(await ask({ password: 'a"\\b\nc\rd"' })).toEqual({
    looked: true,
    overrides: [
      { item: "SERVICE_URL", stored: { kind: "text", text: "/a" } },
      { item: "FILE_SERVER_ROOT", stored: { kind: "text", text: "" } },
    ],
  });
  expect(seen("options")).toEqual(["[client]", 'password="a\\"\\\\b\\nc\\rd\\""']);
  expect(seen("args")).toEqual([
    "--defaults-extra-file=/dev/fd/3",
    "--host=db",
    "--port=3307",
    "--user=reader",
    "--database=sync",
    "--connect-timeout=10",
    "--batch",
    "--skip-column-names",
    "--plugin-dir=/dev/null",
    "--loose-secure-auth",
    "--local-infile=0",
    "--quick",
    "--execute=START TRANSACTION READ ONLY;",
    "SELECT constance_key, HEX(value) FROM constance_config WHERE constance_key IN ('SERVICE_URL','FILE_SERVER_ROOT')",
  ]);
  // What the shell adds is not ours.
  expect(
    seen("env")
      .filter((line) => !/^(?:PWD|OLDPWD|SHLVL|_)=/.test(line))
      .sort(),
  ).toEqual(["HOME=/nonexistent", "LANG=C.UTF-8", `PATH=${folder}:/bin`]);
  // A file that an earlier suite in this process left open may close meanwhile.
  expect(openHere().filter((file) => !before.includes(file))).toEqual([]);
});

test.each([
  [20_000, "20"],
  [20_001, "21"],
])("of %d ms it may take %s s to connect; an option file is its own", async (timeoutMs, seconds) => {
  client(`cd ${folder}; printf '%s\\n' "$@" > args; [ ! -e /dev/fd/3 ] || echo fd >> args`);
  const timers = (): number => process.getActiveResourcesInfo().filter((each) => each === "Timeout").length;
  const before = timers();
  await ask({ password: undefined, optionFile: "/options", timeoutMs });
  expect(timers()).toBe(before);
  expect(seen("args")).toEqual(
    expect.arrayContaining(["--defaults-extra-file=/options", `--connect-timeout=${seconds}`]),
  );
  expect(seen("args")).not.toContain("fd");
});

const SHOWN = expect.stringMatching(/^the server requests the password by a method that would reveal it/);
test.each<[message: string, why: unknown, more?: Partial<DatabaseAccess>]>([
  ["ERROR 2059 (HY000): x", SHOWN],
  ["ERROR 2061 (HY000): x", SHOWN],
  ["ERROR 1251 (08004): x", SHOWN],
  ["cannot open /dev/null/dialog.so", SHOWN],
  ["ERROR 1146 (42S02): x", "the database sync has no table constance_config"],
  ["", "mariadb says: nothing"],
  [" one\ntwo pw, pw \n", "mariadb says: one; two …, …"],
  ["one", "mariadb says: one", { password: "" }],
  ["x".repeat(500), `mariadb says: ${"x".repeat(400)}`],
])("what it says of a failure: %j", async (message, why, ...[more]) => {
  client(`printf '%s' '${message}' >&2; exit 1`);
  expect(await ask(more)).toEqual({ looked: false, why });
});

test("the other client, and none that can be used", async () => {
  process.env["PATH"] = folder;
  client("echo no >&2; exit 1", "mysql");
  expect(await ask()).toEqual({ looked: false, why: "mysql says: no" });
  client("exit 0", "mariadb", 0o644);
  expect(await ask()).toEqual({ looked: false, why: "spawn mariadb EACCES" });
  expect(await ask({ user: "a\0b" })).toEqual({ looked: false, why: expect.stringContaining("null bytes") });
  expect(await ask({ password: undefined })).toEqual({ looked: false, why: "no password was given" });
  const why = "no item of the deployment is marked as `stored`";
  expect(await ask({}, [])).toEqual({ looked: false, why });
});

test("one that does not end is ended", async () => {
  client("exec sleep 20");
  const start = Date.now();
  expect(await ask({ timeoutMs: 300 })).toEqual({ looked: false, why: "no response within 0.3 s" });
  expect(Date.now() - start).toBeLessThan(10_000);
});
