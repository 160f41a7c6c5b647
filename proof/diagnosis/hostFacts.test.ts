import { execFileSync, spawn } from "node:child_process";
import { Socket } from "node:dgram";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { constants, createSecureServer, type ServerHttp2Stream } from "node:http2";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { issue } from "../../testkit/certificates.js";
import { run } from "../../src/host/diagnosis/system/command.js";
import { isElsewhere, isOpen, translatedTo, unitsOf } from "../../src/host/diagnosis/system/hostFacts.js";
import { scarceSpace } from "../../src/host/diagnosis/logState.js";
import { probe } from "../../src/host/diagnosis/expected/probe.js";
import { sourceTo } from "../../src/runtime/load/ownAddress.js";
import {
  hasStartLinks,
  showUnits,
  shownUnit,
  startsWithHost,
} from "../../src/host/diagnosis/system/shownUnits.js";
import { nextEvent } from "../../testkit/waiting.js";

/** What is found out about this machine, piece by piece. */

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "portico-facts-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("a command", () => {
  test.each<[string, [string, ...string[]], number, object]>([
    [
      "says something",
      ["sh", "-c", "echo $LC_ALL $MORE; echo no >&2"],
      5,
      { code: 0, stdout: "C.UTF-8 x\n", stderr: "no\n" },
    ],
    ["fails", ["sh", "-c", "echo a; echo b >&2; exit 3"], 5, { code: 3, stdout: "a\n", stderr: "b\n" }],
    ["reads its input to the end", ["cat"], 5, { code: 0, stdout: "", stderr: "" }],
    [
      "is not there",
      ["/no/such/program"],
      5,
      { code: 127, stdout: "", stderr: "spawn /no/such/program ENOENT" },
    ],
    [
      "takes too long",
      ["sh", "-c", "echo a; exec sleep 9"],
      0.2,
      { code: 124, stdout: "a\n", stderr: "did not end within 0.2 s" },
    ],
    [
      "is killed",
      ["sh", "-c", "kill -9 $$"],
      5,
      { code: 127, stdout: "", stderr: "Command failed: sh -c kill -9 $$\n" },
    ],
  ])("that %s", async (_what, command, seconds, outcome) => {
    expect(await run(command, seconds, { MORE: "x" })).toEqual(outcome);
  });
});

describe("a unit", () => {
  const shown = [
    "Type=notify",
    "LoadState=loaded",
    "ActiveState=active",
    "SubState=running",
    "UnitFileState=enabled",
    "NeedDaemonReload=yes",
    "FragmentPath=/etc/a.service",
    "DropInPaths=/etc/a.service.d/b.conf /run/c.conf",
    "MainPID=17",
    "ExecStart={ path=/bin/a ; argv[]=/bin/a -b c ; ignore_errors=no ; start_time=[n/a] }",
  ].join("\n");

  test("by its role, in any state", async () => {
    const path = process.env["PATH"];
    const systemctl = join(folder, "systemctl");
    writeFileSync(
      systemctl,
      `#!/bin/sh
[ "$1 $3" = "show --" ] || exit 1
wanted="\${2#--property=}"
grep -E "^($(echo "$wanted" | tr , '|'))=|^$" <<'E'
${shown}

LoadState=not-found
UnitFileState=static

LoadState=masked
E
`,
    );
    chmodSync(systemctl, 0o755);
    process.env["PATH"] = `${folder}:${path}`;
    const daemons = [{ unit: "web.service" }];
    const services = { proxy: { service: "a.service", socket: "a.socket" }, daemons };
    try {
      const none = { mainPid: 0, state: "", command: "" };
      expect(await unitsOf(services)).toEqual({
        proxy: {
          name: "a.service",
          load: "loaded",
          mainPid: 17,
          state: "active",
          enabled: true,
          command: "/bin/a -b c",
        },
        proxySocket: { name: "a.socket", load: "not-found", enabled: true, ...none },
        daemons: [{ name: "web.service", load: "masked", enabled: false, ...none }],
      });
      expect(await showUnits(["a.service"], 5)).toEqual([shownUnit("a.service", shown)]);
      writeFileSync(systemctl, "#!/bin/sh\nexit 1\n");
      expect(await unitsOf(services)).toBeUndefined();
      expect(await showUnits([], 5)).toEqual([]);
    } finally {
      process.env["PATH"] = path;
    }
  });

  test.each([
    ["enabled", true, true],
    ["enabled-runtime", true, true],
    ["linked", true, true],
    ["alias", true, true],
    ["static", false, true],
    ["indirect", false, true],
    ["generated", false, true],
    ["disabled", false, false],
    ["linked-runtime", false, false],
    ["not-enabled", false, false],
    ["not-static", false, false],
    ["static-not", false, false],
    ["", false, false],
  ])("with the links %s is started by them: %s, or anyway: %s", (state, links, anyway) => {
    expect([hasStartLinks(state), startsWithHost(state)]).toEqual([links, anyway]);
  });
});

test.each([
  ["size=32M", undefined],
  ["size=32764K", "31 MiB are left"],
  ["size=64M,nr_inodes=501", undefined],
  ["size=64M,nr_inodes=500", "499 more files can be created"],
  ["size=64M,nr_inodes=0", undefined],
])("a file system with %s: %s", async (options, what) => {
  const at = join(folder, "mounted");
  mkdirSync(at);
  execFileSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", at]);
  try {
    mkdirSync(join(at, "below"));
    rmSync(join(at, "below"), { recursive: true });
    const fix = `Free space; this shows large directories: du -xh --max-depth=2 ${at} | sort -h`;
    expect(await scarceSpace([join(folder, "missing"), at, at])).toEqual(
      what === undefined ? [] : [{ at, what, fix }],
    );
  } finally {
    execFileSync("umount", [at]);
  }
});

test("addresses of this machine, by any name, are not elsewhere", () => {
  const own = Object.values(networkInterfaces()).flatMap((each) => each!.map(({ address }) => address));
  expect(["127.0.0.1", "localhost", "::1", ...own].filter(isElsewhere)).toEqual([]);
  expect(["192.0.2.77", "files.example.org"].filter(isElsewhere)).toHaveLength(2);
});

test("an address that is not public is not translated by anybody", async () => {
  expect(await Promise.all(["127.0.0.1", "10.0.0.1", "2606:4700::1"].map(translatedTo))).toEqual(
    [1, 2, 3].map(() => undefined),
  );
});

test("a public address may be translated to the private one that packets leave from", async () => {
  const source = (await sourceTo("198.41.0.4")) ?? "";
  const isPrivate =
    /^(?:10|192\.168|192\.0\.2|172\.(?:1[6-9]|2\d|3[01])|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7]))\./.test(
      source,
    );
  expect(await translatedTo("198.41.0.4")).toBe(isPrivate ? source : undefined);
});

test("a host that has a public address itself has none that is translated", async () => {
  const kernel = jest.spyOn(Socket.prototype, "address");
  kernel.mockReturnValue({ address: "198.41.0.5", family: "IPv4", port: 9 });
  expect(await translatedTo("198.41.0.4")).toBeUndefined();
  kernel.mockReturnValue({ address: "10.0.0.5", family: "IPv4", port: 9 });
  expect(await translatedTo("198.41.0.4")).toBe("10.0.0.5");
  kernel.mockRestore();
});

describe("a request", () => {
  let server: Server;
  const listening = async (one: Server): Promise<number> => {
    server = one;
    if ("keepAliveTimeout" in one) one.keepAliveTimeout = 60_000;
    await new Promise<void>((done) => one.listen(0, "127.0.0.1", done));
    return (one.address() as AddressInfo).port;
  };
  afterEach(() => void server.close());

  test("over HTTP/2, and without a name in the handshake where an address is asked", async () => {
    const names: unknown[] = [];
    const requests: unknown[] = [];
    const one = createSecureServer({ ...(await issue({ type: "ec", names: ["h.example", "::1"] })) });
    one.on("secureConnection", (socket: TLSSocket) => names.push(socket.servername));
    one.on("stream", (stream, headers) => {
      requests.push([headers[":method"], headers[":path"], headers[":authority"]]);
      stream.respond({ ":status": 404, "set-cookie": ["a=1", "b=2"], server: "x" });
      stream.end(headers[":method"] === "HEAD" ? undefined : "page");
    });
    const port = await listening(one);
    const asked = { ...request(port), scheme: "https" as const };
    const seen = (covers: boolean) => ({
      response: {
        protocol: "HTTP/2",
        status: 404,
        headers: { "set-cookie": "a=1, b=2", server: "x", date: expect.any(String) },
        body: "page",
        certificate: { covers, subjectAltName: "DNS:h.example, IP Address:0:0:0:0:0:0:0:1" },
      },
    });
    expect(await probe(asked, OPTIONS)).toEqual(seen(true));
    expect(await probe({ ...asked, host: `[::1]:${port}` }, OPTIONS)).toEqual(seen(true));
    expect(await probe({ ...asked, host: "other.example" }, OPTIONS)).toEqual(seen(false));
    expect(names).toEqual(["h.example", false, "other.example"].flatMap((name) => [name, name]));
    expect(requests.slice(0, 2)).toEqual([
      ["HEAD", "/a", "h.example"],
      ["GET", "/a", "h.example"],
    ]);
    // Nothing is left open here, and nothing until its time would be over.
    const ended = performance.now();
    await new Promise((done) => server.close(done));
    expect(performance.now() - ended).toBeLessThan(30_000);
  });

  test("of a server whose certificate has no name that counts", async () => {
    const one = createSecureServer(await issue({ type: "ec", name: "h.example" }));
    one.on("stream", (stream) => stream.respond({ ":status": 204 }, { endStream: true }));
    const asked = { ...request(await listening(one)), scheme: "https" as const };
    expect(await probe(asked, OPTIONS)).toMatchObject({
      response: { status: 204, certificate: { covers: false, subjectAltName: "no name" } },
    });
  });

  const { NGHTTP2_CANCEL, NGHTTP2_INTERNAL_ERROR } = constants;
  test.each<[what: string, end: (stream: ServerHttp2Stream) => void, code: string]>([
    ["stream fails", (stream) => stream.close(NGHTTP2_INTERNAL_ERROR), "ERR_HTTP2_STREAM_ERROR"],
    ["stream is given up", (stream) => stream.close(NGHTTP2_CANCEL), "ECONNRESET"],
    ["connection fails", ({ session }) => session!.goaway(NGHTTP2_INTERNAL_ERROR), "ERR_HTTP2_SESSION_ERROR"],
    ["connection is closed", ({ session }) => session!.destroy(), "ECONNRESET"],
  ])("over HTTP/2 whose %s before a response", async (_what, end, code) => {
    const one = createSecureServer(await issue({ type: "ec", names: ["h.example"] }));
    one.on("stream", (stream: ServerHttp2Stream) => end(stream.on("error", () => undefined)));
    const asked = { ...request(await listening(one)), scheme: "https" as const };
    expect(await probe(asked, OPTIONS)).toMatchObject({ failure: { code } });
  });

  const request = (port: number) => ({
    scheme: "http" as const,
    address: "127.0.0.1",
    port,
    host: "h.example",
    path: "/a",
  });
  const OPTIONS = { timeoutMs: 5_000, insecure: true };

  test.each([
    ["127.0.0.0/8", true],
    ["192.0.2.0/24", false],
  ])("of a listener that takes headers of the PROXY protocol from %s has one: %s", async (range, has) => {
    let got = "";
    const port = await listening(
      createServer((socket) =>
        socket
          .once("data", (data) => {
            got += data.toString("latin1");
            setTimeout(
              () => socket.end("HTTP/1.1 200 OK\r\nX-A: 1\r\nX-A: 2\r\nContent-Length: 0\r\n\r\n"),
              20,
            );
          })
          .on("data", (data) => (got += data.toString("latin1"))),
      ),
    );
    expect(await probe({ ...request(port), headerFrom: [range] }, OPTIONS)).toMatchObject({
      response: { protocol: "HTTP/1.1", status: 200, headers: { "x-a": "1, 2" } },
    });
    expect(got.includes("\r\n\r\n\0\r\nQUIT\n")).toBe(has);
    const head = "HEAD /a HTTP/1.1\r\nHost: h.example\r\nConnection: close\r\n\r\n";
    expect(got.slice(-head.length)).toBe(head);
  });

  test("that is not found is asked for with its page, of which the beginning is kept", async () => {
    const methods: unknown[] = [];
    const port = await listening(
      createHttpServer(({ method }, response) => {
        methods.push(method);
        response.writeHead(404);
        if (method === "HEAD") return void response.end();
        // It never ends.
        response.write(Buffer.alloc(40_000, 0xe9));
        setTimeout(() => response.write(Buffer.alloc(40_000, 0xe9)), 50);
      }),
    );
    const outcome = await probe(request(port), OPTIONS);
    expect(outcome).toMatchObject({ response: { status: 404, body: "é".repeat(65_536) } });
    expect(methods).toEqual(["HEAD", "GET"]);
  });

  test("whose response is cut off", async () => {
    const port = await listening(
      createHttpServer(({ method }, response) => {
        if (method === "HEAD") return void response.writeHead(404).end();
        response.writeHead(404, { "content-length": "10" }).write("abc");
        setTimeout(() => response.destroy(), 50);
      }),
    );
    expect(await probe(request(port), OPTIONS)).toEqual({
      failure: { code: "ECONNRESET", message: "aborted" },
    });
  });

  test("that fails at every address of a name, which Node has no message for", async () => {
    const port = await listening(createServer());
    await new Promise((done) => server.close(done));
    expect(await probe({ ...request(port), address: "localhost" }, OPTIONS)).toEqual({
      failure: { code: "ECONNREFUSED", message: expect.stringMatching(/^(?:connect )?ECONNREFUSED/) },
    });
  });

  test("of a port whose queue is full", async () => {
    const script =
      "import socket, time\ns = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(0)\nprint(s.getsockname()[1], flush=True); time.sleep(60)";
    const full = spawn("python3", ["-c", script], { stdio: ["ignore", "pipe", "ignore"] });
    const [said] = (await nextEvent(full.stdout, "data")) as [Buffer];
    const port = Number(said);
    const waiting = [1, 2, 3].map(() => connect({ host: "127.0.0.1", port }).on("error", () => undefined));
    try {
      await once(waiting[0]!, "connect");
      expect(await isOpen("127.0.0.1", port, 300)).toBe(false);
      expect(await probe(request(port), { ...OPTIONS, timeoutMs: 300 })).toEqual({
        failure: { code: "ETIMEDOUT", message: "no response in 300 ms" },
      });
    } finally {
      for (const socket of waiting) socket.destroy();
      full.kill("SIGKILL");
    }
  });

  test("that nothing responds", async () => {
    const port = await listening(createServer((socket) => void setTimeout(() => socket.destroy(), 300)));
    expect(await isOpen("127.0.0.1", port, 1_000)).toBe(true);
    for (const scheme of ["http", "https"] as const)
      expect(await probe({ ...request(port), scheme }, { ...OPTIONS, timeoutMs: 100 })).toEqual({
        failure: { code: "ETIMEDOUT", message: "no response in 100 ms" },
      });
    await new Promise((done) => server.close(done));
    expect(await isOpen("127.0.0.1", port, 1_000)).toBe(false);
    expect(await probe(request(port), OPTIONS)).toMatchObject({ failure: { code: "ECONNREFUSED" } });
  });
});
