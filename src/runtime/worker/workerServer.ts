import { closeSync, openSync } from "node:fs";
import type { Problem, ProxyConfig } from "../../model/index.js";
import type { Challenge } from "../dispatch/challenge.js";
import { ConnectionGate } from "../listen/gate.js";
import { sweepRegularly } from "../sockets/deadlines.js";
import { Http1Connections, Http2Connections, roomMaker } from "../server/connections.js";
import type { Counts } from "../counting/counts.js";
import { tally } from "../exchange/tally.js";
import type { ErrorLevel } from "../exchange/exchange.js";
import { gaugesOf, type Holdings, holdingsOf } from "./holdings.js";
import { type PauseOrder, type SeenPauses } from "../dispatch/pauses.js";
import { type SeenTransfers, Transfers } from "../dispatch/transfers.js";
import type { ReceivedSocket, StartMessage } from "./ipc.js";
import { ListenerServer } from "../listen/listener.js";
import type { Renewal } from "../load/renewal.js";
import type { LimitNews, LimitReport } from "../rates/limitNews.js";
import type { LogInNews } from "../logIns/workerGuards.js";
import type { OutageNews } from "../upstream/knownOutage.js";
import type { SeenServers, ServerOrders } from "../upstream/upstreamServers.js";
import type { AskStatus } from "../status/asked.js";
import { LogFiles } from "../logs/logFiles.js";
import { compileRoutes, type CompiledRoutes } from "../actions/compileRoutes.js";

/** Everything one worker serves with: logs, listeners, protocols. Its only owner is the worker's loop. */
export class WorkerServer {
  readonly logs: LogFiles;
  private readonly config: ProxyConfig;
  private readonly routes: CompiledRoutes;
  private readonly gate: ConnectionGate;
  private readonly http1: Http1Connections;
  private readonly http2: Http2Connections;
  private readonly servers: readonly ListenerServer[];
  private readonly inProgress = new Transfers();

  /**
   * @param askStatus asks the master, for routes that show the status
   * @param sockets those that the worker did not inherit, by listener name
   */
  constructor(
    private readonly start: StartMessage,
    askStatus: AskStatus,
    private readonly sockets: ReadonlyMap<string, ReceivedSocket> = new Map(),
  ) {
    this.config = frozen(start.loaded.config);
    this.logs = new LogFiles(this.config, start.logToStderr ? { stderr: true, files: false } : {});
    const { fieldValues, upstreamTls, cookieKey, accessLists, accessUsers, clientAuthorities } = start.loaded;
    const secrets = [fieldValues, upstreamTls, cookieKey] as const;
    const files = [accessLists, accessUsers, clientAuthorities] as const;
    this.routes = compileRoutes(this.config, this.logs, ...secrets, askStatus, ...files);
    sweepRegularly(new DescriptorWatch((level, message) => this.logs.mainError.write(level, message)));
    this.http1 = new Http1Connections(this.routes);
    this.http2 = new Http2Connections(this.routes);
    const warn = (message: string): void => this.logs.mainError.write("warn", message);
    const makeRoom = roomMaker(this.http1, this.http2);
    this.gate = new ConnectionGate(this.config.limits, this.routes.trusted, warn, makeRoom);
    this.servers = this.config.listeners.map(
      (listener) =>
        new ListenerServer({
          listener,
          tls: start.loaded.tls[listener.name],
          ticketKeys: start.ticketKeys,
          context: this.routes,
          clientCertificates: this.routes.clientCertificates,
          gate: this.gate,
          http1: this.http1,
          http2: this.http2,
        }),
    );
    this.setChallenges(start.challenges);
    this.routes.orderServers(start.serverOrders);
    this.routes.dispatcher.pauses.set(start.pauses);
    this.routes.limits.learn(start.limits);
    this.routes.passwordGuards.begin(start.guards);
  }

  /** Responds to these challenges, and no others, from now on. */
  setChallenges(challenges: readonly Challenge[]): void {
    this.routes.dispatcher.setChallenges(challenges);
    for (const server of this.servers) server.setChallenges(challenges);
  }

  /** Opens the logs it can and begins to accept; resolves with the problems that prevented that, if any. */
  async open(): Promise<Problem[]> {
    // It serves in any case; problems that the master found too were already reported by it.
    const said = this.start.loaded.warnings;
    for (const p of this.logs.open()) {
      const known = said.some(({ code, path }) => code === p.code && path.endsWith(`(${p.path})`));
      if (!known) this.logs.mainError.write("error", `${p.path}: ${p.message}; ${p.fix}`);
    }
    const { fds } = this.start;
    const failed = await Promise.all(
      this.config.listeners.map(({ name }, i) =>
        this.servers[i]!.listen(this.sockets.get(name) ?? { fd: fds[name]! }),
      ),
    );
    return failed.filter((p) => p !== undefined);
  }

  /**
   * Drains a worker that no longer accepts, and ends then: resolves when every connection is done; those that take longer
   * than drainMs are cut.
   */
  async drain(): Promise<void> {
    this.http1.drain();
    this.http2.drain();
    setTimeout(() => void this.closeAll(), this.config.timeouts.drainMs);
    await this.gate.empty();
    this.routes.close();
  }

  stopAccepting(): void {
    for (const server of this.servers) server.stopAccepting();
  }

  /** Cuts every connection; resolves when each is closed, and its requests are logged. */
  closeAll(): Promise<void> {
    for (const server of this.servers) server.closeAll();
    this.http1.closeAll();
    this.http2.closeAll();
    return this.gate.empty();
  }

  reopenLogs(): void {
    for (const p of this.logs.reopen())
      this.logs.mainError.write("error", `${p.path}: ${p.message}; ${p.fix}`);
  }

  holdings(): Holdings {
    const { gate, http2, routes } = this;
    return holdingsOf({ gate, http2, routes });
  }

  /** @returns a report about the servers */
  orderServers(orders: ServerOrders): SeenServers {
    this.routes.orderServers(orders);
    return this.routes.seenServers();
  }

  /** What the other workers do not know yet. */
  outageNews(): readonly OutageNews[] {
    return this.routes.outageNews();
  }

  /** What clients have asked of routes with limits since the last call, for the other workers. */
  limitReport(): LimitReport | undefined {
    return this.routes.limits.report();
  }

  learnLimits(news: LimitNews): void {
    this.routes.limits.learn(news);
  }

  /** @returns a report about the requests in progress */
  orderPauses(order: PauseOrder): SeenPauses {
    const { pauses } = this.routes.dispatcher;
    pauses.set(order);
    const { worst, ...seen } = pauses.carryOut([...this.http1.running(), ...this.http2.running()]);
    return { ...seen, transfers: this.inProgress.look(worst).transfers };
  }

  /** @param tell is called with what this worker sees of log-ins */
  onLogIn(tell: (news: LogInNews) => void): void {
    this.routes.passwordGuards.onNews = tell;
  }

  learnLogIn(news: LogInNews): void {
    this.routes.passwordGuards.learn(news);
  }

  unban(guard: string, address: string): void {
    this.routes.passwordGuards.unban(guard, address);
  }

  /** Counts since the last call; undefined if there are none. */
  counted(): Counts | undefined {
    this.routes.counts.lostLines(tally.logLinesLost);
    return this.routes.counts.changes();
  }

  gauges(): Counts {
    const { http1, http2, routes } = this;
    return gaugesOf({ http1, http2, routes });
  }

  /** The clock ticks. @param lateMs how late */
  ticked(lateMs: number): void {
    this.routes.counts.late(lateMs);
  }

  /** The requests in progress. */
  transfers(): SeenTransfers {
    return this.inProgress.look([...this.http1.running(), ...this.http2.running()]);
  }

  setTicketKeys(ticketKeys: string): void {
    for (const server of this.servers) server.setTicketKeys(ticketKeys);
  }

  renew(renewal: Renewal): void {
    if (renewal.accessLists !== undefined) this.routes.setAccessLists(renewal.accessLists);
    if (renewal.accessUsers !== undefined) this.routes.setAccessUsers(renewal.accessUsers);
    if (renewal.clientAuthorities !== undefined)
      this.routes.clientCertificates?.renew(renewal.clientAuthorities);
    for (const server of this.servers) server.renew(renewal);
  }
}

/** The master checked and froze it; being sent as JSON undid only the freezing. */
function frozen<T>(value: T): T {
  if (typeof value !== "object" || value === null) return value;
  Object.values(value).forEach(frozen);
  return Object.freeze(value);
}

/**
 * Notices when a worker has no descriptor left. libuv then silently accepts and closes new connections (its EMFILE
 * trick, so that a full queue does not become a busy loop), and recovers when descriptors are free again. Without this
 * watch, no log would say why clients were turned away.
 */
class DescriptorWatch {
  private lookAt = 0;
  private exhausted = false;

  constructor(private readonly log: (level: ErrorLevel, message: string) => void) {}

  sweep(now: number): void {
    if (now < this.lookAt) return;
    this.lookAt = now + LOOK_MS;
    const free = descriptorIsFree();
    if (!free && !this.exhausted) {
      const fix = "raise LimitNOFILE= in the service's unit (ulimit -n), or lower limits.connectionsMax";
      this.log("crit", `too many open files: new connections are closed until some are free; ${fix}`);
    }
    if (free && this.exhausted) this.log("warn", "files can be opened again: connections are accepted");
    this.exhausted = !free;
  }

  onFault(error: unknown): void {
    this.log("crit", `internal fault: ${(error as Error).stack}`);
  }
}

const LOOK_MS = 1_000;

function descriptorIsFree(): boolean {
  try {
    closeSync(openSync("/dev/null", "r"));
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code !== "EMFILE" && code !== "ENFILE";
  }
}
