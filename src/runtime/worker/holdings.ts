import { sweptItems } from "../sockets/deadlines.js";
import { keptPieces } from "../sockets/memory.js";
import { lentBytes } from "../sockets/sendPace.js";
import { tally } from "../exchange/tally.js";
import type { RunningExchange } from "../exchange/exchange.js";
import type { Counts, Series } from "../counting/counts.js";

/**
 * Counts of the resources that a worker holds at a moment. At rest, with all clients gone and all deadlines passed,
 * they return to their earlier values; a count that stays higher is a leak, which grows with each such request. Only
 * {@link tally} is counted while requests are served: the rest is computed on demand.
 */
export interface Holdings {
  /** Open connections of clients, those in a TLS handshake among them. */
  readonly clientConnections: number;
  /** Clients that count against `connectionsPerClientMax`. */
  readonly clients: number;
  /** Requests whose response is not over, and since the worker's start those that began and that are over. */
  readonly exchanges: number;
  readonly exchangesBegun: number;
  readonly exchangesOver: number;
  /** Bytes of responses since the start that were read and went to no client. */
  readonly bytesForNobody: number;
  /** Open streams on all connections over HTTP/2. */
  readonly http2Streams: number;
  /** To all upstreams, and those of them that are not idle. */
  readonly upstreamConnections: number;
  readonly upstreamConnectionsInUse: number;
  /** Requests that wait until a connection to their upstream is free. */
  readonly queuedRequests: number;
  /** Requests that count against `concurrencyMax` of their route. */
  readonly limitedRequests: number;
  /** Files that are open to be sent. */
  readonly openFiles: number;
  /** Pieces of reused memory that wait to be written (`sockets/memory.ts`). */
  readonly keptPieces: number;
  /** Memory on loan to transfers beyond their small pieces (`sockets/sendPace.ts`). */
  readonly lentBytes: number;
  /** How much clients over HTTP/2 may send beyond the first windows of their connections. */
  readonly lentWindowBytes: number;
  /** Items that the clock sweeps (`sockets/deadlines.ts`): pools, and each protocol that has connections. */
  readonly sweptItems: number;
  /** Resources that keep Node's event loop alive: sockets, timers, requests to the system. */
  readonly resources: number;
}

/** The same of one of a master's workers. */
export interface WorkerHoldings {
  readonly pid: number;
  /** False for a worker that is starting, or only finishes requests. */
  readonly accepts: boolean;
  /** Undefined if it did not respond in time: it hangs, or is starting. */
  readonly holdings: Holdings | undefined;
}

/** The parts of a worker that report their holdings. */
export interface Holders {
  readonly gate: Pick<Holdings, "clientConnections" | "clients">;
  readonly http2: { readonly streams: number; readonly windows: { readonly lent: number } };
  readonly routes: { holdings(): UpstreamHoldings; readonly limits: { readonly running: number } };
}

type UpstreamHoldings = Pick<Holdings, "upstreamConnections" | "upstreamConnectionsInUse" | "queuedRequests">;

/** The holdings of this process. */
export function holdingsOf({ gate, http2, routes }: Holders): Holdings {
  const { exchangesBegun, exchangesOver, bytesForNobody, filesOpened, filesClosed } = tally;
  return {
    clientConnections: gate.clientConnections,
    clients: gate.clients,
    exchanges: exchangesBegun - exchangesOver,
    exchangesBegun,
    exchangesOver,
    bytesForNobody,
    http2Streams: http2.streams,
    ...routes.holdings(),
    limitedRequests: routes.limits.running,
    openFiles: filesOpened - filesClosed,
    keptPieces: keptPieces(),
    lentBytes: lentBytes(),
    lentWindowBytes: http2.windows.lent,
    sweptItems: sweptItems(),
    resources: process.getActiveResourcesInfo().length,
  };
}

/** A sentence without a full stop. */
export function holdingsText(workers: readonly WorkerHoldings[]): string {
  const total = (of: (one: Holdings) => number): number =>
    workers.reduce((sum, { holdings }) => sum + (holdings === undefined ? 0 : of(holdings)), 0);
  const silent = workers.filter(({ holdings }) => holdings === undefined).length;
  return [
    `workers: ${workers.length}`,
    `connections of clients: ${total((one) => one.clientConnections)}`,
    `requests: ${total((one) => one.exchanges)}`,
    `connections to upstreams: ${total((one) => one.upstreamConnections)}`,
    ...(silent === 0 ? [] : [`workers that did not respond: ${silent}`]),
  ].join(", ");
}

/** The parts of a worker that report its gauges. */
interface Measured {
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

/** The current gauges of this process; computed on demand. */
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
