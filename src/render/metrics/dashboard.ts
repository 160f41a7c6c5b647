import type { ScrapeJob } from "./alertRules.js";

/** What a proxy counts, as a dashboard of Grafana. */

/** Input of a dashboard. */
export interface DashboardInput extends ScrapeJob {
  /**
   * Title of the dashboard.
   * @default "Portico"
   */
  readonly title?: string;
  /**
   * Id of the dashboard in Grafana's URLs: up to 40 letters, digits, `-` and `_`. A later import with the same id replaces
   * the dashboard.
   * @default "portico"
   */
  readonly uid?: string;
}

interface Panel {
  readonly title: string;
  readonly description: string;
  readonly unit: string;
  readonly queries: readonly { readonly expression: string; readonly legend: string }[];
  /** In columns of 24. */
  readonly width: number;
  /** A number in place of a plot. */
  readonly stat?: true;
}

const HEIGHT = 8;
const COLUMNS = 24;
/** Quantiles that are plotted of a histogram. */
const QUANTILES = [0.5, 0.95, 0.99];

/** Panels from left to right, top to bottom. `$of` stands for the labels that select the shown series. */
const PANELS: readonly Panel[] = [
  {
    title: "Requests",
    description: "Completed requests per second.",
    unit: "reqps",
    width: 6,
    stat: true,
    queries: [
      {
        expression: "sum(rate(http_server_request_duration_seconds_count{$of}[$__rate_interval]))",
        legend: "",
      },
    ],
  },
  {
    title: "5xx responses",
    description: "Share of all responses.",
    unit: "percentunit",
    width: 6,
    stat: true,
    queries: [
      {
        expression:
          // If no request has failed, there is no series to sum.
          '(sum(rate(http_server_request_duration_seconds_count{$of, http_response_status_code=~"5.."}[$__rate_interval])) or vector(0)) ' +
          "/ sum(rate(http_server_request_duration_seconds_count{$of}[$__rate_interval]))",
        legend: "",
      },
    ],
  },
  {
    title: "Transfers in flight",
    description: "Requests in progress, including tunnels.",
    unit: "short",
    width: 6,
    stat: true,
    queries: [{ expression: "sum(portico_transfers_in_flight{$of})", legend: "" }],
  },
  {
    title: "Connections",
    description: "Open connections of clients.",
    unit: "short",
    width: 6,
    stat: true,
    queries: [{ expression: "sum(portico_connections_open{$of})", legend: "" }],
  },
  {
    title: "Requests by status",
    description: "499: the client disconnected before the response.",
    unit: "reqps",
    width: 12,
    queries: [
      {
        expression:
          "sum by (http_response_status_code) (rate(http_server_request_duration_seconds_count{$of}[$__rate_interval]))",
        legend: "{{http_response_status_code}}",
      },
    ],
  },
  {
    title: "Requests by route",
    description: "By virtual server and route.",
    unit: "reqps",
    width: 12,
    queries: [
      {
        expression:
          "sum by (server, route) (rate(http_server_request_duration_seconds_count{$of}[$__rate_interval]))",
        legend: "{{server}}/{{route}}",
      },
    ],
  },
  {
    title: "Bytes of bodies",
    description: "Bytes that clients sent and received.",
    unit: "Bps",
    width: 12,
    queries: [
      {
        expression: "sum(rate(portico_request_body_bytes_total{$of}[$__rate_interval]))",
        legend: "received",
      },
      { expression: "sum(rate(portico_response_body_bytes_total{$of}[$__rate_interval]))", legend: "sent" },
    ],
  },
  {
    title: "Time to first byte",
    description:
      "From the end of the request's head to the head of the response; a long download does not change it.",
    unit: "s",
    width: 12,
    queries: QUANTILES.map((quantile) => ({
      expression: `histogram_quantile(${quantile}, sum by (le) (rate(portico_time_to_first_byte_seconds_bucket{$of}[$__rate_interval])))`,
      legend: `${quantile * 100} %`,
    })),
  },
  {
    title: "Failures by error token",
    description: "Tokens of RFC 9209, 2.3; client_gone if the client disconnected.",
    unit: "reqps",
    width: 12,
    queries: [
      {
        expression: "sum by (error_type) (rate(portico_request_failures_total{$of}[$__rate_interval]))",
        legend: "{{error_type}}",
      },
    ],
  },
  {
    title: "Connections by protocol",
    description: "Open connections, and new connections per second.",
    unit: "short",
    width: 12,
    queries: [
      { expression: "sum by (protocol) (portico_connections_open{$of})", legend: "{{protocol}} open" },
      {
        expression: "sum by (protocol) (rate(portico_connections_total{$of}[$__rate_interval]))",
        legend: "{{protocol}} new per second",
      },
    ],
  },
  {
    title: "Upstream servers",
    description: "1 if a server gets requests; 0 if it is down, drained or left out.",
    unit: "short",
    width: 12,
    queries: [
      {
        expression: "min by (upstream, upstream_server) (portico_upstream_server_up{$of})",
        legend: "{{upstream}} {{upstream_server}}",
      },
    ],
  },
  {
    title: "Failed attempts at upstream servers",
    description: "Another attempt for the same request may have succeeded.",
    unit: "reqps",
    width: 12,
    queries: [
      {
        expression:
          "sum by (upstream, upstream_server, error_type) (rate(portico_upstream_failures_total{$of}[$__rate_interval]))",
        legend: "{{upstream_server}} {{error_type}}",
      },
    ],
  },
  {
    title: "Certificates",
    description: "Time until each certificate expires.",
    unit: "s",
    width: 12,
    queries: [
      {
        expression: "min by (certificate) (portico_certificate_not_after_timestamp_seconds{$of}) - time()",
        legend: "{{certificate}}",
      },
    ],
  },
  {
    title: "TLS handshakes",
    description: "By TLS version, key exchange group, and whether the session was resumed.",
    unit: "ops",
    width: 12,
    queries: [
      {
        expression:
          "sum by (tls_version, tls_group, resumed) (rate(portico_tls_handshakes_total{$of}[$__rate_interval]))",
        legend: "{{tls_version}} {{tls_group}} resumed: {{resumed}}",
      },
      {
        expression: "sum(rate(portico_tls_handshake_failures_total{$of}[$__rate_interval]))",
        legend: "failed",
      },
    ],
  },
  {
    title: "Faults",
    description: "Worker restarts, lost log lines, refused reloads and upgrades.",
    unit: "short",
    width: 12,
    queries: [
      {
        expression: "sum(increase(portico_worker_restarts_total{$of}[$__rate_interval]))",
        legend: "worker restarts",
      },
      {
        expression: "sum(increase(portico_log_lines_lost_total{$of}[$__rate_interval]))",
        legend: "log lines lost",
      },
      {
        expression: 'sum(increase(portico_reloads_total{$of, outcome="refused"}[$__rate_interval]))',
        legend: "reloads refused",
      },
      {
        expression: 'sum(increase(portico_upgrades_total{$of, outcome="refused"}[$__rate_interval]))',
        legend: "upgrades refused",
      },
    ],
  },
  {
    title: "Memory",
    description: "Resident memory of masters and workers.",
    unit: "bytes",
    width: 6,
    queries: [{ expression: "sum by (process) (portico_resident_memory_bytes{$of})", legend: "{{process}}" }],
  },
  {
    title: "Event loop delay",
    description: "Delay of a timer in each worker: requests of the worker may wait as long.",
    unit: "s",
    width: 6,
    queries: [
      {
        expression:
          "histogram_quantile(0.99, sum by (le) (rate(portico_event_loop_delay_seconds_bucket{$of}[$__rate_interval])))",
        legend: "99 %",
      },
    ],
  },
];

/** Expressions of all panels, for a job and all instances. */
export const dashboardQueries = (job = "portico"): readonly string[] =>
  PANELS.flatMap(({ queries }) => queries.map(({ expression }) => withLabels(expression, job)));

const withLabels = (expression: string, job: string): string =>
  // The replacement is a function: in a text, each `$` of a name would be an instruction.
  expression.replaceAll("$of", () => `job=${JSON.stringify(job)}, instance=~"$instance"`);

/**
 * A dashboard as JSON, for import into Grafana 10 or later. Users choose the data source and the instances at the top
 * of the dashboard. The same input always results in the same text, byte for byte.
 *
 * @param input title, id, and the name of the scrape job; all have defaults
 */
export function renderDashboard({
  title = "Portico",
  uid = "portico",
  job = "portico",
}: DashboardInput = {}): string {
  const dashboard = {
    uid,
    title,
    description: "Metrics of Portico: docs/dashboards.md of the package.",
    tags: ["portico"],
    schemaVersion: 39,
    editable: true,
    graphTooltip: 1,
    time: { from: "now-6h", to: "now" },
    refresh: "30s",
    timezone: "browser",
    templating: {
      list: [
        { name: "datasource", label: "Data source", type: "datasource", query: "prometheus" },
        {
          name: "instance",
          label: "Instance",
          type: "query",
          datasource: SOURCE,
          query: { query: `label_values(up{job=${JSON.stringify(job)}}, instance)`, refId: "instance" },
          refresh: 2,
          multi: true,
          includeAll: true,
          allValue: ".*",
          current: { text: "All", value: "$__all" },
        },
      ],
    },
    panels: placed(PANELS).map(({ panel, x, y }, i) => ({
      id: i + 1,
      type: panel.stat === true ? "stat" : "timeseries",
      title: panel.title,
      description: panel.description,
      datasource: SOURCE,
      gridPos: { x, y, w: panel.width, h: panel.stat === true ? HEIGHT / 2 : HEIGHT },
      fieldConfig: { defaults: { unit: panel.unit, min: 0 }, overrides: [] },
      options:
        panel.stat === true
          ? { reduceOptions: { calcs: ["lastNotNull"], fields: "", values: false }, graphMode: "area" }
          : {
              legend: { displayMode: "list", placement: "bottom" },
              tooltip: { mode: "multi", sort: "desc" },
            },
      targets: panel.queries.map(({ expression, legend }, n) => ({
        refId: "ABCDEF"[n],
        datasource: SOURCE,
        expr: withLabels(expression, job),
        legendFormat: legend,
        range: true,
      })),
    })),
  };
  return `${JSON.stringify(dashboard, undefined, 2)}\n`;
}

const SOURCE = { type: "prometheus", uid: "${datasource}" };

/** Rows as wide as the page; all panels of a row have one height. */
function placed(panels: readonly Panel[]): { panel: Panel; x: number; y: number }[] {
  let [x, y, height] = [0, 0, 0];
  return panels.map((panel) => {
    if (x + panel.width > COLUMNS) [x, y] = [0, y + height];
    height = panel.stat === true ? HEIGHT / 2 : HEIGHT;
    const at = { panel, x, y };
    x += panel.width;
    return at;
  });
}
