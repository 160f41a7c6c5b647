import { dirname, join } from "node:path";
import { type Problem, problem } from "../../model/serving.js";
import type { PauseOrder, SeenPauses } from "../dispatch/pauses.js";
import type { ControlOutcome } from "./control.js";
import type { BeginMaintenance, ListedPauses, QuiesceRequest } from "./listedPauses.js";
import type { MasterLog } from "./masterLog.js";
import type { OrderingMaster } from "./supervision.js";
import * as kept from "./pauseFile.js";

/**
 * Maintenance and quiesce: requests that workers refuse by command, and until when. Every change is written to a file
 * first, and every master begins with that file. So a pause outlasts a worker, a reload, an upgrade and a crash, and
 * ends with the service.
 */
export class ServedPauses {
  private state = kept.NOTHING;
  private timer: NodeJS.Timeout | undefined;
  private stopped = false;
  /** Whether the file has the current state. */
  private isKept = true;

  private readonly file: string | undefined;

  /** @param control path of the control socket; without it no command reaches this master, and nothing is stored */
  constructor(
    control: string | undefined,
    private readonly host: OrderingMaster,
    private readonly logs: Pick<MasterLog, "write">,
  ) {
    this.file = control === undefined ? undefined : join(dirname(control), "pauses.json");
  }

  get order(): PauseOrder {
    const now = Date.now();
    const { maintenance, quiesce } = this.state;
    return {
      maintenance: maintenance.map(({ server, until, message, graceUntil }) => ({
        server,
        until,
        message,
        closesTunnels: graceUntil <= now,
      })),
      ...(quiesce === undefined ? {} : { quiesce: { reads: quiesce.reads } }),
    };
  }

  /** Reads the pauses that the last master left. */
  recall(): void {
    if (this.file === undefined) return;
    this.state = kept.readPauses(this.file, (why) =>
      this.logs.write("error", `earlier pauses are lost: ${why}`),
    );
  }

  /** From now on only this master changes it. */
  async takeOver(): Promise<void> {
    this.recall();
    await this.carryOut();
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
  }

  begin(wanted: BeginMaintenance, server?: string): Promise<ControlOutcome> {
    return this.inTurn(() => this.begun(wanted, server));
  }

  end(server?: string): Promise<ControlOutcome> {
    return this.inTurn(() => this.ended(server));
  }

  /** Begins or renews it; the response has the number of requests that it still waits for. */
  quiesce(request: QuiesceRequest): Promise<ControlOutcome> {
    // A renewal must not wait for a reload that takes its time.
    if (request.begin === undefined) return this.host.notNow() ?? this.quiesced(request);
    return this.inTurn(() => this.quiesced(request));
  }

  resume(id: string): Promise<ControlOutcome> {
    return this.inTurn(() => this.resumed(id));
  }

  private inTurn(change: () => Promise<ControlOutcome>): Promise<ControlOutcome> {
    return this.host.changes.do(() => this.host.notNow() ?? change());
  }

  private async begun(wanted: BeginMaintenance, server: string | undefined): Promise<ControlOutcome> {
    const { until, message } = wanted;
    const unknown = this.unknownServer(server);
    if (unknown !== undefined) return { ok: false, problems: [unknown] };
    const since = Date.now();
    const graceUntil = since + this.host.loaded().config.maintenance.graceMs;
    const others = this.state.maintenance.filter((one) => one.server !== server);
    const same = this.state.maintenance.find((one) => one.server === server);
    const one = { server, since, graceUntil, ...same, until, message };
    const { seen, warnings } = await this.change({ ...this.state, maintenance: [...others, one] });
    const end = until === undefined ? "`portico maintenance off`" : new Date(until).toISOString();
    const done = `${nameOf(server)} is in maintenance: requests get 503 until ${end}${silence(seen)}`;
    this.logs.write("warn", done);
    return { ok: true, value: { message: done, warnings } };
  }

  private async ended(server: string | undefined): Promise<ControlOutcome> {
    const { maintenance } = this.state;
    const ended = maintenance.filter((one) => server === undefined || one.server === server);
    if (server !== undefined && ended.length === 0) {
      const unknown = this.unknownServer(server);
      if (unknown !== undefined) return { ok: false, problems: [unknown] };
      if (maintenance.length > 0) return { ok: false, problems: [notAlone(server)] };
    }
    const left = maintenance.filter((one) => !ended.includes(one));
    const { warnings } = await this.change({ ...this.state, maintenance: left });
    for (const one of ended) this.logs.write("warn", `${nameOf(one.server)} is no longer in maintenance`);
    const message = ended.length === 0 ? "there was no maintenance" : "maintenance has ended";
    return { ok: true, value: { message, warnings } };
  }

  private async quiesced({ id, begin }: QuiesceRequest): Promise<ControlOutcome> {
    const up = kept.hostUptime();
    const { quiesce } = this.state;
    if (quiesce !== undefined && quiesce.id !== id) return { ok: false, problems: [taken(quiesce.since)] };
    if (quiesce === undefined && begin === undefined) return { ok: false, problems: [open()] };
    const started = {
      id,
      reads: begin?.reads === true,
      since: Date.now(),
      limitUntil: up + (begin?.limitMs ?? 0),
    };
    const leaseUntil = up + kept.LEASE_MS;
    const wanted = { ...this.state, quiesce: { ...(quiesce ?? started), leaseUntil } };
    const { seen, warnings } = await this.change(wanted);
    if (quiesce === undefined)
      this.logs.write(
        "warn",
        `${started.reads ? "all requests" : "requests that write"} get 503 (portico quiesce)`,
      );
    const pauses = this.listed(seen);
    const message = `quiesced; in progress: ${pauses.quiesce?.writes ?? 0}${silence(seen)}`;
    return { ok: true, value: { message, warnings, pauses } };
  }

  private async resumed(id: string): Promise<ControlOutcome> {
    if (this.state.quiesce?.id !== id) return { ok: false, problems: [open()] };
    await this.change({ maintenance: this.state.maintenance });
    this.logs.write("warn", `${WRITES_AGAIN}: the command has ended`);
    return { ok: true, value: { message: WRITES_AGAIN, warnings: [] } };
  }

  async list(): Promise<ControlOutcome> {
    const pauses = this.listed(await this.host.supervised.orderPauses(this.order));
    const { maintenance, quiesce } = pauses;
    const message =
      maintenance.length === 0 && quiesce === undefined ? "no request is refused" : "requests are refused";
    return { ok: true, value: { message, warnings: [], pauses } };
  }

  private listed(seen: readonly (SeenPauses | undefined)[]): ListedPauses {
    const { maintenance, quiesce } = this.state;
    return {
      maintenance: maintenance.map(({ server, since, until, message }) => ({
        server,
        since,
        until,
        message,
      })),
      ...(quiesce === undefined
        ? {}
        : {
            quiesce: {
              since: quiesce.since,
              reads: quiesce.reads,
              writes: seen.reduce((sum, one) => sum + (one?.writes ?? 0), 0),
              silent: seen.filter((one) => one === undefined).length,
            },
          }),
    };
  }

  /** It happens even if the file cannot be written: a full disk is a reason for a maintenance. */
  private async change(state: kept.PauseState): Promise<Changed> {
    this.state = state;
    const warnings: Problem[] = [];
    try {
      if (this.file !== undefined) kept.writePauses(this.file, state);
      this.isKept = true;
    } catch (error) {
      const why = (error as Error).message;
      warnings.push(problem("control.not-kept", this.file!, `cannot be written: ${why}`));
      // Renewals come four times a second.
      if (this.isKept) this.logs.write("error", `pauses would not survive a crash or an upgrade: ${why}`);
      this.isKept = false;
    }
    return { seen: await this.carryOut(), warnings };
  }

  private carryOut(): Promise<readonly (SeenPauses | undefined)[]> {
    this.arm();
    return this.host.supervised.orderPauses(this.order);
  }

  /** Has it looked at again when the next part of it is over. */
  private arm(): void {
    clearTimeout(this.timer);
    if (this.stopped) return;
    const [now, up] = [Date.now(), kept.hostUptime()];
    const { maintenance, quiesce } = this.state;
    if (maintenance.length === 0 && quiesce === undefined) return;
    const left = [
      ...maintenance.flatMap(({ until = Infinity, graceUntil }) => [
        until - now,
        ...(graceUntil > now ? [graceUntil - now] : []),
      ]),
      ...(quiesce === undefined ? [] : [quiesce.leaseUntil - up, quiesce.limitUntil - up]),
    ];
    // Below 0 for a pause that is over and was not handled yet.
    const ms = Math.max(0, Math.min(LOOK_MS, ...left)) + 1;
    this.timer = setTimeout(() => void this.look(), ms).unref();
  }

  private async look(): Promise<void> {
    const before = this.state;
    const state = kept.stillHolds(before);
    const ended = before.maintenance.filter((one) => !state.maintenance.includes(one));
    const opened = before.quiesce !== undefined && state.quiesce === undefined;
    if (ended.length === 0 && !opened) return void (await this.carryOut());
    await this.change(state);
    for (const one of ended)
      this.logs.write("warn", `${nameOf(one.server)} is no longer in maintenance: its end time has passed`);
    if (!opened) return;
    const why =
      before.quiesce!.limitUntil <= kept.hostUptime() ? "its time is over" : "its command was killed";
    this.logs.write("error", `${WRITES_AGAIN}: ${why}`);
  }

  private unknownServer(server: string | undefined): Problem | undefined {
    const names = this.host.loaded().config.virtualServers.map(({ name }) => name);
    if (server === undefined || names.includes(server)) return undefined;
    const more = {
      received: server,
      allowed: names.join(", "),
      fix: "Use the name of a virtual server of the config.",
    };
    return problem("control.unknown-server", "--server", "is not the name of a virtual server", more);
  }
}

const WRITES_AGAIN = "requests that write are served again";
/** Checked this often, because a timer does not notice a change of the clock. */
const LOOK_MS = 30_000;

interface Changed {
  readonly seen: readonly (SeenPauses | undefined)[];
  readonly warnings: readonly Problem[];
}

/** A note about workers that did not respond: they may be hung, and may still serve refused requests. */
function silence(seen: readonly (SeenPauses | undefined)[]): string {
  const silent = seen.filter((one) => one === undefined).length;
  return silent === 0 ? "" : `, workers that do not respond: ${silent}`;
}

const nameOf = (server: string | undefined): string =>
  server === undefined ? "every virtual server" : `virtual server "${server}"`;

function taken(since: number): Problem {
  const message = `another command has been refusing writes since ${new Date(since).toISOString()}`;
  return problem("control.quiesced", "", message);
}

const open = (): Problem => problem("control.not-quiesced", "", WRITES_AGAIN);

function notAlone(server: string): Problem {
  const fix = "End the maintenance of all virtual servers with `portico maintenance off`.";
  const message = "has no separate maintenance: all virtual servers are in maintenance, or only others";
  return problem("control.unknown-server", "--server", message, { received: server, fix });
}
