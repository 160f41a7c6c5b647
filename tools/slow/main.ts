import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { type FrontEnd, startFrontEnd } from "../frontEnd/frontEnd.js";
import { usageOf } from "../frontEnd/processes.js";
import { latencies, type Latencies } from "./wellBehaved.js";

const HELP = `npm run slow-clients -- [OPTIONS]: a well-behaved client among thousands of slow ones

Runs slowhttptest's modes (slow headers, slow body, slow read, range) against the deployed config, and measures how long
requests of a well-behaved client take meanwhile.

  --connections N   slow ones (default 4000)
  --seconds N       of each mode (default 25)
  --help            print this
`;

/** slowhttptest's arguments for each mode; `path` is a resource that suits it. */
const MODES: Readonly<Record<string, { readonly path: string; readonly args: readonly string[] }>> = {
  "slow headers": { path: "/sync/", args: ["-H", "-i", "5", "-x", "24", "-t", "GET"] },
  "slow body": { path: "/synchttp/upload", args: ["-B", "-i", "5", "-s", "8192", "-x", "10", "-t", "POST"] },
  "slow read": {
    path: "/syncmedia/large.bin",
    args: ["-X", "-n", "5", "-z", "32", "-w", "512", "-y", "1024"],
  },
  range: { path: "/syncmedia/large.bin", args: ["-R", "-t", "HEAD", "-a", "10", "-b", "3000"] },
};

/** A well-behaved client may wait twice as long as usual; times below this are the scheduler's, not the proxy's. */
const USUAL_P99_MIN_MS = 2;

interface ModeResult {
  readonly mode: string;
  readonly usual: Latencies;
  readonly meanwhile: Latencies;
  /** Connections of slow clients that were open at once, at most. */
  readonly connections: number;
  readonly memoryMiB: number;
  readonly passed: boolean;
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      connections: { type: "string", default: "4000" },
      seconds: { type: "string", default: "25" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  const upstream = createServer((request, response) => {
    request.resume().on("end", () => response.end("ok"));
    request.on("error", () => undefined);
  }).listen(0, "127.0.0.1");
  await once(upstream, "listening");
  const { port } = upstream.address() as AddressInfo;
  const frontEnd = await startFrontEnd({
    upstreams: { web: port, fileServer: port, webdav: port },
    media: { "large.bin": Buffer.alloc(4 << 20) },
  });
  const results: ModeResult[] = [];
  try {
    for (const mode of Object.keys(MODES)) {
      const result = await measure(frontEnd, mode, Number(values.connections), Number(values.seconds));
      results.push(result);
      console.log(describe(result));
    }
  } finally {
    await frontEnd.stop();
    upstream.closeAllConnections();
    upstream.close();
  }
  const passed = results.every((result) => result.passed);
  const folder = join(__dirname, "../../reliability/results");
  mkdirSync(folder, { recursive: true });
  const record = { name: "slow-clients", date: new Date().toISOString(), passed, ...values, modes: results };
  writeFileSync(join(folder, "slow-clients.json"), `${JSON.stringify(record, null, 2)}\n`);
  return passed ? 0 : 1;
}

async function measure(
  { plainPort, process: master }: FrontEnd,
  mode: string,
  connections: number,
  seconds: number,
): Promise<ModeResult> {
  const { path, args } = MODES[mode]!;
  const usual = await latencies(plainPort, 5_000);
  const attack = spawn(
    "slowhttptest",
    [...args, "-c", String(connections), "-r", "1000", "-l", String(seconds), "-p", "5"].concat(
      "-u",
      `http://127.0.0.1:${plainPort}${path}`,
    ),
    { stdio: "ignore" },
  );
  const attacked = ended(attack);
  let most = { sockets: 0, memory: 0 };
  const watch = setInterval(() => {
    const { sockets, memory } = usageOf(master.pid!);
    most = { sockets: Math.max(most.sockets, sockets), memory: Math.max(most.memory, memory) };
  }, 500);
  // While connections are opened, and while they are there.
  const meanwhile = await latencies(plainPort, (seconds - 5) * 1000);
  clearInterval(watch);
  attack.kill("SIGTERM");
  await attacked;
  await sleep(1_000);
  const allowed = 2 * Math.max(usual.p99Ms, USUAL_P99_MIN_MS);
  return {
    mode,
    usual,
    meanwhile,
    connections: most.sockets,
    memoryMiB: Math.round(most.memory / 2 ** 20),
    // An attack that never stood proves nothing.
    passed: meanwhile.failures === 0 && meanwhile.p99Ms <= allowed && most.sockets >= connections * 0.9,
  };
}

async function ended(child: ChildProcess): Promise<void> {
  const failed = once(child, "error").then(([error]) => {
    throw new Error(`slowhttptest cannot be run: ${(error as Error).message}`);
  });
  await Promise.race([once(child, "exit"), failed]);
}

function describe({ mode, usual, meanwhile, connections, memoryMiB, passed }: ModeResult): string {
  return (
    `${passed ? "ok  " : "FAIL"} ${mode.padEnd(12)} ${connections} sockets, ${memoryMiB} MiB; ` +
    `p99 ${meanwhile.p99Ms.toFixed(2)} ms, usually ${usual.p99Ms.toFixed(2)} ms; ` +
    `${meanwhile.requests} requests, ${meanwhile.failures} failed`
  );
}

main().then(
  (code) => process.exit(code),
  (error: Error) => {
    console.error(`slow-clients: ${error.message}`);
    process.exit(2);
  },
);
