import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { FrontEnd } from "../../testkit/frontEnd.js";
import { usageOf } from "../../testkit/processes.js";
import { latencies, type Latencies } from "./wellBehaved.js";

interface Mode {
  /** A resource that suits it. */
  readonly path: string;
  /** slowhttptest's arguments. */
  readonly args: readonly string[];
  /** Sockets that each of its connections costs the front end; 0 where requests get a response at once and none stays. */
  readonly sockets: 0 | 1 | 2;
  /** Its line in the access log, where every request gets a response. */
  readonly logged?: RegExp;
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
    // More ranges than are served: the whole file.
    logged: /"HEAD \/syncmedia\/large\.bin HTTP\/1\.1" (?:200|206|416) /g,
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
  /** Sockets of the front end that were open at once, at most; and of the neighbour while that was attacked. */
  readonly sockets: number;
  readonly besideSockets: number;
  /** Requests of the attackers that got a response, where they are. */
  readonly responded: number;
  readonly memoryMiB: number;
  /** Of it, what was not there before the attack. */
  readonly grownMiB: number;
  readonly passed: boolean;
}

interface Phases {
  /** While the attackers connect, a thousand a second. */
  readonly opening: Latencies;
  /** While their connections stand. */
  readonly standing: Latencies;
}

/** Times below this are the scheduler's, not the proxy's. */
const USUAL_MIN_MS = 3;
/**
 * What slow clients send arrives in bursts, and one request in a hundred meets one: how long it waits then is less the
 * proxy's than the kernel's and the hypervisor's (3 to 45 ms on machines that all have two processors). No user
 * notices a wait below this.
 */
const NOTICED_MS = 100;
/** Memory that a slow client may cost: the first pieces of a file are of 64 KiB, and whole ones of 512 are for who reads. */
const CLIENT_BYTES_MAX = 128 * 1024;
/** What there may be besides: garbage, the work of connecting, the well-behaved client. */
const OTHER_BYTES_MAX = 64 * 2 ** 20;
const OPENED_PER_SECOND = 1_000;
/** How long the test waits for attackers that connect late. */
const OPENING_MORE_SECONDS = 20;
/** Share of the connections that must stand, or the attack proves nothing. */
const STANDING_SHARE = 0.9;

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
  const quiet = await latencies(frontEnd.plainPort, load.seconds * 1_000);
  const besides = await underAttack(neighbour, frontEnd, mode, load);
  const under = await underAttack(frontEnd, frontEnd, mode, load);
  const { sockets, logged } = MODES[mode]!;
  // Where nothing stays, the attack is over when all have connected.
  const phase = sockets === 0 ? "opening" : "standing";
  const [usual, attacked] = [besides.phases[phase], under.phases[phase]];
  const enough = load.connections * STANDING_SHARE;
  const stood = [besides, under].every(
    (one) => one.sockets >= sockets * enough && (logged === undefined || one.responded >= enough),
  );
  return {
    mode,
    quiet,
    beside: besides.phases,
    attacked: under.phases,
    sockets: under.sockets,
    besideSockets: besides.sockets,
    responded: under.responded,
    memoryMiB: Math.round(under.memory / 2 ** 20),
    grownMiB: Math.round(under.grown / 2 ** 20),
    passed:
      stood &&
      under.grown <= load.connections * CLIENT_BYTES_MAX + OTHER_BYTES_MAX &&
      under.phases.opening.failures + under.phases.standing.failures === 0 &&
      attacked.p95Ms <= 2 * Math.max(usual.p95Ms, USUAL_MIN_MS) &&
      attacked.p99Ms <= Math.max(2 * usual.p99Ms, NOTICED_MS),
  };
}

/** Attackers have processors of their own: here they run (SCHED_IDLE) when nobody else wants one. */
const ATTACKER = ["--idle", "0", "slowhttptest"];

interface UnderAttack {
  readonly phases: Phases;
  /** Of the front end that was attacked, at most. */
  readonly sockets: number;
  readonly memory: number;
  /** By how much memory grew, at most. */
  readonly grown: number;
  /** Attackers' requests that got a response, by the access log. */
  readonly responded: number;
}

async function underAttack(
  victim: FrontEnd,
  measured: FrontEnd,
  mode: string,
  { connections, seconds }: Load,
): Promise<UnderAttack> {
  const { path, args, logged, sockets: each } = MODES[mode]!;
  const openingSeconds = connections / OPENED_PER_SECOND + 1;
  const lasting = Math.ceil(openingSeconds + OPENING_MORE_SECONDS + seconds + 5);
  const much = ["-c", connections, "-r", OPENED_PER_SECOND, "-l", lasting, "-p", 5].map(String);
  const before = { responded: responded(victim, logged), memory: usageOf(victim.process.pid!).memory };
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
    // The attackers have only the processor time that others leave, and may need longer to connect.
    const until = performance.now() + OPENING_MORE_SECONDS * 1000;
    while (most.sockets < each * connections * STANDING_SHARE && performance.now() < until) await sleep(250);
    const standing = await latencies(measured.plainPort, seconds * 1000);
    const { sockets, memory } = most;
    const grown = Math.max(0, memory - before.memory);
    const seen = responded(victim, logged) - before.responded;
    return { phases: { opening, standing }, sockets, memory, grown, responded: seen };
  } finally {
    clearInterval(watch);
    attack.kill("SIGTERM");
    await over;
    await sleep(1_000);
  }
}

/** Lines of a kind in the access log of the proxy as a whole. */
function responded({ logDirectory }: FrontEnd, logged: RegExp | undefined): number {
  if (logged === undefined) return 0;
  return readFileSync(join(logDirectory, "access.log"), "latin1").match(logged)?.length ?? 0;
}

/** Where all requests get a response it ends by itself, with 0. */
const failedToRun = ({ pid, exitCode }: ChildProcess): boolean =>
  pid === undefined || (exitCode !== null && exitCode !== 0);
