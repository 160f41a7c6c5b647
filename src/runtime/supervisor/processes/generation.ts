import { type Problem, problem } from "../../../model/serving.js";
import type { Counts } from "../../counting/counts.js";
import type { Challenge } from "../../dispatch/challenge.js";
import type { PauseOrder, SeenPauses } from "../../dispatch/pauses.js";
import type { SeenTransfers } from "../../dispatch/transfers.js";
import type { AskedStatus, AskStatus, StatusResponse } from "../../status/asked.js";
import type { LoadedConfig } from "../../load/loadConfig.js";
import { coarseNow, SWEEP_MS, sweepRegularly } from "../../sockets/deadlines.js";
import { hasNews, type LimitNews } from "../../rates/limitNews.js";
import { renewed } from "../../load/renewal.js";
import type { Holdings, WorkerHoldings } from "../../worker/holdings.js";
import type { SeenServers, ServerOrders } from "../../upstream/upstreamServers.js";
import type { CountsMessage, MasterMessage } from "../../worker/ipc.js";
import { type WorkerEvents, WorkerHandle, type WorkerSpec } from "./workerHandle.js";

export interface GenerationOptions extends WorkerSpec {
  readonly size: number;
  loaded: LoadedConfig;
  ticketKeys: string;
  challenges: readonly Challenge[];
  /** A worker counted this. */
  count(counts: Counts): void;
  /** What a client of a worker gets to see of the status. */
  readonly statusResponse: AskStatus;
  /** Something an administrator should know about a worker. */
  log(level: "crit" | "info", message: string): void;
  /** A worker ended unexpectedly; `how` completes the sentence "the worker …". */
  onEnd?(how: string): void;
}

/** Why a start or a reload did not come to an end. */
export const stoppedEarly = (): Problem =>
  problem("serve.worker-failed", "", "portico was stopped before it was ready", {
    fix: "Start portico again.",
  });

/**
 * The workers of one loaded config. A reload starts a new generation on the same sockets and drains the old one.
 *
 *     starting ──all ready──> serving ──drain──> draining ──last worker gone──> gone
 *         └──one failed──> draining
 */
export class Generation implements WorkerEvents {
  /** Resolves when the last worker is gone for good. */
  readonly gone: Promise<void>;
  private state: "starting" | "serving" | "draining" = "starting";
  private readonly workers = new Set<WorkerHandle>();
  private readonly respawns = new Set<NodeJS.Timeout>();
  private earlyExits = 0;
  /** Workers that exit because they were asked to, and are already replaced. */
  private readonly leaving = new Set<WorkerHandle>();
  /** Workers that were asked to drain and may still accept. */
  private readonly accepting = new Set<WorkerHandle>();
  private readonly acknowledgements = new Acknowledgements<WorkerHandle, Holdings>();
  private readonly seen = new Acknowledgements<WorkerHandle, SeenServers>();
  private readonly measured = new Acknowledgements<WorkerHandle, Counts>();
  private readonly paused = new Acknowledgements<WorkerHandle, SeenPauses>();
  private readonly transferring = new Acknowledgements<WorkerHandle, SeenTransfers>();
  private nobodyAccepts: () => void = () => undefined;
  private started: (problems: readonly Problem[]) => void = () => undefined;
  private allGone: () => void = () => undefined;
  private watchedAt = coarseNow();

  constructor(private readonly options: GenerationOptions) {
    this.gone = new Promise((resolve) => (this.allGone = resolve));
    const onFault = (error: unknown): void =>
      options.log("crit", `the watch over workers failed: ${String(error)}`);
    void this.gone.then(sweepRegularly({ sweep: (now) => this.watch(now), onFault }));
  }

  get pids(): number[] {
    return [...this.workers].flatMap((worker) => worker.pid ?? []);
  }

  /** Whether one of the workers accepts, and was not asked to stop. */
  get accepts(): boolean {
    return [...this.workers].some((one) => this.isAccepting(one));
  }

  /** A worker that should serve and has not been heard of for some seconds, with the length of the silence. */
  get silent(): { readonly pid: number | undefined; readonly ms: number } | undefined {
    for (const worker of this.workers)
      if (this.isAccepting(worker) && worker.silentMs > SILENT_MS)
        return { pid: worker.pid, ms: worker.silentMs };
    return undefined;
  }

  /** Starts the workers; resolves when all are ready, or with the problems of one that failed. */
  start(): Promise<readonly Problem[]> {
    return new Promise((resolve) => {
      this.started = resolve;
      for (let i = 0; i < this.options.size; i++) this.spawn();
    });
  }

  /**
   * Makes the workers stop accepting, finish running requests and exit; those that take too long are killed. Resolves
   * when none of them accepts any more, or when those that did not confirm it have had enough time.
   */
  drain(): Promise<void> {
    for (const worker of this.workers) this.accepting.add(worker);
    const quiet = new Promise<void>((resolve) => (this.nobodyAccepts = resolve));
    setTimeout(this.nobodyAccepts, STOP_ACCEPTING_MS).unref();
    this.end({ type: "drain" });
    const drainMs = this.options.loaded.config.timeouts.drainMs + KILL_AFTER_MS;
    this.killAfter(Math.min(drainMs, TIMER_MAX_MS));
    this.checkAccepting();
    return quiet;
  }

  /** Makes the workers exit now, even with requests running. */
  stop(): void {
    this.end({ type: "stop" });
    this.killAfter(KILL_AFTER_MS);
  }

  broadcast(message: MasterMessage): void {
    // Workers that are started later get the newest keys and certificates as well.
    if (message.type === "ticketKeys") this.options.ticketKeys = message.ticketKeys;
    if (message.type === "renewed") this.options.loaded = renewed(this.options.loaded, message.renewal);
    for (const worker of this.workers) worker.send(message);
  }

  tellLimits(newsFor: (worker: WorkerHandle) => LimitNews): void {
    for (const worker of this.workers) {
      const news = newsFor(worker);
      if (hasNews(news)) worker.send({ type: "limits", news });
    }
  }

  /** Has the workers respond to these challenges, and no others; resolves when every one that accepts does. */
  async respondToChallenges(challenges: readonly Challenge[]): Promise<void> {
    this.options.challenges = challenges;
    const accepting = this.state === "draining" ? [] : this.workers;
    await this.acknowledgements.ask(accepting, RESPONDING_MS, (turn) =>
      this.broadcast({ type: "challenges", challenges, turn }),
    );
  }

  /** The holdings of each worker. */
  async holdings(): Promise<readonly WorkerHoldings[]> {
    const responses = await this.acknowledgements.ask(this.workers, HOLDINGS_MS, (turn) =>
      this.broadcast({ type: "holdings", turn }),
    );
    return [...this.workers].flatMap((one) =>
      one.pid === undefined
        ? []
        : [{ pid: one.pid, accepts: this.isAccepting(one), holdings: responses.get(one) }],
    );
  }

  /** Has the workers act on these orders; resolves with their reports about the servers. */
  async orderServers(orders: ServerOrders): Promise<readonly SeenServers[]> {
    const responses = await this.seen.ask(this.workers, HOLDINGS_MS, (turn) =>
      this.broadcast({ type: "servers", orders, turn }),
    );
    return [...responses.values()];
  }

  /** The current gauges of each worker; its counts up to then are added before this resolves. */
  async gauges(): Promise<readonly Counts[]> {
    const responses = await this.measured.ask(this.workers, HOLDINGS_MS, (turn) =>
      this.broadcast({ type: "counts", turn }),
    );
    return [...responses.values()];
  }

  /** The same of what is refused; undefined for a worker that does not respond. */
  async orderPauses(order: PauseOrder): Promise<readonly (SeenPauses | undefined)[]> {
    const asked = [...this.workers];
    const responses = await this.paused.ask(asked, HOLDINGS_MS, (turn) =>
      this.broadcast({ type: "pauses", order, turn }),
    );
    // A worker that is gone has no requests.
    return asked.filter((one) => this.workers.has(one)).map((one) => responses.get(one));
  }

  /** What the workers have in progress, by process; undefined for a worker that does not respond. */
  async transfers(): Promise<readonly (readonly [pid: number, seen: SeenTransfers | undefined])[]> {
    const asked = [...this.workers].filter(({ ready }) => ready);
    const responses = await this.transferring.ask(asked, TRANSFERS_MS, (turn) =>
      this.broadcast({ type: "transfers", turn }),
    );
    return asked.filter((one) => this.workers.has(one)).map((one) => [one.pid!, responses.get(one)]);
  }

  private isAccepting(worker: WorkerHandle): boolean {
    return this.state === "serving" && worker.ready && !this.leaving.has(worker);
  }

  onReady(): void {
    if (this.state !== "starting" || [...this.workers].some((worker) => !worker.ready)) return;
    this.state = "serving";
    this.started([]);
  }

  onFailed(worker: WorkerHandle, problems: readonly Problem[]): void {
    if (this.state === "starting") return this.giveUp(problems);
    for (const p of problems)
      this.options.log("crit", `worker ${worker.pid}: ${p.path}: ${p.message}; ${p.fix}`);
  }

  onDraining(worker: WorkerHandle): void {
    this.acceptsNoMore(worker);
    if (this.state !== "serving") return;
    this.options.log("info", `worker ${worker.pid} was asked to stop; a replacement starts`);
    this.respawnIn(BACKOFF_MIN_MS);
    this.leaving.add(worker);
  }

  onAcknowledged(worker: WorkerHandle, turn: number, holdings?: Holdings): void {
    this.acknowledgements.acknowledge(worker, turn, holdings);
  }

  onServers(worker: WorkerHandle, turn: number, seen: SeenServers): void {
    this.seen.acknowledge(worker, turn, seen);
  }

  onCounts(worker: WorkerHandle, { counts, asked }: CountsMessage): void {
    this.options.count(counts);
    if (asked !== undefined) this.measured.acknowledge(worker, asked.turn, asked.gauges);
  }

  onPauses(worker: WorkerHandle, turn: number, seen: SeenPauses): void {
    this.paused.acknowledge(worker, turn, seen);
  }

  onTransfers(worker: WorkerHandle, turn: number, seen: SeenTransfers): void {
    this.transferring.acknowledge(worker, turn, seen);
  }

  onStatus(worker: WorkerHandle, turn: number, asked: AskedStatus): void {
    const send = (response?: StatusResponse): void => worker.send({ type: "status", turn, response });
    void this.options.statusResponse(asked).then(send, () => send());
  }

  onGone(worker: WorkerHandle, how: string): void {
    this.workers.delete(worker);
    this.acknowledgements.gone(worker);
    this.seen.gone(worker);
    this.paused.gone(worker);
    this.measured.gone(worker);
    this.transferring.gone(worker);
    this.acceptsNoMore(worker);
    if (this.state === "draining") return this.checkGone();
    if (this.leaving.delete(worker)) return;
    const message = `worker ${worker.pid ?? ""} ${how}`.replace("  ", " ");
    if (this.state === "starting") {
      return this.giveUp([problem("serve.worker-failed", "", `${message} before it was ready`)]);
    }
    this.options.onEnd?.(how);
    const delayMs = this.backoff(worker);
    this.options.log("crit", `${message}; a replacement starts${delayMs === 0 ? "" : ` in ${delayMs} ms`}`);
    this.respawnIn(delayMs);
  }

  /**
   * Workers report several times a second. The master counts only time in which the master had its own turns, and after
   * it has read what workers sent: after a pause of the whole machine, or of the master alone, no worker is blamed.
   */
  private watch(now: number): void {
    const passedMs = Math.min(now - this.watchedAt, 2 * SWEEP_MS);
    this.watchedAt = now;
    for (const worker of this.workers) {
      if (!worker.ready) continue;
      const before = worker.silentMs;
      worker.silentMs += passedMs;
      if (before >= HUNG_MS || worker.silentMs < HUNG_MS) continue;
      this.options.log(
        "crit",
        `worker ${worker.pid} has not responded for ${HUNG_MS / 1_000} s: it is killed`,
      );
      worker.kill();
    }
  }

  private spawn(): void {
    this.workers.add(new WorkerHandle(this.options, this));
  }

  private respawnIn(delayMs: number): void {
    const timer = setTimeout(() => {
      this.respawns.delete(timer);
      this.spawn();
    }, delayMs);
    this.respawns.add(timer);
  }

  /**
   * No delay for a worker that served for a while; a growing one for a worker that exits early, so that a crash does
   * not become a busy loop.
   */
  private backoff(worker: WorkerHandle): number {
    this.earlyExits = performance.now() - worker.startedAt < EARLY_EXIT_MS ? this.earlyExits + 1 : 0;
    if (this.earlyExits === 0) return 0;
    return Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** (this.earlyExits - 1));
  }

  /** Workers that are ready may already be serving a request: they finish it. */
  private giveUp(problems: readonly Problem[]): void {
    this.started(problems);
    this.drain();
  }

  private end(message: MasterMessage): void {
    this.state = "draining";
    for (const timer of this.respawns) clearTimeout(timer);
    this.respawns.clear();
    this.broadcast(message);
    this.started([stoppedEarly()]);
    this.checkGone();
  }

  private killAfter(ms: number): void {
    setTimeout(() => this.workers.forEach((worker) => worker.kill()), ms).unref();
  }

  private acceptsNoMore(worker: WorkerHandle): void {
    this.accepting.delete(worker);
    this.checkAccepting();
  }

  private checkAccepting(): void {
    if (this.accepting.size === 0) this.nobodyAccepts();
  }

  private checkGone(): void {
    if (this.workers.size === 0) this.allGone();
  }
}

/** The event loop of such a worker is held: clients of the worker wait. */
const SILENT_MS = 2_000;
/** A worker that is silent for so long is hung. Nothing else would end it. */
const HUNG_MS = 30_000;
/** If a worker ran longer than this, its exit has a new cause. */
const EARLY_EXIT_MS = 10_000;
const BACKOFF_MIN_MS = 100;
const BACKOFF_MAX_MS = 5_000;
/** How long a response to a reload or an upgrade waits for workers that may be busy, or hung. */
const STOP_ACCEPTING_MS = 2_000;
/** Workers that exceed their own deadline by this much are considered hung. */
const KILL_AFTER_MS = 5_000;
/** A worker that does not respond by then is hung, or starts and knows the challenges when it is ready. */
const RESPONDING_MS = 10_000;
/** A worker that hangs must not keep the responses of the others back. */
const HOLDINGS_MS = 2_000;
/** Shorter, because a user waits for the page. */
const TRANSFERS_MS = 1_000;
/** The longest delay a Node timer can hold. */
const TIMER_MAX_MS = 2_147_483_647;

/** Waits until each of several peers confirms that it carried out an order, or responded to a question, or is gone. */
class Acknowledgements<P, A = undefined> {
  private turn = 0;
  private readonly open = new Map<number, PendingAnswers<P, A>>();

  /**
   * @param tell sends the order, with the number of its turn
   * @param timeoutMs after which a silent peer is no longer waited for
   * @returns the responses of those that gave one
   */
  ask(peers: Iterable<P>, timeoutMs: number, tell: (turn: number) => void): Promise<ReadonlyMap<P, A>> {
    const turn = ++this.turn;
    return new Promise((done) => {
      setTimeout(() => this.end(turn), timeoutMs).unref();
      this.open.set(turn, { peers: new Set(peers), responses: new Map(), done });
      tell(turn);
      this.check(turn);
    });
  }

  acknowledge(peer: P, turn: number, response?: A): void {
    const asked = this.open.get(turn);
    if (asked?.peers.delete(peer) === true && response !== undefined) asked.responses.set(peer, response);
    this.check(turn);
  }

  gone(peer: P): void {
    for (const turn of this.open.keys()) this.acknowledge(peer, turn);
  }

  private check(turn: number): void {
    if (this.open.get(turn)?.peers.size === 0) this.end(turn);
  }

  private end(turn: number): void {
    const asked = this.open.get(turn);
    this.open.delete(turn);
    asked?.done(asked.responses);
  }
}

interface PendingAnswers<P, A> {
  readonly peers: Set<P>;
  readonly responses: Map<P, A>;
  readonly done: (responses: ReadonlyMap<P, A>) => void;
}
