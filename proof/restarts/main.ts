import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { build } from "esbuild";
import { startFrontEnd } from "../../testkit/frontEnd.js";
import { laboratory, numberOf, type Verdict } from "../../testkit/laboratory.js";
import { freePorts } from "../../testkit/ports.js";
import { sharedFile } from "../../testkit/sharedFile.js";
import { type Asked, Load } from "./load.js";

laboratory(
  `npm run restarts -- [OPTIONS]: the web application is restarted again and again, under load

Ten clients over HTTP/1.1 and HTTP/2 read, post and upload without a pause, through the deployed config. No request may fail, and none may reach the application twice. Prints how long requests took that were held.`,
  {
    restarts: ["200", "how many"],
    every: ["3000", "milliseconds from one to the next"],
    hold: ["5000", "`holdMs` of the application's upstream; 0 shows what it is good for"],
    away: ["500", "most milliseconds between the end of the old process and the start of the new one"],
  },
  async (given) => {
    const [restarts, every, away, holdMs] = [
      numberOf("restarts", given.restarts),
      numberOf("every", given.every),
      numberOf("away", given.away, 0),
      numberOf("hold", given.hold, 0),
    ];
    const [web, none] = (await freePorts(2)) as [number, number];
    const application = new Application(web);
    await application.start();
    const frontEnd = await startFrontEnd({
      upstreams: { web, fileServer: none, webdav: none },
      change: (config) => ({
        ...config,
        upstreams: config.upstreams!.map((upstream) => ({ ...upstream, holdMs })),
      }),
    });
    try {
      const load = new Load(frontEnd);
      await sleep(1_000);
      for (let i = 0; i < restarts; i++) {
        const next = sleep(every);
        await application.stop();
        await sleep(Math.random() * away);
        await application.start();
        await next;
      }
      return judge(await load.end(), application, holdMs || Infinity);
    } finally {
      await application.stop();
      await frontEnd.stop();
    }
  },
);

/** Once, so that a start takes as little as one can. */
const compiled = (): Promise<string> =>
  sharedFile("restarting-application.js", (outfile) =>
    build({ entryPoints: [join(__dirname, "application.ts")], platform: "node", format: "cjs", outfile }),
  );

/** The application's processes, one after the other. */
class Application {
  /** When each was asked to stop, and when the next one was ready. */
  readonly pauses: { readonly from: number; to: number }[] = [];
  /** How many times each target came. */
  readonly seen = new Map<string, number>();
  private child: ChildProcess | undefined;

  constructor(private readonly port: number) {}

  async start(): Promise<void> {
    const args = [await compiled(), String(this.port)];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    this.child = child;
    const ready = new Promise<void>((resolve) => {
      createInterface({ input: child.stdout }).on("line", (line) => {
        if (line === "ready") resolve();
        else this.seen.set(line, (this.seen.get(line) ?? 0) + 1);
      });
    });
    const failed = once(child, "exit").then(() => Promise.reject(new Error("the application ended")));
    await Promise.race([ready, failed]);
    failed.catch(() => undefined);
    const pause = this.pauses.at(-1);
    if (pause !== undefined) pause.to = performance.now();
  }

  async stop(): Promise<void> {
    const { child } = this;
    if (child === undefined || child.exitCode !== null) return;
    const closed = once(child, "close");
    this.pauses.push({ from: performance.now(), to: Infinity });
    child.kill("SIGTERM");
    await closed;
  }
}

/** What takes longer was held, if it was under way while the application was away. */
const HELD_MS = 30;
/** A restart that takes nearly as long as requests wait is none that the front end can hide. */
const SLACK_MS = 500;

function judge(asked: readonly Asked[], { pauses, seen }: Application, holdMs: number): Verdict {
  const restarts = pauses.filter(({ to }) => to !== Infinity);
  const away = restarts.map(({ from, to }) => to - from);
  const long = restarts.filter(({ from, to }) => to - from > holdMs - SLACK_MS);
  const within = (some: typeof restarts, { began, ms }: Asked): boolean =>
    some.some(({ from, to }) => began < to && began + ms > from);
  const during = (one: Asked): boolean => within(restarts, one);
  const held = asked.filter((one) => one.ms > HELD_MS && during(one)).map(({ ms }) => ms);
  const others = asked.filter((one) => !during(one)).map(({ ms }) => ms);
  console.log(
    `${restarts.length} restarts, away for ${figures(away)}; ${asked.length} requests, ` +
      `${held.length} held: ${figures(held)}; the others: ${figures(others)}`,
  );
  const failed = asked.filter((one) => one.wrong !== undefined && !within(long, one));
  const twice = asked.filter(({ target, repeatable }) => !repeatable && (seen.get(target) ?? 0) > 1);
  const unseen = asked.filter(({ target, wrong }) => wrong === undefined && !seen.has(target));
  return {
    wrong: [
      ...failed.map(({ target, wrong }) => `${target} failed: ${wrong}`),
      ...twice.map(({ target }) => `${target} came twice`),
      ...unseen.map(({ target }) => `${target} got a response, and never reached the upstream`),
      ...(held.length < restarts.length ? ["fewer requests were held than there were restarts"] : []),
    ],
    beyondLimit: long.length === 0 ? [] : [`${long.length} restarts took longer than requests are held`],
  };
}

function figures(all: readonly number[]): string {
  const sorted = [...all].sort((a, b) => a - b);
  const at = (part: number): string =>
    (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0).toFixed(0);
  return `median ${at(0.5)}, p99 ${at(0.99)}, most ${at(1)} ms`;
}
