import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "../../src/cli/program.js";
import { type DatabaseAccess, readOverrides as ask } from "../../src/host/applicationSettings/index.js";
import { readStoredValue } from "../../src/host/applicationSettings/databaseOverrides.js";
import { siteConfig } from "../../testkit/siteConfig.js";
import { type MariaDb, startMariaDb } from "./mariadb.js";
import { startRogueDatabase } from "./rogueDatabase.js";
import { FILE_SYNC_ROWS } from "../../src/applications/index.js";
import { wantedFiles } from "./oracle.js";

/** Settings that were stored in the application's database, read from a real MariaDB. */

const PASSWORD = `p"w'\\n # ü;=`;
let database: MariaDb;
let folder: string;

beforeAll(async () => {
  folder = fs.mkdtempSync(join(tmpdir(), "portico-overrides-"));
  database = await startMariaDb();
  const quoted = PASSWORD.replace(/['\\]/g, "\\$&");
  database.sql(`SET NAMES utf8mb4; CREATE DATABASE sync CHARACTER SET utf8mb4; CREATE DATABASE other; USE sync;
CREATE TABLE constance_config (id INT AUTO_INCREMENT PRIMARY KEY, constance_key VARCHAR(255) UNIQUE, value LONGTEXT);
CREATE USER reader@'127.0.0.1' IDENTIFIED BY '${quoted}'; GRANT SELECT ON sync.* TO reader@'127.0.0.1'; GRANT SELECT ON other.* TO reader@'127.0.0.1';`);
}, 120_000);
afterAll(async () => {
  await database?.stop();
  fs.rmSync(folder, { recursive: true, force: true });
});

const access = (more: Partial<DatabaseAccess> = {}): DatabaseAccess => ({
  host: "127.0.0.1",
  port: database.port,
  name: "sync",
  user: "reader",
  password: PASSWORD,
  timeoutMs: 20_000,
  ...more,
});

const readOverrides = (to: DatabaseAccess) => ask(to, ["SERVICE_URL", "FILE_SERVER_ROOT"]);

function store(values: Readonly<Record<string, string | null>>): void {
  const rows = Object.entries(values).map(([key, value]) => {
    const hex = value === null ? "NULL" : `CONVERT(x'${Buffer.from(value).toString("hex")}' USING utf8mb4)`;
    return `INSERT INTO constance_config (constance_key, value) VALUES ('${key}', ${hex});`;
  });
  database.sql(`USE sync; DELETE FROM constance_config; ${rows.join("\n")}`);
}

test("the database's values of the two items, and nothing else", async () => {
  store({ SERVICE_URL: "http://old/sync", FILE_SERVER_ROOT: "x\ty\\n\nz", SITE_NAME: "secret" });
  expect(await readOverrides(access())).toEqual({
    looked: true,
    overrides: expect.arrayContaining([
      { item: "SERVICE_URL", stored: { kind: "text", text: "http://old/sync" } },
      { item: "FILE_SERVER_ROOT", stored: { kind: "unreadable" } },
    ]),
  });
  store({ SERVICE_URL: null });
  expect(await readOverrides(access())).toEqual({ looked: true, overrides: [] });
});

test("the values an application stores: plain, JSON, pickled by the real Python", async () => {
  const long = `https://files.example.org/${"a".repeat(300)}`;
  // Of the characters of Base64, `+` and `/` too.
  const texts = ["https://files.example.org/sync", long, "/a?>>>>>>>??????"];
  const others = ["['a']", "b'a'", "1", "None", "('https://a',)", "{'a': 'b'}", "print"];
  const pickled = JSON.parse(
    execFileSync("python3", [
      "-c",
      `import base64, json, pickle
pickled = lambda value: [base64.b64encode(pickle.dumps(value, protocol=p)).decode() for p in range(6)]
print(json.dumps([pickled(value) for value in [${[...texts.map((text) => `'${text}'`), ...others].join()}]]))`,
    ]).toString(),
  ) as string[][];
  expect(pickled.map(({ length }) => length)).toEqual(Array(texts.length + others.length).fill(6));
  for (const [i, all] of pickled.entries()) {
    const text = texts[i];
    for (const stored of all)
      expect(readStoredValue(Buffer.from(stored))).toEqual(
        text === undefined ? { kind: "unreadable" } : { kind: "text", text },
      );
  }
  const cases: [string, string | undefined][] = [
    ["http://a/sync", "http://a/sync"],
    [`"http://a/sync"`, "http://a/sync"],
    [`{"__type__": "default", "__value__": "http://a"}`, "http://a"],
    ["", ""],
    ["/", "/"],
    ["see http://a", undefined],
    ["http://a b", undefined],
    ["gANYAQAAAGEu", "a"],
    ["!gANYAQAAAGEu", undefined],
    ["gANYAQAAAGEu!", undefined],
    ["gANYAQAAAGFxAC4=", "a"],
    // Between the string and the end is something else, or there is an end before the last byte.
    ["gANYAQAAAGF6Lg==", undefined],
    ["gANYAQAAAGEueC4=", undefined],
    ["12", undefined],
    ["[]", undefined],
    ["null", undefined],
    [`{"__value__": 1}`, undefined],
    [`{"value": "http://a"}`, undefined],
    ["!!!", undefined],
    ["gAN9", undefined],
    ["gANY////fy4=", undefined],
    ["gANYBQ==", undefined],
  ];
  for (const [stored, text] of cases) {
    const expected = text === undefined ? { kind: "unreadable" } : { kind: "text", text };
    expect({ stored, ...readStoredValue(Buffer.from(stored)) }).toEqual({ stored, ...expected });
  }
});

test.each([
  "mysql_clear_password",
  "dialog",
  "mysql_old_password",
  "sha256_password",
  "caching_sha2_password",
  "mysql_native_password",
])("a program on the port gets neither the password in clear nor a file: asks by %s", async (plugin) => {
  const file = join(folder, "of-ours");
  fs.writeFileSync(file, "a file of ours");
  const rogue = await startRogueDatabase(plugin, file);
  try {
    const secret = "the-password-in-clear";
    const response = await readOverrides(access({ port: rogue.port, password: secret, timeoutMs: 5_000 }));
    expect(response.looked).toBe(false);
    const received = rogue.received().toString("latin1");
    expect(received.length).toBeGreaterThan(30);
    expect(received).not.toContain(secret);
    expect(received).not.toContain("a file of ours");
    if (/clear|dialog|sha/.test(plugin))
      expect(response).toMatchObject({ why: expect.stringMatching(/reveal it to any process/) });
  } finally {
    await rogue.stop();
  }
});

test("a program on the port that responds without end is not listened to for long", async () => {
  const rogue = await startRogueDatabase(undefined);
  const began = performance.now();
  try {
    expect(await readOverrides(access({ port: rogue.port }))).toEqual({
      looked: false,
      why: "the response is too long",
    });
    expect(performance.now() - began).toBeLessThan(10_000);
  } finally {
    await rogue.stop();
  }
});

test("the password is in no argument, variable or file while the client runs", async () => {
  const seen = join(folder, "seen");
  const client = join(folder, "bin");
  fs.mkdirSync(client);
  fs.writeFileSync(
    join(client, "mariadb"),
    `#!/bin/sh\n{ echo "$@"; env; ls -l /tmp "${tmpdir()}"; stat -Lc %a/%h /dev/fd/3; } > ${seen}\nexec /usr/bin/mariadb "$@"\n`,
    { mode: 0o755 },
  );
  const path = process.env["PATH"];
  process.env["PATH"] = `${client}:${path}`;
  process.env["PORTICO_DATABASE_PASSWORD"] = PASSWORD;
  try {
    expect(await readOverrides(access())).toMatchObject({ looked: true });
  } finally {
    process.env["PATH"] = path;
    delete process.env["PORTICO_DATABASE_PASSWORD"];
  }
  const text = fs.readFileSync(seen, "utf8");
  expect(text).not.toContain(PASSWORD);
  expect(text).toContain("--defaults-extra-file=/dev/fd/3 ");
  // A file that only its owner may read, and that has no name left.
  expect(text).toMatch(/^600\/0$/m);
});

describe("portico check --live", () => {
  async function check(
    env: Readonly<Record<string, string>>,
    ...args: string[]
  ): Promise<{ code: number; out: string; err: string }> {
    let [out, err] = ["", ""];
    const before = { ...process.env };
    Object.assign(process.env, env);
    try {
      const output = { out: (t: string) => void (out += t), err: (t: string) => void (err += t) };
      const code = await run(
        ["check", "--live", "--root", folder, ...args, "--connect", "127.0.0.1", "--port-offset", "1"],
        output,
      );
      expect(out + err).not.toContain(PASSWORD);
      return { code, out, err };
    } finally {
      for (const key of Object.keys(env)) delete process.env[key];
      Object.assign(process.env, before);
    }
  }
  beforeAll(() => {
    fs.mkdirSync(join(folder, "etc/portico"), { recursive: true });
    fs.writeFileSync(
      join(folder, "etc/portico/portico.json"),
      JSON.stringify(siteConfig({ mode: "tls", host: "files.example.org" })),
    );
  });
  const secret = { PORTICO_DATABASE_PASSWORD: PASSWORD };
  const named = (): string => `reader@127.0.0.1:${database.port}/sync`;

  test("says that it did not query the database, and why", async () => {
    expect(await check({})).toMatchObject({
      err: expect.stringContaining(
        "settings in the application's database were not checked: neither --database nor the deployment names a database",
      ),
    });
    expect(await check({}, "--database", named())).toMatchObject({
      err: expect.stringContaining(
        "no credentials: set PORTICO_DATABASE_PASSWORD or give --database-option-file",
      ),
    });
    expect(await check({}, "--database", "nonsense")).toMatchObject({
      code: 2,
      err: expect.stringContaining("Give USER@HOST:PORT/NAME"),
    });
  });

  test("overrides: compared with the deployment's values", async () => {
    expect((await check(secret, "--database", named())).err).toContain(
      "the deployment has no application settings to compare with",
    );
    const config = "/etc/portico/portico.json";
    const deployment = {
      version: 1,
      config,
      files: [{ path: config, mode: "0644", sha256: "0".repeat(64), role: "config" }],
      services: { proxy: { service: "portico.service", socket: "portico.socket" } },
      database: { host: "127.0.0.1", port: database.port, name: "sync", user: "reader" },
      rows: FILE_SYNC_ROWS,
      settings: { files: wantedFiles() },
    };
    fs.writeFileSync(join(folder, "etc/portico/deployment.json"), JSON.stringify(deployment));
    store({ SERVICE_URL: "http://old/sync", FILE_SERVER_ROOT: "https://files.example.org/synchttp" });
    const { out, code, err } = await check(secret, "--database", named());
    expect(code).toBe(1);
    expect(err).not.toContain("did not look");
    expect(out).toContain(
      `FAIL  stored SERVICE_URL: database ${named()} | expected nothing, or https://files.example.org/sync | seen http://old/sync | cause: a value stored in the application's database takes priority`,
    );
    expect(out).toContain("PASS  stored FILE_SERVER_ROOT: ");

    const optionFile = join(folder, "client.cnf");
    fs.writeFileSync(optionFile, `[client]\npassword="${PASSWORD.replace(/["\\]/g, "\\$&")}"\n`, {
      mode: 0o600,
    });
    store({ SERVICE_URL: "https://files.example.org/sync/" });
    const deployed = await check({}, "--database-option-file", optionFile, "--json");
    expect(JSON.parse(deployed.out)).toMatchObject({
      storedSettings: {
        looked: true,
        rows: [
          { name: "stored SERVICE_URL", pass: true, seen: "https://files.example.org/sync/" },
          { name: "stored FILE_SERVER_ROOT", pass: true, seen: "nothing" },
        ],
      },
    });
  });
});
