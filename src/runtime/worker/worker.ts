import {
  type CountsMessage,
  type MasterMessage,
  type ReceivedSocket,
  WORKER_EXIT,
  type WorkerMessage,
} from "./ipc.js";
import { doWithout } from "../sockets/node/pieces.js";
import { SWEEP_MS, sweepRegularly } from "../sockets/deadlines.js";
import { WorkerServer } from "./workerServer.js";
import { NOTHING_SEEN } from "../dispatch/pauses.js";
import type { AskedStatus, StatusResponse } from "../status/asked.js";

/**
 * Runs a worker process: receives config and sockets from the master, serves, and exits on request, when the master
 * is gone, or after an internal fault.
 */
export function runWorker(): void {
  // Comes first: without a listener Node would end on most of these. A terminal or
  // `systemctl kill` signals the whole group, but only the master decides to reload, upgrade or interrupt.
  const worker = new Worker();
  process.on("SIGUSR1", () => worker.reopenLogs());
  process.on("SIGHUP", () => undefined);
  process.on("SIGINT", () => undefined);
  process.on("SIGUSR2", () => undefined);
  process.on("SIGTERM", () => worker.drain());
  process.on("SIGQUIT", () => worker.drain());
  process.title = "portico: worker";
  if (process.send === undefined) {
    process.stderr.write(
      "portico worker: this command is for `portico serve`, which starts its workers itself\n",
    );
    process.exit(WORKER_EXIT.usage);
  }
  process.stderr.on("error", () => undefined);
  process.on("uncaughtException", (error) => worker.crash(error));
  process.on("message", (message: MasterMessage, socket) => worker.receive(message, socket));
  process.on("disconnect", () => worker.drain());
}

class Worker {
  private readonly status = new StatusQuestions((turn, asked) => send({ type: "status", turn, asked }));
  /** Received before the start, by listener name. */
  private readonly sockets = new Map<string, ReceivedSocket>();
  private service: WorkerServer | undefined;
  private opening: Promise<void> | undefined;
  private draining = false;
  private crashing = false;
  private tickedAt: number | undefined;

  receive(message: MasterMessage, socket?: unknown): void {
    switch (message.type) {
      case "socket":
        return void this.sockets.set(message.listener, socket as ReceivedSocket);
      case "start":
        doWithout(message.without);
        this.service = new WorkerServer(message, (asked) => this.status.ask(asked), this.sockets);
        this.service.onLogIn((news) => send({ type: "logIn", news }));
        this.opening = this.open(this.service);
        return;
      case "drain":
        return this.drain();
      case "stop":
        return void this.exit(WORKER_EXIT.ok);
      case "reopenLogs":
        return this.reopenLogs();
      case "ticketKeys":
        return this.service?.setTicketKeys(message.ticketKeys);
      case "renewed":
        return this.service?.renew(message.renewal);
      case "challenges":
        this.service?.setChallenges(message.challenges);
        return send({ type: "responding", turn: message.turn });
      case "holdings":
        if (this.service === undefined) return;
        return send({ type: "holdings", turn: message.turn, holdings: this.service.holdings() });
      case "counts":
        return void this.sayCounts({ turn: message.turn, gauges: this.service?.gauges() ?? {} });
      case "servers": {
        const seen = this.service?.orderServers(message.orders) ?? {};
        return send({ type: "servers", turn: message.turn, seen });
      }
      case "pauses": {
        // A starting worker gets the order with its config.
        const seen = this.service?.orderPauses(message.order) ?? NOTHING_SEEN;
        return send({ type: "pauses", turn: message.turn, seen });
      }
      case "logIn":
        return this.service?.learnLogIn(message.news);
      case "unban":
        return this.service?.unban(message.guard, message.address);
      case "transfers": {
        const seen = this.service?.transfers() ?? { transfers: [], more: 0 };
        return send({ type: "transfers", turn: message.turn, seen });
      }
      case "limits":
        return this.service?.learnLimits(message.news);
      case "status":
        return this.status.responded(message.turn, message.response);
    }
  }

  reopenLogs(): void {
    this.service?.reopenLogs();
  }

  /** Finishes requests in progress, then exits. */
  drain(): void {
    if (this.draining) return;
    this.draining = true;
    void this.drained().then(() => this.exit(WORKER_EXIT.ok));
  }

  /** After a fault nothing in this process can be relied on: its connections are cut, and the master starts another. */
  crash(error: Error): void {
    const text = `worker ${process.pid} crashed: ${error?.stack ?? String(error)}`;
    if (this.crashing || this.service === undefined) {
      process.stderr.write(`portico: ${text}\n`);
      return this.leave(WORKER_EXIT.crashed);
    }
    this.crashing = true;
    this.service.logs.mainError.write("crit", text);
    void this.exit(WORKER_EXIT.crashed);
  }

  private async drained(): Promise<void> {
    await this.opening;
    this.service?.stopAccepting();
    send({ type: "draining" });
    await this.service?.drain();
  }

  private async open(service: WorkerServer): Promise<void> {
    const problems = await service.open();
    if (problems.length === 0) {
      const onFault = (error: unknown): void => this.crash(error as Error);
      sweepRegularly({ sweep: (now) => this.tick(service, now), onFault });
      return send({ type: "ready" });
    }
    await sent({ type: "failed", problems });
    await this.exit(WORKER_EXIT.failed);
  }

  private async exit(code: number): Promise<void> {
    setTimeout(() => this.leave(code), FLUSH_MS);
    this.service?.stopAccepting();
    await this.service?.closeAll();
    void this.sayCounts();
    await this.service?.logs.close();
    // A log may have lost lines.
    await this.sayCounts();
    this.leave(code);
  }

  private tick(service: WorkerServer, now: number): void {
    if (this.tickedAt !== undefined) service.ticked(Math.max(0, Math.round(now - this.tickedAt) - SWEEP_MS));
    this.tickedAt = now;
    // Even without counts: the master learns from it that the event loop turns.
    void sent({ type: "counts", counts: service.counted() ?? {} });
    const news = service.outageNews();
    if (news.length > 0) send({ type: "outages", news });
    const report = service.limitReport();
    if (report !== undefined) send({ type: "limits", report });
  }

  /** Resolves when the master has them. */
  private sayCounts(asked?: CountsMessage["asked"]): Promise<void> {
    const counts = this.service?.counted();
    if (counts === undefined && asked === undefined) return Promise.resolve();
    return sent({ type: "counts", counts: counts ?? {}, asked });
  }

  private leave(code: number): void {
    // Before a process exits it waits for its threads. Where one of them waits for a reader, only this ends it.
    process.on("exit", () => {
      if (this.service?.logs.isHeldUp === true) process.kill(process.pid, "SIGKILL");
    });
    process.exit(code);
  }
}

/** Log lines that cannot be written in this time are lost. */
const FLUSH_MS = 1_000;

function send(message: WorkerMessage): void {
  void sent(message);
}

/** Resolves when the master has it, or is gone. */
function sent(message: WorkerMessage): Promise<void> {
  if (!process.connected) return Promise.resolve();
  return new Promise((resolve) => process.send!(message, undefined, undefined, () => resolve()));
}

/** Questions of clients for the status, to which the master responds: each with a deadline, and few at a time. */
export class StatusQuestions {
  private readonly open = new Map<number, (response: StatusResponse | undefined) => void>();
  private turn = 0;

  constructor(private readonly send: (turn: number, asked: AskedStatus) => void) {}

  /** Resolves with undefined if there are too many, or the master does not respond in time. */
  ask(asked: AskedStatus): Promise<StatusResponse | undefined> {
    if (this.open.size >= OPEN_MAX) return Promise.resolve(undefined);
    const turn = ++this.turn;
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.responded(turn, undefined), RESPONSE_MS);
      this.open.set(turn, (response) => {
        clearTimeout(timer);
        resolve(response);
      });
      this.send(turn, asked);
    });
  }

  /** A late response is dropped. */
  responded(turn: number, response: StatusResponse | undefined): void {
    const done = this.open.get(turn);
    this.open.delete(turn);
    done?.(response);
  }
}

const RESPONSE_MS = 5_000;
const OPEN_MAX = 32;
