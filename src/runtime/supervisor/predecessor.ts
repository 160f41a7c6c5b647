import type { Problem } from "../../model/serving.js";
import type { Counts } from "../counting/counts.js";
import type { PauseOrder, SeenPauses } from "../dispatch/pauses.js";
import type { MasterMessage } from "../worker/ipc.js";
import {
  type Handover,
  SUCCESSOR,
  type Supervised,
  type ToPredecessor,
  type ToSuccessor,
} from "./processes/handover.js";

/** The old master's orders to a new one. */
export interface PredecessorOrders {
  drain(delayed: boolean): void;
  stop(): void;
  /** This is the master from now on. @param counts all that was counted before, if the old one counts */
  takeOver(counts: Counts | undefined): void;
  /** Adds counts of the old master's workers. */
  count(counts: Counts): void;
}

/** The old master, seen from the new one. */
export class Predecessor implements Supervised {
  /** The state that it passes on; undefined if it ended before. */
  readonly handover: Promise<Handover | undefined>;
  /** Resolves when this process becomes the master: by an order of the old one, or because that died. */
  readonly takeOver: Promise<void>;
  readonly gone: Promise<void>;
  orders: PredecessorOrders | undefined;
  /** Callbacks that wait for reports of the old master's workers, by turn. */
  private readonly asked = new Map<number, (seen: readonly unknown[]) => void>();
  private turn = 0;

  private constructor() {
    this.gone = new Promise((resolve) => process.once("disconnect", resolve));
    let resolveHandover: (handover: Handover) => void;
    let resolveTakeOver: () => void;
    this.handover = new Promise((resolve) => {
      resolveHandover = resolve;
      void this.gone.then(() => resolve(undefined));
    });
    this.takeOver = new Promise((resolve) => {
      resolveTakeOver = resolve;
      void this.gone.then(resolve);
    });
    process.on("message", (message: ToSuccessor) => {
      if (message.type === "start") resolveHandover(message);
      if (message.type === "takeOver") resolveTakeOver();
      this.received(message);
    });
    void this.send({ type: "started", pid: process.pid });
  }

  private received(message: ToSuccessor): void {
    const { orders } = this;
    if (message.type === "takeOver") orders?.takeOver(message.counts);
    else if (message.type === "counts") orders?.count(message.counts);
    else if (message.type === "drain") orders?.drain(message.delayed);
    else if (message.type === "stop") orders?.stop();
    else if (message.type !== "start") this.asked.get(message.turn)?.(message.seen);
  }

  /** The master that started this process for an upgrade; undefined if none did. */
  static ofThisProcess(): Predecessor | undefined {
    const started = process.env[SUCCESSOR] !== undefined && process.send !== undefined;
    // Workers must not inherit it.
    delete process.env[SUCCESSOR];
    return started ? new Predecessor() : undefined;
  }

  ready(): void {
    this.send({ type: "ready" });
  }

  /** Resolves when the old master knows. */
  failed(problems: readonly Problem[]): Promise<void> {
    return this.send({ type: "failed", problems });
  }

  tookOver(): void {
    this.send({ type: "tookOver" });
  }

  /** A master that was replaced is already draining. */
  drain(): void {
    this.send({ type: "drain" });
  }

  stop(): void {
    this.send({ type: "stop" });
  }

  broadcast(message: MasterMessage): void {
    if (message.type === "reopenLogs") this.send({ type: "reopenLogs" });
  }

  /** Resolves with the reports of its workers, or with one missing report if it does not respond. */
  async orderPauses(order: PauseOrder): Promise<readonly (SeenPauses | undefined)[]> {
    const seen = await this.ask<SeenPauses | null>([null], (turn) => ({ type: "pauses", order, turn }));
    return seen.map((one) => one ?? undefined);
  }

  /** The workers of the predecessor counted this, or those of the new master did. */
  count(counts: Counts): void {
    void this.send({ type: "counts", counts });
  }

  gauges(): Promise<readonly Counts[]> {
    return this.ask<Counts>([], (turn) => ({ type: "gauges", turn }));
  }

  /** @param silence stands for the response of a master that gives none: it hangs, or does not know the question */
  private async ask<T>(
    silence: readonly T[],
    question: (turn: number) => ToPredecessor,
  ): Promise<readonly T[]> {
    const turn = ++this.turn;
    const seen = await new Promise<readonly T[]>((resolve) => {
      setTimeout(() => resolve(silence), RESPONSE_MS).unref();
      void this.gone.then(() => resolve([]));
      this.asked.set(turn, resolve as (seen: readonly unknown[]) => void);
      void this.send(question(turn));
    });
    this.asked.delete(turn);
    return seen;
  }

  /** Closes the channel, which otherwise keeps this process running. */
  leave(): void {
    if (process.connected) process.disconnect();
  }

  private send(message: ToPredecessor): Promise<void> {
    if (!process.connected) return Promise.resolve();
    return new Promise((resolve) => process.send!(message, undefined, undefined, () => resolve()));
  }
}

/** Longer than the old master gives its workers. */
const RESPONSE_MS = 3_000;
