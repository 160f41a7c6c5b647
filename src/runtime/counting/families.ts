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

const ROUTE = ["server", "route"];

export const FAMILIES = {
  requests: {
    name: "http_server_request_duration_seconds",
    type: "histogram",
    help:
      "Requests and how long each took, from its whole head to the end of its answer. Without a route where none " +
      "matched; a status of 499 where the client left before there was an answer.",
    labels: [...ROUTE, "http_route", "url_scheme", "http_request_method", "http_response_status_code"],
    scale: 1_000,
    bounds: DURATIONS_MS,
  },
  firstByte: {
    name: "portico_time_to_first_byte_seconds",
    type: "histogram",
    help:
      "How long the head of an answer took, from the whole head of its request: other than the duration, it does not " +
      "grow with the length of an upload's answer or of a download.",
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
    help: "Requests whose answers are not over, tunnels among them.",
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
} as const satisfies Readonly<Record<string, Family>>;

/** What a family is called in `Counts`. */
export type FamilyKey = keyof typeof FAMILIES;

export const familyOf = (key: FamilyKey): Family => FAMILIES[key];

/** How many numbers a series of it has: a counter and a gauge one, a histogram its buckets and then their sum. */
export function sizeOf(key: FamilyKey): number {
  const { bounds } = familyOf(key);
  return bounds === undefined ? 1 : bounds.length + 2;
}
