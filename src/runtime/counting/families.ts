/**
 * Everything that is counted, under the names by which it is asked for. Names of HTTP are those of OpenTelemetry's stable
 * conventions (semantic conventions 1.23, HTTP metrics), written as Prometheus writes them; all others begin with
 * `portico_`. Values of labels are names of the config, or of a list that is written down here: no client can make one.
 */
export interface Family {
  /** As `/metrics` has it. */
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram";
  /** What it counts, in a line. */
  readonly help: string;
  readonly labels: readonly string[];
  /** How many of what is counted make one of the unit in the name: seconds are counted as milliseconds. Default 1. */
  readonly scale?: number;
  /** Of a histogram: the upper bounds of its buckets, in what is counted. The last bucket has none. */
  readonly bounds?: readonly number[];
}

/** As OpenTelemetry advises for `http.server.request.duration`. */
const DURATIONS_MS = [5, 10, 25, 50, 75, 100, 250, 500, 750, 1_000, 2_500, 5_000, 7_500, 10_000];

const DELAYS_MS = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000];

const ROUTE = ["server", "route"];
const SERVER = ["upstream", "upstream_server"];

export const FAMILIES = {
  requests: {
    name: "http_server_request_duration_seconds",
    type: "histogram",
    help:
      "Requests and how long each took, from its whole head to the end of its response. Without a route where none " +
      "matched; a status of 499 where the client left before there was a response.",
    labels: [...ROUTE, "http_route", "url_scheme", "http_request_method", "http_response_status_code"],
    scale: 1_000,
    bounds: DURATIONS_MS,
  },
  firstByte: {
    name: "portico_time_to_first_byte_seconds",
    type: "histogram",
    help: "How long the head of a response took, from the whole head of its request. A long download does not change it.",
    labels: ROUTE,
    scale: 1_000,
    bounds: DURATIONS_MS,
  },
  failures: {
    name: "portico_request_failures_total",
    type: "counter",
    help: "Requests that failed, by the name of the failure (RFC 9209, 2.3); `client_gone` where the client left.",
    labels: [...ROUTE, "error_type"],
  },
  requestBytes: {
    name: "portico_request_body_bytes_total",
    type: "counter",
    help: "Bytes of request bodies that arrived, and what clients sent through tunnels.",
    labels: ROUTE,
  },
  responseBytes: {
    name: "portico_response_body_bytes_total",
    type: "counter",
    help: "Bytes of response bodies that were sent, as access logs have them.",
    labels: ROUTE,
  },
  transfers: {
    name: "portico_transfers_in_flight",
    type: "gauge",
    help: "Requests whose responses are not over, tunnels among them.",
    labels: ROUTE,
  },
  connections: {
    name: "portico_connections_total",
    type: "counter",
    help: "Connections of clients that were accepted, by the protocol that they speak.",
    labels: ["listener", "protocol"],
  },
  connectionsOpen: {
    name: "portico_connections_open",
    type: "gauge",
    help: "Open connections of clients, by the protocol that they speak.",
    labels: ["listener", "protocol"],
  },
  handshakes: {
    name: "portico_tls_handshakes_total",
    type: "counter",
    help: "TLS handshakes with clients, by version, group of the key exchange, and whether a session was resumed.",
    labels: ["listener", "tls_version", "tls_group", "resumed"],
  },
  handshakeFailures: {
    name: "portico_tls_handshake_failures_total",
    type: "counter",
    help: "TLS handshakes with clients that failed; not those of clients that just went away.",
    labels: ["listener"],
  },
  upstreamConnects: {
    name: "portico_upstream_connects_total",
    type: "counter",
    help: "Connections to servers of upstreams that were established.",
    labels: SERVER,
  },
  upstreamFailures: {
    name: "portico_upstream_failures_total",
    type: "counter",
    help:
      "Attempts to have a request answered that failed, by the name of the failure (RFC 9209, 2.3). Another attempt may " +
      "have gone well.",
    labels: [...SERVER, "error_type"],
  },
  upstreamConnectionsOpen: {
    name: "portico_upstream_connections_open",
    type: "gauge",
    help: "Open connections to servers of upstreams, idle ones among them.",
    labels: SERVER,
  },
  upstreamQueued: {
    name: "portico_upstream_requests_queued",
    type: "gauge",
    help: "Requests that wait for a connection to a server of an upstream.",
    labels: SERVER,
  },
  upstreamOut: {
    name: "portico_upstream_server_left_out_workers",
    type: "gauge",
    help: "Workers that leave a server out at the moment, because of what requests met there.",
    labels: SERVER,
  },
  upstreamUp: {
    name: "portico_upstream_server_up",
    type: "gauge",
    help:
      "1 if a server gets requests; 0 if its checks fail, it is drained, or a worker leaves it out. Of a name whose " +
      "addresses are servers (`spread`), 1 if one of them does.",
    labels: SERVER,
  },
  certificateEnd: {
    name: "portico_certificate_not_after_timestamp_seconds",
    type: "gauge",
    help: "When a certificate ends, in seconds since 1970, by its first name and where it is from.",
    labels: ["certificate", "from"],
  },
  reloads: {
    name: "portico_reloads_total",
    type: "counter",
    help: "Reloads of the config, by outcome.",
    labels: ["outcome"],
  },
  upgrades: {
    name: "portico_upgrades_total",
    type: "counter",
    help: "Upgrades to another process, by outcome.",
    labels: ["outcome"],
  },
  workerRestarts: {
    name: "portico_worker_restarts_total",
    type: "counter",
    help: "Workers that ended without being told to, and were replaced.",
    labels: [],
  },
  logLinesLost: {
    name: "portico_log_lines_lost_total",
    type: "counter",
    help: "Lines of logs that were dropped, because their file or stream was not written fast enough.",
    labels: [],
  },
  loopDelay: {
    name: "portico_event_loop_delay_seconds",
    type: "histogram",
    help: "How late a worker's clock was, which ticks four times a second: as long as that, a request may have waited.",
    labels: [],
    scale: 1_000,
    bounds: DELAYS_MS,
  },
  processes: {
    name: "portico_processes",
    type: "gauge",
    help: "Running processes: masters, and workers, those that drain among them.",
    labels: ["process"],
  },
  memory: {
    name: "portico_resident_memory_bytes",
    type: "gauge",
    help: "Resident memory of all processes of a kind together.",
    labels: ["process"],
  },
  build: {
    name: "portico_build_info",
    type: "gauge",
    help: "1, with the versions of Portico and Node that run.",
    labels: ["version", "node_version"],
  },
} as const satisfies Readonly<Record<string, Family>>;

/** What a family is called in `Counts`. */
export type FamilyKey = keyof typeof FAMILIES;

export const familyOf = (key: FamilyKey): Family => FAMILIES[key];

/** How many numbers a series of it has: a counter and a gauge one, a histogram its buckets and then their sum. */
export function sizeOf(key: FamilyKey): number {
  const { bounds } = familyOf(key);
  return bounds === undefined ? 1 : bounds.length + 2;
}
