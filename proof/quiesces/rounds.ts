import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Random } from "../../testkit/random.js";
import { eventually } from "../../testkit/waiting.js";
import { hashOf, nothingYet, overHttp1, overHttp2, type Tally, uploads } from "./clients.js";
import { type CommandRun, judge } from "./judge.js";
import { kill, Service, signal } from "./service.js";
import { Store } from "./store.js";

/** What happens in a round: something at a random moment of the quiesce, or a slow upload is under way before it. */
export const KINDS = ["nothing", "command", "master", "worker", "reload", "cli", "slow"] as const;
export type Kind = (typeof KINDS)[number];

export interface Figures {
  rounds: number;
  /** Commands that ran to their end, and that ran and were told to be worthless or were killed. */
  whole: number;
  ended: number;
  stored: number;
  refused: number;
  cut: number;
}

export interface Played {
  readonly figures: Figures;
  readonly wrong: readonly string[];
}

/** Plays one round of each kind in turn. */
export async function rounds(
  kinds: readonly Kind[],
  seed: number,
  progress: (line: string) => void,
): Promise<Played> {
  const store = await new Store().listen();
  const service = await Service.start(store.url);
  const figures: Figures = { rounds: 0, whole: 0, ended: 0, stored: 0, refused: 0, cut: 0 };
  const wrong: string[] = [];
  try {
    for (const [i, kind] of kinds.entries()) {
      const found = await new Round(service, store, kind, new Random(seed + i), figures).play();
      for (const one of found) wrong.push(`round ${i} (${kind}): ${one}`);
      progress(`round ${i} (${kind}): ${found.length} findings; ${JSON.stringify(figures)}`);
    }
  } finally {
    await service.end();
    await store.close();
  }
  return { figures, wrong };
}

class Round {
  private readonly tally: Tally = nothingYet();
  private readonly folder: string;
  private going = true;

  constructor(
    private readonly service: Service,
    private readonly store: Store,
    private readonly kind: Kind,
    private readonly random: Random,
    private readonly figures: Figures,
  ) {
    this.folder = service.folder;
  }

  /** @returns what is wrong */
  async play(): Promise<readonly string[]> {
    const { plainPort, securePort } = this.service;
    this.store.writes.length = 0;
    const clients = [
      overHttp1(plainPort),
      overHttp1(plainPort),
      overHttp2(securePort),
      overHttp2(securePort),
    ];
    const busy = clients.map((client, i) =>
      uploads(client, `client${i}`, this.random, this.tally, () => this.going),
    );
    const { writes } = this.store;
    const slow = this.kind === "slow" ? this.slowUpload() : undefined;
    if (slow !== undefined)
      await eventually(() => writes.some(({ target }) => target === SLOW), "for the slow upload");
    await eventually(() => writes.length >= clients.length, "for uploads");
    const command = await this.quiesce();
    const open = await this.opensAgain();
    this.going = false;
    await Promise.all([...busy, slow]);
    const findings = [...judge(this.tally, this.store.writes, command), ...open, ...(await this.leaks())];
    if (this.tally.cut.length > 0 && !CUTTING.has(this.kind))
      findings.push(`uploads were cut off, and nothing was killed: ${this.tally.cut.join(", ")}`);
    this.count(command);
    return findings;
  }

  /** An upload that lasts much longer than `--refuse`. */
  private async slowUpload(): Promise<void> {
    const client = overHttp1(this.service.plainPort, SLOW_PIECE_BYTES, SLOW_PIECE_MS);
    const body = randomBytes(SLOW_BYTES);
    const { status } = await client.send(SLOW, body, true);
    if (status === 201) this.tally.stored.push({ target: SLOW, digest: hashOf(body) });
    else this.tally.odd.push(`${SLOW}: ${status}`);
    client.close();
  }

  private async quiesce(): Promise<CommandRun> {
    const [begin, end, pid] = ["begin", "end", "pid"].map((name) => join(this.folder, name));
    for (const file of [begin!, end!, pid!]) rmSync(file, { force: true });
    const seconds = (0.2 + this.random.part() * 0.5).toFixed(2);
    const wanted = this.random.of(0, 7);
    const script = `date +%s%N >${begin}; echo $$ >${pid}; sleep ${seconds}; date +%s%N >${end}; exit ${wanted}`;
    const refuseMs = this.kind === "slow" ? REFUSE_MS : DEFAULT_REFUSE_MS;
    const child = this.service.quiesce(script, ["--wait", "20s", "--refuse", `${refuseMs / 1_000}s`]);
    let errors = "";
    child.stderr!.on("data", (text: Buffer) => (errors += text.toString()));
    const closed = once(child, "exit");
    let killedAt: number | undefined;
    const disturb = async (): Promise<void> => {
      if (this.kind === "command") {
        await eventually(() => readText(pid!).endsWith("\n") || child.exitCode !== null, "for the command");
        await sleep(this.random.pick(200));
        const running = Number(readText(pid!));
        killedAt = Date.now();
        if (running > 0) signal(running, "SIGKILL");
        return;
      }
      await this.moment(child, begin!);
      if (this.kind === "master") await this.service.crash();
      if (this.kind === "worker") signal(this.random.of(...this.service.workers()), "SIGKILL");
      if (this.kind === "reload") this.service.reload();
      if (this.kind === "cli") await kill(child);
    };
    const [[code]] = (await Promise.all([closed, disturb()])) as [[number | null], void];
    // What a killed command line has begun goes on without it, for less than its lease.
    if (code === null && existsSync(begin!))
      await eventually(() => readText(end!).endsWith("\n"), "for its end");
    return {
      code,
      wanted: this.kind === "command" ? 137 : wanted,
      mayFail: this.kind === "master",
      errors,
      begin: timeIn(begin!),
      end: timeIn(end!) ?? killedAt,
      refuseMs,
    };
  }

  /** A random one: of all, while it waits for uploads, or while the command runs. */
  private async moment(child: ChildProcess, begin: string): Promise<void> {
    const sign = this.random.of(undefined, this.service.pausesFile, begin, begin);
    if (sign === undefined) return void (await sleep(this.random.pick(1_500)));
    await eventually(() => existsSync(sign) || child.exitCode !== null, "for the quiesce");
    await sleep(this.random.pick(300));
  }

  /** Everybody may write again: at once, or when the lease of a killed command line is over. */
  private async opensAgain(): Promise<readonly string[]> {
    const client = overHttp1(this.service.plainPort);
    const put = async (): Promise<number> => (await client.send("/after", Buffer.from("x"), true)).status;
    const first = await put();
    let status = first;
    const begun = performance.now();
    while (status !== 201 && performance.now() - begun < LEASE_AND_MORE_MS) {
      await sleep(100);
      status = await put();
    }
    client.close();
    if (status !== 201) return [`writes get ${status} long after the end`];
    if (first !== 201 && this.kind !== "cli") return [`a write after the end got ${first}`];
    return existsSync(this.service.pausesFile) ? ["pauses.json is left"] : [];
  }

  /** All clients are gone. */
  private async leaks(): Promise<readonly string[]> {
    let left = "";
    for (const end = performance.now() + REST_MS; performance.now() < end; await sleep(50)) {
      const workers = (await this.service.holdings()).filter(({ accepts }) => accepts);
      left = workers
        .flatMap(({ holdings }) =>
          holdings === undefined
            ? ["a worker does not respond"]
            : AT_REST.filter((name) => holdings[name] !== 0).map((name) => `${name} ${holdings[name]}`),
        )
        .join(", ");
      if (workers.length === 2 && left === "") return [];
    }
    return [`held at rest: ${left}`];
  }

  private count({ code, begin, end }: CommandRun): void {
    const { figures, tally } = this;
    figures.rounds++;
    if (begin !== undefined && end !== undefined && code !== 125) figures.whole++;
    else if (begin !== undefined) figures.ended++;
    figures.stored += tally.stored.length;
    figures.refused += tally.refused.length;
    figures.cut += tally.cut.length;
  }
}

/** Nothing of these is there when no client is. */
const AT_REST = [
  "clientConnections",
  "exchanges",
  "http2Streams",
  "upstreamConnectionsInUse",
  "queuedRequests",
  "openFiles",
  "lentBytes",
  "lentWindowBytes",
] as const;
const REFUSE_MS = 1_000;
const DEFAULT_REFUSE_MS = 30_000;
const SLOW = "/slow";
/** 8 s. */
const [SLOW_BYTES, SLOW_PIECE_BYTES, SLOW_PIECE_MS] = [1_600_000, 8_192, 40];
const CUTTING = new Set<Kind>(["master", "worker"]);
const REST_MS = 10_000;
const LEASE_AND_MORE_MS = 36_000;

function readText(file: string): string {
  return existsSync(file) ? readFileSync(file, "utf8") : "";
}

/** Milliseconds since 1970, rounded as `Date.now` does. */
function timeIn(file: string): number | undefined {
  const text = readText(file);
  return text.endsWith("\n") ? Math.floor(Number(text) / 1e6) : undefined;
}
