import { readFileSync } from "node:fs";
import { type Problem, problem, type Result } from "../../model/serving.js";
import { heapOf, workerCount } from "./report/allowance.js";
import type { ControlOutcome, ControlServer, Done } from "./control/control.js";
import { Generation, stoppedEarly } from "./processes/generation.js";
import type { Handover, Program } from "./processes/handover.js";
import type { NotReady } from "./listeners/health.js";
import { type LoadedConfig, type LoadedForMaster, loadedStateOf, logPaths } from "../load/loadConfig.js";
import { recoverLogs, sha256 } from "../load/files.js";
import { type Renewal, renewed } from "../load/renewal.js";
import { MasterLog } from "./report/masterLog.js";
import { openControl } from "./masterRequests.js";
import * as report from "./report/masterReport.js";
import type { MasterOptions } from "./masterOptions.js";
import { MasterSockets } from "./masterSockets.js";
import { CertificateManager } from "./served/certificateManager.js";
import { ServedCounts } from "./served/servedCounts.js";
import { ServedLimits } from "./served/servedLimits.js";
import { ServedGuards } from "./served/servedGuards.js";
import { type NotifyingMaster, ServedNotifications } from "./served/servedNotifications.js";
import { ServedOverview } from "./served/servedOverview.js";
import { ServedPauses } from "./served/servedPauses.js";
import { ServedUpstreams } from "./served/servedUpstreams.js";
import { type Serving, ServiceState, stopped } from "./serviceState.js";
import { startNotes } from "./startNotes.js";
import { type ReplaceableMaster, Succession } from "./succession.js";
import { collectGarbageSoon } from "./processes/garbage.js";
import { ownWorkerCommand } from "./processes/spareWorker.js";
import { Supervision } from "./processes/supervision.js";
import { TicketKeys } from "./ticketKeys.js";
import { Queue } from "../queue.js";
import { VERSION } from "../../model/text/version.js";

/**
 * Holds the listening sockets and supervises the workers, which accept connections and serve them.
 *
 *     start ──> serving ──reload──> serving (new generation; the old one drains)
 *                  ├──upgrade──> replaced by a new master (`handover.ts`), draining ──> gone
 *                  └──shutDown──> draining ──shutDown again──> gone
 *
 * Owns all live state of the master: the sockets, its processes, and the TLS ticket keys. Operations that change them
 * run one at a time.
 */
export class Master implements ReplaceableMaster {
  private readonly sockets: MasterSockets;
  private readonly changes = new Queue();
  /** Hash of this program, taken now because the installed file may be replaced later. */
  private readonly runtime = sha256(readFileSync(process.argv[1]!));
  private current: Generation | undefined;
  /** Number of the current generation. */
  private generation = 0;
  readonly supervised = new Supervision(() => {
    if (!this.isStopping) void this.service.notify({});
  });
  private loaded: LoadedConfig | undefined;
  readonly logs: MasterLog;
  readonly service: ServiceState;
  readonly certificates: CertificateManager;
  readonly upstreams: ServedUpstreams;
  readonly pauses: ServedPauses;
  private readonly limits: ServedLimits;
  readonly counts: ServedCounts;
  readonly guards: ServedGuards;
  readonly notifications: ServedNotifications;
  readonly overview: ServedOverview;
  private control: ControlServer | undefined;
  private readonly ticketKeys: TicketKeys;
  /** Reloads that were requested and have not begun are done as one. */
  private nextReload: Promise<ControlOutcome> | undefined;
  private readonly succession: Succession;
  private stopping = false;
  /** Set while it still accepts but already reports that it is not ready. */
  private leaving: NodeJS.Timeout | undefined;
  private stop: () => void = () => undefined;
  private readonly ending = new Promise<void>((resolve) => (this.stop = resolve));
  private failed = false;

  constructor(private readonly options: MasterOptions) {
    const { predecessor, logToStderr } = options;
    this.logs = new MasterLog(logToStderr !== true);
    this.service = new ServiceState(
      this.logs,
      () => this.serving,
      (verdict, problems) => this.notifications.refused(verdict, problems),
    );
    this.sockets = new MasterSockets(
      () => this.notReady(),
      () => this.counts.now(),
      this.logs,
    );
    this.ticketKeys = new TicketKeys(
      (ticketKeys) => this.supervised.broadcast({ type: "ticketKeys", ticketKeys }),
      this.logs,
    );
    this.certificates = new CertificateManager(options.acmeDirectory, this.logs, {
      loaded: () => this.loaded!,
      install: (renewal) => this.install(renewal),
      respondToChallenges: this.supervised.respondToChallenges.bind(this.supervised),
    });
    const { supervised, changes, certificates } = this;
    const host = { loaded: () => this.loaded!, supervised, changes, notNow: () => this.notNow("change") };
    this.upstreams = new ServedUpstreams(host, this.logs);
    this.guards = new ServedGuards(host, this.logs);
    this.counts = new ServedCounts({ ...host, certificates, upstreams: this.upstreams });
    this.pauses = new ServedPauses(options.control, host, this.logs);
    this.limits = new ServedLimits(supervised);
    this.notifications = new ServedNotifications(
      options.control,
      options.acmeDirectory,
      this.watched(),
      this.logs,
    );
    this.overview = new ServedOverview(this, this.logs, () => {
      return { config: this.loaded!.config, generation: this.generation, isStopping: this.isStopping };
    });
    this.overview.showOn(this.sockets.metrics);
    this.succession = new Succession(this);
    if (predecessor === undefined) return;
    this.counts.passOn((counts) => predecessor.count(counts));
    predecessor.orders = {
      drain: (delayed) => (delayed ? this.shutDown({ delayed }) : void this.end()),
      stop: () => void this.end(),
      takeOver: (before) => this.counts.takeOver(before),
      count: (counts) => this.counts.add(counts),
    };
  }

  /** Serves until it is shut down; resolves with the exit code. */
  async run(): Promise<number> {
    const { predecessor } = this.options;
    const problems = await this.changes.do(() => this.start());
    // A stop in the middle of the start is not a failure.
    if (problems.length > 0 && !this.stopping) {
      this.failed = true;
      const verdict = `cannot start: ${report.problemCount(problems)}`;
      report.write(process.stderr, `${report.problemsText(problems)}portico: ${verdict}\n`);
      await predecessor?.failed(problems);
      void this.end();
    } else {
      await Promise.race([predecessor?.takeOver, this.ending]);
      if (!this.stopping) await this.becomeMain();
    }
    await this.supervised.allGone();
    await this.succession.replacedBy?.told;
    this.control?.close();
    await this.sockets.closeAll();
    predecessor?.leave();
    await this.logs.close();
    return this.failed ? EXIT_FAILED : EXIT_OK;
  }

  /** Loads a changed config without refusing or cutting a request; a bad one is refused and changes nothing. */
  reload(): Promise<ControlOutcome> {
    this.nextReload ??= this.changes.do(() => {
      this.nextReload = undefined;
      return this.notNow("reload") ?? this.tryReload();
    });
    return this.nextReload;
  }

  /** Reloads for a signal, which waits for no outcome. */
  async reloadOnSignal(): Promise<void> {
    await this.reload();
    this.succession.replacedBy?.signal("SIGHUP");
  }

  /**
   * Starts a new master on the same sockets. Once that serves, this one finishes its running requests and ends. If the
   * new one cannot serve, nothing changes.
   */
  upgrade(program: Program = {}): Promise<ControlOutcome> {
    return this.changes.do(async () => this.notNow("upgrade") ?? this.succession.upgrade(program));
  }

  /**
   * Stops accepting and ends when running requests are done; a second call ends it at once.
   *
   * @param delayed accepts for `drainDelayMs` before; a second call ends that
   */
  shutDown({ delayed = false } = {}): void {
    // The new master decides when this one ends.
    if (this.succession.replacedBy !== undefined) return;
    const delayMs = this.loaded?.config.timeouts.drainDelayMs ?? 0;
    if (delayed && delayMs > 0 && !this.isStopping) {
      this.leaving = setTimeout(() => this.shutDown(), delayMs);
      const STATUS = `Stopping: accepts connections for another ${delayMs / 1000} s, but is not ready`;
      return void this.service.notify({ STOPPING: 1, STATUS });
    }
    // Stopping a master that is about to take over stops the service, and so the old master too.
    if (!this.stopping && this.options.predecessor !== undefined)
      this.supervised.add(this.options.predecessor);
    void this.end();
    void this.service.notify({ STOPPING: 1, STATUS: "Draining: waiting for running requests" });
  }

  /**
   * Uses renewed TLS material for all handshakes from now on; connections and requests stay as they are. Ids of
   * certificates that the running config does not have are passed over.
   */
  private install(renewal: Renewal): Promise<void> {
    // A reload in progress may have read the material from before the renewal.
    return this.changes.do(async () => {
      this.loaded = renewed(this.loaded!, renewal);
      this.current!.broadcast({ type: "renewed", renewal });
    });
  }

  reopenLogs(): void {
    const { loaded, options } = this;
    if (loaded !== undefined && options.logToStderr !== true) recoverLogs(logPaths(loaded.config));
    this.logs.reopen();
    this.supervised.broadcast({ type: "reopenLogs" });
  }

  private async start(): Promise<readonly Problem[]> {
    const { predecessor } = this.options;
    const handover = await predecessor?.handover;
    if (handover !== undefined) {
      this.sockets.adopt(handover);
      this.ticketKeys.adopt(handover);
      this.upstreams.adopt(handover.serverOrders);
      this.guards.adopt(handover.guards);
      this.generation = handover.generation;
    }
    this.pauses.recall();
    const loaded = await this.load("warning");
    if (!loaded.ok) return loaded.problems;
    const problems = await this.begin(loaded.value);
    if (problems.length === 0) predecessor?.ready();
    return problems;
  }

  private load(expiry: "problem" | "warning"): Promise<Result<LoadedForMaster>> {
    return this.options.load(expiry, (wanted) => this.certificates.issued(wanted));
  }

  /** From here on this process is the service's main process, for people and for systemd. */
  private async becomeMain(): Promise<void> {
    const { predecessor, logToStderr, onReady } = this.options;
    if (predecessor !== undefined) this.supervised.add(predecessor);
    this.service.isMain = true;
    this.counts.keep();
    await this.sockets.serveOwn(this.loaded!.config);
    await this.pauses.takeOver();
    this.control = await openControl(this.options.control, this, this.logs);
    predecessor?.tookOver();
    await this.service.notify({ READY: 1 });
    const { config } = this.loaded!;
    const stream = logToStderr === true ? process.stderr : process.stdout;
    report.write(stream, `portico ${VERSION} ready: ${report.servingText(config)}\n`);
    onReady?.();
    this.lookAfter();
  }

  /** Starts the tasks of a main master besides serving, for the config in force. */
  private lookAfter(): void {
    this.certificates.lookAfter();
    void this.upstreams.lookAfter();
    void this.notifications.lookAfter();
    this.overview.begin();
    collectGarbageSoon();
  }

  status(): Done {
    const loaded = { runtime: this.runtime, ...loadedStateOf(this.loaded!) };
    return { message: `serving ${report.servingText(this.loaded!.config)}`, warnings: [], loaded };
  }

  private async tryReload(): Promise<ControlOutcome> {
    void this.service.notify({ RELOADING: 1 });
    const loaded = await this.load("problem");
    const problems = loaded.ok ? await this.begin(loaded.value) : loaded.problems;
    if (!loaded.ok || problems.length > 0) {
      if (!this.stopping) this.service.refuse("reload refused; the current config stays in force", problems);
      this.counts.count("reloads", "refused");
      await this.service.notify({ READY: 1 });
      return { ok: false, problems };
    }
    const { config, warnings } = loaded.value;
    const message = `configuration reloaded: ${report.servingText(config)}`;
    this.service.succeeded();
    this.counts.count("reloads", "done");
    await this.service.notify({ READY: 1 });
    this.logs.write("info", message);
    this.notifications.reloaded();
    this.lookAfter();
    return { ok: true, value: { message, warnings } };
  }

  /** This master as the source of notifications. */
  private watched(): NotifyingMaster {
    const { upstreams, certificates } = this;
    const isServing = (): boolean => this.notReady() === undefined;
    return { loaded: () => this.loaded!, isServing, upstreams, certificates };
  }

  stops(): "no" | "soon" | "now" {
    if (this.stopping) return "now";
    return this.leaving === undefined ? "no" : "soon";
  }

  giveWay(): void {
    this.control?.close();
    void this.sockets.serveOwn(undefined);
  }

  handover(): Handover {
    const { sockets, ticketKeys, upstreams, guards, generation } = this;
    const passable = { ...sockets.passable, ...ticketKeys.passable };
    return { ...passable, serverOrders: upstreams.orders, guards: guards.state, generation };
  }

  /** The new master died. systemd sees the service fail, and starts it again. */
  onSuccessorDied(): void {
    this.failed = true;
    this.logs.write("crit", "the new master is gone, and no process accepts connections");
  }

  /** Puts a config into service in place of the current one; on failure the current one is untouched. */
  private async begin(all: LoadedForMaster): Promise<readonly Problem[]> {
    const { ticketSecret: _, ...loaded } = all;
    const { config } = loaded;
    if (this.stopping) return [stoppedEarly()];
    const sockets = await this.sockets.acquire(config, this.loaded?.config, this.service.isMain);
    if (!sockets.ok) return sockets.problems;
    const next = new Generation({
      loaded,
      sockets: sockets.value,
      size: workerCount(config),
      heap: heapOf(config),
      ticketKeys: this.ticketKeys.for(all),
      command: this.options.workerCommand ?? ownWorkerCommand(),
      challenges: this.supervised.challenges,
      upstreams: this.upstreams,
      pauses: () => this.pauses.order,
      limits: this.limits,
      guards: this.guards,
      statusResponse: (asked) => this.overview.respond(asked),
      logToStderr: this.options.logToStderr === true,
      count: (counts) => this.counts.add(counts),
      log: (level, message) => this.logs.write(level, message),
      onEnd: (how) => {
        this.counts.count("workerRestarts");
        this.notifications.workerEnded(how);
      },
    });
    this.supervised.add(next);
    this.limits.add(config);
    await this.upstreams.lookUp(config);
    const problems = await next.start();
    if (problems.length > 0) {
      await this.sockets.keepOnly(this.loaded?.config, this.service.isMain);
      if (this.loaded !== undefined) this.limits.keepOnly(this.loaded.config);
      return problems;
    }
    const previous = this.current;
    this.current = next;
    this.loaded = loaded;
    this.guards.use(config);
    this.generation += 1;
    this.limits.keepOnly(config);
    await this.upstreams.keepOnly(config);
    await this.sockets.keepOnly(config, this.service.isMain);
    // A user who asked for the reload may connect as soon as there is a response, and expects the new config.
    await previous?.drain();
    await Promise.all([this.certificates.begin(), this.ticketKeys.begin(all)]);
    await this.logs.use(config);
    this.logs.warn(...loaded.warnings, ...this.sockets.listeners.unused(config.listeners));
    for (const [level, note] of startNotes(loaded, previous === undefined)) this.logs.write(level, note);
    return [];
  }

  /** Resolves when no worker of this master accepts any more. */
  async end(): Promise<void> {
    clearTimeout(this.leaving);
    const drained = this.stopping ? this.supervised.stop() : this.supervised.drain();
    this.stopping = true;
    this.stop();
    // Otherwise clients would wait in the queue of a socket that no worker accepts from.
    this.sockets.listeners.closeAll();
    this.ticketKeys.stop();
    this.upstreams.stop();
    this.pauses.stop();
    this.notifications.stop();
    this.overview.stop();
    await Promise.all([drained, this.certificates.stop()]);
  }

  private notNow(what: string): Promise<ControlOutcome> | undefined {
    if (this.succession.replacedBy !== undefined) {
      const message = `a new master, process ${this.succession.replacedBy.pid}, serves in place of this one`;
      return Promise.resolve({ ok: false, problems: [problem("control.replaced", "", message)] });
    }
    return this.isStopping ? Promise.resolve({ ok: false, problems: [stopped(what)] }) : undefined;
  }

  private get isStopping(): boolean {
    return this.stops() !== "no";
  }

  private notReady(): NotReady | undefined {
    // Once replaced, it responds to probes that came before: the service goes on.
    if (this.isStopping) return this.succession.replacedBy === undefined ? "stopping" : undefined;
    if (this.current?.accepts !== true) return "no worker accepts connections";
    const { silent } = this.current;
    return silent && `worker ${silent.pid} has not responded for ${(silent.ms / 1_000).toFixed(1)} s`;
  }

  private get serving(): Serving | undefined {
    if (this.succession.replacedBy !== undefined) return undefined;
    const { config } = this.loaded!;
    return { config, generation: this.generation, finishing: this.supervised.size - 1 };
  }
}

const [EXIT_OK, EXIT_FAILED] = [0, 1];
