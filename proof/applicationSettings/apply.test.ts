import { execFile, execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { FILE_SYNC_ROWS } from "../../src/applications/index.js";
import { temporaryBeside } from "../../src/host/asOwner/ownerFile.js";
import { run } from "../../src/cli/program.js";
import type { DeploymentInput, SettingsFile } from "../../src/model/index.js";
import { HIDDEN } from "../../src/host/applicationSettings/diff.js";
import { readFound, replaceFiles } from "../../src/host/applicationSettings/files.js";
import { applyEdits, planSettings, revertChanges } from "../../src/host/applicationSettings/index.js";
import { evaluate, wantedFiles } from "./oracle.js";

/** `portico settings` on the files of a host below a folder, as root. */

const SECRET = "s3cr3t-key-of-the-application";
const PYTHON = `# -*- coding: utf-8 -*-\nSECRET_KEY = "${SECRET}"\nSITE_ROOT = '/'  # where\n\nDATABASES = {'default': {'PASSWORD': 'geheim'}}\n`;
const DAEMON = "[General]\r\nSERVICE_URL = http://old/sync\r\n";
const SERVER = "[fileserver]\nport=8082\n\n[database]\npassword = geheim\n";
const OWNER = 65_534;
const SHADOWED = (): string =>
  `note: ${at(FILES.webApplication)}:3: SITE_ROOT is set here as well; the lines of Portico further down have priority\n`;

const FILES = {
  networkDaemon: "/opt/sync/conf/daemon.conf",
  webApplication: "/opt/sync/conf/settings.py",
  fileServer: "/opt/sync/conf/server.conf",
};

let root: string;
beforeEach(() => {
  root = fs.mkdtempSync(join(tmpdir(), "portico settings "));
  for (const folder of ["etc/portico", "opt/sync/conf"])
    fs.mkdirSync(join(root, folder), { recursive: true });
  write(FILES.networkDaemon, DAEMON, 0o644);
  write(FILES.webApplication, PYTHON, 0o640);
  write(FILES.fileServer, SERVER, 0o600);
  deploy();
});
afterEach(() => fs.rmSync(root, { recursive: true, force: true }));

const at = (file: string): string => join(root, file);
const text = (file: string): string => fs.readFileSync(at(file), "utf8");
const conf = (): string[] => fs.readdirSync(at("/opt/sync/conf")).sort();
const ORIGINALS = ["daemon.conf", "server.conf", "settings.py"];

function write(file: string, content: string | Buffer, mode: number): void {
  fs.writeFileSync(at(file), content);
  fs.chownSync(at(file), OWNER, OWNER);
  fs.chmodSync(at(file), mode);
}

function deploy(files: typeof FILES | null = FILES, more: readonly SettingsFile[] = []): void {
  const config = "/etc/portico/portico.json";
  const deployment: DeploymentInput = {
    version: 1,
    config,
    files: [{ path: config, mode: "0644", sha256: "0".repeat(64), role: "config" }],
    services: { proxy: { service: "portico.service", socket: "portico.socket" } },
    rows: FILE_SYNC_ROWS,
    ...(files === null ? {} : { settings: { files: [...wantedFiles(files), ...more] } }),
  };
  fs.writeFileSync(at("/etc/portico/deployment.json"), JSON.stringify(deployment));
}

async function portico(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ["", ""];
  const output = { out: (t: string) => void (out += t), err: (t: string) => void (err += t) };
  const code = await run(["settings", ...args, "--root", root], output);
  expect(out + err).not.toMatch(/s3cr3t|geheim/);
  return { code, out, err };
}

test("apply edits all three files; owner, mode and everything else stay; a second run changes nothing", async () => {
  const first = await portico("apply");
  expect(first).toMatchObject({ code: 0, err: SHADOWED() });
  expect(first.out.replaceAll(root, "")).toMatchInlineSnapshot(`
"/opt/sync/conf/daemon.conf: changed
  General.SERVICE_URL: https://files.example.org/sync (was http://old/sync)
/opt/sync/conf/settings.py: changed
  FILE_SERVER_ROOT: https://files.example.org/synchttp (new)
  SERVE_STATIC: False (new)
  MEDIA_URL: /syncmedia/ (new)
  SITE_ROOT: /sync/ (was /)
  LOGIN_URL: /sync/accounts/login/ (new)
  COMPRESS_URL: /syncmedia/ (new)
  STATIC_URL: /syncmedia/assets/ (new)
  ENABLE_SETTINGS_VIA_WEB: False (new)
  CSRF_TRUSTED_ORIGINS: https://files.example.org (new)
/opt/sync/conf/server.conf: changed
  fileserver.host: 127.0.0.1 (new)
"
`);
  expect(text(FILES.networkDaemon)).toBe(DAEMON.replace("http://old", "https://files.example.org"));
  expect(text(FILES.fileServer)).toBe(SERVER.replace("8082\n", "8082\nhost = 127.0.0.1\n"));
  const python = text(FILES.webApplication);
  const [above, , below] = python.split(/^# (?:BEGIN|END) Portico.*\n/m);
  expect([above, below]).toEqual(PYTHON.split(/(?=\nDATABASES)/));
  expect(evaluate([python])).toEqual([
    { names: expect.objectContaining({ SECRET_KEY: SECRET, SITE_ROOT: "/sync/", SERVE_STATIC: false }) },
  ]);

  // The file holds a secret key: no copy of it stays.
  expect(conf()).toEqual(ORIGINALS);
  for (const [name, mode] of [
    ["daemon.conf", 0o644],
    ["server.conf", 0o600],
    ["settings.py", 0o640],
  ] as const) {
    const stats = fs.statSync(at(`/opt/sync/conf/${name}`));
    expect([name, stats.uid, stats.gid, stats.mode & 0o7777]).toEqual([name, OWNER, OWNER, mode]);
  }

  const before = fs.statSync(at(FILES.webApplication));
  expect(await portico("apply")).toEqual({ code: 0, out: "nothing to change\n", err: "" });
  expect(conf()).toEqual(ORIGINALS);
  expect(fs.statSync(at(FILES.webApplication))).toMatchObject({ ino: before.ino, mtimeMs: before.mtimeMs });

  write(FILES.networkDaemon, DAEMON, 0o644);
  expect(await portico("apply")).toMatchObject({ code: 0 });
  expect(fs.statSync(at(FILES.webApplication))).toMatchObject({ ino: before.ino, mtimeMs: before.mtimeMs });
});

test("an undo restores bytes that the edit has replaced, and says what was changed since", async () => {
  const original = Buffer.from("[General]\nSERVICE_URL = http://\xfc\n", "latin1");
  write(FILES.networkDaemon, original, 0o644);
  const files = { ...FILES, fileServer: FILES.networkDaemon };
  const plan = await planSettings({ files: wantedFiles(files) }, root);
  expect(await applyEdits(plan)).toEqual({ ok: true, value: null });
  const changes = plan.files
    .filter(({ source }) => source.kind === "ini")
    .flatMap(({ changes }) => changes.map((change) => ({ ...change, kind: "ini" as const })));
  const path = at(FILES.networkDaemon);
  const undone = async () => {
    const found = await readFound(path);
    return found.ok ? revertChanges(found.value, changes) : undefined;
  };
  expect(await undone()).toEqual({ content: original, problems: [] });
  const edited = "[General]\nSERVICE_URL = http://mine\n[fileserver]\nhost = 0.0.0.0\n";
  write(FILES.networkDaemon, edited, 0o644);
  const stays = (item: string, line: number, was: string) =>
    expect.objectContaining({
      code: "activation.changed-since",
      path: `${path}:${line}`,
      message: `${item} was changed by another program or person, so the new value stays; before the first deployment ${was}`,
    });
  expect(await undone()).toEqual({
    content: Buffer.from(edited),
    problems: [
      stays("fileserver.host", 4, "the line was not there"),
      stays("General.SERVICE_URL", 2, "it was http://ü"),
    ],
  });
});

test("files that could not be restored are reported together with the reason", async () => {
  const [daemon, server] = await Promise.all(
    [FILES.networkDaemon, FILES.fileServer].map((f) => readFound(at(f))),
  );
  if (!daemon!.ok || !server!.ok) throw new Error("not read");
  const changed = (file: string) =>
    expect.objectContaining({ code: "settings.changed-meanwhile", path: at(file) });
  const outcome = await replaceFiles([
    { file: daemon!.value, content: Buffer.from("new") },
    {
      file: server!.value,
      // Asked for when the first file was replaced: both are changed by somebody else by then.
      get content() {
        fs.appendFileSync(at(FILES.networkDaemon), " and more");
        fs.appendFileSync(at(FILES.fileServer), "# more");
        return Buffer.from("new");
      },
    },
  ]);
  expect(outcome).toEqual({ ok: false, problems: [changed(FILES.fileServer), changed(FILES.networkDaemon)] });
  expect(text(FILES.networkDaemon)).toBe("new and more");
});

test("--dry-run shows a unified diff that patch(1) would take, except for hidden lines, and writes nothing", async () => {
  const { code, out } = await portico("apply", "--dry-run");
  expect(code).toBe(0);
  expect(out).toContain(
    `--- ${at(FILES.networkDaemon)}\n+++ ${at(FILES.networkDaemon)}\n@@ -1,2 +1,2 @@\n [General]\n-SERVICE_URL = http://old/sync\n+SERVICE_URL = https://files.example.org/sync\n`,
  );
  expect(out).toMatch(/\n SITE_ROOT = '\/'  # where\n\+# BEGIN Portico .*\n[^]*\n\+SITE_ROOT = '\/sync\/'\n/);
  expect(out).toContain(" (not shown: may hold a secret)\n");
  expect(conf()).toEqual(ORIGINALS);
  expect(text(FILES.webApplication)).toBe(PYTHON);
});

test("one file that cannot be edited keeps all of them as they are", async () => {
  write(FILES.webApplication, `${PYTHON}if True:\n    MEDIA_URL = '/'\n`, 0o640);
  const { code, out } = await portico("apply");
  expect({ code, out }).toEqual({
    code: 1,
    out: expect.stringMatching(
      /settings\.py:7: MEDIA_URL: the line may set another value after the lines of Portico \[settings\.refused\][^]*1 problem; nothing was changed\n$/,
    ),
  });
  expect(conf()).toEqual(ORIGINALS);
  expect(text(FILES.networkDaemon)).toBe(DAEMON);

  const shown = await portico("show");
  expect(shown).toMatchObject({ code: 1, err: expect.stringContaining("settings.refused") });
  expect(shown.out).toContain("refused    MEDIA_URL                cannot be determined, wanted /syncmedia/");
});

test("show prints every item, its value and its line", async () => {
  const before = await portico("show");
  expect([before.code, before.err]).toEqual([1, ""]);
  expect(before.out.replaceAll(root, "")).toMatchInlineSnapshot(`
"different  General.SERVICE_URL      http://old/sync, wanted https://files.example.org/sync  (/opt/sync/conf/daemon.conf:2)
missing    FILE_SERVER_ROOT         not set, wanted https://files.example.org/synchttp  (/opt/sync/conf/settings.py)
missing    SERVE_STATIC             not set, wanted False  (/opt/sync/conf/settings.py)
missing    MEDIA_URL                not set, wanted /syncmedia/  (/opt/sync/conf/settings.py)
different  SITE_ROOT                /, wanted /sync/  (/opt/sync/conf/settings.py:3)
missing    LOGIN_URL                not set, wanted /sync/accounts/login/  (/opt/sync/conf/settings.py)
missing    COMPRESS_URL             not set, wanted /syncmedia/  (/opt/sync/conf/settings.py)
missing    STATIC_URL               not set, wanted /syncmedia/assets/  (/opt/sync/conf/settings.py)
missing    ENABLE_SETTINGS_VIA_WEB  not set, wanted False  (/opt/sync/conf/settings.py)
missing    CSRF_TRUSTED_ORIGINS     not set, wanted https://files.example.org  (/opt/sync/conf/settings.py)
missing    fileserver.host          not set, wanted 127.0.0.1  (/opt/sync/conf/server.conf)
same       fileserver.port          8082  (/opt/sync/conf/server.conf:2)
"
`);
  await portico("apply");
  const after = await portico("show");
  expect(after.code).toBe(0);
  expect(after.out.match(/^same /gm)).toHaveLength(12);
});

test("--json says the same for machines", async () => {
  const shown = JSON.parse((await portico("show", "--json")).out.replaceAll(root, ""));
  expect(shown.files[2]).toMatchInlineSnapshot(`
{
  "changed": true,
  "items": [
    {
      "item": "fileserver.host",
      "state": "missing",
      "wanted": "127.0.0.1",
    },
    {
      "found": "8082",
      "item": "fileserver.port",
      "line": 2,
      "state": "same",
      "wanted": "8082",
    },
  ],
  "kind": "ini",
  "name": "file-server",
  "notes": [],
  "path": "/opt/sync/conf/server.conf",
}
`);
  expect(shown).toMatchObject({
    ok: false,
    problems: [],
    files: [
      { name: "network-daemon", kind: "ini", changed: true },
      {
        items: expect.arrayContaining([
          { item: "SITE_ROOT", wanted: "/sync/", found: "/", line: 3, state: "different" },
        ]),
      },
      {},
    ],
  });
  const dry = JSON.parse((await portico("apply", "--dry-run", "--json")).out);
  expect(dry).toMatchObject({
    ok: true,
    dryRun: true,
    files: [{ diff: expect.stringMatching(/^--- /) }, {}, {}],
  });
  const done = JSON.parse((await portico("apply", "--json")).out);
  expect(done).toEqual({
    ok: true,
    dryRun: false,
    files: dry.files,
    problems: [],
  });
  fs.rmSync(at(FILES.fileServer));
  expect(JSON.parse((await portico("apply", "--json")).out)).toMatchObject({
    ok: false,
    problems: [{ code: "files.unreadable", path: at(FILES.fileServer) }],
  });
});

test("files named by options, deployments without settings", async () => {
  const other = at("/other settings.py");
  fs.writeFileSync(other, "A = 1\n");
  expect(await portico("apply", "--file", `web-application=${other}`)).toMatchObject({ code: 0 });
  expect(fs.readFileSync(other, "utf8")).toMatch(/^A = 1\n# BEGIN Portico .*\nFILE_SERVER_ROOT = /);
  expect(text(FILES.webApplication)).toBe(PYTHON);
  expect(await portico("apply", "--file", `web=${other}`)).toMatchObject({
    code: 1,
    out: expect.stringMatching(
      /^--file: is not a settings file .* \[config\.unknown-reference\]\n +received: "web"\n +allowed: +network-daemon, web-application, file-server\n/,
    ),
  });
  deploy(null);
  expect(await portico("apply")).toMatchObject({
    code: 1,
    out: expect.stringContaining("[settings.not-deployed]"),
  });
  fs.rmSync(at("/etc/portico/deployment.json"));
  expect(await portico("show")).toMatchObject({
    code: 1,
    err: expect.stringContaining("[files.unreadable]"),
  });
});

test("a symbolic link leads to the file that is edited; other hard links are named", async () => {
  fs.renameSync(at(FILES.webApplication), at("/opt/real.py"));
  fs.symlinkSync("../../real.py", at(FILES.webApplication));
  fs.linkSync(at(FILES.fileServer), at("/opt/server-link"));
  const { code, err } = await portico("apply");
  expect({ code, err }).toEqual({
    code: 0,
    err: `${SHADOWED()}note: ${at(FILES.fileServer)}: other hard links to the file keep the old content\n`,
  });
  expect(fs.readlinkSync(at(FILES.webApplication))).toBe("../../real.py");
  expect(text("/opt/real.py")).toContain("MEDIA_URL = '/syncmedia/'");
  expect(fs.readdirSync(at("/opt")).sort()).toEqual(["real.py", "server-link", "sync"]);
  expect(text("/opt/server-link")).toBe(SERVER);
});

test("control characters are printed as codes, and a value stays on its line", async () => {
  const evil = "/a\x1b[2K\x9b2J\x85same  SITE_ROOT\u202e";
  write(FILES.webApplication, PYTHON.replace("'/'", `'${evil}'`), 0o640);
  write(FILES.networkDaemon, "[General]\nSERVICE_URL = \x1b]0;owned\x07\r\n", 0o644);
  for (const args of [["show"], ["apply", "--dry-run"], ["show", "--json"], ["apply"]]) {
    const { out, err } = await portico(...args);

    expect(out + err).not.toMatch(/[\0-\x08\x0b-\x1f\x7f-\x9f\u202e]/);
    if (args[1] === "--json") expect(JSON.parse(out)).toMatchObject({ ok: false });
    if (args.length === 1) expect(out).toContain("/a\\u001b[2K\\u009b2J\\u0085same  SITE_ROOT\\u202e");
  }
});

test("a file whose name is too long", async () => {
  const files = { ...FILES, fileServer: `/${"x".repeat(300)}` };
  const plan = await planSettings({ files: wantedFiles(files) }, root);
  expect(plan.problems).toEqual([
    expect.objectContaining({
      code: "files.unreadable",
      path: at(files.fileServer),
      message: "cannot be read (36: Name too long)",
    }),
  ]);
  expect(plan.files.map(({ source }) => source.name)).toEqual(["network-daemon", "web-application"]);
});

test.each<[what: string, files: Partial<typeof FILES>, at: string, message: string]>([
  [
    "a module for an INI file",
    { networkDaemon: FILES.webApplication },
    "/opt/sync/conf/settings.py",
    "an INI file, but has a name that ends in .py, as a Python module does",
  ],
  [
    "a module of another name",
    { fileServer: "/opt/module" },
    "/opt/module",
    "an INI file, but begins outside a section, as a Python module does",
  ],
  [
    "an INI file for a module",
    { webApplication: FILES.fileServer },
    "/opt/sync/conf/server.conf",
    "a Python module, but begins with a section, as an INI file does",
  ],
  [
    "variables for an INI file",
    { fileServer: "/opt/variables" },
    "/opt/variables",
    "an INI file, but begins outside a section, as a file of environment variables does",
  ],
  [
    "variables for a module",
    { webApplication: "/opt/variables" },
    "/opt/variables",
    "a Python module, but has values that are not expressions, as a file of environment variables does",
  ],
])("%s is not edited, nor is any other file", async (_what, changed, named, message) => {
  write("/opt/module", PYTHON, 0o640);
  write("/opt/variables", "# all\nA='b'\nB=https://h/\n", 0o640);
  deploy({ ...FILES, ...changed });
  const { code, out } = await portico("apply");
  expect({ code, out: out.replaceAll(root, "") }).toEqual({
    code: 1,
    out: expect.stringContaining(
      `${named}: is listed as ${message} [settings.wrong-kind]\n    fix:      Use the path of `,
    ),
  });
  expect([text(FILES.networkDaemon), text(FILES.webApplication), text(FILES.fileServer)]).toEqual([
    DAEMON,
    PYTHON,
    SERVER,
  ]);
});

const NO_EXPRESSIONS = "has values that are not expressions, as a file of environment variables does";
const STATEMENT = "begins with a statement, as a Python module does";
const NO_SECTION = "begins outside a section, as a";

test.each<[listed: SettingsFile["kind"], message: string | undefined, texts: string[]]>([
  [
    "python",
    NO_EXPRESSIONS,
    ["A='b'\nB=", "A=1\nB= ", "B=/opt", "B=https://h", "export B='b'", "export\tB=1"],
  ],
  ["python", undefined, ["A='b'", "A='/opt'", "A=''", "export = 1", "A = 1\nB='https://h'"]],
  // One line that no file of variables has is enough.
  ["python", undefined, ["A = 1\nT='''\nB=/opt\n'''", "T='''\nB=\nexport C\n'''", "T='''\nexport C\n'''"]],
  ["env", STATEMENT, ["import a", "from a import b", "def f(): pass", "class A: pass", "if a: pass", "try:"]],
  ["env", STATEMENT, ["with a:", "@a", '"a"', "'a'", "A = 1", "A\t= 1"]],
  ["env", "begins with a section, as an INI file does", ["[a]\nA=1"]],
  ["env", undefined, ["A=", "A=1", "export A=1", "imported=1", "tryA=1"]],
  ["ini", `${NO_SECTION} file of environment variables does`, ["A=", "A=1", "export A=1", "export\tA=1"]],
  ["ini", `${NO_SECTION} Python module does`, ["import a", "A = 1", "A= 1"]],
  ["ini", undefined, ["[a]\nA=1", "# A=1\n[a]"]],
])("a file that is listed as %s is refused as %s: %j", async (kind, message, texts) => {
  const words = { python: "a Python module", env: "a file of environment variables", ini: "an INI file" }[
    kind
  ];
  const item = { name: "ITEM", value: "b" };
  const items = [kind === "ini" ? { ...item, section: "a" } : item];
  const file = { name: "file", path: "/opt/file", kind, items } as SettingsFile;
  for (const text of texts) {
    write("/opt/file", `# all\n${text}\n`, 0o640);
    const { problems } = await planSettings({ files: [file] }, root);
    const refused = message === undefined ? [] : [`is listed as ${words}, but ${message}`];
    expect([text, ...problems.map(({ message }) => message)]).toEqual([text, ...refused]);
  }
});

test("a file of environment variables", async () => {
  const variables = {
    name: "stack",
    path: "/opt/.env",
    kind: "env" as const,
    items: [{ name: "HOST", value: "h" }],
  };
  write(variables.path, "A=1\nDB_PASSWORD='geheim\ngeheim'\n# of old\nHOST=old\nMORE=x # y\n", 0o600);
  deploy(FILES, [variables]);
  const { out } = await portico("apply", "--dry-run");
  expect(out).toContain(` ${HIDDEN}\n ${HIDDEN}\n # of old\n-HOST=old\n+HOST=h\n MORE=x # y\n`);
  expect(await portico("apply")).toMatchObject({
    code: 0,
    out: expect.stringContaining("HOST: h (was old)"),
  });
  expect(text(variables.path)).toBe("A=1\nDB_PASSWORD='geheim\ngeheim'\n# of old\nHOST=h\nMORE=x # y\n");
  deploy(FILES, [
    { ...variables, path: FILES.webApplication },
    { ...variables, name: "b", path: "/opt/module" },
  ]);
  write("/opt/module", "import os\n", 0o640);
  const refused = (await portico("apply")).out;
  for (const how of ["has a name that ends in .py", "begins with a statement"])
    expect(refused).toContain(
      `is listed as a file of environment variables, but ${how}, as a Python module does`,
    );
});

test("two names of one file", async () => {
  const files = { ...FILES, fileServer: FILES.networkDaemon };
  deploy(files);
  expect(await portico("apply")).toMatchObject({ code: 0 });
  expect(text(FILES.networkDaemon)).toBe(
    "[General]\r\nSERVICE_URL = https://files.example.org/sync\r\n\r\n[fileserver]\r\nhost = 127.0.0.1\r\nport = 8082\r\n",
  );
  expect(await portico("apply")).toMatchObject({ out: "nothing to change\n" });
});

test("bytes that are not UTF-8 are kept", async () => {
  const source = Buffer.from(`# coding: latin-1\nA = '\xfc\xff'\n${PYTHON.split("\n")[1]}\n`, "latin1");
  write(FILES.webApplication, source, 0o640);
  expect(await portico("apply")).toMatchObject({ code: 0 });
  expect(fs.readFileSync(at(FILES.webApplication)).subarray(0, source.length)).toEqual(source);
  expect(evaluate([fs.readFileSync(at(FILES.webApplication))])).toEqual([
    { names: expect.objectContaining({ A: "üÿ", SITE_ROOT: "/sync/" }) },
  ]);
});

test("what a killed run has left is removed by the next", async () => {
  const left = temporaryBeside(at(FILES.webApplication));
  fs.writeFileSync(left, SECRET);
  expect(await portico("apply")).toMatchObject({ code: 0 });
  expect(conf()).toEqual(ORIGINALS);
});

test("a file that changes between plan and edit is left alone, and so are the others", async () => {
  const plan = await planSettings({ files: wantedFiles(FILES) }, root);
  write(FILES.fileServer, `${SERVER}# by hand\n`, 0o600);
  const applied = await applyEdits(plan);
  expect(applied).toMatchObject({
    ok: false,
    problems: [{ code: "settings.changed-meanwhile", path: at(FILES.fileServer) }],
  });
  expect([text(FILES.networkDaemon), text(FILES.webApplication)]).toEqual([DAEMON, PYTHON]);
  expect(text(FILES.fileServer)).toBe(`${SERVER}# by hand\n`);
  expect(conf()).toEqual(ORIGINALS);
});

test("a directory that cannot be written to is reported, and nothing changes", async () => {
  execFileSync("mount", ["--bind", at("/opt/sync/conf"), at("/opt/sync/conf")]);
  try {
    execFileSync("mount", ["-o", "remount,ro,bind", at("/opt/sync/conf")]);
    expect(await portico("apply")).toMatchObject({
      code: 1,
      out: expect.stringMatching(
        /cannot be written \(30: Read-only file system\) \[settings\.write-failed\]/,
      ),
    });
  } finally {
    execFileSync("umount", [at("/opt/sync/conf")]);
  }
  expect(conf()).toEqual(ORIGINALS);
});

test("a user other than the owner of the files is refused, and nothing changes", async () => {
  for (const folder of ["", "opt", "opt/sync", "opt/sync/conf"]) fs.chmodSync(at(folder), 0o777);
  for (const file of Object.values(FILES)) fs.chmodSync(at(file), 0o644);
  process.seteuid!(OWNER - 1);
  try {
    const { code, out } = await portico("apply");
    expect({ code, out }).toEqual({
      code: 1,
      out: expect.stringMatching(/belongs to user 65534, .* \[files\.foreign-owner\]\n.*fix: .*chown/),
    });
  } finally {
    process.seteuid!(0);
  }
  expect(conf()).toEqual(ORIGINALS);
  expect(text(FILES.networkDaemon)).toBe(DAEMON);
});

test("where nothing has to change, it does not matter whose the files are", async () => {
  expect(await portico("apply")).toMatchObject({ code: 0 });
  for (const folder of ["", "opt", "opt/sync", "opt/sync/conf"]) fs.chmodSync(at(folder), 0o777);
  for (const file of Object.values(FILES)) fs.chmodSync(at(file), 0o644);
  process.seteuid!(OWNER - 1);
  try {
    expect(await portico("apply")).toMatchObject({ code: 0, out: "nothing to change\n" });
  } finally {
    process.seteuid!(0);
  }
});

test("a reader finds the old file or the new one, never a part", async () => {
  const path = at(FILES.webApplication);
  const reader = spawn("python3", [
    "-c",
    `
import sys
seen = set()
while True:
    with open(sys.argv[1], "rb") as f: data = f.read()
    if data not in seen:
        seen.add(data); print(len(data), flush=True)
`,
    path,
  ]);
  const sizes: number[] = [];
  reader.stdout.on("data", (chunk: Buffer) => sizes.push(...chunk.toString().trim().split("\n").map(Number)));
  try {
    for (let i = 0; i < 5 || new Set(sizes.filter((size) => size !== 0)).size < 2; i++) {
      write(FILES.webApplication, PYTHON, 0o640);
      await promisify(setTimeout)(10);
      expect(await portico("apply")).toMatchObject({ code: 0 });
      await promisify(setTimeout)(10);
    }
  } finally {
    reader.kill("SIGKILL");
  }
  // Sizes of the original as the test writes it (emptied, then filled) and of the whole result; nothing else.
  expect(sizes.filter((size) => size !== 0).sort((a, b) => a - b)).toEqual([
    PYTHON.length,
    fs.statSync(path).size,
  ]);
});

test("access lists and labels are kept", async () => {
  const attribute = (file: string, write: boolean): Promise<{ stdout: string }> =>
    promisify(execFile)("python3", [
      "-c",
      write
        ? "import os,sys; os.setxattr(sys.argv[1], 'trusted.portico', b'label')"
        : "import os,sys; print(os.listxattr(sys.argv[1]))",
      file,
    ]);
  await attribute(at(FILES.webApplication), true);
  await portico("apply");
  for (const name of conf().filter((n) => n.startsWith("settings.py"))) {
    expect({ name, ...(await attribute(at(`/opt/sync/conf/${name}`), false)) }).toMatchObject({
      name,
      stdout: "['trusted.portico']\n",
    });
  }
});
