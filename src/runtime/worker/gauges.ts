import type { Counts, Series } from "../counting/counts.js";
import type { RunningExchange } from "../exchange/exchange.js";

/** The parts of a worker that know what it has at a moment. */
export interface Measured {
  readonly http1: MeasuredConnections;
  readonly http2: MeasuredConnections;
}

interface MeasuredConnections {
  byListener(): ReadonlyMap<string, number>;
  running(): readonly RunningExchange[];
}

/** What this process has at the moment; looked up only when somebody asks. */
export function gaugesOf({ http1, http2 }: Measured): Counts {
  return {
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
