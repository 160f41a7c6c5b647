import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import http from "node:http";
import http2 from "node:http2";
import https from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { COLLECT_OPTIONS } from "../../testkit/collected.js";
import { type FrontEnd, startFrontEnd } from "../../testkit/frontEnd.js";
import { comeToRest, levelAtRest } from "../../testkit/level.js";
import { type Usage, usageOf } from "../../testkit/processes.js";
import { randomFrom } from "../../testkit/randomFrom.js";
import { pattern, patternHash } from "../transfer/pattern.js";
import { type Idle, idleUsageOf } from "./idle.js";
import { type Client, HALF_BYTES, MEDIA, OPERATIONS, type Protocol, SIZES } from "./operations.js";
import { type Trend, trendOf } from "./trend.js";
import { nextEvent } from "../../testkit/waiting.js";

const ROOT = join(__dirname, "../..");
const PROTOCOLS: readonly Protocol[] = ["http", "https", "http2"];

export interface SoakOptions {
  readonly minutes: number;
  readonly seed: number;
  readonly reloadEverySeconds: number;
  readonly progress: (line: string) => void;
}

/** What one front end did and used. */
export interface SoakResult {
  readonly name: string;
  /** Reloads ordered, and reloads that it said it had done. */
  readonly reloads: { readonly ordered: number; readonly done: number };
  readonly operations: Readonly<Record<string, number>>;
  /** Operations that went other than they must, the first ones in words. */
  readonly failures: number;
  readonly failureSamples: readonly string[];
  readonly memory: Trend;
  readonly descriptors: Trend;
  readonly sockets: Trend;
  /** What was held although all clients had gone, each time that this was looked at; empty if nothing ever. */
  readonly kept: readonly string[];
  /** With all clients gone, before the load and after it. */
  readonly idle: { readonly before: Idle; readonly after: Idle };
  /** What it wrote to standard error besides that it was reloaded. */
  readonly stderr: string;
}

/**
 * Mixed load with aborts on both sides against two front ends at once: one is reloaded over and over, so that its
 * master shows what it gathers; the other never, so that its worker does.
 */
export async function soak(options: SoakOptions): Promise<{
  readonly frontEnds: readonly SoakResult[];
  /** Uploads whose client left, and that the upstream took for whole. */
  readonly halfBodiesTaken: number;
}> {
  const upstream = spawn(process.execPath, ["--import", "tsx", "proof/soak/upstream.ts"], {
    cwd: ROOT,
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const [line] = (await nextEvent(upstream.stdout, "data")) as [Buffer];
    const port = Number(line.toString());
    const digests = new Map<number, string>();
    for (const size of SIZES) digests.set(size, await patternHash(size));
    const runs = [
      { name: "reloaded", reloadEverySeconds: options.reloadEverySeconds, seed: options.seed },
      { name: "left alone", reloadEverySeconds: Infinity, seed: options.seed + 1 },
    ];
    const files = { digests, media: Buffer.concat(await pattern(MEDIA.bytes).toArray()) };
    const frontEnds = await Promise.all(runs.map((run) => soakOne({ ...options, ...run }, port, files)));
    const taken = await fetch(`http://127.0.0.1:${port}/whole?bytes=${HALF_BYTES}`);
    return { frontEnds, halfBodiesTaken: Number(await taken.text()) };
  } finally {
    upstream.kill();
  }
}

/** Requests under way at once, and pause of each client between two: load, but no overload. */
const CLIENTS = 12;
const PAUSE_MS = 40;
const SAMPLE_MS = 2_000;
const FIRST_LOAD_MS = 10_000;
/** After so long all clients leave, and the front end has to come to rest. */
const SLICE_MS = 60_000;
const REST_MS = 15_000;

async function soakOne(
  options: SoakOptions & { readonly name: string },
  upstreamPort: number,
  files: Pick<Client, "digests" | "media">,
): Promise<SoakResult> {
  const frontEnd = await startFrontEnd({
    upstreams: { web: upstreamPort, fileServer: upstreamPort, webdav: upstreamPort },
    media: { [MEDIA.path]: files.media },
    nodeOptions: COLLECT_OPTIONS,
  });
  const pid = frontEnd.process.pid!;
  try {
    const record = { operations: {} as Record<string, number>, failures: 0, failureSamples: [] as string[] };
    // The first load has everything loaded and compiled that an idle front end keeps from then on.
    await runLoad(frontEnd, options, files, FIRST_LOAD_MS, record);
    const before = await idleUsageOf(pid);
    const level = await levelAtRest(frontEnd);
    const kept = new Set<string>();
    const samples: { at: number; usage: Usage }[] = [];
    const start = performance.now();
    const sampling = setInterval(
      () => samples.push({ at: (performance.now() - start) / 60_000, usage: usageOf(pid) }),
      SAMPLE_MS,
    );
    let ordered = 0;
    const reloading = Number.isFinite(options.reloadEverySeconds)
      ? setInterval(() => {
          ordered++;
          frontEnd.process.kill("SIGHUP");
        }, options.reloadEverySeconds * 1000)
      : undefined;
    const slices = Math.max(1, Math.round((options.minutes * 60_000) / SLICE_MS));
    for (let i = 1; i <= slices; i++) {
      const slice = { ...options, seed: options.seed + i * 1_000 };
      await runLoad(frontEnd, slice, files, (options.minutes * 60_000) / slices, record);
      for (const fault of (await comeToRest(frontEnd, level, REST_MS)).kept) kept.add(fault);
    }
    clearInterval(sampling);
    clearInterval(reloading);
    const trend = (of: (usage: Usage) => number): Trend => trendOf(samples.map((s) => [s.at, of(s.usage)]));
    const idle = { before, after: await idleUsageOf(pid) };
    const said = frontEnd.stderr().split("\n");
    const isReload = (line: string): boolean => line.startsWith("portico: configuration reloaded: ");
    return {
      name: options.name,
      reloads: { ordered, done: said.filter(isReload).length },
      ...record,
      memory: trend((u) => u.memory),
      descriptors: trend((u) => u.descriptors),
      sockets: trend((u) => u.sockets),
      kept: [...kept],
      idle,
      stderr: said.filter((line) => line !== "" && !isReload(line)).join("\n"),
    };
  } finally {
    await frontEnd.stop();
  }
}

interface LoadRecord {
  readonly operations: Record<string, number>;
  failures: number;
  readonly failureSamples: string[];
}

/** Clients at work for a time, each with operations of its own choice; then all their connections are closed. */
async function runLoad(
  frontEnd: FrontEnd,
  { seed, progress, name }: SoakOptions & { readonly name: string },
  files: Pick<Client, "digests" | "media">,
  ms: number,
  record: LoadRecord,
): Promise<void> {
  const random = randomFrom(seed);
  const agents = { http: new http.Agent({ keepAlive: true }), https: new https.Agent({ keepAlive: true }) };
  const ports = { http: frontEnd.plainPort, https: frontEnd.tlsPort };
  const sessions = sessionsTo(frontEnd.tlsPort);
  const client: Client = { ports, agents, session: sessions.current, ...files, random };
  const until = performance.now() + ms;
  const work = async (): Promise<void> => {
    while (performance.now() < until) {
      const [what, run] = choose(random);
      const protocol = PROTOCOLS[Math.floor(random() * PROTOCOLS.length)]!;
      try {
        await withTimeout(run(client, protocol), () =>
          progress(`${name}: ${what} over ${protocol} is late; sockets: ${keepSockets()}`),
        );
        record.operations[what] = (record.operations[what] ?? 0) + 1;
      } catch (error) {
        record.failures++;
        const words = `${what} over ${protocol}: ${(error as Error).message}`;
        if (record.failureSamples.length < 20) record.failureSamples.push(words);
        progress(`${name}: ${words}`);
      }
      await sleep(PAUSE_MS * 2 * random());
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, work));
  agents.http.destroy();
  agents.https.destroy();
  sessions.close();
}

/** Node's clients refuse responses when their uploads hold more than this; the default of 10 is less than one upload. */
const CLIENT_MEMORY_MB = 256;

/** One HTTP/2 session at a time; a reload ends it, and the next request opens another. */
function sessionsTo(port: number) {
  let session: http2.ClientHttp2Session | undefined;
  const current = (): http2.ClientHttp2Session => {
    if (session !== undefined && !session.closed && !session.destroyed) return session;
    const opened = http2.connect(`https://127.0.0.1:${port}`, {
      rejectUnauthorized: false,
      maxSessionMemory: CLIENT_MEMORY_MB,
    });
    opened.on("error", () => undefined);
    opened.on("goaway", () => {
      // Requests under way end; new ones go to a new session.
      if (session === opened) session = undefined;
      opened.close();
    });
    session = opened;
    return opened;
  };
  return { current, close: () => session?.destroy() };
}

function choose(random: () => number): [string, (typeof OPERATIONS)[string]["run"]] {
  const entries = Object.entries(OPERATIONS);
  let left = random() * entries.reduce((sum, [, { weight }]) => sum + weight, 0);
  for (const [name, { weight, run }] of entries) {
    left -= weight;
    if (left < 0) return [name, run];
  }
  return [entries[0]![0], entries[0]![1].run];
}

const OPERATION_MS = 60_000;

/** @param onLate called at half time: what holds the operation up can still be looked at */
async function withTimeout(work: Promise<void>, onLate: () => void): Promise<void> {
  const half = setTimeout(onLate, OPERATION_MS / 2);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`not done after ${OPERATION_MS / 1000} s`)), OPERATION_MS);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
    clearTimeout(half);
  }
}

/** Writes the state of all TCP sockets, queues and timers included, to a file and returns its path. */
function keepSockets(): string {
  const file = join(mkdtempSync(join(tmpdir(), "portico-soak-")), "sockets");
  const { stdout, stderr } = spawnSync("ss", ["-tnmpoi"], { encoding: "utf8" });
  writeFileSync(file, `${stdout}${stderr}`);
  return file;
}
