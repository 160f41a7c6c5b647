import { once } from "node:events";
import { readlinkSync } from "node:fs";
import * as http from "node:http";
import * as net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { ProxyConfigInput } from "../../src/model/index.js";
import { parseConfig, type Problem } from "../../src/model/index.js";
import { Health } from "../../src/runtime/supervisor/listeners/health.js";
import { KeepAliveClient } from "../../testkit/keepAliveClient.js";
import { everywhere, fixed, loopback, oneServer } from "../../testkit/oneServer.js";
import { alive, installedRuntime, killAll, Portico, processes, SELDOM } from "../../testkit/portico.js";
import { freePort, freePorts, occupied } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";

/** The health listener, as probes see it; and what comes between SIGTERM and the drain. */

let port: number;
let health: number;
let portico: Portico;

beforeEach(async () => {
  port = await freePort();
  health = await freePort();
});

afterEach(async () => {
  killAll();
  await eventually(() => processes("master").length === 0, "for the processes to go", SELDOM);
});

function config(more: Partial<ProxyConfigInput> = {}): ProxyConfigInput {
  return oneServer({
    listeners: [loopback("http", port)],
    healthListener: { address: "127.0.0.1", port: health },
    routes: [fixed("here")],
    ...more,
  });
}

interface Response {
  readonly status: number;
  readonly text: string;
  readonly headers: http.IncomingHttpHeaders;
}

/** One request on a connection of its own. */
function probe(path: string, to = health, method = "GET"): Promise<Response> {
  return new Promise((resolve, reject) => {
    const request = http.request({ host: "127.0.0.1", port: to, path, method, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      response.on("end", () => resolve({ status: response.statusCode!, text, headers: response.headers }));
    });
    request.on("error", reject).end();
  });
}

const ready = async (): Promise<number> => (await probe("/readyz")).status;

/** Asks again and again; every response counts. */
class Probes {
  readonly statuses = new Map<number | string, number>();
  private running = true;
  private readonly loop: Promise<void>;

  constructor(path: string) {
    this.loop = this.run(path);
  }

  async stop(): Promise<ReadonlyMap<number | string, number>> {
    this.running = false;
    await this.loop;
    return this.statuses;
  }

  private async run(path: string): Promise<void> {
    while (this.running) {
      const seen = await probe(path).then(
        ({ status }) => status,
        (error: NodeJS.ErrnoException) => error.code ?? error.message,
      );
      this.statuses.set(seen, (this.statuses.get(seen) ?? 0) + 1);
      await sleep(5);
    }
  }
}

const mainMaster = async (): Promise<number> => {
  await eventually(() => processes("master").length === 1, "for one master", SELDOM);
  return processes("master")[0]!;
};

test("a proxy that serves is healthy and ready; nothing else is there", async () => {
  portico = await Portico.start(config());
  expect(await probe("/readyz")).toMatchObject({ status: 200, text: "ready\n" });
  expect(await probe("/healthz?from=kubelet")).toMatchObject({ status: 200, text: "ok\n" });
  const head = await probe("/healthz", health, "HEAD");
  expect([head.status, head.text, head.headers.connection]).toEqual([200, "", "close"]);
  expect((await probe("/")).status).toBe(404);
  const post = await probe("/healthz", health, "POST");
  expect([post.status, post.headers.allow]).toEqual([405, "GET, HEAD"]);
  expect(await portico.stop()).toBe(0);
});

test("without a health listener nothing listens but the listeners", async () => {
  portico = await Portico.start(config({ healthListener: undefined }));
  await expect(probe("/healthz")).rejects.toThrow("ECONNREFUSED");
});

test("slow and greedy clients are closed, and probes still get a response", async () => {
  portico = await Portico.start(config());
  const slow = Array.from({ length: 20 }, () => net.connect(health, "127.0.0.1"));
  const closed = slow.map((socket, i) => {
    socket.on("error", () => undefined).write(i % 2 === 0 ? "GET /healthz HTTP/1.1\r\n" : "");
    return new Promise((resolve) => socket.resume().once("close", resolve));
  });
  const long = net.connect(health, "127.0.0.1").setEncoding("latin1");
  let response = "";
  long.on("data", (text: string) => (response += text)).on("error", () => undefined);
  long.write(`GET /healthz HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(8_000)}\r\n\r\n`);
  expect(await ready()).toBe(200);
  await Promise.all(closed);
  expect(response).toMatch(/^HTTP\/1\.1 431 /);
});

test("whoever holds all connections that there may be keeps no probe out", async () => {
  portico = await Portico.start(config());
  const sockets: net.Socket[] = [];
  const hold = async (): Promise<void> => {
    const socket = net.connect(health, "127.0.0.1").on("error", () => undefined);
    sockets.push(socket.resume());
    await once(socket, "connect");
  };
  const closed = (): number => sockets.filter((socket) => socket.closed).length;
  await Promise.all(Array.from({ length: 64 }, hold));
  await sleep(100);
  expect(closed()).toBe(0);
  await hold();
  await eventually(() => closed() > 0, "for one beyond 64 to close another");
  expect(closed()).toBe(1);
  for (let i = 0; i < 35; i++) await hold();
  for (let i = 0; i < 20; i++) {
    await hold();
    expect(await ready()).toBe(200);
  }
  const isClosed = (): boolean => sockets[0]!.closed && sockets[50]!.closed;
  await eventually(isClosed, "for the oldest to be closed");
  for (const socket of sockets) socket.destroy();
});

test("it is not ready as long as no worker accepts, and healthy for a while", async () => {
  portico = await Portico.start(config());
  // Dies as soon as it is there, again and again: the master waits longer each time.
  const killed = new Set<number>();
  for (let i = 0; i < 4; i++) {
    // One that was killed is listed until the master has noticed.
    const next = (): number | undefined => portico.workers().find((pid) => !killed.has(pid));
    let worker: number | undefined;
    await eventually(() => (worker = next()) !== undefined, "for a worker");
    killed.add(worker!);
    process.kill(worker!, "SIGKILL");
    await eventually(async () => (await ready()) === 503, "for it not to be ready");
  }
  expect((await probe("/readyz")).text).toBe("no worker accepts connections\n");
  expect((await probe("/healthz")).status).toBe(200);
  await eventually(async () => (await ready()) === 200, "for it to be ready again");
});

test("it is not ready before the first worker accepts", async () => {
  const runtime = await installedRuntime((code) =>
    code.replace(
      'case "start":',
      'case "start": Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2000);',
    ),
  );
  const starting = Portico.start(config(), { runtime });
  const seen = (): Promise<string> =>
    probe("/readyz").then(
      ({ text }) => text,
      () => "",
    );
  await eventually(async () => (await seen()) !== "", "for a response");
  expect(await seen()).toBe("no worker accepts connections\n");
  portico = await starting;
  expect(await seen()).toBe("ready\n");
});

test("neither a reload nor an upgrade refuses a probe, or shows anything but ready", async () => {
  portico = await Portico.start(config({ workers: 2 }), { runtime: await installedRuntime() });
  const probes = [new Probes("/readyz"), new Probes("/healthz")];
  portico.signal("SIGHUP");
  await portico.says(/configuration reloaded/);
  const first = portico.pid;
  portico.signal("SIGUSR2");
  await portico.says(/has taken over/);
  await eventually(() => !alive(first), "for the old master to go");
  const second = await mainMaster();
  process.kill(second, "SIGUSR2");
  await eventually(() => !alive(second), "for the second to go");
  process.kill(await mainMaster(), "SIGHUP");
  await eventually(() => (portico.errors.match(/reloaded/g) ?? []).length === 2, "for the reload");
  for (const each of probes) {
    const seen = await each.stop();
    expect([...seen.keys()]).toEqual([200]);
    // It asks whenever it gets a response: a few times in each of what happened, however fast that was.
    expect(seen.get(200)).toBeGreaterThan(20);
  }
  process.kill(await mainMaster(), "SIGTERM");
  await eventually(() => processes("master").length === 0, "for the end", SELDOM);
});

test("a reload moves it, and one that is refused leaves it where it was", async () => {
  portico = await Portico.start(config());
  const other = await freePort();
  portico.rewrite(config({ healthListener: { address: "127.0.0.1", port: other } }));
  portico.signal("SIGHUP");
  await portico.says(/configuration reloaded/);
  expect((await probe("/readyz", other)).status).toBe(200);
  await expect(probe("/readyz")).rejects.toThrow("ECONNREFUSED");
  const taken = await occupied(health);
  portico.rewrite(config());
  portico.signal("SIGHUP");
  await portico.says(
    /healthListener: cannot listen on 127.0.0.1:\d+: .*\(pid \d+\) already listens there \[listen.address-in-use\]/,
  );
  expect((await probe("/readyz", other)).status).toBe(200);
  taken.close();
  portico.rewrite(config({ healthListener: undefined }));
  portico.signal("SIGHUP");
  await eventually(
    () =>
      probe("/readyz", other).then(
        () => false,
        () => true,
      ),
    "for it to close",
  );
});

test("a takeover in the middle of a reload that moves it leaves it where the reload puts it", async () => {
  const problems: Problem[] = [];
  const health = new Health(() => undefined, { warn: (p) => problems.push(p) });
  const [before, after] = await freePorts(2);
  const at = (port: number) => ({ address: "127.0.0.1", port, anyAddress: false });
  expect(await health.open(at(before!))).toEqual([]);
  // The reload opens the new place, the takeover settles by the config in service, and then the reload is done.
  expect(await health.open(at(after!))).toEqual([]);
  const socket = (): string => readlinkSync(`/proc/self/fd/${health.passable!.fd}`);
  const first = socket();
  await health.settle(at(before!));
  // What stays is not closed and opened again.
  expect([socket(), (await probe("/readyz", before)).status]).toEqual([first, 200]);
  await health.settle(at(after!));
  expect((await probe("/readyz", after)).status).toBe(200);
  await expect(probe("/readyz", before)).rejects.toThrow("ECONNREFUSED");
  const taken = await occupied(before!);
  await health.settle(at(before!));
  expect(problems).toMatchObject([{ code: "listen.address-in-use", path: "healthListener" }]);
  await health.settle(undefined);
  await expect(probe("/readyz", after)).rejects.toThrow("ECONNREFUSED");
  taken.close();
});

test("a start is refused if the port is taken", async () => {
  const taken = await occupied(health);
  portico = await Portico.start(config());
  await portico.gone;
  expect([portico.code, portico.errors]).toEqual([1, expect.stringContaining("listen.address-in-use")]);
  taken.close();
});

/** Code in a master that holds up a step, and says so. */
const LATER = "new Promise((later) => setTimeout(later, 1000))";
const SAY = 'process.stderr.write("the last step\\n"); ';

describe("drainDelayMs", () => {
  test("SIGTERM: not ready at once, requests go on for that long, then it drains", async () => {
    portico = await Portico.start(config({ timeouts: { drainDelayMs: 4_000 } }));
    const asked = performance.now();
    portico.signal("SIGTERM");
    await eventually(async () => (await ready()) === 503, "for it not to be ready");
    expect(performance.now() - asked).toBeLessThan(3_500);
    expect(await probe("/readyz")).toMatchObject({ text: "stopping\n" });
    expect((await probe("/healthz")).status).toBe(200);
    const client = await KeepAliveClient.connect(port);
    expect(await client.ask()).toMatchObject({ status: 200, closes: false });
    client.socket.destroy();
    await portico.gone;
    expect(performance.now() - asked).toBeGreaterThan(3_950);
    expect(portico.code).toBe(0);
  });

  test("a worker that dies meanwhile is replaced; reloads and upgrades are refused", async () => {
    portico = await Portico.start(config({ timeouts: { drainDelayMs: 60_000 } }));
    portico.signal("SIGTERM");
    await eventually(async () => (await ready()) === 503, "for it not to be ready");
    const [worker] = portico.workers();
    process.kill(worker!, "SIGKILL");
    await eventually(async () => {
      const client = await KeepAliveClient.connect(port);
      const response = await Promise.race([client.ask().catch(() => undefined), sleep(200)]);
      client.socket.destroy();
      return response?.status === 200;
    }, "for another worker");
    portico.signal("SIGHUP");
    portico.signal("SIGTERM");
    await portico.gone;
    expect([portico.code, portico.errors]).toEqual([0, expect.not.stringContaining("reloaded")]);
  });

  test.each<[string, (code: string) => string, (next: number) => number]>([
    [
      "the old master, when the new one acts already",
      (code) => code.replace("predecessor?.tookOver()", `if (predecessor) { ${SAY}await ${LATER}; } $&`),
      () => portico.pid,
    ],
    [
      "the new master, before it takes over",
      (code) => code.replace('this.send({ type: "takeOver", counts })', `${SAY}${LATER}.then(() => $&)`),
      (next) => next,
    ],
  ])("SIGTERM in the last step of an upgrade waits as well: %s", async (_, edit, asked) => {
    const delayed = config({ timeouts: { drainDelayMs: 3_000 } });
    portico = await Portico.start(delayed, { runtime: await installedRuntime(edit) });
    portico.signal("SIGUSR2");
    await portico.says(/the last step/);
    const next = processes("master").find((pid) => pid !== portico.pid)!;
    process.kill(asked(next), "SIGTERM");
    const since = performance.now();
    await eventually(async () => (await ready().catch(() => 0)) === 503, "for it not to be ready");
    await eventually(() => !alive(portico.pid), "for the old master to go");
    while (performance.now() - since < 2_500) {
      const client = await KeepAliveClient.connect(port);
      expect(await client.ask()).toMatchObject({ status: 200, closes: false });
      client.socket.destroy();
      await sleep(50);
    }
    await eventually(() => processes("master").length === 0, "for the new master to go", SELDOM);
  });

  test.each(["SIGTERM", "SIGQUIT", "SIGINT"] as const)("%s after SIGTERM ends the wait", async (signal) => {
    portico = await Portico.start(config({ timeouts: { drainDelayMs: 60_000 } }));
    portico.signal("SIGTERM");
    await eventually(async () => (await ready()) === 503, "for it not to be ready");
    portico.signal(signal);
    await portico.gone;
    expect(portico.code).toBe(0);
  });

  test("SIGQUIT alone does not wait", async () => {
    portico = await Portico.start(config({ timeouts: { drainDelayMs: 60_000 } }));
    portico.signal("SIGQUIT");
    await portico.gone;
    expect(portico.code).toBe(0);
  });

  test("while a drain waits for a request it is healthy and not ready, and the next signal cuts it", async () => {
    const silent = net.createServer((socket) => socket.on("error", () => undefined)).listen(0, "127.0.0.1");
    await once(silent, "listening");
    const { virtualServers } = oneServer({
      listeners: [loopback("http", port)],
      routes: [everywhere({ type: "proxy", upstream: "silent" })],
    });
    const url = `http://127.0.0.1:${(silent.address() as net.AddressInfo).port}`;
    portico = await Portico.start(config({ upstreams: [{ name: "silent", url }], virtualServers }));
    const client = await KeepAliveClient.connect(port);
    client.send("/");
    await sleep(100);
    portico.signal("SIGTERM");
    await eventually(async () => (await ready()) === 503, "for it not to be ready");
    expect((await probe("/healthz")).status).toBe(200);
    portico.signal("SIGTERM");
    await portico.gone;
    silent.close();
    client.socket.destroy();
  });
});

describe("where it may listen", () => {
  const problems = (healthListener: object, listeners = config().listeners): string[] => {
    const parsed = parseConfig({ ...config({ listeners }), healthListener });
    return parsed.ok ? [] : parsed.problems.map(({ code, path }) => `${code} ${path}`);
  };
  test.each([
    "127.0.0.1",
    "::1",
    "10.1.2.3",
    "192.168.0.9",
    "169.254.1.1",
    "fe80::1%eth0",
    "fd00::1",
    "100.64.0.1",
  ])("%s", (address) => expect(problems({ address, port: 9_180 })).toEqual([]));

  test.each(["198.41.0.4", "2606:4700::1", "0.0.0.0", "::", "224.0.0.1", "::ffff:198.41.0.4"])(
    "not %s",
    (address) =>
      expect(problems({ address, port: 9_180 })).toEqual([
        "config.public-health-listener healthListener.address",
      ]),
  );

  test("on all addresses only if that is said, and never on a listener's port", () => {
    expect(problems({ address: "0.0.0.0", port: 9_180, anyAddress: true })).toEqual([]);
    expect(problems({ address: "198.41.0.4", port: 9_180, anyAddress: true })).toHaveLength(1);
    const clash = ["config.port-conflict healthListener.port"];
    expect(problems({ address: "127.0.0.1", port })).toEqual(clash);
    expect(problems({ address: "0.0.0.0", port, anyAddress: true })).toEqual(clash);
    expect(problems({ address: "10.0.0.1", port })).toEqual([]);
    expect(problems({ address: "::1", port })).toEqual([]);
  });
});
