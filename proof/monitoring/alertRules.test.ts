import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { renderAlertRules } from "../../src/index.js";
import { alerts, dashboardQueries } from "../../testkit/monitoring.js";

/** What Prometheus's own tool says of the alert rules: their form, and when each fires. */

const folder = mkdtempSync(join(tmpdir(), "portico-rules-"));
afterAll(() => rmSync(folder, { recursive: true }));

const RULES = join(folder, "portico.rules.yml");
writeFileSync(RULES, renderAlertRules());

const promtool = (...args: string[]): string => {
  const { status, stdout, stderr } = spawnSync("promtool", args, { encoding: "utf8", cwd: folder });
  return `${status} ${stdout}${stderr}`;
};

test("`promtool check rules` finds nothing", () => {
  const said = promtool("check", "rules", "--lint=all", "--lint-fatal", RULES);
  expect(said).toMatch(/^0 /);
  expect(said).toContain(`SUCCESS: ${alerts().length} rules found`);
});

test("with other thresholds and names as well", () => {
  const file = join(folder, "other.yml");
  const odd = {
    job: 'front "end" {{ 1 }}',
    errorPercentMax: 0.1,
    certificateDays: 30,
    documents: "https://a/b/",
  };
  writeFileSync(file, renderAlertRules(odd));
  expect(promtool("check", "rules", file)).toMatch(/^0 /);
});

test("every query of the dashboard is one", () => {
  const file = join(folder, "queries.yml");
  const rules = dashboardQueries().map((query, i) => ({
    record: `query:${i}`,
    expr: query.replaceAll("$__rate_interval", "5m").replaceAll("$instance", ".*"),
  }));
  writeFileSync(file, JSON.stringify({ groups: [{ name: "queries", rules }] }));
  expect(promtool("check", "rules", "--lint=none", file)).toContain(`SUCCESS: ${rules.length} rules found`);
});

const TARGET = 'job="portico", instance="front:9181"';
const LABELS = { job: "portico", instance: "front:9181" };
const REQUESTS = "http_server_request_duration_seconds_count";
const ROUTE = 'server="app", route="web"';

interface Case {
  readonly series: readonly (readonly [name: string, values: string])[];
  readonly labels: Readonly<Record<string, string>>;
  readonly summary: string;
}

/** For each alert what makes it fire within 20 minutes, and what does not. */
const CASES: Readonly<Record<string, { readonly fires: Case; readonly not: Case["series"] }>> = {
  PorticoAbsent: {
    fires: {
      series: [[`up{${TARGET}}`, "1x5 0x40"]],
      labels: LABELS,
      summary: "Portico front:9181 is not reachable",
    },
    not: [[`up{${TARGET}}`, "1x10 0 1x40"]],
  },
  PorticoServerErrors: {
    fires: {
      series: [
        [`${REQUESTS}{${TARGET}, ${ROUTE}, http_response_status_code="200"}`, "0+90x40"],
        [`${REQUESTS}{${TARGET}, ${ROUTE}, http_response_status_code="502"}`, "0+10x40"],
      ],
      labels: { ...LABELS, server: "app", route: "web" },
      summary: "10.0 % of the responses of app/web on front:9181 are 5xx",
    },
    not: [
      [`${REQUESTS}{${TARGET}, ${ROUTE}, http_response_status_code="200"}`, "0+97x40"],
      [`${REQUESTS}{${TARGET}, ${ROUTE}, http_response_status_code="502"}`, "0+3x40"],
      // One error of a route that nobody uses.
      [`${REQUESTS}{${TARGET}, server="app", route="rare", http_response_status_code="500"}`, "0x15 1x25"],
    ],
  },
  PorticoUpstreamDown: {
    fires: {
      series: [
        [
          `portico_upstream_server_up{${TARGET}, upstream="web", upstream_server="http://10.0.0.7:8000"}`,
          "0x40",
        ],
      ],
      labels: { ...LABELS, upstream: "web", upstream_server: "http://10.0.0.7:8000" },
      summary: "Server http://10.0.0.7:8000 of upstream web is down on front:9181",
    },
    not: [[`portico_upstream_server_up{${TARGET}, upstream="web", upstream_server="b"}`, "1x18 0x1 1x20"]],
  },
  PorticoCertificateEnds: {
    fires: {
      series: [
        [
          `portico_certificate_not_after_timestamp_seconds{${TARGET}, certificate="files.example.org", from="acme"}`,
          "864000x400",
        ],
        [
          `portico_certificate_not_before_timestamp_seconds{${TARGET}, certificate="files.example.org", from="acme"}`,
          "-6912000x400",
        ],
        [
          `portico_certificate_renewal_timestamp_seconds{${TARGET}, certificate="files.example.org", from="acme"}`,
          "-3600x400",
        ],
      ],
      labels: { ...LABELS, certificate: "files.example.org", from: "acme" },
      summary: "The certificate files.example.org of front:9181 expires in 9d 22h 40m 0s",
    },
    not: [
      [
        `portico_certificate_not_after_timestamp_seconds{${TARGET}, certificate="a", from="b"}`,
        "1296000x400",
      ],
      [
        `portico_certificate_not_before_timestamp_seconds{${TARGET}, certificate="a", from="b"}`,
        "-6480000x400",
      ],
      // Of six days, of which three are left.
      [
        `portico_certificate_not_after_timestamp_seconds{${TARGET}, certificate="short", from="b"}`,
        "259200x400",
      ],
      [
        `portico_certificate_not_before_timestamp_seconds{${TARGET}, certificate="short", from="b"}`,
        "-259200x400",
      ],
      // Of six days too, of which one is left; it is to be renewed in half a day.
      [
        `portico_certificate_not_after_timestamp_seconds{${TARGET}, certificate="planned", from="b"}`,
        "86400x400",
      ],
      [
        `portico_certificate_not_before_timestamp_seconds{${TARGET}, certificate="planned", from="b"}`,
        "-432000x400",
      ],
      [
        `portico_certificate_renewal_timestamp_seconds{${TARGET}, certificate="planned", from="b"}`,
        "43200x400",
      ],
    ],
  },
  PorticoWorkersRestart: {
    fires: {
      series: [
        [`portico_worker_restarts_total{${TARGET}}`, "_x15 3x30"],
        [`up{${TARGET}}`, "1x40"],
      ],
      labels: LABELS,
      summary: "Workers of front:9181 end repeatedly",
    },
    not: [[`portico_worker_restarts_total{${TARGET}}`, "0x10 1x30"]],
  },
  PorticoReloadRefused: {
    fires: {
      series: [
        [`portico_reloads_total{${TARGET}, outcome="refused"}`, "_x15 1x30"],
        [`up{${TARGET}}`, "1x40"],
      ],
      labels: { ...LABELS, outcome: "refused" },
      summary: "A reload of front:9181 was refused",
    },
    not: [
      [`portico_reloads_total{${TARGET}, outcome="done"}`, "0x15 1x30"],
      // Prometheus is new here, and the reload may be a year ago.
      [`portico_reloads_total{${TARGET}, outcome="refused"}`, "_x15 1x30"],
      [`up{${TARGET}}`, "_x15 1x30"],
    ],
  },
  PorticoLogLinesLost: {
    fires: {
      series: [[`portico_log_lines_lost_total{${TARGET}}`, "0x15 7x30"]],
      labels: LABELS,
      summary: "front:9181 loses log lines",
    },
    not: [[`portico_log_lines_lost_total{${TARGET}}`, "7x40"]],
  },
};

test("each alert has its case", () => {
  expect(Object.keys(CASES)).toEqual(alerts().map(({ name }) => name));
});

test.each(alerts())("$name fires when it should, and not otherwise", (alert) => {
  const { name, severity, description } = alert;
  const { fires, not } = CASES[name]!;
  // A certificate has an hour's grace.
  const at = name === "PorticoCertificateEnds" ? "80m" : "20m";
  const annotations = {
    summary: fires.summary,
    description,
    runbook_url: `cdktf-portico/docs/dashboards.md#${name.toLowerCase()}`,
  };
  const asSeries = (all: Case["series"]) => all.map(([series, values]) => ({ series, values }));
  const expected = [{ exp_labels: { severity, ...fires.labels }, exp_annotations: annotations }];
  const tests = [
    {
      interval: "1m",
      input_series: asSeries(fires.series),
      alert_rule_test: [{ eval_time: at, alertname: name, exp_alerts: expected }],
    },
    {
      interval: "1m",
      input_series: asSeries(not),
      alert_rule_test: [{ eval_time: at, alertname: name, exp_alerts: [] }],
    },
  ];
  const file = join(folder, `${name}.test.yml`);
  writeFileSync(file, JSON.stringify({ rule_files: [RULES], evaluation_interval: "1m", tests }));
  expect(promtool("test", "rules", file)).toMatch(/^0 /);
});

test("a job that Prometheus does not know at all is absent", () => {
  const file = join(folder, "absent.test.yml");
  const exp_annotations = {
    summary: "Portico  is not reachable",
    description: alerts()[0]!.description,
    runbook_url: "cdktf-portico/docs/dashboards.md#porticoabsent",
  };
  const exp_alerts = [{ exp_labels: { severity: "critical", job: "portico" }, exp_annotations }];
  const tests = [
    { interval: "1m", alert_rule_test: [{ eval_time: "20m", alertname: "PorticoAbsent", exp_alerts }] },
  ];
  writeFileSync(file, JSON.stringify({ rule_files: [RULES], evaluation_interval: "1m", tests }));
  expect(execFileSync("promtool", ["test", "rules", file], { encoding: "utf8" })).toContain("SUCCESS");
});
