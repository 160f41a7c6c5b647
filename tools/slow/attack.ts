import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { FrontEnd } from "../frontEnd/frontEnd.js";
import { usageOf } from "../frontEnd/processes.js";
import { latencies, type Latencies } from "./wellBehaved.js";

interface Mode {
  /** A resource that suits it. */
  readonly path: string;
  /** slowhttptest's arguments. */
  readonly args: readonly string[];
  /** Its requests are complete and answered at once: connections do not add up. */
  readonly answered?: true;
}

export const MODES: Readonly<Record<string, Mode>> = {
  "slow headers": { path: "/sync/", args: ["-H", "-i", "5", "-x", "24", "-t", "GET"] },
  "slow body": { path: "/synchttp/upload", args: ["-B", "-i", "5", "-s", "8192", "-x", "10", "-t", "POST"] },
  "slow read": {
    path: "/syncmedia/large.bin",
    args: ["-X", "-n", "5", "-z", "32", "-w", "512", "-y", "1024"],
  },
  range: {
    path: "/syncmedia/large.bin",
    args: ["-R", "-t", "HEAD", "-a", "10", "-b", "3000"],
    answered: true,
  },
};

export interface Load {
  /** Slow clients at once. */
  readonly connections: number;
  readonly seconds: number;
}

export interface ModeResult {
  readonly mode: string;
  /** While nobody attacks. */
  readonly quiet: Latencies;
  /** While the neighbour is attacked: what is usual on a machine as busy as this. */
  readonly usual: Latencies;
  /** While the slow connections are opened, a thousand a second; shown, not judged by time. */
  readonly opening: Latencies;
  /** While they stand. */
  readonly attacked: Latencies;
  /** Sockets of the front end that were open at once, at most. */
  readonly sockets: number;
  readonly memoryMiB: number;
  readonly passed: boolean;
}

/** Times below this are the scheduler's, not the proxy's. */
const USUAL_P99_MIN_MS = 2;
const QUIET_MS = 5_000;
const OPENED_PER_SECOND = 1_000;

/**
 * How long a front end's well-behaved client waits while slow ones attack it, and while the same ones attack a neighbour
 * on the same machine: the difference is the attack's, not that of the programs which carry it out.
 */
export async function measure(
  frontEnd: FrontEnd,
  neighbour: FrontEnd,
  mode: string,
  load: Load,
): Promise<ModeResult> {
  const quiet = await latencies(frontEnd.plainPort, QUIET_MS);
  const beside = await underAttack(neighbour, frontEnd, mode, load);
  const { opening, standing: attacked, sockets, memory } = await underAttack(frontEnd, frontEnd, mode, load);
  const usual = beside.standing;
  // An attack that never stood proves nothing.
  const stood = MODES[mode]!.answered === true || Math.min(sockets, beside.sockets) >= load.connections * 0.9;
  return {
    mode,
    quiet,
    usual,
    opening,
    attacked,
    sockets,
    memoryMiB: Math.round(memory / 2 ** 20),
    passed:
      stood &&
      opening.failures + attacked.failures === 0 &&
      attacked.p99Ms <= 2 * Math.max(usual.p99Ms, USUAL_P99_MIN_MS),
  };
}

/** Attackers have processors of their own: here they run (SCHED_IDLE) when nobody else wants one. */
const ATTACKER = ["--idle", "0", "slowhttptest"];

interface UnderAttack {
  readonly opening: Latencies;
  readonly standing: Latencies;
  readonly sockets: number;
  readonly memory: number;
}

async function underAttack(
  victim: FrontEnd,
  measured: FrontEnd,
  mode: string,
  { connections, seconds }: Load,
): Promise<UnderAttack> {
  const { path, args } = MODES[mode]!;
  const openingSeconds = connections / OPENED_PER_SECOND + 1;
  const lasting = Math.ceil(openingSeconds + seconds + 5);
  const much = ["-c", connections, "-r", OPENED_PER_SECOND, "-l", lasting, "-p", 5].map(String);
  const url = `http://127.0.0.1:${victim.plainPort}${path}`;
  const attack = spawn("chrt", [...ATTACKER, ...args, ...much, "-u", url], { stdio: "ignore" });
  const over = ended(attack);
  let most = { sockets: 0, memory: 0 };
  const watch = setInterval(() => {
    const { sockets, memory } = usageOf(victim.process.pid!);
    most = { sockets: Math.max(most.sockets, sockets), memory: Math.max(most.memory, memory) };
  }, 500);
  const opening = await latencies(measured.plainPort, openingSeconds * 1000);
  const standing = await latencies(measured.plainPort, seconds * 1000);
  clearInterval(watch);
  attack.kill("SIGTERM");
  await over;
  await sleep(1_000);
  return { opening, standing, ...most };
}

async function ended(child: ChildProcess): Promise<void> {
  const failed = once(child, "error").then(([error]) => {
    throw new Error(`slowhttptest cannot be run: ${(error as Error).message}`);
  });
  await Promise.race([once(child, "exit"), failed]);
}
