import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import * as http from "node:http";
import * as http2 from "node:http2";
import * as net from "node:net";
import { join } from "node:path";
import * as tls from "node:tls";
import { setTimeout as sleep } from "node:timers/promises";
import type { ListenerInput, ProxyConfigInput } from "../../src/model/index.js";
import { VERSION } from "../../src/model/text/version.js";
import { fixed, logsIn, loopback, oneServer, writeCertificate } from "../../testkit/oneServer.js";
import { freePort, occupied } from "../../testkit/ports.js";
import { type Issued, issue } from "../../testkit/certificates.js";
import { Hammer, KeepAliveClient } from "../../testkit/keepAliveClient.js";
import { alive, installedRuntime, openFolder, Portico } from "../../testkit/portico.js";
import { eventually, nextEvent } from "../../testkit/waiting.js";

/** Master and workers as processes, over real sockets. */

let issued: Issued;
let folder: string;
let port: number;
let tlsPort: number;
let tlsFiles: ReturnType<typeof writeCertificate>;
let upstream: http.Server;
/** Responses of `/slow` that the upstream still owes. */
let owed: http.ServerResponse[];
let portico: Portico | undefined;

const at = (name: string): string => join(folder, name);
const read = (name: string): string => (existsSync(at(name)) ? readFileSync(at(name), "utf8") : "");

beforeAll(async () => {
  issued = await issue();
  upstream = http.createServer((request, response) => {
    if (request.url === "/slow") owed.push(response);
    else response.end("upstream");
  });
  upstream.listen(0, "127.0.0.1");
  await once(upstream, "listening");
});

afterAll(() => {
  upstream.closeAllConnections();
  upstream.close();
});

beforeEach(async () => {
  owed = [];
  folder = openFolder();
  port = await freePort();
  tlsPort = await freePort();
  tlsFiles = writeCertificate(folder, issued);
});

afterEach(async () => {
  for (const response of owed) response.end();
  while (portico?.ended === false) {
    portico.signal("SIGTERM");
    await Promise.race([portico.gone, sleep(50)]);
  }
  portico = undefined;
});

/** One http listener; `/` responds with the body, `/slow` is the upstream's. */
function config(body = "one", more: Partial<ProxyConfigInput> = {}): ProxyConfigInput {
  const { port: upstreamPort } = upstream.address() as net.AddressInfo;
  return oneServer({
    logs: logsIn(folder),
    listeners: [loopback("http", port)],
    upstreams: [{ name: "web", url: `http://127.0.0.1:${upstreamPort}` }],
    routes: [fixed(body), { name: "slow", path: "/slow", action: { type: "proxy", upstream: "web" } }],
    ...more,
  });
}

const https = (to: number, more = {}): ListenerInput => loopback(`https-${to}`, to, { ...tlsFiles, ...more });

/** A listener for either version of HTTP. */
const both = (): Pick<ProxyConfigInput, "listeners"> => ({
  listeners: [loopback("http", port), https(tlsPort)],
});

async function get(path = "/", to = port): Promise<string> {
  const client = await KeepAliveClient.connect(to);
  const { body } = await client.ask(path);
  client.socket.destroy();
  return body;
}

/** A request that the upstream has, and has not responded to. */
async function slowRequest(): Promise<KeepAliveClient> {
  const client = await KeepAliveClient.connect(port);
  client.send("/slow");
  const before = owed.length;
  await eventually(() => owed.length > before, "for the upstream to be asked");
  return client;
}

/** One such request over HTTP/1.1 and one over HTTP/2. @returns waits for what their clients get */
async function slowRequests(): Promise<() => Promise<string[]>> {
  const client = await slowRequest();
  const before = owed.length;
  const session = http2.connect(`https://127.0.0.1:${tlsPort}`, { rejectUnauthorized: false });
  session.on("error", () => undefined);
  const stream = session.request({ ":path": "/slow" }).on("error", () => undefined);
  let body = "";
  stream.on("data", (chunk: Buffer) => (body += chunk.toString()));
  const closed = new Promise((resolve) => stream.on("close", resolve));
  await eventually(() => owed.length > before, "for the upstream to be asked again");
  const response = (): Promise<string> =>
    client.response().then(
      (got) => got.body,
      () => "",
    );
  return async () => [await response(), await closed.then(() => body)];
}

const CUT = ["", ""];
const LATE = ["late", "late"];
const respondLate = (): void => owed.splice(0).forEach((response) => response.end("late"));

/** Both are logged, with this status. */
function expectLogged(status: number): void {
  for (const version of ["1\\.1", "2\\.0"])
    expect(read("access.log")).toMatch(new RegExp(`"GET /slow HTTP/${version}" ${status} `));
}

async function refused(to = port): Promise<boolean> {
  const socket = net.connect(to, "127.0.0.1");
  const outcome = await new Promise<boolean>((resolve) => {
    socket.once("connect", () => resolve(false)).once("error", () => resolve(true));
  });
  socket.destroy();
  return outcome;
}

describe("start", () => {
  test("serves HTTP/1.1, TLS and HTTP/2, and reports when it does", async () => {
    portico = await Portico.start(config("one", { workers: 2, ...both() }));
    expect(portico.output).toBe(
      `portico ${VERSION} ready: http://127.0.0.1:${port} https://127.0.0.1:${tlsPort}, 2 workers\n`,
    );
    expect(portico.workers()).toHaveLength(2);
    expect(readFileSync(`/proc/${portico.pid}/cmdline`, "latin1")).toMatch(/^portico: master/);
    expect(readFileSync(`/proc/${portico.workers()[0]}/cmdline`, "latin1")).toMatch(/^portico: worker/);
    expect(await get()).toBe("one");
    expect(await overTls(tlsPort, ["http/1.1"])).toMatch(/^HTTP\/1\.1 200 OK[^]*one$/);
    expect(await overTls(tlsPort, undefined)).toMatch(/^HTTP\/1\.1 200 OK/);
    expect(await overHttp2(tlsPort)).toBe("one");
    await piecesArrive();
    expect(await portico.stop()).toBe(0);
    expect(portico.errors).toBe("");
  });

  /**
   * No small piece waits until the one before was acknowledged. In a conversation that takes up to 40 ms, as the kernel
   * hopes to send it with a response.
   */
  async function piecesArrive(): Promise<void> {
    const client = net.connect(port, "127.0.0.1").setNoDelay(true);
    const took = { request: [] as number[], response: [] as number[] };
    for (let round = 0; round < 16; round++) {
      client.write("POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n");
      await eventually(() => owed.length === 1, "for the upstream to be asked");
      const response = owed.shift()!;
      took.request.push(await timed(() => client.write("x"), response.req));
      response.writeHead(200, { "Content-Length": 2 }).write("x");
      await nextEvent(client, "data");
      took.response.push(await timed(() => response.end("x"), client));
    }
    client.destroy();
    for (const each of Object.values(took)) expect(each.sort((a, b) => a - b)[3]).toBeLessThan(30);
  }

  async function timed(send: () => void, to: http.IncomingMessage | net.Socket): Promise<number> {
    const began = performance.now();
    send();
    await nextEvent(to, "data");
    return performance.now() - began;
  }

  test("refuses a bad config with every problem, and leaves nothing running", async () => {
    portico = await Portico.start({ ...config(), workers: 0, version: 1, upstreams: [] } as ProxyConfigInput);
    await portico.gone;
    expect(portico.code).toBe(1);
    expect(portico.errors).toMatch(/^workers: .*\[config\.[a-z-]+\]$/m);
    expect(portico.errors).toMatch(/^portico: cannot start: 1 problem$/m);
    expect(portico.output).toBe("");
    expect(await refused()).toBe(true);
  });

  test("refuses TLS files that do not fit, without showing any of the key", async () => {
    writeFileSync(at("key.pem"), (await issue()).key);
    portico = await Portico.start(
      config("one", { listeners: [https(port), { ...https(port + 1, { key: at("none.pem") }) }] }),
    );
    await portico.gone;
    expect(portico.code).toBe(1);
    expect(portico.errors).toContain("[files.key-mismatch]");
    expect(portico.errors).toMatch(/listeners\[1\]\.tls\.key \(.*none\.pem\): does not exist/);
    expect(portico.errors).not.toContain(read("key.pem").split("\n")[2]);
  });

  test("names the process that uses the port, and every other socket it cannot open", async () => {
    const holder = await occupied(port);
    const listeners = [
      { name: "http", address: "127.0.0.1", port, protocol: "http" as const },
      { name: "far", address: "192.0.2.77", port, protocol: "http" as const },
    ];
    portico = await Portico.start(config("one", { listeners }));
    await portico.gone;
    holder.close();
    expect(portico.code).toBe(1);
    expect(portico.errors).toMatch(
      new RegExp(
        `listeners\\[0\\]: cannot listen on 127\\.0\\.0\\.1:${port}: .+ \\(pid ${process.pid}\\) already listens there \\[listen\\.address-in-use\\]`,
      ),
    );
    expect(portico.errors).toContain("listeners[1]: cannot listen on 192.0.2.77");
    expect(portico.errors).toContain("[listen.address-not-available]");
  });

  test("ends if a worker cannot start", async () => {
    writeFileSync(at("fail"), "");
    portico = await Portico.start(config(), { env: { TEST_WORKERS_FAIL: at("fail") } });
    await portico.gone;
    expect(portico.code).toBe(1);
    expect(portico.errors).toMatch(
      /worker \d+ exited with code 3 before it was ready \[serve\.worker-failed\]/,
    );
  });

  test("an IPv6 listener leaves IPv4 to its neighbour on the same port", async () => {
    const listeners = [
      { name: "v4", address: "0.0.0.0", port, protocol: "http" as const },
      { name: "v6", address: "::", port, protocol: "http" as const },
    ];
    portico = await Portico.start(config("one", { listeners }));
    expect(portico.output).toContain(`http://0.0.0.0:${port} http://[::]:${port}`);
    expect(await get()).toBe("one");
    expect(await portico.stop()).toBe(0);
  });
});

describe("sockets of systemd", () => {
  let first: net.Server;
  let second: net.Server;
  const fdOf = (server: net.Server): number => (server as unknown as { _handle: { fd: number } })._handle.fd;

  beforeEach(async () => {
    first = net.createServer().listen(0, "127.0.0.1");
    second = net.createServer().listen(0, "127.0.0.1");
    await Promise.all([once(first, "listening"), once(second, "listening")]);
  });

  test("are used if they fit a listener, and reported if they do not", async () => {
    port = (first.address() as net.AddressInfo).port;
    const spare = (second.address() as net.AddressInfo).port;
    const own = await freePort();
    const listeners = [
      { name: "passed", address: "127.0.0.1", port, protocol: "http" as const },
      { name: "own", address: "127.0.0.1", port: own, protocol: "http" as const },
    ];
    const sockets = [
      { fd: fdOf(second), name: "spare.socket" },
      { fd: fdOf(first), name: "portico.socket" },
    ];
    portico = await Portico.start(config("one", { listeners }), { sockets, env: { LISTEN_PIDFDID: "1" } });
    // This process would take connections away as long as it listens as well.
    first.close();
    second.close();
    expect(await get()).toBe("one");
    expect(await get("/", own)).toBe("one");
    expect(portico.errors).toMatch(
      new RegExp(
        `warning: spare\\.socket: was passed by systemd, but no listener listens on 127\\.0\\.0\\.1:${spare}`,
      ),
    );
    const environment = readFileSync(`/proc/${portico.workers()[0]}/environ`, "latin1");
    expect(environment).not.toMatch(/LISTEN_(FDS|PID)/);
    portico.rewrite(config("two", { listeners }));
    portico.signal("SIGHUP");
    await portico.says(/configuration reloaded/);
    expect(await get()).toBe("two");
    expect(await portico.stop()).toBe(0);
  });
});

describe("reload", () => {
  test("loads a good config without refusing or cutting a request", async () => {
    const workers = 2;
    portico = await Portico.start(config("one", { workers }));
    const before = portico.workers();
    const idle = await KeepAliveClient.connect(port);
    expect((await idle.ask()).body).toBe("one");
    const slow = await slowRequest();
    const hammer = new Hammer(port);
    for (const body of ["two", "three"]) {
      await eventually(() => hammer.responses > 50, "for the hammer to get going");
      portico.errors = "";
      portico.rewrite(config(body, { workers }));
      portico.signal("SIGHUP");
      await portico.says(/configuration reloaded/);
      await eventually(() => hammer.bodies.has(body), "for the new config to respond");
    }
    await hammer.stop();
    expect(hammer.failures).toEqual([]);
    expect(await get()).toBe("three");
    await idle.end();
    expect(before.some(alive)).toBe(true);
    owed.shift()!.end("late");
    const late = await slow.response();
    expect(late).toMatchObject({ status: 200, closes: true });
    await slow.end();
    await eventually(() => !before.some(alive), "for the old workers to go");
    await eventually(() => portico!.workers().length === 2, "for the new ones to be alone");
  });

  test("lets a running HTTP/2 stream finish, and ends its connection", async () => {
    portico = await Portico.start(config("one", { listeners: [https(port)] }));
    const session = http2.connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false });
    const closed = once(session, "close");
    const stream = session.request({ ":path": "/slow" });
    await eventually(() => owed.length === 1, "for the upstream to be asked");
    portico.signal("SIGHUP");
    await portico.says(/configuration reloaded/);
    owed.shift()!.end("late");
    let body = "";
    for await (const chunk of stream) body += String(chunk);
    expect(body).toBe("late");
    await closed;
    expect(await overHttp2(port)).toBe("one");
  });

  test("adds and removes listeners", async () => {
    const added = await freePort();
    const one = { name: "http", address: "127.0.0.1", port, protocol: "http" as const };
    const two = { name: "two", address: "127.0.0.1", port: added, protocol: "http" as const };
    portico = await Portico.start(config("one", { listeners: [one] }));
    portico.rewrite(config("two", { listeners: [one, two] }));
    portico.signal("SIGHUP");
    await portico.says(/configuration reloaded/);
    expect([await get("/", port), await get("/", added)]).toEqual(["two", "two"]);
    portico.errors = "";
    portico.rewrite(config("three", { listeners: [two] }));
    portico.signal("SIGHUP");
    await portico.says(/configuration reloaded/);
    await eventually(() => refused(port), "for the port to be closed");
    expect(await get("/", added)).toBe("three");
  });

  test("refuses a bad config with every problem, and keeps serving", async () => {
    portico = await Portico.start(config("one"));
    const before = portico.workers();
    const idle = await KeepAliveClient.connect(port);
    await idle.ask();
    portico.rewrite(
      config("two", { listeners: [https(port, { key: at("none.pem"), dhparam: at("no.pem") })] }),
    );
    portico.signal("SIGHUP");
    await portico.says(/reload refused; the current config stays in force: 2 problems/);
    expect(portico.errors).toMatch(/none\.pem\): does not exist .*\n    fix: /);
    await eventually(() => read("error.log").includes("no.pem"), "for the error log");
    expect(read("error.log")).toMatch(
      /\[error\] \d+#\d+: listeners\[0\]\.tls\.key \(.*none\.pem\): does not exist/,
    );
    expect((await idle.ask()).body).toBe("one");
    expect(portico.workers()).toEqual(before);
    portico.rewrite("{");
    portico.signal("SIGHUP");
    await portico.says(/config\.not-json/);
    expect((await idle.ask()).body).toBe("one");
  });

  test("refuses a config whose port is taken, and keeps its sockets", async () => {
    portico = await Portico.start(config("one"));
    const busy = net.createServer().unref().listen(0, "127.0.0.1");
    await once(busy, "listening");
    const taken = (busy.address() as net.AddressInfo).port;
    const free = await freePort();
    const listener = (name: string, to: number) => ({
      name,
      address: "127.0.0.1",
      port: to,
      protocol: "http" as const,
    });
    portico.rewrite(config("two", { listeners: [listener("a", free), listener("b", taken)] }));
    portico.signal("SIGHUP");
    // Not one of its own sockets, though they are of the same family.
    await portico.says(
      new RegExp(
        `listeners\\[1\\]: cannot listen on 127\\.0\\.0\\.1:${taken}: .* \\(pid ${process.pid}\\) already listens there \\[listen`,
      ),
    );
    await portico.says(/reload refused/);
    expect(await get()).toBe("one");
    expect(await refused(free)).toBe(true);
    busy.close();
  });

  test("says that a change between all addresses and one needs a restart", async () => {
    const listener = (address: string) => ({ name: "http", address, port, protocol: "http" as const });
    portico = await Portico.start(config("one", { listeners: [listener("0.0.0.0")] }));
    portico.rewrite(config("two", { listeners: [listener("127.0.0.1")] }));
    portico.signal("SIGHUP");
    await portico.says(/while portico itself listens on 0\.0\.0\.0:\d+ .*\n.*Restart portico/);
    expect(await get()).toBe("one");
  });

  test("gives up workers that do not become ready, and keeps serving", async () => {
    portico = await Portico.start(config("one"), { env: { TEST_WORKERS_FAIL: at("fail") } });
    const before = portico.workers();
    writeFileSync(at("fail"), "");
    const hammer = new Hammer(port, 4);
    portico.rewrite(config("two"));
    portico.signal("SIGHUP");
    await portico.says(/exited with code 3 before it was ready[^]*reload refused/);
    await hammer.stop();
    expect(hammer.failures).toEqual([]);
    expect([...hammer.bodies.keys()]).toEqual(["one"]);
    await eventually(() => String(portico!.workers()) === String(before), "for the new workers to go");
    rmSync(at("fail"));
    portico.signal("SIGHUP");
    await portico.says(/configuration reloaded/);
    expect(await get()).toBe("two");
  });

  test("requested again while one runs, happens again", async () => {
    portico = await Portico.start(config("one"));
    portico.signal("SIGHUP");
    await sleep(50);
    portico.rewrite(config("two"));
    portico.signal("SIGHUP");
    await portico.says(/configuration reloaded[^]*configuration reloaded/);
    expect(await get()).toBe("two");
  });

  test("TLS sessions are resumed by every worker, before and after", async () => {
    portico = await Portico.start(config("one", { workers: 2, listeners: [https(port)] }));
    const session = await tlsSession();
    for (let i = 0; i < 6; i++) expect(await tlsSession(session.session)).toMatchObject({ reused: true });
    portico.signal("SIGHUP");
    await portico.says(/configuration reloaded/);
    for (let i = 0; i < 6; i++) expect(await tlsSession(session.session)).toMatchObject({ reused: true });
  });
});

describe("a worker", () => {
  test("that is killed is replaced, and connections wait for it", async () => {
    portico = await Portico.start(config("one"));
    const [worker] = portico.workers();
    process.kill(worker!, "SIGKILL");
    await eventually(() => !alive(worker!), "for the worker to be gone");
    expect(await Promise.all(Array.from({ length: 20 }, () => get()))).toEqual(Array(20).fill("one"));
    expect(portico.errors).toMatch(
      new RegExp(`worker ${worker} was killed by SIGKILL; a replacement starts in 100 ms`),
    );
    expect(portico.workers()).not.toContain(worker);
  });

  test("with an internal fault logs it and is replaced", async () => {
    portico = await Portico.start(config("one", both()));
    const [worker] = portico.workers();
    const responses = await slowRequests();
    process.kill(worker!, "SIGWINCH");
    await portico.says(new RegExp(`worker ${worker} exited with code 70`));
    expect(read("error.log")).toMatch(/\[crit\] .*worker \d+ crashed: Error: a fault for the test.*at /);
    expect(await responses()).toEqual(CUT);
    expectLogged(499);
    await eventually(() => portico!.workers().length === 1, "for its successor");
    expect(await get()).toBe("one");
  });

  test.each(["SIGTERM", "SIGQUIT"] as const)(
    "that alone is asked to stop by %s finishes and is replaced",
    async (signal) => {
      portico = await Portico.start(config("one", both()));
      const [worker] = portico.workers();
      const responses = await slowRequests();
      process.kill(worker!, signal);
      await portico.says(new RegExp(`worker ${worker} was asked to stop; a replacement starts`));
      // It is replaced once, however often it is asked.
      process.kill(worker!, signal);
      expect(await get()).toBe("one");
      respondLate();
      expect(await responses()).toEqual(LATE);
      await eventually(() => !alive(worker!), "for the worker to go");
      await eventually(() => portico!.workers().length === 1, "for the successor to be alone");
      expect(portico.errors).not.toContain("exited");
    },
  );

  test("that a person starts says that it is not for people", async () => {
    const started = spawnSync(process.execPath, [await installedRuntime(), "worker"], { encoding: "utf8" });
    expect([started.status, started.stderr]).toEqual([
      64,
      "portico worker: this command is for `portico serve`, which starts its workers itself\n",
    ]);
  });

  test("ignores what a terminal or service manager signals to the whole group", async () => {
    portico = await Portico.start(config("one", { workers: 2 }));
    const before = portico.workers();
    for (const worker of before)
      for (const signal of ["SIGHUP", "SIGINT", "SIGUSR2"]) process.kill(worker, signal);
    expect(await get()).toBe("one");
    expect(portico.workers()).toEqual(before);
  });
});

describe("stop", () => {
  test("lets a running request finish, takes no new ones, and ends with 0", async () => {
    portico = await Portico.start(config("one", both()));
    const idle = await KeepAliveClient.connect(port);
    await idle.ask();
    const slow = await slowRequest();
    const responses = await slowRequests();
    portico.signal("SIGTERM");
    await idle.end();
    expect(await refused()).toBe(true);
    respondLate();
    expect(await slow.response()).toMatchObject({ body: "late", closes: true });
    expect(await responses()).toEqual(LATE);
    await portico.gone;
    expect(portico.code).toBe(0);
    expectLogged(200);
  });

  test.each(["SIGTERM", "SIGINT"] as const)("by a second %s cuts running requests", async (signal) => {
    portico = await Portico.start(config("one", both()));
    const responses = await slowRequests();
    portico.signal(signal);
    await eventually(() => refused(), "for the port to be closed");
    portico.signal(signal);
    expect(await responses()).toEqual(CUT);
    await portico.gone;
    expect(portico.code).toBe(0);
    expectLogged(499);
  });

  test("cuts requests that take longer than drainMs", async () => {
    portico = await Portico.start(config("one", { timeouts: { drainMs: 300 }, ...both() }));
    const responses = await slowRequests();
    portico.signal("SIGQUIT");
    expect(await responses()).toEqual(CUT);
    await portico.gone;
    expect(portico.code).toBe(0);
    expectLogged(499);
  });

  test("while it starts is a stop, not a failure", async () => {
    portico = await Portico.start(config("one"), { env: { TEST_STOP_AT_START: "1" } });
    await portico.gone;
    expect(portico.code).toBe(0);
    expect(portico.errors).toBe("");
  });

  test("of the master by SIGKILL ends the workers when they are done", async () => {
    portico = await Portico.start(config("one", { workers: 2, ...both() }));
    const workers = portico.workers();
    const responses = await slowRequests();
    portico.signal("SIGKILL");
    await eventually(() => refused(), "for the port to be closed");
    respondLate();
    expect(await responses()).toEqual(LATE);
    await eventually(() => !workers.some(alive), "for the workers to go");
  });
});

describe("logs", () => {
  test("are reopened on SIGUSR1 by master and workers, and no debugger opens", async () => {
    portico = await Portico.start(config("one"));
    await get();
    await eventually(() => read("access.log") !== "", "for the first line");
    // The worker alone, and by the master's order.
    for (const pid of [...portico.workers(), portico.pid]) {
      renameSync(at("access.log"), at(`access.log.${pid}`));
      renameSync(at("error.log"), at(`error.log.${pid}`));
      process.kill(pid, "SIGUSR1");
      await eventually(
        () => existsSync(at("access.log")) && existsSync(at("error.log")),
        "for the new files",
      );
      await eventually(
        async () => (await get()) === "one" && read("access.log") !== "",
        "for a line in the new file",
      );
    }
    portico.rewrite("{");
    portico.signal("SIGHUP");
    await eventually(() => read("error.log").includes("config.not-json"), "for the master's line");
    expect(portico.errors).not.toContain("Debugger");
  });
});

describe("limits", () => {
  test("connections beyond connectionsMax are closed at once, and reported once", async () => {
    portico = await Portico.start(config("one", { limits: { connectionsMax: 2 } }));
    const kept = [await KeepAliveClient.connect(port), await KeepAliveClient.connect(port)];
    for (const client of kept) expect((await client.ask()).body).toBe("one");
    for (let i = 0; i < 3; i++) await (await KeepAliveClient.connect(port)).end();
    kept[0]!.socket.destroy();
    await eventually(
      () =>
        get().then(
          (body) => body === "one",
          () => false,
        ),
      "for a place to be free",
    );
    await eventually(() => read("error.log").includes("connectionsMax"), "for the warning");
    expect(read("error.log").match(/\[warn\] .*connectionsMax \(2\) is reached/g)).toHaveLength(1);
  });

  test("a connection beyond a limit takes the place of one that waits, and cuts no request", async () => {
    const limits = { connectionsMax: 6, connectionsPerClientMax: 6 };
    portico = await Portico.start(config("one", { ...both(), limits }));
    const session = http2.connect(`https://127.0.0.1:${tlsPort}`, { rejectUnauthorized: false });
    session.on("error", () => undefined);
    const stream = session.request({ ":path": "/" });
    stream.resume();
    await once(stream, "close");
    const secure = tls.connect({ port: tlsPort, host: "127.0.0.1", rejectUnauthorized: false });
    secure.on("error", () => undefined);
    await once(secure, "secureConnect");
    secure.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await once(secure, "data");
    const secureLeft = once(secure.resume(), "end");
    // Longer than the proxy's clock needs to tell which of two has waited longer.
    await sleep(600);
    // It has no request yet, and keeps its place for that.
    const unused = await KeepAliveClient.connect(port);
    const kept = await KeepAliveClient.connect(port);
    expect((await kept.ask()).body).toBe("one");
    const keptLeft = once(kept.socket, "end");
    const running = await slowRequests();
    await sleep(1_500);
    // Those that have waited longest go first, one for each that comes.
    for (const gone of [secureLeft, keptLeft]) {
      const client = await KeepAliveClient.connect(port);
      expect((await client.ask()).body).toBe("one");
      await gone;
    }
    expect((await unused.ask()).body).toBe("one");
    // Its client may still be reading.
    const again = session.request({ ":path": "/" }).resume();
    expect((await once(again, "response"))[0]).toMatchObject({ ":status": 200 });
    for (const response of owed.splice(0)) response.end("served");
    expect(await running()).toEqual(["served", "served"]);
    const warned = (): number =>
      read("error.log").split("take the place of connections that wait").length - 1;
    await eventually(() => warned() > 0, "for the warning");
    expect(warned()).toBe(1);
  });

  test("running out of descriptors neither spins nor kills a worker", async () => {
    portico = await Portico.start(config("one"), { before: "ulimit -n 64" });
    const [worker] = portico.workers();
    expect(portico.errors).toMatch(/limits\.connectionsMax \(16384\) cannot be reached: .* 64 files/);
    const sockets = Array.from({ length: 120 }, () =>
      net.connect(port, "127.0.0.1").on("error", () => undefined),
    );
    await sleep(300);
    const before = cpuTicks(worker!);
    await sleep(1000);
    expect(cpuTicks(worker!) - before).toBeLessThan(60);
    for (const socket of sockets) socket.destroy();
    await eventually(
      () =>
        get().then(
          (body) => body === "one",
          () => false,
        ),
      "for a response",
    );
    expect(portico.workers()).toEqual([worker]);
    const said = () => read("error.log").match(/too many open files|files can be opened again/g);
    await eventually(() => said()?.length === 2, "for both lines", { seen: () => read("error.log") });
    expect(said()).toEqual(["too many open files", "files can be opened again"]);
  });
});

/** User and system time of a process in hundredths of a second. */
function cpuTicks(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "latin1")
    .replace(/^.*\) /, "")
    .split(" ");
  return Number(fields[11]) + Number(fields[12]);
}

async function overTls(to: number, protocols: string[] | undefined): Promise<string> {
  const socket = tls.connect({
    port: to,
    host: "127.0.0.1",
    rejectUnauthorized: false,
    ALPNProtocols: protocols,
  });
  socket.setEncoding("latin1");
  socket.write("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  let text = "";
  for await (const chunk of socket) text += chunk as string;
  return text;
}

async function overHttp2(to: number): Promise<string> {
  const session = http2.connect(`https://127.0.0.1:${to}`, { rejectUnauthorized: false });
  const stream = session.request({ ":path": "/" });
  let body = "";
  for await (const chunk of stream) body += String(chunk);
  session.close();
  return body;
}

async function tlsSession(session?: Buffer): Promise<{ session: Buffer; reused: boolean }> {
  const socket = tls.connect({
    port,
    host: "127.0.0.1",
    rejectUnauthorized: false,
    ALPNProtocols: ["http/1.1"],
    session,
  });
  await once(socket, "secureConnect");
  const found = { session: socket.getSession()!, reused: socket.isSessionReused() };
  socket.destroy();
  return found;
}
