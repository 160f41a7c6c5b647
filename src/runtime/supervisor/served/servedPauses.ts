import { dirname, join } from "node:path";
import { type Problem, problem, siteNotIn } from "../../../model/serving.js";
import type { PauseOrder, QuiesceOrder, SeenPauses } from "../../dispatch/pauses.js";
import type { ControlOutcome } from "../control/control.js";
import type { BeginMaintenance, ListedPauses, QuiesceRequest } from "../control/listedPauses.js";
import type { MasterLog } from "../report/masterLog.js";
import type { OrderingMaster } from "../processes/supervision.js";
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
      maintenance: maintenance.map(({ site, until, message, graceUntil }) => ({
        site,
        until,
        message,
        closesTunnels: graceUntil <= now,
      })),
      quiesce: quiesce && orderOf(quiesce),
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

  begin(wanted: BeginMaintenance, site?: string): Promise<ControlOutcome> {
    return this.inTurn(() => this.begun(wanted, site));
  }

  end(site?: string): Promise<ControlOutcome> {
    return this.inTurn(() => this.ended(site));
  }

  /** Begins, changes or renews it; the response has the requests that it still waits for. */
  quiesce(request: QuiesceRequest): Promise<ControlOutcome> {
    // Workers that a reload or an upgrade starts must know what is refused. Nothing else waits for these.
    if (request.begin !== undefined || request.refuses === true)
      return this.inTurn(() => this.quiesced(request));
    return this.host.notNow() ?? this.quiesced(request);
  }

  resume(id: string): Promise<ControlOutcome> {
    return this.inTurn(() => this.resumed(id));
  }

  private inTurn(change: () => Promise<ControlOutcome>): Promise<ControlOutcome> {
    return this.host.changes.do(() => this.host.notNow() ?? change());
  }

  private async begun(wanted: BeginMaintenance, site: string | undefined): Promise<ControlOutcome> {
    const { until, message } = wanted;
    const unknown = this.unknownSite(site);
    if (unknown !== undefined) return unknown;
    const since = Date.now();
    const graceUntil = since + this.host.loaded().config.maintenance.graceMs;
    const others = this.state.maintenance.filter((one) => one.site !== site);
    const same = this.state.maintenance.find((one) => one.site === site);
    const one = { site, since, graceUntil, ...same, until, message };
    const { seen, warnings } = await this.change({ ...this.state, maintenance: [...others, one] });
    const end = until === undefined ? "`portico maintenance off`" : new Date(until).toISOString();
    const done = `${nameOf(site)} is in maintenance: requests get 503 until ${end}${silence(seen)}`;
    this.logs.write("warn", done);
    return { ok: true, value: { message: done, warnings } };
  }

  private async ended(site: string | undefined): Promise<ControlOutcome> {
    const { maintenance } = this.state;
    const ended = maintenance.filter((one) => site === undefined || one.site === site);
    if (site !== undefined && ended.length === 0) {
      const unknown = this.unknownSite(site);
      if (unknown !== undefined) return unknown;
      if (maintenance.length > 0) return { ok: false, problems: [notAlone(site)] };
    }
    const left = maintenance.filter((one) => !ended.includes(one));
    const { seen, warnings } = await this.change({ ...this.state, maintenance: left });
    for (const one of ended) this.logs.write("warn", `${nameOf(one.site)} is no longer in maintenance`);
    const done = ended.length === 0 ? "there was no maintenance" : "maintenance has ended";
    return { ok: true, value: { message: `${done}${silence(seen)}`, warnings } };
  }

  private async quiesced({ id, begin, refuses }: QuiesceRequest): Promise<ControlOutcome> {
    const up = kept.hostUptime();
    const before = this.state.quiesce;
    if (before !== undefined && before.id !== id) return { ok: false, problems: [taken(before.since)] };
    const unknown = this.unknownSite(begin?.site);
    if (unknown !== undefined) return unknown;
    const quiesce = before ?? (begin && { id, ...begin, since: Date.now() });
    if (quiesce === undefined) return { ok: false, problems: [open()] };
    const refused = before?.refusal;
    const begins = refuses === true && refused === undefined;
    const ends = refuses === false && refused !== undefined;
    const fresh = begins ? { since: Date.now(), limitUntil: up + quiesce.limitMs } : refused;
    const leaseUntil = up + kept.LEASE_MS;
    const wanted = { ...quiesce, leaseUntil, refusal: ends ? undefined : fresh };
    const { seen, warnings } = await this.change({ ...this.state, quiesce: wanted });
    if (begins) this.logs.write("warn", `${whatOf(quiesce)} get 503 (portico quiesce)`);
    if (ends) this.logs.write("warn", `${WRITES_AGAIN}: those in progress take too long`);
    const pauses = this.listed(seen);
    const message = `quiesced; in progress: ${pauses.quiesce?.writes ?? 0}${silence(seen)}`;
    return { ok: true, value: { message, warnings, pauses } };
  }

  private async resumed(id: string): Promise<ControlOutcome> {
    const { maintenance, quiesce } = this.state;
    if (quiesce?.id !== id) return { ok: false, problems: [open()] };
    await this.change({ maintenance });
    if (quiesce.refusal !== undefined) this.logs.write("warn", `${WRITES_AGAIN}: portico quiesce has ended`);
    return { ok: true, value: { message: WRITES_AGAIN, warnings: [] } };
  }

  async list(): Promise<ControlOutcome> {
    const pauses = this.listed(await this.host.supervised.orderPauses(this.order));
    const { maintenance, quiesce } = pauses;
    const open = maintenance.length === 0 && quiesce?.refusesSince === undefined;
    const message = open ? "no request is refused" : "requests are refused";
    return { ok: true, value: { message, warnings: [], pauses } };
  }

  private listed(seen: readonly (SeenPauses | undefined)[]): ListedPauses {
    const { maintenance, quiesce } = this.state;
    return {
      maintenance: maintenance.map(({ site, since, until, message }) => ({
        site,
        since,
        until,
        message,
      })),
      quiesce: quiesce && {
        since: quiesce.since,
        refusesSince: quiesce.refusal?.since,
        reads: quiesce.reads,
        site: quiesce.site,
        ...together(seen),
        silent: seen.filter((one) => one === undefined).length,
      },
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
      ...(quiesce === undefined ? [] : [kept.endOf(quiesce) - up]),
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
      this.logs.write("warn", `${nameOf(one.site)} is no longer in maintenance: its end time has passed`);
    const refusal = opened ? before.quiesce!.refusal : undefined;
    if (refusal === undefined) return;
    const why = refusal.limitUntil <= kept.hostUptime() ? "its time is over" : "its command was killed";
    this.logs.write("error", `${WRITES_AGAIN}: ${why}`);
  }

  private unknownSite(site: string | undefined): ControlOutcome | undefined {
    const unknown = siteNotIn(this.host.loaded().config, site);
    return unknown && { ok: false, problems: [unknown] };
  }
}

const WRITES_AGAIN = "requests that write are served again";
/** Checked this often, because a timer does not notice a change of the clock. */
const LOOK_MS = 30_000;

function orderOf({ reads, site, minimumRate, cutsSlow, refuseMs, refusal }: kept.QuiesceState): QuiesceOrder {
  return { reads, site, minimumRate, cutsSlow, refuseMs, refuses: refusal !== undefined };
}

const whatOf = ({ reads, site }: Pick<QuiesceOrder, "reads" | "site">): string =>
  `${reads ? "all requests" : "requests that write"}${site === undefined ? "" : ` to site "${site}"`}`;

/** What all workers have; those that do not respond are counted elsewhere. */
function together(seen: readonly (SeenPauses | undefined)[]): SeenPauses {
  const all = seen.filter((one) => one !== undefined);
  const sum = (count: (one: SeenPauses) => number): number => all.reduce((n, one) => n + count(one), 0);
  return {
    writes: sum(({ writes }) => writes),
    lasting: sum(({ lasting }) => lasting),
    slow: sum(({ slow }) => slow),
    transfers: all
      .filter(({ slow }) => slow > 0 || all.every((one) => one.slow === 0))
      .flatMap(({ transfers }) => transfers),
  };
}

interface Changed {
  readonly seen: readonly (SeenPauses | undefined)[];
  readonly warnings: readonly Problem[];
}

/** A note about workers that did not respond: they may be hung, and go on as before until they do. */
function silence(seen: readonly (SeenPauses | undefined)[]): string {
  const silent = seen.filter((one) => one === undefined).length;
  return silent === 0 ? "" : `, workers that do not respond: ${silent}`;
}

const nameOf = (site: string | undefined): string => (site === undefined ? "every site" : `site "${site}"`);

function taken(since: number): Problem {
  const message = `another portico quiesce has been running since ${new Date(since).toISOString()}`;
  return problem("control.quiesced", "", message);
}

const open = (): Problem => problem("control.not-quiesced", "", WRITES_AGAIN);

function notAlone(received: string): Problem {
  const fix = "End the maintenance of all sites with `portico maintenance off`.";
  const message = "has no separate maintenance: all sites are in maintenance, or only others";
  return problem("control.unknown-site", "--site", message, { received, fix });
}
