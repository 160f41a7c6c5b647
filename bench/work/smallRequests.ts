import { alternate } from "../lib/bench.js";
import { h2load, wrk } from "../lib/loads.js";
import { cpuBar, quickBar, type Work } from "../lib/work.js";

/** GET of 90 bytes through `/sync`, which has all the header rules and a log of its own. */
const TARGET = "/sync/small";

export const smallHttp1: Work = {
  name: "small-http1",
  what: "small proxied request, HTTP/1.1, 32 connections",
  unit: "µs/request",
  rate: "requests/s",
  by: "cpu",
  bars: [quickBar(1.0, 1.22), cpuBar(0.5, "best Node peer")],
  quick: true,
  run: (bench) => alternate(bench, { mode: "plain", ability: "http1" }, (proxy) => wrk(bench, proxy, TARGET)),
};

export const smallTls: Work = {
  name: "small-tls",
  what: "small proxied request, HTTP/1.1 over TLS, 32 connections",
  unit: "µs/request",
  rate: "requests/s",
  by: "cpu",
  bars: [quickBar(1.05, 1.27)],
  quick: true,
  run: (bench) => alternate(bench, { mode: "tls", ability: "tls" }, (proxy) => wrk(bench, proxy, TARGET)),
};

/** HEAD, after which a connection to the upstream goes on where the upstream proved that it sends nothing (decisions 4.5). */
export const smallHead: Work = {
  name: "small-head",
  what: "HEAD of a small response, HTTP/2 over TLS, 8 connections × 16 streams",
  unit: "µs/request",
  rate: "requests/s",
  by: "cpu",
  bars: [cpuBar(1.5)],
  run: (bench) =>
    alternate(bench, { mode: "tls", ability: "http2", setup: { requestsPerConnection: 1e9 } }, (proxy) =>
      h2load(bench, proxy, TARGET, { clients: 8, streams: 16, method: "HEAD" }),
    ),
};

export const smallHttp2: Work = {
  name: "small-http2",
  what: "small proxied request, HTTP/2 over TLS, 8 connections × 16 streams",
  unit: "µs/request",
  rate: "requests/s",
  by: "cpu",
  bars: [quickBar(1.2, 1.2)],
  quick: true,
  run: (bench) =>
    // h2load opens no new connection when nginx closes one after 1000 requests: it would stop measuring.
    alternate(bench, { mode: "tls", ability: "http2", setup: { requestsPerConnection: 1e9 } }, (proxy) =>
      h2load(bench, proxy, TARGET, { clients: 8, streams: 16 }),
    ),
};
