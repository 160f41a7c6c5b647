import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LoadedConfig } from "../../src/runtime/load/loadConfig.js";
import { Generation, type GenerationOptions } from "../../src/runtime/supervisor/processes/generation.js";
import type { ServerOrders } from "../../src/runtime/upstream/upstreamServers.js";
import { isDone, ONLY_TIMEOUTS } from "../../testkit/fakeTimers.js";
import { alive } from "../../testkit/portico.js";
import { eventually } from "../../testkit/waiting.js";
import { logEntries } from "../../testkit/logEntries.js";

/** The workers of one config, as the master starts and ends them. Here they are a script that does what a file says. */

const SCRIPT = `
const { appendFileSync, readFileSync } = require("node:fs");
const mode = readFileSync("MODE", "utf8");
process.on("message", (message) => {
  appendFileSync("FOLDER/" + process.pid, JSON.stringify(message) + "\\n");
  if (message.type === "start" && mode === "exit") process.exit(3);
  if (mode === "old" && process.execArgv.includes("--single-threaded-gc")) process.exit(9);
  if (message.type === "start" && mode === "fail") {
    process.send({ type: "failed", problems: [{ code: "c", path: "p", message: "m", fix: "f" }] });
    process.exit(1);
  }
  if (message.type === "start" && ["ready", "old"].includes(mode)) process.send({ type: "ready" });
  if (mode === "silent") return;
  if (message.type === "servers") process.send({ type: "servers", turn: message.turn, seen: { web: [] } });
  if (message.type === "challenges") process.send({ type: "responding", turn: message.turn });
  if (message.type === "drain") process.send({ type: "draining" });
  if (message.type === "stop") process.exit(0);
});
process.on("SIGTERM", () => process.send({ type: "draining" }));
process.on("SIGUSR2", () => process.exit(0));
`;

let folder: string;
let lines: string[];
let orders: ServerOrders;
const generations: Generation[] = [];
const files: number[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "portico-generation-"));
  lines = [];
  orders = {};
  mode("ready");
  writeFileSync(
    join(folder, "worker.cjs"),
    SCRIPT.replace("MODE", join(folder, "mode")).replace("FOLDER", folder),
  );
  jest.useFakeTimers(ONLY_TIMEOUTS);
});
afterEach(async () => {
  for (const generation of generations) {
    generation.stop();
    for (const pid of generation.pids) process.kill(pid, "SIGKILL");
  }
  await Promise.all(generations.splice(0).map(({ gone }) => gone));
  jest.useRealTimers();
  jest.restoreAllMocks();
  for (const fd of files.splice(0)) closeSync(fd);
  rmSync(folder, { recursive: true });
});

/** What a worker that starts from now on does. */
const mode = (text: "ready" | "silent" | "fail" | "exit" | "old"): void =>
  writeFileSync(join(folder, "mode"), text);
const CERTIFICATE = { id: "a", source: "files", key: "k", cert: "c" } as const;
const KILL_AFTER_MS = 5_000;

function generationOf(more: Partial<GenerationOptions> = {}, drainMs = 0): Generation {
  const config = { timeouts: { drainMs } };
  const made = new Generation({
    size: 1,
    command: [join(folder, "worker.cjs")],
    loaded: {
      config,
      tls: { one: { certificates: [CERTIFICATE] } },
      warnings: [],
    } as unknown as LoadedConfig,
    sockets: new Map(),
    heap: undefined,
    logToStderr: false,
    ticketKeys: "keys",
    challenges: [],
    upstreams: {
      get orders() {
        return orders;
      },
      heard: () => undefined,
    },
    guards: { state: { key: "", states: {} }, heard: () => undefined },
    pauses: () => ({ maintenance: [] }),
    limits: { all: { times: {}, running: {} }, heard: () => undefined, gone: () => undefined },
    count: () => undefined,
    statusResponse: () => Promise.resolve(undefined),
    log: (level, message) => void lines.push(`${level} ${message}`),
    ...more,
  });
  generations.push(made);
  return made;
}

async function started(more: Partial<GenerationOptions> = {}, drainMs?: number): Promise<Generation> {
  const generation = generationOf(more, drainMs);
  expect(await generation.start()).toEqual([]);
  return generation;
}

/** What a worker was sent. */
function sent(pid: number): Record<string, unknown>[] {
  if (!readdirSync(folder).includes(String(pid))) return [];
  return logEntries(readFileSync(join(folder, String(pid)), "utf8"));
}

const only = (generation: Generation): number => generation.pids[0]!;

test("workers get what they need, and those that start later what is newest", async () => {
  const [one, other] = [openSync("/dev/null", "r"), openSync("/dev/null", "r")];
  files.push(one, other);
  const socket = (fd: number) => ({ fd }) as never;
  const sockets = new Map([
    ["a", socket(one)],
    ["b", socket(other)],
    ["c", socket(one)],
  ]);
  const generation = await started({ sockets });
  const first = only(generation);
  const { loaded, ...rest } = sent(first)[0]!;
  expect(rest).toEqual({
    ...{ type: "start", fds: { a: 4, b: 5, c: 4 }, ticketKeys: "keys", challenges: [] },
    ...{
      serverOrders: {},
      limits: { times: {}, running: {} },
      pauses: { maintenance: [] },
      guards: { key: "", states: {} },
      logToStderr: false,
      without: [],
    },
  });
  expect(loaded).toMatchObject({ tls: { one: { certificates: [CERTIFICATE] } } });
  generation.broadcast({ type: "ticketKeys", ticketKeys: "newer" });
  const renewal = { certificates: [{ ...CERTIFICATE, cert: "newer" }] };
  generation.broadcast({ type: "renewed", renewal });
  const challenges = [{ type: "http-01", token: "t", keyAuthorization: "t.k" }] as const;
  await generation.respondToChallenges(challenges);
  orders = { web: { "http://a:1": { drained: true, down: false } } };
  expect(await generation.orderServers(orders)).toEqual([{ web: [] }]);
  expect(sent(first).slice(1)).toEqual([
    { type: "ticketKeys", ticketKeys: "newer" },
    { type: "renewed", renewal },
    { type: "challenges", challenges, turn: 1 },
    { type: "servers", orders, turn: 1 },
  ]);
  process.kill(first, "SIGKILL");
  await eventually(() => lines.length === 1);
  jest.advanceTimersByTime(100);
  await eventually(() => generation.accepts);
  expect(sent(only(generation))).toMatchObject([
    { ticketKeys: "newer", challenges, serverOrders: orders, loaded: { tls: { one: renewal } } },
  ]);
});

test("one that exits is replaced: after a growing time, or at once if it served for a while", async () => {
  const real = performance.now.bind(performance);
  let ahead = 1_000_000;
  jest.spyOn(performance, "now").mockImplementation(() => ahead + real());
  const generation = await started();
  const dies = async (delay: number | undefined): Promise<void> => {
    const [pid, before] = [only(generation), lines.length];
    process.kill(pid, "SIGKILL");
    await eventually(() => lines.length > before);
    const after = delay === undefined ? "" : ` in ${delay} ms`;
    expect(lines.slice(before)).toEqual([
      `crit worker ${pid} was killed by SIGKILL; a replacement starts${after}`,
    ]);
    expect([generation.accepts, generation.pids]).toEqual([false, []]);
    if (delay !== undefined) jest.advanceTimersByTime(delay - 1);
    expect(generation.pids).toEqual([]);
    jest.advanceTimersByTime(1);
    await eventually(() => generation.accepts);
  };
  for (const delay of [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]) await dies(delay);
  ahead += 10_000;
  await dies(undefined);
  await dies(100);
  // Nothing is left of those that are gone.
  jest.advanceTimersByTime(60_000);
  expect([lines.length, generation.accepts]).toEqual([10, true]);
  // One of two serves on.
  const two = await started({ size: 2 });
  mode("silent");
  process.kill(only(two), "SIGKILL");
  await eventually(() => two.pids.length === 1);
  jest.advanceTimersByTime(100);
  expect([two.pids.length, two.accepts]).toEqual([2, true]);
});

test("one that does not start in its turn is reported, and tried again", async () => {
  const generation = await started();
  mode("fail");
  process.kill(only(generation), "SIGKILL");
  await eventually(() => lines.length === 1);
  jest.advanceTimersByTime(100);
  const [failing] = generation.pids;
  await eventually(() => lines.length === 3);
  expect(lines.slice(1)).toEqual([
    `crit worker ${failing}: p: m; f`,
    `crit worker ${failing} exited with code 1; a replacement starts in 200 ms`,
  ]);
  mode("exit");
  jest.advanceTimersByTime(200);
  const [exiting] = generation.pids;
  await eventually(() => lines.length === 4);
  expect(lines[3]).toBe(`crit worker ${exiting} exited with code 3; a replacement starts in 400 ms`);
  const { execPath } = process;
  process.execPath = "/none/node";
  jest.advanceTimersByTime(400);
  process.execPath = execPath;
  await eventually(() => lines.length === 5);
  expect(lines[4]).toBe(
    "crit worker could not be started: spawn /none/node ENOENT; a replacement starts in 800 ms",
  );
  mode("silent");
  jest.advanceTimersByTime(800);
  expect(generation.pids).toHaveLength(1);
  const late = only(generation);
  jest.advanceTimersByTime(29_999);
  expect(lines).toHaveLength(5);
  jest.advanceTimersByTime(1);
  await eventually(() => lines.length === 7);
  expect(lines[5]).toMatch(new RegExp(`^crit worker ${late}: : worker ${late} was not ready within 30 s; `));
  expect(lines[6]).toBe(`crit worker ${late} was killed by SIGKILL; a replacement starts in 1600 ms`);
  jest.advanceTimersByTime(1_599);
  expect(lines).toHaveLength(7);
});

describe("a generation that does not start says why, and ends:", () => {
  const message = (text: string) => ({ code: "serve.worker-failed", path: "", message: text });
  test.each<[string, () => void, Partial<GenerationOptions>, object]>([
    ["what is wrong", () => mode("fail"), {}, { code: "c", path: "p", message: "m", fix: "f" }],
    [
      "an exit",
      () => mode("exit"),
      {},
      message(expect.stringMatching(/^worker \d+ exited with code 3 before it was ready$/) as never),
    ],
    [
      "no program",
      () => undefined,
      { command: ["\0"] },
      message(expect.stringMatching(/^worker could not be started: .* before it was ready$/) as never),
    ],
  ])("%s", async (_, prepare, more, problem) => {
    prepare();
    const generation = generationOf(more);
    expect(await generation.start()).toEqual([expect.objectContaining(problem)]);
    await generation.gone;
    expect([lines, generation.accepts]).toEqual([[], false]);
  });

  test("no word within half a minute", async () => {
    mode("silent");
    const generation = generationOf();
    const starting = generation.start();
    const pid = only(generation);
    await eventually(() => sent(pid).length === 1);
    jest.advanceTimersByTime(29_999);
    expect([await isDone(starting), alive(pid)]).toEqual([false, true]);
    jest.advanceTimersByTime(1);
    expect(await starting).toMatchObject([message(`worker ${pid} was not ready within 30 s`)]);
    await generation.gone;
    expect([alive(pid), lines]).toEqual([false, []]);
  });

  test("a stop", async () => {
    mode("silent");
    const generation = generationOf({ size: 2 });
    const starting = generation.start();
    void generation.drain();
    expect(await starting).toMatchObject([message("portico was stopped before it was ready")]);
  });
});

test("a drain gets a response when none accepts, and over when none is left", async () => {
  const generation = await started({ size: 2 });
  const pids = generation.pids;
  const quiet = generation.drain();
  expect([generation.accepts, await isDone(generation.gone)]).toEqual([false, false]);
  await quiet;
  expect(pids.map((pid) => sent(pid).at(-1))).toEqual([{ type: "drain" }, { type: "drain" }]);
  // No worker has to respond any more, or is waited for.
  for (const pid of pids) process.kill(pid, "SIGSTOP");
  await generation.respondToChallenges([]);
  for (const pid of pids) process.kill(pid, "SIGCONT");
  process.kill(pids[0]!, "SIGUSR2");
  await eventually(() => generation.pids.length === 1);
  expect(await isDone(generation.gone)).toBe(false);
  process.kill(pids[1]!, "SIGUSR2");
  await generation.gone;
  expect(lines).toEqual([]);
  // Nor is anybody started any more.
  const dying = await started();
  process.kill(only(dying), "SIGKILL");
  await eventually(() => lines.length === 1);
  await dying.drain();
  await dying.gone;
  jest.advanceTimersByTime(10_000);
  expect(dying.pids).toEqual([]);
});

test("those that do not respond are not waited for, and killed in the end", async () => {
  const drainMs = 1_000;
  const [drained, stopped, endless] = [
    await started({}, drainMs),
    await started(),
    await started({}, 2 ** 31 - 1),
  ];
  const pids = [drained, stopped, endless].map(only);
  for (const pid of pids) process.kill(pid, "SIGSTOP");
  const responded = drained.respondToChallenges([]);
  const quiet = drained.drain();
  void endless.drain();
  stopped.stop();
  jest.advanceTimersByTime(1_999);
  expect(await isDone(quiet)).toBe(false);
  jest.advanceTimersByTime(1);
  await quiet;
  jest.advanceTimersByTime(KILL_AFTER_MS - 2_001);
  expect(await isDone(Promise.race([drained.gone, stopped.gone, endless.gone]))).toBe(false);
  jest.advanceTimersByTime(1);
  await stopped.gone;
  jest.advanceTimersByTime(drainMs - 1);
  expect(await isDone(Promise.race([drained.gone, responded]))).toBe(false);
  jest.advanceTimersByTime(1);
  await Promise.all([drained.gone, responded]);
  expect(await isDone(endless.gone)).toBe(false);
  process.kill(pids[2]!, "SIGKILL");
  await endless.gone;
  const deaf = await started();
  process.kill(only(deaf), "SIGSTOP");
  const late = deaf.respondToChallenges([]);
  jest.advanceTimersByTime(9_999);
  expect(await isDone(late)).toBe(false);
  jest.advanceTimersByTime(1);
  await late;
});
