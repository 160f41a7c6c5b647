import type { Counts, Series } from "../counting/counts.js";
import type { RunningExchange } from "../exchange/exchange.js";

/** The parts of a worker that know what it has at a moment. */
export interface Measured {
  readonly http1: MeasuredConnections;
  readonly http2: MeasuredConnections;
  readonly routes: { pools(): readonly MeasuredPool[] };
}

interface MeasuredPool {
  readonly counts: { readonly labels: readonly string[] };
  readonly refuses: boolean;
  holdings(): { readonly connections: number; readonly queued: number };
}

interface MeasuredConnections {
  byListener(): ReadonlyMap<string, number>;
  running(): readonly RunningExchange[];
}

/** What this process has at the moment; looked up only when somebody asks. */
export function gaugesOf({ http1, http2, routes }: Measured): Counts {
  const pools = routes.pools();
  const ofPools = (value: (pool: MeasuredPool) => number): Series[] =>
    pools.map((pool) => ({ labels: pool.counts.labels, values: [value(pool)] }));
  return {
    upstreamConnectionsOpen: ofPools((pool) => pool.holdings().connections),
    upstreamQueued: ofPools((pool) => pool.holdings().queued),
    upstreamOut: ofPools((pool) => Number(pool.refuses)),
    processes: [{ labels: ["worker"], values: [1] }],
    memory: [{ labels: ["worker"], values: [process.memoryUsage.rss()] }],
    connectionsOpen: [...connections(http1, "http/1.1"), ...connections(http2, "h2")],
    transfers: transfers([...http1.running(), ...http2.running()]),
  };
}

const connections = (all: MeasuredConnections, protocol: string): Series[] =>
  [...all.byListener()].map(([listener, open]) => ({ labels: [listener, protocol], values: [open] }));

function transfers(running: readonly RunningExchange[]): Series[] {
  const places = new Map<object, { readonly labels: readonly string[]; count: number }>();
  for (const { server, route } of running) {
    const place = route ?? server;
    let one = places.get(place);
    if (one === undefined) {
      const labels = [server.name, route?.config.name ?? ""];
      places.set(place, (one = { labels, count: 0 }));
    }
    one.count++;
  }
  return [...places.values()].map(({ labels, count }) => ({ labels, values: [count] }));
}
