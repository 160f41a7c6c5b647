import type { ChildProcess, SendHandle } from "node:child_process";
import { type Problem, problem } from "../../../model/serving.js";
import type { Challenge } from "../../dispatch/challenge.js";
import type { PauseOrder, SeenPauses } from "../../dispatch/pauses.js";
import type { SeenTransfers } from "../../dispatch/transfers.js";
import type { GuardsState, LogInNews } from "../../logIns/workerGuards.js";
import type { AskedStatus } from "../../status/asked.js";
import { withinMemory, type WorkerHeap } from "../report/allowance.js";
import { MemoryKills } from "../report/cgroup.js";
import { startWorker, takePrepared, workerArguments } from "./spareWorker.js";
import type { Holdings } from "../../worker/holdings.js";
import type { CountsMessage, MasterMessage, StartMessage, WorkerMessage } from "../../worker/ipc.js";
import type { LoadedConfig } from "../../load/loadConfig.js";
import { whenLate } from "../../sockets/deadlines.js";
import type { Piece } from "../../sockets/node/pieces.js";
import { missingPieces } from "../../sockets/node/probe.js";
import { refusedOptions, workerOptions } from "../../sockets/node/workerOptions.js";
import type { LimitNews, LimitReport } from "../../rates/limitNews.js";
import type { OutageNews } from "../../upstream/knownOutage.js";
import type { SeenServers, ServerOrders } from "../../upstream/upstreamServers.js";
import type { ListenSocket } from "../../listen/sockets.js";

/** Events of a worker, for its generation. */
export interface WorkerEvents {
  onReady(worker: WorkerHandle): void;
  onFailed(worker: WorkerHandle, problems: readonly Problem[]): void;
  onDraining(worker: WorkerHandle): void;
  /** It did what it was asked for at that turn; with what it holds, if that was the question. */
  onAcknowledged(worker: WorkerHandle, turn: number, holdings?: Holdings): void;
  /** It acts on the orders of that turn, and sees this of the servers. */
  onServers(worker: WorkerHandle, turn: number, seen: SeenServers): void;
  /** The worker acts on the order of that turn, and reports about requests in progress. */
  onPauses(worker: WorkerHandle, turn: number, seen: SeenPauses): void;
  /** The worker's counts since its last message; it may have been asked for them. */
  onCounts(worker: WorkerHandle, message: CountsMessage): void;
  /** It has these requests in progress. */
  onTransfers(worker: WorkerHandle, turn: number, seen: SeenTransfers): void;
  /** A client of the worker requests the status. */
  onStatus(worker: WorkerHandle, turn: number, asked: AskedStatus): void;
  /** It is gone, for whatever reason; called once. `how` completes the sentence "worker 123 …". */
  onGone(worker: WorkerHandle, how: string): void;
}

/** How workers are started, the same for all of a generation. */
export interface WorkerSpec {
  /** Arguments to Node: the script and its command. */
  readonly command: readonly string[];
  readonly loaded: LoadedConfig;
  readonly sockets: ReadonlyMap<string, ListenSocket>;
  /** Most of V8's heap; undefined for V8's own choice. */
  readonly heap: WorkerHeap | undefined;
  readonly logToStderr: boolean;
  /** The current keys, at any time. */
  readonly ticketKeys: string;
  /** The open challenges, at any time. */
  readonly challenges: readonly Challenge[];
  readonly upstreams: {
    /** About their servers, as of now. */
    readonly orders: ServerOrders;
    heard(news: readonly OutageNews[]): void;
  };
  /** What clients have asked of routes with limits, by all workers together. */
  readonly limits: {
    /** As of now. */
    readonly all: LimitNews;
    heard(worker: WorkerHandle, report: LimitReport): void;
    gone(worker: WorkerHandle): void;
  };
  /** The current pause order. */
  readonly pauses: () => PauseOrder;
  readonly guards: {
    /** What workers know of log-ins, as of now. */
    readonly state: GuardsState;
    heard(news: LogInNews): void;
  };
}

/** A worker process, seen from the master. */
export class WorkerHandle {
  readonly startedAt = performance.now();
  ready = false;
  /** How long nothing has come from it since it was ready, in time in which the master had its turns. */
  silentMs = 0;
  private child: ChildProcess | undefined;
  private readonly stopStartTimer: () => void;
  private gone = false;

  constructor(
    private readonly spec: WorkerSpec,
    private readonly events: WorkerEvents,
  ) {
    this.stopStartTimer = whenLate(START_MS, () => this.startedTooLate());
    this.start();
  }

  private start(): void {
    const { spec } = this;
    const options = workerOptions(spec.heap);
    const args = workerArguments(options, spec.command);
    const handles = [...spec.sockets].flatMap(([listener, { handle }]) =>
      handle === undefined ? [] : [{ listener, handle }],
    );
    const prepared = takePrepared(handles.length === spec.sockets.size ? args : undefined);
    const fds =
      prepared === undefined ? [...new Set([...spec.sockets.values()].map((socket) => socket.fd))] : [];
    try {
      this.child = prepared ?? startWorker(args, fds);
    } catch (error) {
      setImmediate(() => this.ended(`could not be started: ${(error as Error).message}`));
      return;
    }
    this.child.on("message", (message) => this.received(message as WorkerMessage));
    this.child.on("error", (error) => this.failedOrEnded(error));
    // `close`, not `exit`: it comes after the last message was read.
    this.child.on("close", (code, signal) => {
      if (refusedOptions(code, options)) this.start();
      else this.ended(exitText(code, signal));
    });
    if (prepared !== undefined) for (const one of handles) this.pass(one.listener, one.handle);
    // It loads while the probe runs.
    void missingPieces().then((without) => this.send(startMessage(spec, fds, without)));
  }

  get pid(): number | undefined {
    return this.child?.pid;
  }

  send(message: MasterMessage): void {
    // A worker that is gone is reported by its `close`; that it misses a message is not an error.
    if (this.child?.connected === true) this.child.send(message, () => undefined);
  }

  /** A prepared worker inherits no sockets: it gets them with messages. */
  private pass(listener: string, handle: object): void {
    this.child!.send(
      { type: "socket", listener } satisfies MasterMessage,
      handle as SendHandle,
      () => undefined,
    );
  }

  kill(): void {
    this.child?.kill("SIGKILL");
  }

  private received(message: WorkerMessage): void {
    this.silentMs = 0;
    if (message.type === "draining") return this.events.onDraining(this);
    if (message.type === "responding") return this.events.onAcknowledged(this, message.turn);
    if (message.type === "holdings") return this.events.onAcknowledged(this, message.turn, message.holdings);
    if (message.type === "pauses") return this.events.onPauses(this, message.turn, message.seen);
    if (message.type === "counts") return this.events.onCounts(this, message);
    if (message.type === "transfers") return this.events.onTransfers(this, message.turn, message.seen);
    if (message.type === "status") return this.events.onStatus(this, message.turn, message.asked);
    if (message.type === "limits") return this.spec.limits.heard(this, message.report);
    if (message.type === "outages") return this.spec.upstreams.heard(message.news);
    if (message.type === "logIn") return this.spec.guards.heard(message.news);
    if (message.type === "servers") return this.events.onServers(this, message.turn, message.seen);
    this.stopStartTimer();
    if (message.type === "failed") return this.events.onFailed(this, message.problems);
    this.ready = true;
    this.events.onReady(this);
  }

  private failedOrEnded(error: Error): void {
    // A process that did not start emits no `close`.
    if (this.child!.pid === undefined) this.ended(`could not be started: ${error.message}`);
  }

  private startedTooLate(): void {
    const message = `worker ${this.pid} was not ready within ${START_MS / 1000} s`;
    this.events.onFailed(this, [problem("serve.worker-failed", "", message)]);
    this.kill();
  }

  private ended(how: string): void {
    if (this.gone) return;
    this.gone = true;
    this.stopStartTimer();
    this.spec.limits.gone(this);
    this.events.onGone(this, how);
  }
}

/** A worker that takes longer to start is considered hung. */
const START_MS = 30_000;

/** First descriptor after standard input, output, error and the IPC channel. */
const FIRST_LISTEN_FD = 4;

function startMessage(spec: WorkerSpec, fds: readonly number[], without: readonly Piece[]): StartMessage {
  const places = [...spec.sockets].flatMap(([name, { fd }]) =>
    fds.includes(fd) ? [[name, FIRST_LISTEN_FD + fds.indexOf(fd)] as const] : [],
  );
  const { loaded, ticketKeys, challenges, logToStderr } = spec;
  return {
    type: "start",
    loaded: { ...loaded, config: withinMemory(loaded) },
    fds: Object.fromEntries(places),
    ticketKeys,
    challenges,
    serverOrders: spec.upstreams.orders,
    pauses: spec.pauses(),
    limits: spec.limits.all,
    guards: spec.guards.state,
    logToStderr,
    without,
  };
}

/** The count is shared by all generations of this process's workers. */
const MEMORY_KILLS = new MemoryKills();

function exitText(code: number | null, signal: NodeJS.Signals | null): string {
  if (signal === null) return `exited with code ${code}`;
  return signal === "SIGKILL" && MEMORY_KILLS.take()
    ? "was killed by the kernel, because memory ran out: allow the proxy more memory (memoryMax of its ProxyService, or the " +
        "container's limit), or fewer clients (limits in its config)"
    : `was killed by ${signal}`;
}
