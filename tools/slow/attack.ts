import { type ChildProcess, spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import type { FrontEnd } from "../frontEnd/frontEnd.js";
import { usageOf } from "../frontEnd/processes.js";
import { latencies, type Latencies } from "./wellBehaved.js";

interface Mode {
  /** A resource that suits it. */
  readonly path: string;
  /** slowhttptest's arguments. */
  readonly args: readonly string[];
  /** Sockets that each of its connections costs the front end; 0 where requests are answered at once and none stays. */
  readonly sockets: 0 | 1 | 2;
}

export const MODES: Readonly<Record<string, Mode>> = {
  "slow headers": { path: "/sync/", args: ["-H", "-i", "5", "-x", "24", "-t", "GET"], sockets: 1 },
  "slow body": {
    path: "/synchttp/upload",
    args: ["-B", "-i", "5", "-s", "8192", "-x", "10", "-t", "POST"],
    sockets: 2,
  },
  "slow read": {
    path: "/syncmedia/large.bin",
    args: ["-X", "-n", "5", "-z", "32", "-w", "512", "-y", "1024"],
    sockets: 1,
  },
  range: {
    path: "/syncmedia/large.bin",
    args: ["-R", "-t", "HEAD", "-a", "10", "-b", "3000"],
    sockets: 0,
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
  readonly beside: Phases;
  readonly attacked: Phases;
  /** Sockets of the front end that were open at once, at most. */
  readonly sockets: number;
  readonly memoryMiB: number;
  readonly passed: boolean;
}

interface Phases {
  /** While the attackers connect, a thousand a second. */
  readonly opening: Latencies;
  /** While their connections stand. */
  readonly standing: Latencies;
}

/** Times below this are the scheduler's, not the proxy's. */
const USUAL_P99_MIN_MS = 3;
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
  const besides = await underAttack(neighbour, frontEnd, mode, load);
  const under = await underAttack(frontEnd, frontEnd, mode, load);
  const { sockets } = MODES[mode]!;
  // Where nothing stays, the attack is over when all have connected.
  const phase = sockets === 0 ? "opening" : "standing";
  const usualMs = Math.max(besides.phases[phase].p99Ms, USUAL_P99_MIN_MS);
  // An attack that never stood proves nothing.
  const stood = [besides, under].every((one) => one.sockets >= sockets * load.connections * 0.9);
  return {
    mode,
    quiet,
    beside: besides.phases,
    attacked: under.phases,
    sockets: under.sockets,
    memoryMiB: Math.round(under.memory / 2 ** 20),
    passed:
      stood &&
      under.phases.opening.failures + under.phases.standing.failures === 0 &&
      under.phases[phase].p99Ms <= 2 * usualMs,
  };
}

/** Attackers have processors of their own: here they run (SCHED_IDLE) when nobody else wants one. */
const ATTACKER = ["--idle", "0", "slowhttptest"];

interface UnderAttack {
  readonly phases: Phases;
  /** Of the front end that was attacked, at most. */
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
  // Also where `chrt` itself is missing.
  const over = new Promise((resolve) => attack.once("exit", resolve).once("error", resolve));
  let most = { sockets: 0, memory: 0 };
  const watch = setInterval(() => {
    const { sockets, memory } = usageOf(victim.process.pid!);
    most = { sockets: Math.max(most.sockets, sockets), memory: Math.max(most.memory, memory) };
  }, 500);
  try {
    const opening = await latencies(measured.plainPort, openingSeconds * 1000);
    if (failedToRun(attack)) throw new Error("slowhttptest cannot be run (Debian package slowhttptest)");
    const standing = await latencies(measured.plainPort, seconds * 1000);
    return { phases: { opening, standing }, ...most };
  } finally {
    clearInterval(watch);
    attack.kill("SIGTERM");
    await over;
    await sleep(1_000);
  }
}

/** Where all requests are answered it ends by itself, with 0. */
const failedToRun = ({ pid, exitCode }: ChildProcess): boolean =>
  pid === undefined || (exitCode !== null && exitCode !== 0);
