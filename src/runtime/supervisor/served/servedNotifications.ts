import { dirname, join } from "node:path";
import { type Problem, problem, type ProxyConfig } from "../../../model/serving.js";
import { credentials } from "../../load/credentials.js";
import { type LoadedConfig, logPaths } from "../../load/loadConfig.js";
import { type Notice, noticesOf } from "../../notifications/notice.js";
import type { Notifier } from "../../notifications/notifier.js";
import type { DownTimes, WorkerEnds } from "../../notifications/watch.js";
import { certificateState } from "../control/certificateList.js";
import type { ControlOutcome } from "../control/control.js";
import type { MasterLog } from "../report/masterLog.js";
import type { CertificateManager } from "./certificateManager.js";
import type { ServedUpstreams } from "./servedUpstreams.js";

/** The interface of a master for its notifications. */
export interface NotifyingMaster {
  /** The config in service, with its files. */
  loaded(): LoadedConfig;
  /** Whether workers accept, and it is not about to end. */
  isServing(): boolean;
  readonly upstreams: Pick<ServedUpstreams, "down">;
  readonly certificates: Pick<CertificateManager, "list" | "clientAuthorities">;
}

/**
 * Sends notifications if the config has targets. The code is loaded only then, and runs only in the main master,
 * because two masters would send everything twice.
 */
export class ServedNotifications {
  private notifier: Notifier | undefined;
  private downTimes: DownTimes | undefined;
  private workerEnds: WorkerEnds | undefined;
  private readonly timers: NodeJS.Timeout[] = [];
  private stopped = false;
  private readonly file: string | undefined;

  /**
   * @param control path of the control socket; sent notices are stored beside it
   * @param stateDirectory where certificates by ACME are kept, if there is one
   */
  constructor(
    control: string | undefined,
    private readonly stateDirectory: string | undefined,
    private readonly master: NotifyingMaster,
    private readonly logs: Pick<MasterLog, "write">,
  ) {
    this.file = control === undefined ? undefined : join(dirname(control), "notified.json");
  }

  /** From now on follows the current config. Only a main master calls this. */
  async lookAfter(): Promise<void> {
    const { notifications } = this.master.loaded().config;
    if (notifications === undefined) return this.rest();
    if (this.notifier !== undefined) return this.notifier.use(notifications);
    const [{ Notifier }, { DownTimes, WorkerEnds }] = await Promise.all([
      import("../../notifications/notifier.js"),
      import("../../notifications/watch.js"),
    ]);
    if (this.stopped || this.notifier !== undefined) return;
    this.notifier = new Notifier(notifications, this.file, {
      isServing: () => this.master.isServing(),
      find: () => credentials(),
      log: (level, message) => this.logs.write(level, message),
    });
    this.downTimes = new DownTimes();
    this.workerEnds = new WorkerEnds();
    this.notifier.observe("reload", []);
    this.every(SERVERS_MS, () => this.watchServers());
    this.every(HOST_MS, () => this.watchHost());
  }

  stop(): void {
    this.stopped = true;
    this.rest();
  }

  /** A reload or an upgrade was refused. */
  refused(message: string, problems: readonly Problem[]): void {
    for (const notice of noticesOf("reload", { events: [{ level: "error", message, problems }] }))
      this.notifier?.raise(notice);
  }

  /** A reload went well. */
  reloaded(): void {
    this.notifier?.resolve("reload/refused");
  }

  /** A worker ended unexpectedly. */
  workerEnded(how: string): void {
    this.workerEnds?.add(how, performance.now());
    void this.watchWorkers();
  }

  /** Notifies that an activation was rolled back, as its command reports. */
  rolledBack(reason: string, fix: string): ControlOutcome {
    if (this.notifier === undefined) return { ok: false, problems: [nobody()] };
    for (const notice of noticesOf("activation", { rolledBack: { reason, fix } }))
      this.notifier.happened(notice);
    return { ok: true, value: { message: "it will be told", warnings: [] } };
  }

  /** Sends every target a message; resolves with the outcome of each. */
  async test(): Promise<ControlOutcome> {
    if (this.notifier === undefined) return { ok: false, problems: [nobody()] };
    const notified = await this.notifier.test();
    const taken = notified.filter(({ why }) => why === undefined).length;
    const message = `${taken} of ${notified.length} target${notified.length === 1 ? "" : "s"} accepted the message`;
    return { ok: true, value: { message, warnings: [], notified } };
  }

  private rest(): void {
    for (const timer of this.timers.splice(0)) clearInterval(timer);
    this.notifier?.stop();
    this.notifier = undefined;
  }

  /** Runs a check at once, and then regularly, even after a failure. */
  private every(ms: number, look: () => Promise<void>): void {
    let busy = false;
    const turn = (): void => {
      if (busy) return;
      busy = true;
      void look()
        .catch((error: Error) =>
          this.logs.write("warn", `a check for notifications failed: ${error.message}`),
        )
        .finally(() => (busy = false));
    };
    turn();
    this.timers.push(setInterval(turn, ms).unref());
  }

  private async watchServers(): Promise<void> {
    const { notifications } = this.master.loaded().config;
    if (notifications === undefined) return;
    const down = await this.master.upstreams.down();
    const notices = this.downTimes!.notices(down, notifications.upstreamDownMs, performance.now());
    this.notifier?.observe("upstream", notices);
  }

  private async watchHost(): Promise<void> {
    const { disksOf, fullDisks } = await import("../../notifications/watch.js");
    const { config } = this.master.loaded();
    const { notifications } = config;
    if (notifications === undefined) return;
    await this.watchWorkers();
    const listed = this.master.certificates.list().certificates ?? [];
    const certificates = listed.map((one) =>
      certificateState(one, Date.now(), notifications.certificateDays),
    );
    const clientAuthorities = this.master.certificates.clientAuthorities(Date.now());
    this.notifier?.observe("certificate", noticesOf("certificate", { certificates, clientAuthorities }));
    const disks = await disksOf(this.places(config));
    const full = fullDisks(disks, notifications.diskFreePercentMin);
    this.notifier?.observe("disk", noticesOf("disk", { fullDisks: full }));
  }

  private async watchWorkers(): Promise<void> {
    const notices: readonly Notice[] = this.workerEnds?.notices(performance.now()) ?? [];
    this.notifier?.observe("worker", notices);
  }

  /** The files and directories that the proxy writes to. */
  private places(config: ProxyConfig): readonly string[] {
    const { file, stateDirectory } = this;
    return [...logPaths(config), ...[file, stateDirectory].filter((path) => path !== undefined)];
  }
}

const SERVERS_MS = 10_000;
const HOST_MS = 60_000;

const nobody = (): Problem =>
  problem("control.no-notifications", "", "the config of the running portico has no notification targets");
