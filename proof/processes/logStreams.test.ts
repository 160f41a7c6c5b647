import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { ProxyConfigInput } from "../../src/model/index.js";
import { parseConfig } from "../../src/model/index.js";
import { combinedLine, jsonLine } from "../../src/runtime/logs/logFormat.js";
import { cutLine, fittingLine } from "../../src/runtime/logs/standardStreams.js";
import { FakeExchange } from "../../testkit/fakeExchange.js";
import { Hammer, KeepAliveClient } from "../../testkit/keepAliveClient.js";
import { fixed, loopback, oneServer } from "../../testkit/oneServer.js";
import { alive, openFolder, Portico } from "../../testkit/portico.js";
import { freePort } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";

/** Logs on standard output and error: a pipe, whose reader may be slow, or stuck. */

let port: number;
let folder: string;
let portico: Portico | undefined;

beforeEach(async () => {
  port = await freePort();
  folder = openFolder();
});

afterEach(async () => {
  if (portico?.ended === false) reader("SIGCONT");
  await portico?.stop();
});

const LOGS = { access: { stream: "stdout", format: "json" }, error: { stream: "stderr" } } as const;

function config(workers: number, more: Partial<ProxyConfigInput> = {}): ProxyConfigInput {
  return oneServer({
    workers,
    logs: LOGS,
    limits: { keepAliveRequestsMax: 100_000 },
    listeners: [loopback("http", port)],
    routes: [fixed("here")],
    ...more,
  });
}

/** Standard output is a pipe that `cat` reads, as a container's engine does. */
async function start(of: ProxyConfigInput): Promise<Portico> {
  const pipe = join(folder, "pipe");
  const before = `mkfifo ${pipe}; (cat ${pipe} & echo $! > ${folder}/cat.pid); exec > ${pipe}`;
  return (portico = await Portico.start(of, { before }));
}

function reader(signal: NodeJS.Signals): void {
  try {
    process.kill(Number(readFileSync(join(folder, "cat.pid"), "utf8")), signal);
  } catch {
    // It is gone.
  }
}

/** Its line is nearly as long as one may be: few of them fill whatever nobody reads. */
const LONG_PATH = `/${"x".repeat(3_700)}`;

/** From now on, whatever logs to a socket that nobody reads waits. */
async function fillSocket(of: Portico): Promise<void> {
  of.signal("SIGHUP");
  await of.says(/configuration reloaded/);
  of.readOutput(false);
  const hammer = new Hammer(port, 2, LONG_PATH);
  await eventually(() => hammer.responses > 500, "for more lines than the socket takes");
  await hammer.stop();
}

/** Lines of the access log so far, without the one that says that portico is ready. */
const lines = (): string[] => portico!.output.split("\n").slice(1, -1);

test("lines of several workers are not mixed, however long they would be", async () => {
  await start(config(2));
  // Four at once to each worker, all with more than a pipe takes in one piece.
  const clients = await Promise.all(Array.from({ length: 8 }, () => KeepAliveClient.connect(port)));
  // The pipe fills, and then has room for parts only of what waits.
  reader("SIGSTOP");
  const asked = await Promise.all(
    clients.map(async (client, i) => {
      for (let n = 0; n < 100; n++) await client.ask(`/${i}-${n}-${"x".repeat(n * 79)}`);
    }),
  );
  expect(asked).toHaveLength(8);
  reader("SIGCONT");
  await eventually(() => lines().length === 800, "for every line", {
    seen: () => String(lines().length),
    everyMs: 50,
  });
  const targets = lines().map(
    (line) => JSON.parse(line) as { target: string; status: number; route: string },
  );
  expect(Math.max(...lines().map((line) => line.length))).toBeLessThan(4_096);
  expect(new Set(targets.map(({ target }) => /^\/\d-\d+-/.exec(target)?.[0])).size).toBe(800);
  expect(targets.every(({ status, route }) => status === 200 && route === "all")).toBe(true);
  for (const client of clients) client.socket.destroy();
});

test.each([
  ["JSON", jsonLine],
  ["combined", combinedLine],
])("a line of %s that is too long keeps its format", (_, format) => {
  const long = "\x01".repeat(30_000);
  const short = { "User-Agent": "agent", Referer: long };
  const line = fittingLine(format, new FakeExchange({ target: "/x", headers: short }), 4_096);
  expect(line.length).toBeLessThanOrEqual(4_096);
  expect(line).toMatch(/(?:\\x01|\\u0001)\\u2026"/);
  expect(line).toMatch(/agent"(?:,"error":null,.*\})?\n$/);
  if (format === jsonLine) expect(JSON.parse(line)).toMatchObject({ target: "/x", user_agent: "agent" });
});

test("an error line that is too long ends between two characters", () => {
  for (const start of ["", "a", "ab"]) {
    const line = cutLine(`${start}${"\u20ac".repeat(2_000)}\n`, 4_096);
    expect(line).toMatch(/^a?b?\u20ac+\.\.\.\n$/);
    const length = Buffer.byteLength(line);
    expect([length <= 4_096, length > 4_090]).toEqual([true, true]);
  }
});

test("a pipe that nobody reads holds up no request, and what is lost is counted", async () => {
  await start(config(1));
  reader("SIGSTOP");
  const client = await KeepAliveClient.connect(port);
  const requests = 5_000;
  const statuses = new Set<number>();
  for (let n = 0; n < requests; n++) statuses.add((await client.ask(LONG_PATH)).status);
  expect([...statuses]).toEqual([200]);
  await portico!.says(/portico: standard output is not written fast enough; lines are dropped\n/);
  expect(residentMiB(portico!.workers()[0]!)).toBeLessThan(200);
  reader("SIGCONT");
  await portico!.says(/standard output is written again; \d+ lines were dropped\n/);
  const [, dropped] = /(\d+) lines were dropped/.exec(portico!.errors)!;
  const all = (): boolean => lines().length + Number(dropped) === requests;
  await eventually(all, "for the lines", {
    seen: () => `${lines().length} and ${dropped}`,
    everyMs: 50,
  });
  expect(Number(dropped)).toBeGreaterThan(1_000);
  client.socket.destroy();
});

test("a pipe that nobody reads holds up neither reload, reopening nor the end", async () => {
  await start(config(2));
  reader("SIGSTOP");
  const hammer = new Hammer(port, 2, LONG_PATH);
  await eventually(() => hammer.responses > 200, "for more lines than the pipe takes");
  hammer.pauseMs = 10;
  portico!.signal("SIGUSR1");
  portico!.signal("SIGHUP");
  await portico!.says(/configuration reloaded/);
  await hammer.stop();
  expect(hammer.failures).toEqual([]);
  const asked = performance.now();
  portico!.signal("SIGTERM");
  await eventually(() => portico!.workers().length === 0, "for the workers to end");
  expect(performance.now() - asked).toBeLessThan(20_000);
});

test("a socket that nobody reads holds up neither reload nor the end", async () => {
  portico = await Portico.start(config(2));
  // What ends resets the socket: from then on a write to it waits.
  portico.signal("SIGHUP");
  await portico.says(/configuration reloaded/);
  const [first] = portico.workers();
  portico.readOutput(false);
  const hammer = new Hammer(port, 2, LONG_PATH);
  await eventually(() => hammer.responses > 500, "for more lines than the socket takes");
  hammer.pauseMs = 10;
  portico.signal("SIGHUP");
  await eventually(() => !portico!.workers().includes(first!), "for the workers before to end");
  await hammer.stop();
  expect(hammer.failures).toEqual([]);
  const asked = performance.now();
  portico.signal("SIGTERM");
  await eventually(() => portico!.workers().length === 0, "for the workers to end");
  expect(performance.now() - asked).toBeLessThan(20_000);
  portico.readOutput(true);
});

test("a socket that nobody reads does not hold up a worker that has a fault while it ends for one", async () => {
  portico = await Portico.start(config(1));
  await fillSocket(portico);
  const [worker] = portico.workers();
  process.kill(worker!, "SIGWINCH");
  await sleep(100);
  process.kill(worker!, "SIGWINCH");
  await eventually(() => !alive(worker!), "for the worker to end");
  portico.readOutput(true);
  await portico.says(/\nportico: worker \d+ crashed: Error: a fault for the test/);
  await portico.says(new RegExp(`worker ${worker} was killed by SIGKILL; a replacement starts`));
});

test("a worker that ends while its socket is read says how", async () => {
  portico = await Portico.start(config(1));
  const [first] = portico.workers();
  // What ends resets the socket: from then on a write to it might wait.
  portico.signal("SIGHUP");
  await eventually(() => !portico!.workers().includes(first!), "for the worker before to end");
  const [worker] = portico.workers();
  process.kill(worker!, "SIGWINCH");
  await portico.says(new RegExp(`worker ${worker} exited with code 70; a replacement starts`));
});

test("standard error that nobody reads does not hold up the end of the master", async () => {
  const stderr = { stream: "stderr" } as const;
  portico = await Portico.start(config(1, { logs: { access: stderr, error: stderr } }));
  await fillSocket(portico);
  const [first] = portico.workers();
  portico.signal("SIGHUP");
  await eventually(() => !portico!.workers().includes(first!), "for the worker before to end");
  const asked = performance.now();
  portico.signal("SIGTERM");
  await eventually(() => !alive(portico!.pid), "for the master to end");
  expect(performance.now() - asked).toBeLessThan(20_000);
  portico.readOutput(true);
  await portico.gone;
  expect(portico.code).toBe(0);
});

test("SIGUSR1 changes nothing, and a reload continues on the same streams", async () => {
  await start(config(1, { logs: { ...LOGS, error: { stream: "stdout" } } }));
  const client = await KeepAliveClient.connect(port);
  await client.ask("/before");
  portico!.signal("SIGUSR1");
  await client.ask("/after");
  portico!.signal("SIGHUP");
  await portico!.says(/configuration reloaded/);
  const second = await KeepAliveClient.connect(port);
  await second.ask("/reloaded");
  await eventually(() => lines().length === 3, "for the lines", { seen: () => portico!.output });
  expect(lines().map((line) => (JSON.parse(line) as { target: string }).target)).toEqual([
    "/before",
    "/after",
    "/reloaded",
  ]);
  expect(portico!.errors).toMatch(/^portico: configuration reloaded.*\n$/);
  client.socket.destroy();
  second.socket.destroy();
});

test("a wrong stream is the one problem that is reported", () => {
  const wrong = { access: { stream: "syslog" }, error: { stream: "stderr", format: "json" } };
  const parsed = parseConfig({ ...config(1), logs: wrong });
  const found = parsed.ok ? [] : parsed.problems.map(({ code, path, allowed }) => [code, path, allowed]);
  expect(found).toEqual([
    ["config.not-one-of", "logs.access.stream", "stdout, stderr"],
    ["config.unknown-field", "logs.error.format", "path, stream"],
  ]);
});

const residentMiB = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1024;
