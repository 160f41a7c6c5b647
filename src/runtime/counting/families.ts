/**
 * All metrics. Names of HTTP are those of OpenTelemetry's stable conventions (semantic conventions 1.23, HTTP metrics),
 * written as Prometheus writes them; all others begin with `portico_`. Values of labels are names of the config, or of
 * a list that is written down here: no client can make one.
 */
export interface Family {
  /** The name in `/metrics`. */
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram";
  /** A one-line description. */
  readonly help: string;
  readonly labels: readonly string[];
  /** How many counted units make one unit of the name: seconds are counted as milliseconds. Default 1. */
  readonly scale?: number;
  /** The upper bounds of a histogram's buckets, in counted units. The last bucket has none. */
  readonly bounds?: readonly number[];
}

/** The bounds that OpenTelemetry advises for `http.server.request.duration`. */
const DURATIONS_MS = [5, 10, 25, 50, 75, 100, 250, 500, 750, 1_000, 2_500, 5_000, 7_500, 10_000];

const DELAYS_MS = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000];

const ROUTE = ["server", "route"];
const SERVER = ["upstream", "upstream_server"];

export const FAMILIES = {
  requests: {
    name: "http_server_request_duration_seconds",
    type: "histogram",
    help:
      "Duration of requests, from the end of the request's head to the end of the response. A request " +
      "that no route matches has no `route`; the status is 499 if the client disconnects before the " +
      "response.",
    labels: [...ROUTE, "http_route", "url_scheme", "http_request_method", "http_response_status_code"],
    scale: 1_000,
    bounds: DURATIONS_MS,
  },
  firstByte: {
    name: "portico_time_to_first_byte_seconds",
    type: "histogram",
    help:
      "Time from the end of the request's head to the head of the response. A long download does not " +
      "change it.",
    labels: ROUTE,
    scale: 1_000,
    bounds: DURATIONS_MS,
  },
  failures: {
    name: "portico_request_failures_total",
    type: "counter",
    help: "Failed requests, by error token (RFC 9209, 2.3); `client_gone` if the client disconnected.",
    labels: [...ROUTE, "error_type"],
  },
  requestBytes: {
    name: "portico_request_body_bytes_total",
    type: "counter",
    help: "Bytes of request bodies that arrived, and bytes that clients sent through tunnels.",
    labels: ROUTE,
  },
  responseBytes: {
    name: "portico_response_body_bytes_total",
    type: "counter",
    help: "Bytes of response bodies that were sent, as in access logs.",
    labels: ROUTE,
  },
  transfers: {
    name: "portico_transfers_in_flight",
    type: "gauge",
    help: "Requests in progress, including tunnels.",
    labels: ROUTE,
  },
  connections: {
    name: "portico_connections_total",
    type: "counter",
    help: "Accepted connections of clients, by protocol.",
    labels: ["listener", "protocol"],
  },
  connectionsOpen: {
    name: "portico_connections_open",
    type: "gauge",
    help: "Open connections of clients, by protocol.",
    labels: ["listener", "protocol"],
  },
  handshakes: {
    name: "portico_tls_handshakes_total",
    type: "counter",
    help:
      "TLS handshakes with clients, by TLS version, key exchange group, and whether the session was " +
      "resumed.",
    labels: ["listener", "tls_version", "tls_group", "resumed"],
  },
  handshakeFailures: {
    name: "portico_tls_handshake_failures_total",
    type: "counter",
    help: "Failed TLS handshakes with clients, except those in which the client only disconnected.",
    labels: ["listener"],
  },
  upstreamConnects: {
    name: "portico_upstream_connects_total",
    type: "counter",
    help: "Established connections to upstream servers.",
    labels: SERVER,
  },
  upstreamResponses: {
    name: "portico_upstream_responses_total",
    type: "counter",
    help: "Responses of upstream servers to requests, with any status; checks are not counted.",
    labels: SERVER,
  },
  upstreamFailures: {
    name: "portico_upstream_failures_total",
    type: "counter",
    help:
      "Failed attempts to get a response from an upstream server, by error token (RFC 9209, 2.3). Another " +
      "attempt may have succeeded.",
    labels: [...SERVER, "error_type"],
  },
  upstreamConnectionsOpen: {
    name: "portico_upstream_connections_open",
    type: "gauge",
    help: "Open connections to upstream servers, including idle connections.",
    labels: SERVER,
  },
  upstreamQueued: {
    name: "portico_upstream_requests_queued",
    type: "gauge",
    help: "Requests that wait for a connection to an upstream server.",
    labels: SERVER,
  },
  upstreamOut: {
    name: "portico_upstream_server_left_out_workers",
    type: "gauge",
    help: "Workers that send a server no requests at the moment, because earlier requests to it failed.",
    labels: SERVER,
  },
  upstreamUp: {
    name: "portico_upstream_server_up",
    type: "gauge",
    help:
      "1 if a server is up; 0 if its health checks fail, it is drained, a worker leaves it out, or the last " +
      "request to the only server failed, or to all servers. Absent until a request or a check reaches the " +
      "server. For a name with `spread`, 1 if at least one of its addresses is up.",
    labels: SERVER,
  },
  certificateBegin: {
    name: "portico_certificate_not_before_timestamp_seconds",
    type: "gauge",
    help:
      "Time from which a certificate is valid, in seconds since 1970, by the certificate's first name and " +
      "its source, a file or an authority.",
    labels: ["certificate", "from"],
  },
  certificateEnd: {
    name: "portico_certificate_not_after_timestamp_seconds",
    type: "gauge",
    help:
      "Time at which a certificate expires, in seconds since 1970, by the certificate's first name and " +
      "its source, a file or an authority.",
    labels: ["certificate", "from"],
  },
  certificateRenewal: {
    name: "portico_certificate_renewal_timestamp_seconds",
    type: "gauge",
    help:
      "Time at which Portico is to renew a certificate, in seconds since 1970, by the certificate's first name " +
      "and its authority. Absent for certificates from files.",
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
    help: "Upgrades to a new master process, by outcome.",
    labels: ["outcome"],
  },
  workerRestarts: {
    name: "portico_worker_restarts_total",
    type: "counter",
    help: "Workers that ended unexpectedly and were replaced.",
    labels: [],
  },
  accessRefused: {
    name: "portico_access_refused_total",
    type: "counter",
    help:
      "Requests that an access policy refused, by the place where the policy was given and its field: `allow`, `deny`, " +
      "`denyFile`, `basic` or `forwardAuth`. Requests without a user count as well.",
    labels: ["server", "policy", "reason"],
  },
  logInsRefused: {
    name: "portico_log_ins_refused_total",
    type: "counter",
    help:
      "Log-ins that a guard against guessing refused, by the guard and its reason: `slowed` for an address that has to wait, " +
      "`closed` for one that gets no new secret tried.",
    labels: ["guard", "reason"],
  },
  certificatesRefused: {
    name: "portico_client_certificates_refused_total",
    type: "counter",
    help:
      "Requests that were refused for the client's certificate, by virtual server and reason: `none`, `unknown-authority`, " +
      "`expired`, `not-yet-valid`, `revoked`, `crl-expired`, `name`, `invalid`; `misdirected` for a connection that was " +
      "made for another server.",
    labels: ["server", "reason"],
  },
  logLinesLost: {
    name: "portico_log_lines_lost_total",
    type: "counter",
    help: "Log lines that were dropped because the file or stream did not accept them fast enough.",
    labels: [],
  },
  loopDelay: {
    name: "portico_event_loop_delay_seconds",
    type: "histogram",
    help:
      "Delay of a timer in each worker, which expires four times a second. Requests of the worker may " +
      "have waited as long.",
    labels: [],
    scale: 1_000,
    bounds: DELAYS_MS,
  },
  processes: {
    name: "portico_processes",
    type: "gauge",
    help: "Running processes: masters and workers, including draining workers.",
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
    help: "Always 1; the labels are the versions of Portico and Node.js that run.",
    labels: ["version", "node_version"],
  },
} as const satisfies Readonly<Record<string, Family>>;

/** The key of a family in `Counts`. */
export type FamilyKey = keyof typeof FAMILIES;

export const familyOf = (key: FamilyKey): Family => FAMILIES[key];

/** How many numbers a series of it has: a counter and a gauge one, a histogram its buckets and then their sum. */
export function sizeOf(key: FamilyKey): number {
  const { bounds } = familyOf(key);
  return bounds === undefined ? 1 : bounds.length + 2;
}
