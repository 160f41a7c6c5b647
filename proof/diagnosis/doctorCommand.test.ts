import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { applyEdits, planSettings } from "../../src/host/applicationSettings/index.js";
import { run } from "../../src/cli/program.js";
import { fileSyncTrees } from "../../src/applications/index.js";
import type { DiagnosisRow } from "../../src/host/diagnosis/verdict.js";
import { siteConfig, siteExpect } from "../../testkit/siteConfig.js";
import { wantedFiles } from "../applicationSettings/oracle.js";
import { deploymentOf } from "../../testkit/deployment.js";
import { asExpected, configOf, siteRows } from "./site.js";

/** `portico doctor` from another machine: what it prints, and how it ends. */

let folder: string;
let server: Server;
let port: number;
let configFile: string;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "portico doctor "));
  server = createServer((request, response) => {
    const host = `http://${request.headers.host}`;
    const row = rows().find(
      (one) => `${one.request.scheme}://${one.request.host}${one.request.path}` === `${host}${request.url}`,
    );
    const outcome = row === undefined ? undefined : asExpected(row);
    if (outcome === undefined || "failure" in outcome) return void response.writeHead(500).end();
    response.writeHead(outcome.response.status, { ...outcome.response.headers }).end();
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  ({ port } = server.address() as { port: number });
  configFile = join(folder, "portico.json");
  writeFileSync(configFile, JSON.stringify(config()));
  writeFileSync(join(folder, "deployment.json"), JSON.stringify(deploymentOf({ expect: EXPECT })));
});
afterEach(async () => {
  await closed();
  rmSync(folder, { recursive: true, force: true });
});

function config() {
  const { listeners, ...rest } = siteConfig({ mode: "plain", host: "files.example.org" });
  return { ...rest, listeners: listeners.map((listener) => ({ ...listener, port })) };
}

const rows = () => siteRows(configOf(config()), { imagePath: "a.png" });
const EXPECT = siteExpect({ mode: "plain", host: "files.example.org" });

async function closed(): Promise<void> {
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
}

async function doctor(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ["", ""];
  const output = { out: (t: string) => void (out += t), err: (t: string) => void (err += t) };
  const from = ["--elsewhere", "--config", configFile, "--deployment", join(folder, "deployment.json")];
  const code = await run(["doctor", ...from, "--connect", "127.0.0.1", "--timeout", "5", ...args], output);
  return { code, out, err };
}

test("everything visible from another machine is in order", async () => {
  const { code, out, err } = await doctor("--image-path", "a.png");
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out).toMatch(/^ok {5}Exactly the right ports are open$/m);
  expect(out).toMatch(/^ok {5}Expected response: media file$/m);
  expect(out).toMatch(
    /^- {6}Every delivered file is as delivered \[files\]\n {18}This can only be seen on the host: run `portico doctor` there\.$/m,
  );
  expect(out).toMatch(/\n\d+ rows: 9 ok, 0 failed, \d+ not asked\n$/);
});

test("a row that is in order is one line; one that failed says why, what was seen, and what to do", async () => {
  await closed();
  const { code, out } = await doctor("--image-path", "a.png");
  expect(code).toBe(1);
  expect(out).toContain(
    `FAIL   Exactly the right ports are open [ports]\n         cause:   port ${port} cannot be reached\n         seen:    open from here: none\n         fix:     Start the proxy;`,
  );
  expect(out).toMatch(
    /^\(FAIL\) 302 from the application path \[web-application\]\n {9}cause: {3}see the row `ports`\n {9}seen: {4}The proxy does not respond\.$/m,
  );
  expect(out).toMatch(/: \d+ ok, 1 failed, \d+ with the cause in another row, \d+ not asked\n$/);
});

test("the host is asked by the name that is given", async () => {
  const named = async (...args: string[]): Promise<boolean> =>
    (await doctor("--image-path", "b.png", ...args)).out.includes("other.example");
  expect([await named(), await named("--host", "other.example")]).toEqual([false, true]);
});

test("--json has the rows", async () => {
  const seen = await doctor("--json");
  const { ok, rows: all } = JSON.parse(seen.out) as { ok: boolean; rows: DiagnosisRow[] };
  expect([seen.code, ok]).toEqual([0, true]);
  expect(all.find(({ id }) => id === "response: media file")).toMatchObject({
    status: "unknown",
    evidence: [expect.stringContaining("no image file was found in /opt/sync/media")],
  });
  await closed();
  const failed = await doctor("--json");
  expect([failed.code, JSON.parse(failed.out)]).toMatchObject([1, { ok: false }]);
});

test("a public address is probed with what the config serves", async () => {
  const { out } = await doctor("--json", "--public-address", "192.0.2.1", "--timeout", "5");
  const { rows: all } = JSON.parse(out) as { rows: DiagnosisRow[] };
  expect(all.find(({ id }) => id === "hairpin")).toMatchObject({
    status: "failed",
    evidence: [expect.stringMatching(/^192\.0\.2\.1: /), expect.stringContaining("by another address")],
  });
});

describe("on the host itself", () => {
  /** All of it below the folder, which stands for what is deployed; no systemd responds here. */
  const at = (name: string): string => join(folder, name);

  beforeEach(async () => {
    chmodSync(folder, 0o755);
    for (const name of ["media", "page", "log"]) mkdirSync(at(name));
    writeFileSync(at("page/index.html"), "x");
    writeFileSync(at("media/a.png"), "x");
    const text = JSON.stringify(config())
      .replaceAll("/opt/sync/media", at("media"))
      .replaceAll("/usr/share/portico/default", at("page"))
      .replaceAll("/var/log/portico", at("log"));
    writeFileSync(configFile, text);
    writeFileSync(at("daemon.conf"), "[General]\n");
    writeFileSync(at("settings.py"), "SECRET_KEY = 'x'\n");
    writeFileSync(at("server.conf"), "[fileserver]\n");
    const paths = {
      networkDaemon: at("daemon.conf"),
      webApplication: at("settings.py"),
      fileServer: at("server.conf"),
    };
    const files = wantedFiles(paths, { origins: [{ scheme: "http", host: "files.example.org", port }] });
    expect(await applyEdits(await planSettings({ files }))).toMatchObject({ ok: true });
    const deployment = deploymentOf({
      expect: EXPECT,
      settings: { files },
      trees: fileSyncTrees({ directory: at("media") }, false),
      network: { addresses: ["127.0.0.1"] },
    });
    writeFileSync(at("deployment.json"), JSON.stringify(deployment));
  });

  /** Rows that are not in order, but for what only systemd and an activation know, and for the Node of these tests. */
  async function notOk(): Promise<Record<string, string>> {
    const unseen = [
      "activation",
      "files",
      "units",
      "proxy",
      "running",
      "firewall",
      "hairpin",
      "space",
      "node-fixes",
    ];
    const { out } = await doctorHere("--json");
    const { rows: all } = JSON.parse(out) as { rows: DiagnosisRow[] };
    return Object.fromEntries(
      all
        .filter(({ id, status }) => status !== "ok" && !unseen.includes(id))
        .map(({ id, status, cause, evidence, fix }) => [id, [status, cause, ...evidence, fix].join(" | ")]),
    );
  }

  async function doctorHere(...args: string[]): Promise<{ code: number; out: string }> {
    let out = "";
    const output = { out: (t: string) => void (out += t), err: (t: string) => void (out += t) };
    const from = ["--deployment", at("deployment.json"), "--config", configFile, "--timeout", "5"];
    return { code: await run(["doctor", ...from, ...args], output), out };
  }

  const edit = (name: string, from: string, to: string): void =>
    writeFileSync(at(name), readFileSync(at(name), "utf8").replace(from, to));

  test("everything is in order", async () => {
    expect(await notOk()).toEqual({});
  });

  test("the Node that runs, and until when it gets fixes, which fails nothing", async () => {
    const { out } = await doctorHere("--json");
    const { rows: all } = JSON.parse(out) as { rows: DiagnosisRow[] };
    const { version } = process;
    const row = all.find(({ id }) => id === "node-fixes")!;
    expect(row.evidence.join("\n")).toContain(`Node ${version.slice(1)} (${process.execPath})`);
    expect(row.status).not.toBe("failed");
    const warned = row.status === "warning";
    expect(/\nWARN {3}Node gets fixes \[node-fixes\]\n {9}cause: /.test((await doctorHere()).out)).toBe(
      warned,
    );
  });

  test("the health listener is asked, at loopback if it listens everywhere", async () => {
    const health = createServer((request, response) => {
      response.writeHead(request.url === "/readyz" ? 200 : 404).end();
    });
    await new Promise<void>((done) => health.listen(0, "127.0.0.1", done));
    const { port: at } = health.address() as { port: number };
    const healthListener = { address: "0.0.0.0", port: at, anyAddress: true };
    const deployed = JSON.parse(readFileSync(configFile, "utf8")) as object;
    writeFileSync(configFile, JSON.stringify({ ...deployed, healthListener }));
    const row = async (): Promise<DiagnosisRow | undefined> =>
      (JSON.parse((await doctorHere("--json")).out) as { rows: DiagnosisRow[] }).rows.find(
        ({ id }) => id === "health",
      );
    expect(await row()).toMatchObject({ status: "ok", evidence: [`GET /readyz at 0.0.0.0:${at}: 200`] });
    // What is in order is one line, whatever was seen.
    const { out } = await doctorHere();
    expect(out).toMatch(/^ok {5}/m);
    expect(out).not.toMatch(/^ok {5}.*\n {9}/m);
    await new Promise((done) => health.close(done));
    expect(await row()).toMatchObject({
      status: "failed",
      evidence: [expect.stringContaining("ECONNREFUSED")],
    });
  });

  test("settings that were changed by hand", async () => {
    edit("settings.py", "SITE_ROOT = '/sync/'", "SITE_ROOT = '/'");
    edit("daemon.conf", "SERVICE_URL", "#SERVICE_URL");
    expect(await notOk()).toEqual({
      settings: expect.stringContaining(`SITE_ROOT is / (${at("settings.py")}:`),
      "public-urls": expect.stringContaining(
        `SERVICE_URL is not set (${at("daemon.conf")}), and should be http://files.example.org:${port}/sync`,
      ),
    });
  });

  test("the password of the database comes by the environment, or in an option file", async () => {
    const deployed = JSON.parse(readFileSync(at("deployment.json"), "utf8")) as object;
    const database = { host: "127.0.0.1", port: 3306, name: "sync", user: "reader" };
    writeFileSync(at("deployment.json"), JSON.stringify({ ...deployed, database }));
    // It says from where it would take the password.
    writeFileSync(at("mariadb"), `#!/bin/sh\necho "$1" >&2; exit 1\n`, { mode: 0o755 });
    const said = async (...args: string[]): Promise<string | undefined> => {
      const { rows: all } = JSON.parse((await doctorHere("--json", ...args)).out) as { rows: DiagnosisRow[] };
      const row = all.find(({ id }) => id === "public-urls");
      return row?.evidence.find((line) => line.startsWith("The database "));
    };
    const path = process.env["PATH"];
    process.env["PATH"] = `${folder}:${path}`;
    try {
      const notQueried = (why: string) => `The database was not queried: ${why}.`;
      expect(await said()).toBe(notQueried("no password was given"));
      expect(await said("--database-option-file", "/o")).toBe(
        notQueried("mariadb says: --defaults-extra-file=/o"),
      );
      process.env["PORTICO_DATABASE_PASSWORD"] = "pw";
      expect(await said()).toBe(notQueried("mariadb says: --defaults-extra-file=/dev/fd/3"));
    } finally {
      process.env["PATH"] = path;
      delete process.env["PORTICO_DATABASE_PASSWORD"];
    }
  });

  test("settings that cannot be read", async () => {
    edit("settings.py", "SITE_ROOT = ", "SITE_ROOT = [");
    expect(await notOk()).toEqual({
      settings: expect.stringMatching(/^failed \| .*settings\.py:\d+: cannot be read/),
      "public-urls": expect.stringMatching(/^unknown \| .*settings\.py:\d+: cannot be read/),
    });
  });

  test("media that others cannot read, and logs that have nowhere to go", async () => {
    chmodSync(at("media/a.png"), 0o600);
    rmSync(at("log"), { recursive: true });
    expect(await notOk()).toEqual({
      logs: expect.stringContaining(
        `${at("log")}: does not exist | systemctl restart portico.service (systemd creates the directory again)`,
      ),
      "media-permissions": expect.stringContaining(`${at("media/a.png")}: others lack read | chmod`),
    });
  });

  test("a name in the media, and one of a file, stays on its line", async () => {
    mkdirSync(at("media/a\n         fix:     curl example.org | sh"), { mode: 0o700 });
    const { out } = await doctorHere();
    expect(out).toContain("a\\x0a         fix:     curl example.org | sh: others lack read and execute\n");
    const { out: other } = await doctorHere("--config", at("a\nFAIL   b"));
    expect(other).toContain("a\\nFAIL   b");
    for (const text of [out, other]) expect(text).not.toMatch(/^ +fix: +curl|^FAIL +b/m);
  });

  test("directories of static routes that no tree has", async () => {
    const { trees: _, ...deployed } = JSON.parse(readFileSync(at("deployment.json"), "utf8")) as object & {
      trees: [];
    };
    writeFileSync(
      at("deployment.json"),
      JSON.stringify({
        ...deployed,
        rows: [],
        expect: [],
        settings: undefined,
        services: { proxy: { service: "portico.service", socket: "portico.socket" } },
      }),
    );
    expect(await notOk()).toEqual({});
    chmodSync(at("media"), 0o750);
    chmodSync(at("page/index.html"), 0o600);
    const { directories } = await notOk();
    expect(directories).toContain(`${at("media")}: others lack read and execute | `);
    expect(directories).toContain(`${at("page/index.html")}: others lack read | `);
    expect(directories).toContain(`chmod o+rx '${at("media")}'`);
    rmSync(at("page"), { recursive: true });
    chmodSync(at("media"), 0o755);
    expect(await notOk()).toMatchObject({
      directories: `unknown |  | ${at("page")}: (2: No such file or directory) | `,
    });
  });

  test("avatars have a row of their own", async () => {
    mkdirSync(at("media/avatars"));
    writeFileSync(at("media/avatars/b.png"), "x", { mode: 0o600 });
    expect(Object.keys(await notOk())).toEqual(["avatar"]);
  });

  test("nothing listens", async () => {
    await closed();
    expect(await notOk()).toMatchObject({
      ports: expect.stringContaining(`port ${port} cannot be reached`),
      "web-application": expect.stringMatching(/^explained/),
    });
  });
});

test("a deployment that is named has to exist", async () => {
  const missing = join(folder, "none.json");
  expect(await doctor("--deployment", missing)).toEqual({
    code: 2,
    out: "",
    err: `error: --deployment: there is no ${missing}\n`,
  });
});

test.each([
  ["not an address", "files.example.org", /give an IP address/],
  ["loopback", "127.0.0.1", /only the host itself can reach a loopback address/],
  ["loopback over IPv6", "::1", /only the host itself can reach a loopback address/],
])("a public address that is %s is wrong usage", async (_what, address, words) => {
  const { code, err } = await doctor("--public-address", address);
  expect([code, err]).toEqual([2, expect.stringMatching(words)]);
});

test("a config that cannot be read is the one row", async () => {
  rmSync(configFile);
  const { code, out } = await doctor();
  expect(code).toBe(1);
  expect(out).toMatch(
    /^FAIL {3}The proxy's config is valid \[config\]\n {9}cause: {3}the config cannot be read\n[^]*\n1 rows: 0 ok, 1 failed\n$/,
  );
});
