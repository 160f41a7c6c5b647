import {
  burstOf,
  clientPrefix,
  type ProxyConfig,
  type RouteConfig,
  type VirtualServerConfig,
} from "../../model/serving.js";
import { hostNow } from "./hostClock.js";
import type { LimitNews, LimitReport } from "./limitNews.js";
import { isLimited, RouteLimits } from "./routeLimits.js";

/** Counts of another limit on the same route would mean something else. */
export function rateId(server: VirtualServerConfig, { name, rateLimit }: RouteConfig): string | undefined {
  if (rateLimit === undefined) return undefined;
  const { requests, perMs, ipv6Prefix } = rateLimit;
  return `${server.name}/${name} ${requests}/${perMs} ${burstOf(rateLimit)} /${ipv6Prefix}`;
}

export function runningId(server: VirtualServerConfig, route: RouteConfig): string | undefined {
  return route.concurrencyMax === undefined
    ? undefined
    : `${server.name}/${route.name} /${clientPrefix(route)}`;
}

/** The limits of all routes in a worker. */
export class ClientLimits {
  private readonly byRoute = new Map<RouteConfig, RouteLimits>();
  private readonly byRate = new Map<string, RouteLimits>();
  private readonly byRunning = new Map<string, RouteLimits>();

  constructor({ virtualServers }: Pick<ProxyConfig, "virtualServers">) {
    for (const server of virtualServers) {
      for (const route of server.routes.filter(isLimited)) {
        const limits = new RouteLimits(route);
        this.byRoute.set(route, limits);
        const [rate, running] = [rateId(server, route), runningId(server, route)];
        if (rate !== undefined) this.byRate.set(rate, limits);
        if (running !== undefined) this.byRunning.set(running, limits);
      }
    }
  }

  /** Undefined if the route has none. */
  of(route: RouteConfig): RouteLimits | undefined {
    return this.byRoute.get(route);
  }

  /** Requests that count against `concurrencyMax` of their route. */
  get running(): number {
    return [...this.byRunning.values()].reduce((sum, one) => sum + one.runningCount, 0);
  }

  /** What was counted since the last call; undefined if that is nothing. */
  report(): LimitReport | undefined {
    const used = told(this.byRate, (one) => one.used());
    const running = told(this.byRunning, (one) => one.changed());
    return Object.keys(used).length + Object.keys(running).length === 0 ? undefined : { used, running };
  }

  /** Takes over what the workers have counted together; limits that this worker does not have are passed over. */
  learn({ times, running }: LimitNews, now = hostNow()): void {
    for (const [id, news] of Object.entries(times)) this.byRate.get(id)?.learnTimes(news, now);
    for (const [id, news] of Object.entries(running)) this.byRunning.get(id)?.learnRunning(news);
  }
}

function told<T extends readonly unknown[]>(
  all: ReadonlyMap<string, RouteLimits>,
  of: (one: RouteLimits) => T,
): Record<string, T> {
  const parts = [...all].map(([id, one]) => [id, of(one)] as const);
  return Object.fromEntries(parts.filter(([, part]) => part.length > 0));
}
