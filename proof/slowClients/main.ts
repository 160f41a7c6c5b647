import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { type FrontEnd, startFrontEnd } from "../../testkit/frontEnd.js";
import { again, laboratory, numberOf } from "../../testkit/laboratory.js";
import { type Load, measure, MODES, type ModeResult } from "./attack.js";
import type { Latencies } from "./wellBehaved.js";
import { nextEvent } from "../../testkit/waiting.js";
import { randomBody } from "../../testkit/random.js";

/** Set inside the network of its own. */
const INSIDE = "PORTICO_SLOW_INSIDE";
/**
 * Loopback usually carries segments of 64 KiB, for which the kernel takes megabytes a connection, whoever reads them or
 * not; what a slow client costs is seen at the size of a real network's.
 */
const NETWORK = ["unshare", "--net", "sh", "-c", 'ip link set lo mtu 1500 up && exec "$@"', "sh"];

laboratory(
  `npm run slow-clients -- [OPTIONS]: a well-behaved client among thousands of slow ones

Runs slowhttptest's modes (slow headers, slow body, slow read, range) against the deployed config, and measures how long
requests of a well-behaved client take meanwhile. Needs root: all of it happens in a network of its own.`,
  {
    connections: ["4000", "slow ones"],
    seconds: ["15", "how long they stand in each mode"],
    only: [undefined, "the name of a mode: this one alone"],
  },
  async (given) => {
    const names = Object.keys(MODES).filter((mode) => mode === (given.only ?? mode));
    if (names.length === 0)
      throw new Error(`--only ${given.only}: is not one of ${Object.keys(MODES).join(", ")}`);
    const [connections, seconds] = [
      numberOf("connections", given.connections),
      numberOf("seconds", given.seconds),
    ];
    if (process.env[INSIDE] === undefined) return void again(INSIDE, { under: NETWORK });
    // Apart, and each in its own process: how busy the attackers' one is must not be seen in what is measured.
    const upstreams = [await startUpstream(), await startUpstream()] as const;
    // What one attack leaves behind, as a grown heap, is not a part of the next.
    const onFreshFrontEnds = async (mode: string): Promise<ModeResult> => {
      const load: Load = { connections, seconds };
      const frontEnds: FrontEnd[] = [];
      try {
        for (let i = 0; i < 2; i++) frontEnds.push(await startBehind(upstreams[0].port, upstreams[1].port));
        return await measure(frontEnds[0]!, frontEnds[1]!, mode, load);
      } finally {
        await Promise.all(frontEnds.map((frontEnd) => frontEnd.stop()));
      }
    };
    const modes: ModeResult[] = [];
    try {
      for (const name of names) modes.push(await attempted(() => onFreshFrontEnds(name)));
    } finally {
      for (const { child } of upstreams) child.kill();
    }
    return {
      wrong: modes.filter((mode) => failures(mode) > 0).map(({ mode }) => `${mode}: requests failed`),
      beyondLimit: modes.filter(({ passed }) => !passed).map(({ mode }) => `${mode}: took too long`),
    };
  },
);

/** Requests of the well-behaved client that got no right response: that is wrong, however busy the machine is. */
const failures = ({ attacked }: ModeResult): number => attacked.opening.failures + attacked.standing.failures;

/** A few requests out of a thousand decide, and other work on the machine may have been in their way: not every time. */
async function attempted(attempt: () => Promise<ModeResult>): Promise<ModeResult> {
  for (let attempts = 1; ; attempts++) {
    const result = await attempt();
    console.log(describe(result));
    if (result.passed || failures(result) > 0 || attempts === ATTEMPTS_MAX) return result;
  }
}

const ATTEMPTS_MAX = 3;

function startBehind(web: number, attacked: number): Promise<FrontEnd> {
  return startFrontEnd({
    upstreams: { web, fileServer: attacked, webdav: attacked },
    media: { "large.bin": randomBody(4 << 20) },
    // They stand for the clients of many addresses: one of them would have three quarters of an upstream at most.
    change: (config) => ({
      ...config,
      upstreams: config.upstreams?.map((upstream) => ({ ...upstream, clientSharePercent: 100 })),
    }),
  });
}

async function startUpstream(): Promise<{ readonly child: ChildProcess; readonly port: number }> {
  const child = spawn(process.execPath, ["--import", "tsx", join(__dirname, "upstream.ts")], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await nextEvent(child.stdout, "data")) as [Buffer];
  return { child, port: Number(line.toString()) };
}

function describe(result: ModeResult): string {
  const { mode, quiet, beside, besideSockets, attacked, sockets, memoryMiB, grownMiB, responded, passed } =
    result;
  const ms = ({ p95Ms, p99Ms }: Latencies): string => `${p95Ms.toFixed(1)}, ${p99Ms.toFixed(1)} ms`;
  const phase = (name: "opening" | "standing"): string =>
    `${ms(attacked[name])} (a neighbour attacked: ${ms(beside[name])})`;
  return (
    `${passed ? "ok  " : "no  "} ${mode.padEnd(12)} ${sockets} sockets (a neighbour: ${besideSockets}), ${responded === 0 ? "" : `${responded} with a response, `}${memoryMiB} MiB (${grownMiB} for them); ` +
    `p95, p99 while they connect ${phase("opening")}, then ${phase("standing")}, quiet ${ms(quiet)}; ` +
    `${failures(result)} requests failed`
  );
}
