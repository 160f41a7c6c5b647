import { type ChildProcess, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ROOT } from "../../build/paths.js";
import { createFileServer } from "../../demo/upstreams/fileServer.js";
import { createWebUi } from "../../demo/upstreams/webUi.js";
import { codeBlocks } from "../../testkit/markdown.js";
import { eventually } from "../../testkit/waiting.js";

let folder: string;
beforeAll(() => {
  // As a home directory often is, it is closed to others.
  folder = mkdtempSync(path.join(os.tmpdir(), "portico demo test "));
  mkdirSync(path.join(folder, "tmp"));
  // What tsx has compiled is kept in the temporary folder: in a new one it would compile everything again.
  const compiled = `tsx-${process.geteuid!()}`;
  mkdirSync(path.join(os.tmpdir(), compiled), { recursive: true });
  symlinkSync(path.join(os.tmpdir(), compiled), path.join(folder, "tmp", compiled));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Response {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
}

/** One request as it is given: no redirect is followed, no field added but what the protocol needs. */
function ask(url: string, options: https.RequestOptions = {}, body?: string | Buffer): Promise<Response> {
  return new Promise((resolve, reject) => {
    const client = url.startsWith("https:") ? https : http;
    const request = client.request(
      url,
      { agent: false, rejectUnauthorized: false, ...options },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () =>
          resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(chunks) }),
        );
        response.on("error", reject);
      },
    );
    request.on("error", reject);
    request.end(body);
  });
}

async function serving(server: http.Server, use: (base: string) => Promise<void>): Promise<void> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await use(`http://127.0.0.1:${(server.address() as net.AddressInfo).port}`);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

describe("the web application", () => {
  const paths = { web: "/sync", fileServer: "/synchttp", media: "/syncmedia", webdav: "/syncdav" };

  test("responds as service 5.1 expects, with the requested scheme and host", async () => {
    await serving(createWebUi(paths), async (base) => {
      const plain = await ask(`${base}/sync/`, { method: "HEAD", headers: { host: "files.example.org" } });
      expect(plain.status).toBe(302);
      expect(plain.headers).toMatchObject({
        location: "http://files.example.org/sync/accounts/login/?next=/sync/",
        "content-type": "text/html; charset=utf-8",
        vary: "Accept-Language, Cookie",
        "content-language": "en",
      });
      const headers = { host: "files.example.org:8443", "x-forwarded-proto": "https" };
      const secure = await ask(`${base}/sync/a%20b/?x=1&y`, { headers });
      expect(secure.headers.location).toBe(
        "https://files.example.org:8443/sync/accounts/login/?next=/sync/a%2520b/%3Fx%3D1%26y",
      );
    });
  });

  test("a login leads to a page that uses every route, and only back into the application", async () => {
    await serving(createWebUi(paths), async (base) => {
      const login = `${base}/sync/accounts/login/`;
      const post = { method: "POST", headers: { "x-forwarded-proto": "https", host: "a" } };
      for (const next of ["//evil.example", "https://evil.example/", "/sync//evil.example", "/other/"]) {
        const { headers } = await ask(`${login}?next=${encodeURIComponent(next)}`, post, "user=x");
        expect(headers.location).toBe("https://a/sync/");
      }
      const { headers } = await ask(`${login}?next=/sync/`, post, "user=%3Cb%3E");
      expect(headers["set-cookie"]![0]).toMatch(
        /^sessionid=[0-9a-f]{32}; Path=\/sync; HttpOnly; SameSite=Lax; Secure$/,
      );
      const cookie = headers["set-cookie"]![0]!.split(";")[0]!;
      const page = await ask(`${base}/sync/`, { headers: { cookie } });
      expect(page.status).toBe(200);
      expect(String(page.body)).toMatch(
        /&#60;b&#62;.*[\s\S]*\/syncmedia\/img\/logo\.png[\s\S]*\/synchttp\/files\//,
      );
      expect((await ask(`${base}/sync/nope`, { headers: { cookie } })).status).toBe(404);
      await ask(`${base}/sync/accounts/logout/`, { headers: { cookie } });
      expect((await ask(`${base}/sync/`, { headers: { cookie } })).status).toBe(302);
    });
  });
});

describe("the file server", () => {
  test("returns what was uploaded, with its SHA-256", async () => {
    await serving(await createFileServer(path.join(folder, "files")), async (base) => {
      const bytes = randomBytes(3_000_000);
      const stored = { name: "a b.bin", bytes: bytes.length, sha256: sha256(bytes) };
      for (const method of ["PUT", "POST"]) {
        const response = await ask(`${base}/files/a%20b.bin`, { method }, bytes);
        expect([response.status, JSON.parse(String(response.body))]).toEqual([201, stored]);
      }
      const got = await ask(`${base}/files/a%20b.bin`);
      expect(got.body.equals(bytes)).toBe(true);
      expect(got.headers["x-sha256"]).toBe(stored.sha256);
      const head = await ask(`${base}/files/a%20b.bin`, { method: "HEAD" });
      expect([head.headers["content-length"], head.body.length]).toEqual(["3000000", 0]);
      expect(JSON.parse(String((await ask(`${base}/`)).body))).toEqual({ files: [stored] });
    });
  });

  test("stays in its folder, and keeps nothing of an upload that was cut off", async () => {
    await serving(await createFileServer(path.join(folder, "files2")), async (base) => {
      for (const name of ["..%2Fx", "%2e%2e", "..", ".hidden", "a%00b", "a%2Fb", "%zz"]) {
        // As `path`, since a URL would be normalised here.
        expect((await ask(base, { method: "PUT", path: `/files/${name}` }, "x")).status).toBe(404);
      }
      expect((await ask(`${base}/files/none`)).status).toBe(404);
      expect(await ask(`${base}/files/x`, { method: "DELETE" })).toMatchObject({
        status: 405,
        headers: { allow: "GET, HEAD, PUT, POST" },
      });
      const { port } = new URL(base);
      const socket = net.connect(Number(port), "127.0.0.1");
      socket.write("PUT /files/cut HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nonly this");
      const kept = (): string[] => readdirSync(path.join(folder, "files2"));
      await eventually(() => kept().length === 1);
      socket.destroy();
      await eventually(() => kept().length === 0, "until nothing is kept", { seen: () => kept().join(" ") });
    });
  });
});

describe("npm start", () => {
  interface Demo {
    readonly child: ChildProcess;
    readonly text: () => string;
    readonly exited: Promise<number | null>;
  }

  const children: ChildProcess[] = [];
  // Only after a failure is there one left; it stops its own children.
  afterEach(async () => {
    for (const child of children.splice(0).filter((c) => c.exitCode === null)) {
      child.kill("SIGINT");
      await new Promise((resolve) => child.once("exit", resolve));
    }
  });

  function start(...args: string[]): Demo {
    const child = spawn(process.execPath, ["--require", "tsx/cjs", "demo/start.ts", ...args], {
      cwd: ROOT,
      env: { ...process.env, TMPDIR: path.join(folder, "tmp") },
      stdio: ["ignore", "pipe", "pipe"],
    });
    children.push(child);
    let text = "";
    for (const stream of [child.stdout!, child.stderr!])
      stream.on("data", (chunk: Buffer) => (text += String(chunk)));
    return { child, text: () => text, exited: new Promise((resolve) => child.once("exit", resolve)) };
  }

  async function until(demo: Demo, seen: RegExp): Promise<RegExpExecArray> {
    for (const end = Date.now() + 240_000; ;) {
      const match = seen.exec(demo.text());
      if (match !== null) return match;
      if (Date.now() > end || demo.child.exitCode !== null) throw new Error(demo.text());
      await sleep(50);
    }
  }

  const leftBehind = (): string[] =>
    readdirSync(path.join(folder, "tmp")).filter((name) => name.startsWith("portico"));

  test("usage", async () => {
    const help = start("--help");
    expect([await help.exited, help.text()]).toEqual([0, expect.stringContaining("--once")]);
    const wrong = start("--twice");
    expect([await wrong.exited, wrong.text()]).toEqual([2, expect.stringContaining("'--twice'")]);
  });

  /** What is asserted of a run's checks: all responses, in both modes. */
  function expectChecked(text: string): void {
    expect(text).toContain("\n13 of 13 responses as expected\n");
    const shown = (lines: string): string => lines.replaceAll(/:\d+/g, ":PORT").replaceAll(/ +/g, " ");
    for (const line of codeBlocks("README.md", "text", "Try it")[0]!.trim().split("\n"))
      expect(shown(text)).toContain(shown(line));
    const rows = text.split("\n").filter((line) => line.startsWith("PASS"));
    expect(
      rows.filter((row) => row.includes(" plain ")).map((row) => / (https?):.*?(\/[a-z/.]*) /.exec(row)![2]),
    ).toEqual(["/", "/sync/", "/sync/", "/syncdav/", "/synchttp/", "/syncmedia/img/logo.png"]);
  }

  test("serves until it is interrupted: uploads, WebDAV, a second run with --once at the same time; then everything is gone", async () => {
    const demo = start("--out", path.join(folder, "out"));
    const [, https] = await until(demo, /(https:\/\/127\.0\.0\.1:\d+)\/sync\/[\s\S]*Ctrl-C/);
    expectChecked(demo.text());
    const second = start("--once", "--out", path.join(folder, "out2"));

    const bytes = randomBytes(1_000_000);
    await ask(`${https}/synchttp/files/x`, { method: "PUT" }, bytes);
    expect((await ask(`${https}/synchttp/files/x`)).body.equals(bytes)).toBe(true);

    const dav = (method: string, name: string, headers: http.OutgoingHttpHeaders = {}, body?: string) =>
      ask(`${https}/syncdav/${name}`, { method, headers }, body);
    expect((await dav("MKCOL", "dir%20a/")).status).toBe(201);
    expect((await dav("PUT", "dir%20a/one.txt", {}, "one")).status).toBe(201);
    // The client names the front end; the daemon has to see itself, else it refuses (user problem: 502).
    const to = (name: string) => ({ destination: `${https}/syncdav/${name}` });
    expect((await dav("COPY", "dir%20a/one.txt", to("two.txt"))).status).toBe(201);
    expect((await dav("MOVE", "two.txt", { destination: "/syncdav/dir%20a/three.txt" })).status).toBe(201);
    expect((await dav("MOVE", "dir%20a/", to("dir%20b/"))).status).toBe(201);
    expect((await dav("PUT", "dir%20b/one.txt", {}, "changed")).status).toBe(204);
    const listing = await dav("PROPFIND", "dir%20b/", { depth: "1" });
    const hrefs = [...String(listing.body).matchAll(/<(?:\w+:)?href>([^<]+)</g)].map((match) => match[1]);
    expect([listing.status, hrefs.sort()]).toEqual([
      207,
      ["", "one.txt", "three.txt"].map((name) => `${https}/syncdav/dir%20b/${name}`),
    ]);

    expect([await second.exited, second.text()]).toEqual([
      0,
      expect.stringMatching(/\n13 of 13 responses as expected\n$/),
    ]);
    expectChecked(second.text());
    for (const out of ["out", "out2"]) {
      const key = path.join(folder, out, "host", "etc/portico/tls/privkey.pem");
      expect((statSync(key).mode & 0o777).toString(8)).toBe("600");
    }
    expect(second.text()).toMatch(/web +http:\/\/127\.0\.0\.1:\d+ \(8000 is taken by another program\)/);
    expect(leftBehind()).toHaveLength(1);
    demo.child.kill("SIGINT");
    expect(await demo.exited).toBe(0);
    expect(demo.text()).toMatch(/Stopping the proxy and the daemons\.\n/);
    expect(leftBehind()).toEqual([]);
    await expect(ask(`${https}/sync/`)).rejects.toThrow("ECONNREFUSED");
  });

  test("a step that fails is reported with its reason and a fix, and ends everything", async () => {
    const demo = start("--once", "--out", path.join(ROOT, "package.json"));
    expect(await demo.exited).toBe(1);
    expect(demo.text()).toMatch(/The demo failed\. Synthesize main\.ts .*: .*(?:EEXIST|ENOTDIR)/);
    expect(demo.text()).toMatch(/\nfix: /);
    expect(leftBehind()).toEqual([]);
    expect(readFileSync(path.join(ROOT, "package.json"), "utf8")).toContain("cdktf-portico");
  });
});
