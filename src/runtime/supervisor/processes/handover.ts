import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:os";
import { isAbsolute } from "node:path";
import { type Problem, problem } from "../../../model/serving.js";
import type { LimitNews } from "../../rates/limitNews.js";
import type { WorkerHandle } from "./workerHandle.js";
import type { GuardsState } from "../../logIns/workerGuards.js";
import type { Counts } from "../../counting/counts.js";
import type { Challenge } from "../../dispatch/challenge.js";
import type { PauseOrder, SeenPauses } from "../../dispatch/pauses.js";
import type { SeenTransfers } from "../../dispatch/transfers.js";
import type { OwnSocket } from "../listeners/ownListener.js";
import type { WorkerHoldings } from "../../worker/holdings.js";
import type { MasterMessage } from "../../worker/ipc.js";
import type { SeenServers, ServerOrders } from "../../upstream/upstreamServers.js";
import type { PassedSocket } from "../../listen/sockets.js";
import { nodeOptions } from "./noDebugger.js";

/**
 * How one master takes over from another without losing a request, as an upgrade of the runtime or of Node needs it.
 *
 *     old: spawn ── start ──> new: load, start workers on the same sockets
 *          <───────── ready ──
 *     orphan the new one; notify systemd: MAINPID=new
 *          ────── takeOver ──> opens the control socket
 *          <────── tookOver ──
 *     drain workers, exit  ──> (channel closed) predecessor is gone
 *
 * Until `tookOver` the old master serves as before; if the new one fails, it continues as if nothing had happened. The
 * new one does not end before the old one: systemd kills the other processes when its main process ends, which would
 * cut requests. Everything passes through the channel between the two, in memory: the TLS ticket keys are on no disk
 * and no command line. The two may be different releases: messages may gain fields, but never change them.
 */
export interface StartSuccessor extends Handover {
  readonly type: "start";
}

/** The state that a new master gets from the old one. */
export interface Handover {
  readonly sockets: readonly PassedSocket[];
  readonly ticketKeys: string;
  /** When these keys end, in milliseconds since 1970. */
  readonly ticketKeysUntil: number;
  /** The socket of the health listener, if there is one. */
  readonly health?: OwnSocket | undefined;
  /** The same of the metrics listener, if it has a port. */
  readonly metrics?: OwnSocket | undefined;
  /** About servers of upstreams that have several. */
  readonly serverOrders: ServerOrders;
  /** What workers know of log-ins; earlier releases do not pass it. */
  readonly guards?: GuardsState | undefined;
  /** Number of the generation that serves. */
  readonly generation: number;
}

export type ToSuccessor =
  | StartSuccessor
  | { readonly type: "stop" }
  /** Counts of the old master's workers so far. */
  | { readonly type: "takeOver"; readonly counts: Counts }
  /** Counts of the old master's workers since then. */
  | { readonly type: "counts"; readonly counts: Counts }
  /** Their current gauges; only sent to a new master that asked for them. */
  | { readonly type: "gauges"; readonly turn: number; readonly seen: readonly Counts[] }
  | { readonly type: "drain"; readonly delayed: boolean }
  /** Reports of the old master's workers; only sent to a new master that asked for them. */
  | { readonly type: "pauses"; readonly turn: number; readonly seen: readonly (SeenPauses | null)[] };

export type ToPredecessor =
  | { readonly type: "started"; readonly pid: number }
  | { readonly type: "failed"; readonly problems: readonly Problem[] }
  | { readonly type: "ready" | "tookOver" | "drain" | "stop" | "reopenLogs" }
  /** A pause order for the old master's workers. */
  | { readonly type: "pauses"; readonly order: PauseOrder; readonly turn: number }
  /** Counts of the new master's workers. */
  | { readonly type: "counts"; readonly counts: Counts }
  /** A request for the current gauges of the old master's workers. */
  | { readonly type: "gauges"; readonly turn: number };

/** Why this process cannot be replaced by a new one: the kernel ends a container with its first process. */
export function cannotHandOver(): Problem[] {
  if (process.pid !== 1) return [];
  const fix = "Replace the container with a container of the new release.";
  return [
    problem("serve.upgrade-failed", "", "cannot upgrade: portico is the first process of its container", {
      fix,
    }),
  ];
}

/** Something that runs for the master. The master waits for it before it ends. */
export interface Supervised {
  readonly gone: Promise<void>;
  /** May resolve when it accepts no more. */
  drain(): void | Promise<void>;
  stop(): void;
  broadcast(message: MasterMessage): void;
  /** Only where there are workers. */
  respondToChallenges?(challenges: readonly Challenge[]): Promise<void>;
  holdings?(): Promise<readonly WorkerHoldings[]>;
  orderServers?(orders: ServerOrders): Promise<readonly SeenServers[]>;
  orderPauses?(order: PauseOrder): Promise<readonly (SeenPauses | undefined)[]>;
  tellLimits?(newsFor: (worker: WorkerHandle) => LimitNews): void;
  gauges?(): Promise<readonly Counts[]>;
  transfers?(): Promise<readonly (readonly [pid: number, seen: SeenTransfers | undefined])[]>;
}

/** Which programs a new master is started with. */
export interface Program {
  /** The Node binary; default: the path this process was started by. */
  readonly node?: string | undefined;
  /** The script; default: the path of the one that runs. */
  readonly runtime?: string | undefined;
}

/** A new master's orders to the old one. */
export interface SuccessorOrders {
  /** The new master was asked to stop, and the service with it. */
  drain(): void;
  stop(): void;
  reopenLogs(): void;
  /** Resolves with the reports of the old master's workers. */
  pauses(order: PauseOrder): Promise<readonly (SeenPauses | undefined)[]>;
  /** Adds counts of the new master's workers. */
  count(counts: Counts): void;
  /** Resolves with the current gauges of the old master's workers. */
  gauges(): Promise<readonly Counts[]>;
}

/**
 * A new master, seen from the old one.
 *
 * A shell runs between the two until the new one takes over; if the new one ends before, the shell exits with its
 * status. When the shell is gone, systemd becomes the parent of the new one, as it expects of a main process: systemd
 * kills one with another parent at a stop without waiting, and does not see it end.
 */
export class Successor implements Supervised {
  readonly gone: Promise<void>;
  /** The id of the process; known once it runs. */
  pid: number | undefined;
  private readonly shell: ChildProcess;
  private isGone = false;
  private sending = Promise.resolve();
  private wake: (problems: readonly Problem[]) => void = () => undefined;
  private died: () => void = () => undefined;

  constructor(
    program: Program,
    handover: Handover,
    env: NodeJS.ProcessEnv,
    private readonly orders: SuccessorOrders,
  ) {
    this.gone = new Promise((resolve) => (this.died = resolve));
    const { node = commandOfNode(), runtime = process.argv[1]! } = program;
    const passed: { readonly fd: number }[] = [];
    const pass = <S extends { readonly fd: number }>(socket: S): S => ({
      ...socket,
      fd: FIRST_FD + passed.push(socket) - 1,
    });
    const sockets = handover.sockets.map(pass);
    const health = handover.health && pass(handover.health);
    const metrics = handover.metrics && pass(handover.metrics);
    const command = [node, ...nodeOptions(), runtime, ...process.argv.slice(2)];
    this.shell = spawn("/bin/sh", ["-c", '"$@" & wait $!', "portico", ...command], {
      stdio: ["ignore", "inherit", "inherit", "ipc", ...passed.map(({ fd }) => fd)],
      env: { ...process.env, ...env, [SUCCESSOR]: "1" },
    });
    this.shell.on("message", (message) => this.received(message as ToPredecessor));
    this.shell.on("error", (error) => this.ended(`could not be started: ${error.message}`));
    this.shell.on("close", (code) => this.ended(exitText(code, node)));
    this.send({ type: "start", ...handover, sockets, health, metrics });
  }

  /** Resolves when its workers accept, or with the problems that prevented that. */
  ready(): Promise<readonly Problem[]> {
    return this.response(READY_MS);
  }

  /** Makes it an orphan, which process 1 adopts. */
  async detach(): Promise<void> {
    const { exitCode, signalCode } = this.shell;
    if (this.isGone || exitCode !== null || signalCode !== null) return;
    this.shell.kill("SIGKILL");
    await once(this.shell, "exit");
  }

  /**
   * Makes it the master; resolves when it acts as one, or with the problems that prevented that.
   *
   * @param counts all that was counted until now
   */
  takeOver(counts: Counts): Promise<readonly Problem[]> {
    const response = this.response(TAKE_OVER_MS);
    this.send({ type: "takeOver", counts });
    return response;
  }

  /** Sends counts that were made since the takeover. */
  count(counts: Counts): void {
    this.send({ type: "counts", counts });
  }

  /** Resolves when everything was sent to the new master. */
  get told(): Promise<void> {
    return this.sending;
  }

  /**
   * Uses a message, because a signal would mean that the whole service is to stop.
   *
   * @param delayed after it has accepted for `drainDelayMs`
   */
  drain(delayed = false): void {
    this.send({ type: "drain", delayed });
  }

  stop(): void {
    this.send({ type: "stop" });
    setTimeout(() => this.signal("SIGKILL"), KILL_AFTER_MS).unref();
  }

  broadcast(message: MasterMessage): void {
    if (message.type === "reopenLogs") this.signal("SIGUSR1");
  }

  signal(signal: NodeJS.Signals): void {
    try {
      if (!this.isGone && this.pid !== undefined) process.kill(this.pid, signal);
    } catch {
      // It ended a moment ago.
    }
  }

  /** Lets this process end while that one continues. */
  release(): void {
    this.shell.unref();
    this.shell.channel?.unref();
  }

  private send(message: ToSuccessor): void {
    if (this.shell.connected)
      this.sending = new Promise((resolve) => this.shell.send(message, () => resolve()));
  }

  private received(message: ToPredecessor): void {
    switch (message.type) {
      case "started":
        this.pid = message.pid;
        return;
      case "ready":
      case "tookOver":
        return this.wake([]);
      case "failed":
        return this.wake(message.problems);
      case "drain":
        this.orders.drain();
        return this.wake(failure("was asked to stop"));
      case "stop":
        return this.orders.stop();
      case "reopenLogs":
        return this.orders.reopenLogs();
      case "pauses":
        return void this.respondPauses(message.order, message.turn);
      case "counts":
        return this.orders.count(message.counts);
      case "gauges":
        return void this.respondGauges(message.turn);
    }
  }

  private async respondPauses(order: PauseOrder, turn: number): Promise<void> {
    const seen = await this.orders.pauses(order);
    this.send({ type: "pauses", turn, seen: seen.map((one) => one ?? null) });
  }

  private async respondGauges(turn: number): Promise<void> {
    this.send({ type: "gauges", turn, seen: await this.orders.gauges() });
  }

  private response(ms: number): Promise<readonly Problem[]> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        resolve(failure(`did not respond within ${ms / 1000} s`));
        // The successor's workers, if it has any, notice and finish what they have.
        this.signal("SIGKILL");
      }, ms);
      this.wake = (problems) => {
        clearTimeout(timer);
        resolve(problems);
      };
      if (this.isGone) this.wake(failure("ended"));
    });
  }

  private ended(how: string): void {
    if (this.isGone) return;
    this.isGone = true;
    this.died();
    this.wake(failure(how));
  }
}

/** Set in the environment of a new master. */
export const SUCCESSOR = "PORTICO_SUCCESSOR";

/** First descriptor after standard input, output, error and the channel. */
const FIRST_FD = 4;

/** Time to load, and to start workers, which alone get 30 s. */
const READY_MS = 60_000;
const TAKE_OVER_MS = 10_000;
/** Longer than it gives its own workers. */
const KILL_AFTER_MS = 10_000;

/** The path that the unit names: if that path is a link, it may lead to a newer Node than the one that runs. */
function commandOfNode(): string {
  return isAbsolute(process.argv0) ? process.argv0 : process.execPath;
}

/** How the new master ended, by the status of the shell that waited for it; sh reports a signal as 128 and more. */
function exitText(code: number | null, node: string): string {
  if (code === null) return "is gone";
  if (code === 126 || code === 127) return `could not be started: no program at ${node}`;
  const signal = Object.entries(constants.signals).find(([, number]) => number === code - 128);
  return signal === undefined ? `exited with code ${code}` : `was killed by ${signal[0]}`;
}

function failure(how: string): Problem[] {
  return [problem("serve.upgrade-failed", "", `the new master ${how}`)];
}
