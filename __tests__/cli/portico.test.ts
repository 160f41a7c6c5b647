import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import type { Server } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { connect as connectTls } from "node:tls";
import { buildBundle } from "../../build/bundle.js";
import { BUNDLE, ROOT } from "../../build/paths.js";
import { publicFolder } from "../../testkit/publicFolder.js";
import { freePort, freePortOffset } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";
import { createMedia } from "../../demo/media.js";
import { privateKey } from "../../demo/tlsResources.js";
import { createFileServer } from "../../demo/upstreams/fileServer.js";
import { createWebUi } from "../../demo/upstreams/webUi.js";
import { run } from "../../src/cli/program.js";
import { Delivery, Mode } from "../../src/index.js";
import { nodeFixes } from "../../src/model/host/nodeReleases.js";
import { VERSION } from "../../src/model/text/version.js";
import { issue } from "../../testkit/certificates.js";
import { siteConfig, siteExpect, type SiteOptions } from "../../testkit/siteConfig.js";
import { renderProxyConfig } from "../../src/testing/index.js";
import { deploymentOf } from "../../testkit/deployment.js";
import { frontEnd } from "../../testkit/stacks.js";

let folder: string;
beforeAll(() => {
  folder = publicFolder("portico cli ");
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs the command in this process. */
async function portico(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ["", ""];
  const code = await run(args, { out: (text) => (out += text), err: (text) => (err += text) });
  return { code, out, err };
}

/** One for all hosts: to make it takes longer than all else of them. */
const { private_key_pem: hostKey } = privateKey({ algorithm: "RSA", rsa_bits: 2048 });

/** Lays a host out below a folder of its own: config, page, media and TLS files. */
async function layOutHost(name: string, options: SiteOptions, days = 90): Promise<string> {
  const root = path.join(folder, name);
  const { upstreams, ...site } = siteConfig(options);
  // A daemon that is down is waited for, but not for long.
  const config = { ...site, upstreams: upstreams!.map((one) => ({ ...one, holdMs: 300 })), workers: 1 };
  for (const directory of ["etc/portico/tls", "usr/share/portico/default"]) {
    mkdirSync(path.join(root, directory), { recursive: true });
  }
  await createMedia(path.join(root, "opt/sync/media"));
  writeFileSync(
    path.join(root, "usr/share/portico/default/index.html"),
    "<!doctype html><title>It works</title>\n",
  );
  writeFileSync(path.join(root, "etc/portico/portico.json"), JSON.stringify(config));
  const deployment = deploymentOf({ expect: siteExpect(options) });
  writeFileSync(path.join(root, "etc/portico/deployment.json"), JSON.stringify(deployment));
  const names = ["files.example.org", "127.0.0.1", "192.0.2.10"];
  const { cert } = await issue({ names, key: hostKey!, from: -80, to: days });
  writeFileSync(path.join(root, "etc/portico/tls/privkey.pem"), hostKey!, { mode: 0o600 });
  writeFileSync(path.join(root, "etc/portico/tls/cacert.pem"), cert);
  return root;
}

describe("usage", () => {
  test.each<[string, string[], RegExp]>([
    ["no command", [], /Usage: portico/],
    ["unknown command", ["chek"], /unknown command 'chek'\n\(Did you mean check\?\)\nRun `portico --help`/],
    ["unknown option", ["serve", "--rot", "x"], /unknown option '--rot'\n\(Did you mean --root\?\)/],
    ["too many files", ["check", "a", "b"], /too many arguments/],
    ["missing value", ["preview", "--port-offset"], /argument missing/],
    ["no number", ["preview", "--port-offset", "1e3"], /whole number from 1 to 65534/],
    ["no upstream", ["preview", "--upstream", "web"], /NAME=URL/],
    ["no time", ["reload", "--timeout", "0"], /whole number from 1 to 3600/],
    ["no credential", ["reload", "--credential", "key.pem"], /NAME:FILE/],
    ["option of --live without it", ["check", "--no-insecure"], /'--\[no-\]insecure' needs --live/],
  ])("%s is 2", async (_what, args, message) => {
    const { code, out, err } = await portico(...args);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toMatch(message);
  });

  test.each([
    ["--help"],
    ["help"],
    ["serve", "--help"],
    ["reload", "--help"],
    ["upgrade", "--help"],
    ["certificates", "--help"],
    ["certificates", "renew", "--help"],
    ["maintenance", "on", "--help"],
    ["maintenance", "off", "--help"],
    ["maintenance", "status", "--help"],
    ["quiesce", "--help"],
    ["notify", "--help"],
    ["check", "--help"],
    ["preview", "--help"],
  ])("%s %s prints examples", async (...args) => {
    const { code, out, err } = await portico(...args);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(/Examples:\n {2}portico /);
    // `worker` is between a master and its workers.
    expect(out).not.toContain("worker");
  });

  test.each(["version", "--version"])("%s", async (arg) => {
    const fixes = nodeFixes(process.versions.node, Date.now())?.text;
    expect((await portico(arg)).out).toBe(
      `portico ${VERSION} (Node.js ${process.versions.node}: ${fixes}, OpenSSL ${process.versions.openssl})\n`,
    );
  });
});

describe("reload and upgrade", () => {
  test.each(["reload", "upgrade"])("%s reports that nothing runs", async (command) => {
    const control = path.join(folder, "none.sock");
    expect(await portico(command, "--control", control)).toEqual({
      code: 1,
      out: "",
      err: expect.stringMatching(
        new RegExp(`none\\.sock: .*ENOENT \\[control\\.not-running\\][^]*${command} failed: 1 problem\n$`),
      ),
    });
  });
});

describe("doctor --root", () => {
  test("looks at config and files below a folder, and says of the rest that nothing runs there", async () => {
    const root = await layOutHost("laid-out", { mode: "tls" });
    const { code, out } = await portico("doctor", "--root", root);
    expect(code).toBe(0);
    expect(out).toMatch(/^ok {5}The proxy's config is valid$/m);
    expect(out).toMatch(
      /^-.*virtual server and route \[server-name\]\n.* can only be seen where the files are in use\.$/m,
    );
    expect(out).toMatch(/ rows: \d+ ok, 0 failed, \d+ not asked\n$/);
  });

  test("finds a config that does not load there", async () => {
    const root = await layOutHost("lacking-key", { mode: "tls" });
    rmSync(path.join(root, "etc/portico/tls/privkey.pem"));
    const { code, out } = await portico("doctor", "--root", root);
    expect(code).toBe(1);
    expect(out).toMatch(
      /^FAIL {3}The proxy's config is valid \[config\]\n.*cause: .*the proxy refuses its config\n.*seen: .*privkey\.pem/m,
    );
  });

  test("and nothing else", async () => {
    expect(await portico("doctor", "--root", folder, "--elsewhere")).toMatchObject({
      code: 2,
      err: expect.stringContaining("give one of them"),
    });
  });
});

describe("check", () => {
  test("a host laid out below a root is ok with all its files", async () => {
    const root = await layOutHost("ok", { mode: "tls" });
    const file = path.join(root, "etc/portico/portico.json");
    expect(await portico("check", "--root", root)).toEqual({
      code: 0,
      out: `${file}: ok (2 listeners, 3 virtual servers, 6 routes)\n`,
      err: "",
    });
    const { code, out } = await portico("check", "--json", "--root", root, file);
    expect([code, JSON.parse(out)]).toMatchObject([
      0,
      { file, ok: true, listeners: 2, problems: [], warnings: [] },
    ]);
  });

  test("a name that clients are sent to and the certificate lacks is a warning", async () => {
    const root = await layOutHost("lacking", { mode: "tls", host: "files.example.net" });
    const { code, err } = await portico("check", "--root", root);
    expect(code).toBe(0);
    expect(err).toMatch(
      /^warning: .*cacert\.pem\): does not cover files\.example\.net \[files\.name-not-covered\]\n/,
    );
  });

  test("a certificate that expires soon is a warning, and an expired one a problem", async () => {
    const root = await layOutHost("soon", { mode: "tls" }, 13);
    const { code, out, err } = await portico("check", "--root", root);
    expect(code).toBe(0);
    expect(out).toMatch(/: ok \(/);
    expect(err).toMatch(
      /^warning: .*cacert\.pem\): expires on .*, in 12 days \[files\.certificate-expires-soon\]\n/,
    );
    const past = await layOutHost("past", { mode: "tls" }, -1);
    expect(await portico("check", "--root", past)).toMatchObject({
      code: 1,
      out: expect.stringContaining("[files.certificate-expired]"),
    });
  });

  test("every missing or unfit file is reported at once; --no-files checks the document only", async () => {
    const root = await layOutHost("bad", { mode: "tls" });
    rmSync(path.join(root, "opt"), { recursive: true });
    writeFileSync(
      path.join(root, "etc/portico/tls/privkey.pem"),
      privateKey({ algorithm: "RSA" })["private_key_pem"]!,
    );
    const { code, out } = await portico("check", "--root", root);
    expect(code).toBe(1);
    expect(out).toMatch(/\[files\.key-mismatch\]/);
    expect(out).toMatch(/\[files\.bad-directory\]/);
    expect(out).toMatch(/\n {4}fix: /);
    expect(out).toMatch(/portico\.json: 2 problems\n$/);
    expect((await portico("check", "--no-files", "--root", root)).code).toBe(0);
  });

  test("problems of the document carry code, path and fix, as text and as JSON", async () => {
    const file = path.join(folder, "document.json");
    const config = JSON.parse(JSON.stringify(siteConfig({ mode: "plain" })));
    config.listeners[0].prot = 80;
    config.virtualServers[1].routes[0].action.upstream = 7;
    writeFileSync(file, JSON.stringify(config));
    const text = await portico("check", "--no-files", file);
    expect(text.code).toBe(1);
    expect(text.out).toMatch(
      /listeners\[0\]\.prot: .*\[config\.unknown-field\]\n.*\n.*Did you mean `port`\?/,
    );
    const { code, out } = await portico("check", "--json", file);
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject({
      file,
      ok: false,
      problems: [
        {
          code: "config.unknown-field",
          path: "listeners[0].prot",
          fix: expect.any(String),
        },
        { code: "config.wrong-type", path: "virtualServers[1].routes[0].action.upstream" },
      ],
    });
  });

  test("a file that does not exist", async () => {
    for (const args of [["check"], ["check", "--no-files"], ["check", "--live"]]) {
      const { code, out } = await portico(...args, "--root", path.join(folder, "nowhere"));
      expect(code).toBe(1);
      expect(out).toMatch(/nowhere\/etc\/portico\/portico\.json: does not exist.*\[files\.unreadable\]/);
    }
  });

  test.each([
    [[], "neither --database nor the deployment names a database"],
    [
      ["--database", "sync@127.0.0.1:1/sync"],
      "no credentials: set PORTICO_DATABASE_PASSWORD or give --database-option-file",
    ],
    [
      ["--database", "sync@127.0.0.1:1/sync", "--database-option-file", "/none"],
      "the deployment has no application settings to compare with",
    ],
  ])("--live without an offset asks the listeners as they are; %j", async (options, why) => {
    const file = path.join(folder, "own.json");
    const text = JSON.stringify(siteConfig({ mode: "plain", host: "127.0.0.9" }));
    writeFileSync(file, text.replaceAll('"0.0.0.0"', '"127.0.0.9"').replaceAll('"port":80', '"port":1'));
    const { code, out, err } = await portico(
      "check",
      "--live",
      file,
      "--image-path",
      "a.png",
      ...options,
      "--no-insecure",
    );
    expect(code).toBe(1);
    const failed = out.split("\n").filter((line) => line.startsWith("FAIL"));
    // Without a deployment, each route is asked for what its action promises.
    expect(failed).toHaveLength(5);
    for (const line of failed) expect(line).toContain("nothing listens on 127.0.0.9 port 1:");
    expect(err).toMatch(/^note: settings in the application's database were not checked: .*\n$/);
    expect(err).toEqual(expect.stringMatching(why));
  });
});

describe("the bundle", () => {
  test("one executable file: same bytes every time, no constructs, no path of this machine", async () => {
    const args = ["--require", "tsx/cjs", "build/build.ts", "--bundle"];
    execFileSync(process.execPath, args, { cwd: ROOT });
    const bytes = readFileSync(BUNDLE);
    // For another place, since others use the first meanwhile.
    const again = await buildBundle(path.join(folder, "again", "portico.mjs"));
    expect(readFileSync(again.file).equals(bytes)).toBe(true);
    expect(statSync(BUNDLE).mode & 0o777).toBe(0o755);
    const text = bytes.toString();
    expect(text.startsWith("#!/usr/bin/env node\n")).toBe(true);
    expect(text).not.toMatch(/class TerraformStack|node_modules\/(?:cdktf|constructs)/);
    expect(text).not.toContain(ROOT);
    // Notices of what is bundled.
    expect(text).toMatch(/\/\*! commander [\s\S]*Permission is hereby granted[\s\S]*\/\*! zod /);
  });

  test("runs alone in a folder, by its own name", () => {
    const copy = path.join(folder, "alone", "portico.mjs");
    cpSync(BUNDLE, copy);
    expect(execFileSync(copy, ["version"], { encoding: "utf8", cwd: path.dirname(copy) })).toContain(VERSION);
  });
});

/** A preview by the bundle, until `stop`. */
class Preview {
  out = "";
  err = "";
  private readonly child: ChildProcess;

  constructor(args: readonly string[]) {
    this.child = spawn(process.execPath, [BUNDLE, "preview", ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      // Jest's copy, which tests may change.
      env: process.env,
    });
    this.child.stdout!.on("data", (chunk: Buffer) => (this.out += String(chunk)));
    this.child.stderr!.on("data", (chunk: Buffer) => (this.err += String(chunk)));
  }

  async until(seen: () => boolean): Promise<void> {
    const said = (): string => `${this.out}\n${this.err}`;
    await eventually(() => seen() || this.child.exitCode !== null, `for ${seen}`, { seen: said });
    if (!seen()) throw new Error(`it ended:\n${said()}`);
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  stop(): Promise<number | null> {
    if (this.child.exitCode !== null) return Promise.resolve(this.child.exitCode);
    return new Promise((resolve) => {
      this.child.once("exit", resolve);
      this.child.kill("SIGTERM");
    });
  }
}

describe("preview and check --live", () => {
  const paths = { web: "/sync", fileServer: "/synchttp", media: "/syncmedia", webdav: "/syncdav" };
  const servers: Server[] = [];
  const previews: Preview[] = [];
  const upstreams: string[] = [];

  beforeAll(async () => {
    const started = {
      web: createWebUi(paths),
      fileServer: await createFileServer(path.join(folder, "files")),
    };
    for (const [name, server] of Object.entries(started)) {
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      const { port } = server.address() as { port: number };
      upstreams.push("--upstream", `${name}=http://127.0.0.1:${port}`);
      servers.push(server);
    }
    // Nobody listens on port 1: the WebDAV daemon is down.
    upstreams.push("--upstream", "webdav=http://127.0.0.1:1");
  });
  afterAll(async () => {
    for (const preview of previews) await preview.stop();
    for (const server of servers) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  });

  async function startPreview(
    root: string,
    more: readonly string[] = [],
  ): Promise<{ preview: Preview; at: string[] }> {
    const offset = String(await freePortOffset());
    const preview = new Preview(["--root", root, "--port-offset", offset, ...upstreams, ...more]);
    previews.push(preview);
    await preview.until(() => /Ctrl-C|^\}$/m.test(preview.out));
    return { preview, at: ["--live", "--root", root, "--port-offset", offset] };
  }

  const lines = (text: string): string[] => text.trimEnd().split("\n");

  test("TLS mode: each response is as expected, except that of the daemon that is down", async () => {
    const root = await layOutHost("tls", { mode: "tls", host: "files.example.org" });
    const { preview, at } = await startPreview(root);
    const [http, https] = [80, 443].map((port) => port + Number(at.at(-1)));
    expect(lines(preview.out)).toEqual([
      `portico preview of ${path.join(root, "etc/portico/portico.json")}`,
      `  http://127.0.0.1:${http}/          instead of port 80 of 0.0.0.0`,
      `  https://127.0.0.1:${https}/         instead of port 443 of 0.0.0.0`,
      `Request it by name: curl -k --resolve files.example.org:${https}:127.0.0.1 https://files.example.org:${https}/`,
      "Stop it with Ctrl-C.",
    ]);
    const { code, out, err } = await portico("check", ...at);
    expect(lines(out).map((line) => line.slice(0, 4))).toEqual([
      ...Array(6).fill("PASS"),
      "FAIL",
      path.join(root).slice(0, 4),
    ]);
    expect(lines(out)[6]).toMatch(
      /502.*cause: the WebDAV daemon does not respond at http:\/\/127\.0\.0\.1:8080/,
    );
    expect(lines(out)[3]).toMatch(
      /seen HTTP\/2, 302, Location: https:\/\/files\.example\.org:\d+\/sync\/accounts/,
    );
    expect(lines(out)[7]).toMatch(/6 of 7 responses as expected$/);
    expect(code).toBe(1);
    expect(lines(err)).toEqual([
      "note: settings in the application's database were not checked: neither --database nor the deployment names a database",
      "note: the certificate was not verified, because it may be self-signed; --no-insecure verifies it",
    ]);

    const json = await portico("check", ...at, "--json", "--no-insecure");
    const { responses, ...rest } = JSON.parse(json.out);
    expect(rest).toMatchObject({ ok: false, host: "files.example.org", insecure: false });
    expect(responses.map((row: { pass: boolean }) => row.pass)).toEqual([
      true,
      false,
      true,
      false,
      false,
      false,
      false,
    ]);
    expect(responses[3].cause).toMatch(/certificate is not trusted/);
  });

  test("a stack that is delivered over ssh: a certificate that only the host has is replaced, and taken away again", async () => {
    const delivery = Delivery.ssh({ verifyHostKey: false });
    const host = { address: "192.0.2.10", publicName: "files.example.org", delivery };
    const { proxy } = frontEnd({ host, mode: Mode.tls() });
    const file = path.join(folder, "over-ssh.json");
    writeFileSync(file, JSON.stringify(renderProxyConfig(proxy)));
    const kept = (): string[] => readdirSync(tmpdir()).filter((name) => name.startsWith("portico-preview-"));
    const before = kept();
    const offset = await freePortOffset();
    const preview = new Preview([file, "--port-offset", String(offset), ...upstreams]);
    previews.push(preview);
    await preview.until(() => preview.out.includes("Ctrl-C"));
    expect(preview.err).toContain(
      "certificates that are not on this machine are replaced by self-signed ones",
    );
    expect(kept().length).toBe(before.length + 1);
    const names = await new Promise<string | undefined>((resolve, reject) => {
      const options = {
        host: "127.0.0.1",
        port: 443 + offset,
        servername: "files.example.org",
        rejectUnauthorized: false,
      };
      const socket = connectTls(options, () => {
        resolve(socket.getPeerCertificate().subjectaltname);
        socket.destroy();
      });
      socket.on("error", reject);
    });
    expect(names).toContain("DNS:files.example.org");
    preview.signal("SIGHUP");
    await preview.until(() => preview.err.includes("configuration reloaded"));
    expect(await preview.stop()).toBe(0);
    expect(kept()).toEqual(before);
  });

  test("a reload moves the changed config as well, and refuses a bad one; a port shows the status", async () => {
    const root = await layOutHost("reload", { mode: "plain", host: "127.0.0.1" });
    const file = path.join(root, "etc/portico/portico.json");
    // Without a deployment, the routes of the config are asked.
    rmSync(path.join(root, "etc/portico/deployment.json"));
    const statusPort = await freePort();
    const { preview, at } = await startPreview(root, ["--status-port", String(statusPort)]);
    expect((await fetch(`http://127.0.0.1:${statusPort}/status`)).status).toBe(200);
    const good = readFileSync(file, "utf8");
    writeFileSync(file, good.replace('"port":80', '"port":99999'));
    preview.signal("SIGHUP");
    await preview.until(() => preview.err.includes("reload refused"));
    expect(preview.err).toContain("listeners[0].port");
    writeFileSync(file, good.replaceAll("/synchttp", "/transfer"));
    preview.signal("SIGHUP");
    await preview.until(() => preview.err.includes("configuration reloaded"));
    const { out } = await portico("check", ...at);
    expect(out).toMatch(/PASS {2}application fileServer: HEAD http:\/\/127\.0\.0\.1:\d+\/transfer\//);
    expect(lines(out).filter((line) => line.startsWith("PASS"))).toHaveLength(4);
    expect(await preview.stop()).toBe(0);
    const gone = await portico("check", ...at, "--timeout", "2");
    expect(
      lines(gone.out).filter((line) => /cause: nothing listens on 127\.0\.0\.1/.test(line)),
    ).toHaveLength(5);
  });

  test("for a name that the config does not have, the default server responds, and the cause is named", async () => {
    const root = await layOutHost("name", { mode: "plain", host: "files.example.org" });
    const { at } = await startPreview(root);
    const { out } = await portico(
      "check",
      ...at,
      "--host",
      "other.example.org",
      "--image-path",
      "img/logo.png",
    );
    const causes = lines(out).filter((line) =>
      /cause: the default virtual server responded: the server name/.test(line),
    );
    expect(lines(out)[0]).toMatch(/^PASS {2}default server/);
    expect(causes).toHaveLength(5);
  });

  test("reloads on a request to its control socket, and reports the outcome", async () => {
    const root = await layOutHost("running", { mode: "plain" });
    const control = path.join(folder, "control.sock");
    process.env["RUNTIME_DIRECTORY"] = folder;
    const { preview } = await startPreview(root, ["--json"]).finally(
      () => delete process.env["RUNTIME_DIRECTORY"],
    );
    const insteadOf = { address: "0.0.0.0", port: 80 };
    expect(JSON.parse(preview.out)).toMatchObject({ ok: true, listeners: [{ name: "http", insteadOf }] });
    expect(await portico("reload", "--control", control)).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^configuration reloaded: http:\/\/127\.0\.0\.1:\d+.*, 1 worker\n$/),
    });
    writeFileSync(path.join(root, "etc/portico/portico.json"), "{}");
    const refused = await portico("reload", "--control", control);
    expect(refused).toMatchObject({ code: 1, out: "" });
    expect(refused.err).toMatch(
      /config\.missing-field[^]*reload failed: \d+ problems; the current config stays in force\n$/,
    );
    expect(await preview.stop()).toBe(0);
  });

  test("options that do not fit the config are refused before anything is served", async () => {
    const root = await layOutHost("options", { mode: "plain" });
    const unknown = await portico("preview", "--root", root, "--upstream", "wb=http://127.0.0.1:1");
    expect([unknown.code, unknown.err]).toEqual([
      1,
      expect.stringMatching(/--upstream: is not the name of an upstream/),
    ]);
    const range = await portico("preview", "--root", root, "--port-offset", "65500");
    expect([range.code, range.err]).toEqual([1, expect.stringMatching(/Give another --port-offset/)]);
  });
});
