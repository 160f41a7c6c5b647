import { alternate, type Bench, type Row, type Sample } from "../lib/bench.js";
import { curl, wrk } from "../lib/loads.js";
import { sizeText } from "../lib/pictures.js";
import type { RunningProxy } from "../lib/proxy.js";
import { BODY_SIZES, bodyName, GIB } from "../lib/site.js";
import type { Work } from "../lib/work.js";

/** What a request costs over the load and over the size of its body: points of curves, which the pictures show. */

interface Point {
  readonly at: number;
  /** As rows name it. */
  readonly label: string;
  measure(bench: Bench, proxy: RunningProxy): Promise<Sample>;
}

const CONNECTIONS = [1, 10, 100, 1_000, 10_000];
/** All of so many connections are open, and have been used, in so many seconds. */
const MANY_SECONDS = 4;
/** Seconds that a response may take where so many wait for one. */
const MANY_PATIENCE = 15;
const ROUNDS_MAX = 3;

export const loadCurve: Work = {
  name: "load-curve",
  what: "small proxied request over 1 to 10,000 connections at once, HTTP/1.1",
  unit: "µs/request",
  rate: "requests/s",
  by: "cpu",
  bars: [],
  axis: "connections",
  run: (bench) => curve(bench, CONNECTIONS.map(connectionsPoint)),
};

/** Larger bodies come one after the other, since some seconds would be too few for many at once. */
const AT_ONCE_BYTES_MAX = 2 ** 20;

export const sizeCurve: Work = {
  name: "size-curve",
  what: "response with a body of 1 B to 1 GiB, HTTP/1.1",
  unit: "µs/response",
  by: "cpu",
  bars: [],
  axis: "bytes",
  run: (bench) => curve(bench, [...BODY_SIZES, GIB].map(sizePoint)),
};

/** Every point with processes of its own: what many connections left behind makes no later point dearer. */
async function curve(bench: Bench, points: readonly Point[]): Promise<Row[]> {
  const rows: Row[] = [];
  for (const { at, label, measure } of points) {
    const measured = await alternate(
      bench,
      {
        mode: "plain",
        ability: "http1",
        families: ["portico", "nginx", "native"],
        rounds: Math.min(bench.rounds, ROUNDS_MAX),
        variants: { [label]: {} },
      },
      (proxy) => measure(bench, proxy),
    );
    rows.push(...measured.map((row) => ({ ...row, at })));
  }
  return rows;
}

function connectionsPoint(connections: number): Point {
  const isMany = connections > 1_000;
  const time = isMany ? { seconds: MANY_SECONDS, patience: MANY_PATIENCE } : {};
  return {
    at: connections,
    label: `${connections.toLocaleString("en-US")} connection${connections === 1 ? "" : "s"}`,
    measure: (bench, proxy) => wrk(bench, proxy, "/sync/small", { connections, ...time }),
  };
}

function sizePoint(bytes: number): Point {
  return {
    at: bytes,
    label: sizeText(bytes),
    async measure(bench, proxy) {
      const name = bytes === GIB ? bench.bulk.name : bodyName(bytes);
      const target = `/synchttp/${name}`;
      if (bytes <= AT_ONCE_BYTES_MAX) return wrk(bench, proxy, target);
      const { value, ...others } = await curl(bench, proxy, target, { bytes });
      return { ...others, throughput: undefined, value: (value * 1e6 * bytes) / GIB };
    },
  };
}
