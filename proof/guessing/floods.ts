import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type FrontEnd, startFrontEnd } from "../../testkit/frontEnd.js";
import type { Verdict } from "../../testkit/laboratory.js";
import { usageOf } from "../../testkit/processes.js";
import { nextEvent } from "../../testkit/waiting.js";
import { latencies, type Latencies } from "../slowClients/wellBehaved.js";
import type { Guessing } from "./guesser.js";

/** Guesses at the log-in of the deployed file service, at the defaults of its guard. */

interface Flood extends Pick<Guessing, "from" | "addresses"> {
  /** Guesses; default: as many as come in the time that others are measured. */
  readonly guesses?: number;
  /** The most of an address that the application may see. */
  readonly most: number;
}

/** Waits begin after so many, and the address is closed for 15 minutes after so many, also if they come at once. */
const [SLOW_AFTER, WRONG_SECRETS_MAX] = [5, 20];

export const FLOODS: Readonly<Record<string, Flood>> = {
  "one address": { from: "one", addresses: 1, most: WRONG_SECRETS_MAX },
  "many addresses": { from: "many", addresses: 100_000, most: 1, guesses: 100_000 },
  "real addresses": { from: "loopback", addresses: 300, most: WRONG_SECRETS_MAX },
};

const RATE = 1_000;
/** Times below this are the scheduler's, not the proxy's. */
const USUAL_MIN_MS = 10;
/** Master and workers have tables of about 50 MB at most each. */
const GROWN_BYTES_MAX = 128 * 2 ** 20;

/**
 * Guesses at one front end, and measures how long others wait at it, and how its memory grows, and the same at another one where
 * as many log-ins of the same clients are no guesses: the difference is that of refusals, and not of the load.
 */
export async function flood(name: string, seconds: number): Promise<Verdict> {
  const { from, addresses, most, guesses } = FLOODS[name]!;
  const upstream = await startUpstream();
  const frontEnds: FrontEnd[] = [];
  try {
    for (let i = 0; i < 2; i++) frontEnds.push(await startBehind(upstream.port));
    const [frontEnd, other] = frontEnds as [FrontEnd, FrontEnd];
    const measured = async ({ plainPort: port, process }: FrontEnd, constant: boolean): Promise<Measured> => {
      const guessing = { from, addresses, port, constant };
      const before = usageOf(process.pid!).memory;
      const [first, others] = await Promise.all([
        guess({ ...guessing, guesses: RATE * seconds, rate: RATE }),
        latencies(port, seconds * 1_000),
      ]);
      const guessed =
        guesses === undefined ? first : plus(first, await guess({ ...guessing, guesses, rate: 0 }));
      return { guessed, others, grown: Math.max(0, usageOf(process.pid!).memory - before) };
    };
    // What a first load leaves behind is no growth.
    for (const one of frontEnds) await latencies(one.plainPort, WARM_UP_MS);
    const usual = await measured(other, true);
    await seenBy(other);
    const { guessed, others, grown } = await measured(frontEnd, false);
    const seen = await seenBy(frontEnd);
    console.log(
      `${name}: ${JSON.stringify(guessed.statuses)} in ${guessed.seconds.toFixed(1)} s; of ${seen.addresses} addresses the ` +
        `application saw ${seen.least} to ${seen.most} guesses each; p99 of others ${others.p99Ms.toFixed(1)} ms ` +
        `(without guesses: ${usual.others.p99Ms.toFixed(1)} ms); ${mib(grown)} MiB more (${mib(usual.grown)} MiB)`,
    );
    return {
      wrong: [
        ...(seen.addresses === addresses ? [] : [`${seen.addresses} addresses of ${addresses} guessed`]),
        ...(seen.most <= most ? [] : [`${seen.most} guesses of an address, ${most} allowed`]),
        ...(seen.least >= Math.min(most, SLOW_AFTER) ? [] : [`${seen.least} guesses of an address only`]),
        ...(guessed.statuses["none"] === undefined ? [] : ["guesses got no response"]),
        ...(others.failures === 0 ? [] : [`${others.failures} requests of others failed`]),
      ],
      beyondLimit: [
        ...(others.p99Ms <= 2 * Math.max(usual.others.p99Ms, USUAL_MIN_MS) ? [] : ["others wait too long"]),
        ...(grown - usual.grown <= GROWN_BYTES_MAX ? [] : ["memory grew too much"]),
      ],
    };
  } finally {
    await Promise.all(frontEnds.map((one) => one.stop()));
    upstream.child.kill();
  }
}

const mib = (bytes: number): number => Math.round(bytes / 2 ** 20);

const WARM_UP_MS = 1_000;

interface Measured {
  readonly guessed: Guessed;
  readonly others: Latencies;
  /** Bytes of memory that master and workers took besides. */
  readonly grown: number;
}

interface Guessed {
  readonly statuses: Readonly<Record<string, number>>;
  readonly seconds: number;
}

function plus(a: Guessed, b: Guessed): Guessed {
  const statuses: Record<string, number> = { ...a.statuses };
  for (const [status, count] of Object.entries(b.statuses))
    statuses[status] = (statuses[status] ?? 0) + count;
  return { statuses, seconds: a.seconds + b.seconds };
}

async function guess(guessing: Guessing): Promise<Guessed> {
  const child = spawned("guesser.ts", JSON.stringify(guessing));
  return JSON.parse(await text(child.stdout!)) as Guessed;
}

/** What the application saw since it was last asked. */
async function seenBy({
  plainPort,
  process: { exitCode },
  stderr,
}: FrontEnd): Promise<{ addresses: number; most: number; least: number }> {
  if (exitCode !== null) throw new Error(`the proxy ended with ${exitCode}:\n${stderr()}`);
  const response = await fetch(`http://127.0.0.1:${plainPort}/sync/seen`);
  return (await response.json()) as { addresses: number; most: number; least: number };
}

const startBehind = (port: number): Promise<FrontEnd> =>
  startFrontEnd({
    upstreams: { web: port, fileServer: port, webdav: port },
    proxy: { trustedProxies: ["127.0.0.1"] },
    passwordGuard: {},
  });

async function startUpstream(): Promise<{ readonly child: ChildProcess; readonly port: number }> {
  const child = spawned("upstream.ts");
  const [line] = (await nextEvent(child.stdout!, "data")) as [Buffer];
  return { child, port: Number(line.toString()) };
}

/** Apart: how busy they are must not be seen in what is measured. */
const spawned = (file: string, ...args: readonly string[]): ChildProcess =>
  spawn(process.execPath, ["--import", "tsx", join(__dirname, file), ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
