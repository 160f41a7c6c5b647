import type { ProxyConfig } from "../../model/serving.js";
import { ClientTable } from "./clientTable.js";
import { hostNow } from "./hostClock.js";
import type { LimitNews, LimitReport, RunningNews, TimeNews } from "./limitNews.js";
import { rateId, runningId } from "./clientLimits.js";
import { RequestRate } from "./requestRate.js";
import { setCount } from "./routeLimits.js";

/** Puts the counts of all workers together; the master's. A worker of the next config begins with them. */
export class SharedLimits<Worker extends object> {
  private readonly rates = new Map<string, { readonly pace: RequestRate; readonly table: ClientTable }>();
  private readonly running = new Map<string, RunningOf<Worker>>();

  /** @param now the host's clock */
  constructor(private readonly now: () => number = hostNow) {}

  /** Counts for the limits of this config too. */
  add({ virtualServers }: Pick<ProxyConfig, "virtualServers">): void {
    for (const server of virtualServers) {
      for (const route of server.routes) {
        const [rate, running] = [rateId(server, route), runningId(server, route)];
        if (rate !== undefined && !this.rates.has(rate))
          this.rates.set(rate, { pace: new RequestRate(route.rateLimit!), table: new ClientTable() });
        if (running !== undefined && !this.running.has(running)) this.running.set(running, new RunningOf());
      }
    }
  }

  /** Forgets the limits that this config does not have. */
  keepOnly({ virtualServers }: Pick<ProxyConfig, "virtualServers">): void {
    const all = virtualServers.flatMap((server) => server.routes.map((route) => [server, route] as const));
    keep(this.rates, new Set(all.map(([server, route]) => rateId(server, route))));
    keep(this.running, new Set(all.map(([server, route]) => runningId(server, route))));
  }

  /** Takes a worker's report. @returns what each worker should know now */
  heard(worker: Worker, { used, running }: LimitReport): (other: Worker) => LimitNews {
    const times: Record<string, TimeNews> = {};
    for (const [id, clients] of Object.entries(used)) {
      const rate = this.rates.get(id);
      if (rate === undefined) continue;
      const { pace, table } = rate;
      times[id] = clients.map(([key, first, count]) => {
        // What was over before the first of these requests does not count.
        const time = pace.after(table.timeOf(key, first), first, count);
        table.set(key, time, first);
        return [key, time];
      });
    }
    for (const [id, counts] of Object.entries(running)) this.running.get(id)?.set(worker, counts);
    const changed = Object.entries(running).map(([id, counts]) => [id, counts.map(([key]) => key)] as const);
    return (other) => ({ times, running: this.othersOf(other, changed) });
  }

  /** Forgets a worker, whose requests are over. @returns what each worker should know now */
  gone(worker: Worker): (other: Worker) => LimitNews {
    const changed = [...this.running].map(([id, one]) => [id, one.forget(worker)] as const);
    return (other) => ({ times: {}, running: this.othersOf(other, changed) });
  }

  /** Everything, for a worker that starts. */
  get all(): LimitNews {
    const now = this.now();
    const times = [...this.rates].map(([id, { table }]) => [id, [...table.entries(now)]] as const);
    const running = [...this.running].map(([id, one]) => [id, one.total()] as const);
    return { times: filled(times), running: filled(running) };
  }

  private othersOf(
    worker: Worker,
    changed: readonly (readonly [id: string, keys: readonly string[]])[],
  ): LimitNews["running"] {
    return filled(
      changed.map(([id, keys]) => [id, this.running.get(id)?.ofOthers(worker, keys) ?? []] as const),
    );
  }
}

/** Requests in progress under one limit, by worker. */
class RunningOf<Worker extends object> {
  private readonly byWorker = new Map<Worker, Map<string, number>>();

  set(worker: Worker, counts: RunningNews): void {
    let own = this.byWorker.get(worker);
    if (own === undefined) this.byWorker.set(worker, (own = new Map()));
    for (const [key, count] of counts) setCount(own, key, count);
  }

  /** @returns the clients that it had */
  forget(worker: Worker): readonly string[] {
    const own = this.byWorker.get(worker);
    this.byWorker.delete(worker);
    return [...(own?.keys() ?? [])];
  }

  ofOthers(worker: Worker, keys: readonly string[]): RunningNews {
    const others = [...this.byWorker].filter(([one]) => one !== worker);
    return keys.map((key) => [key, others.reduce((sum, [, counts]) => sum + (counts.get(key) ?? 0), 0)]);
  }

  total(): RunningNews {
    const sums = new Map<string, number>();
    for (const counts of this.byWorker.values())
      for (const [key, count] of counts) sums.set(key, (sums.get(key) ?? 0) + count);
    return [...sums];
  }
}

const filled = <T extends readonly unknown[]>(parts: readonly (readonly [string, T])[]): Record<string, T> =>
  Object.fromEntries(parts.filter(([, part]) => part.length > 0));

function keep(all: Map<string, unknown>, ids: ReadonlySet<string | undefined>): void {
  for (const id of all.keys()) if (!ids.has(id)) all.delete(id);
}
