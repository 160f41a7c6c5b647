import { SOON_DAYS, SOON_SHARE } from "../../model/certificateEnd.js";
import { type Problem, problem, ProblemError } from "../../model/index.js";

/** Alerts on a proxy's metrics, as rules of Prometheus. */

/** Input of the alert rules. */
export interface AlertRulesInput extends ScrapeJob {
  /**
   * Percentage of 5xx responses of a route above which an alert fires, from 0.1 to 100.
   * @default 5
   */
  readonly errorPercentMax?: number;
  /**
   * Days before the expiry of a certificate at which an alert fires, from 1 to 365, or a quarter of the certificate's
   * lifetime, whichever is shorter.
   * @default 14
   */
  readonly certificateDays?: number;
  /**
   * Start of the links to the documents: `https://wiki.example.org/portico/docs/`.
   * @default "cdktf-portico/docs/"
   */
  readonly documents?: string;
}

/** Which metrics in Prometheus are those of proxies. */
export interface ScrapeJob {
  /**
   * Name of the scrape job in Prometheus: the label `job`.
   * @default "portico"
   */
  readonly job?: string;
}

/** An alert, as data. */
export interface Alert {
  readonly name: string;
  readonly severity: "critical" | "warning";
  /** An expression of PromQL. */
  readonly when: string;
  /** How long the expression holds before the alert fires. */
  readonly lasts: string;
  /** A single line; labels as `{{ $labels.NAME }}`. */
  readonly summary: string;
  /** The meaning of the alert, and its fix. */
  readonly description: string;
}

/** All alerts, for these thresholds. */
export const alertsOf = (input: AlertRulesInput): readonly Alert[] => [
  ...serviceAlerts(input),
  ...ownAlerts(input),
];

/** Alerts on faults that clients notice, or soon will. */
function serviceAlerts({
  job = "portico",
  errorPercentMax = 5,
  certificateDays = SOON_DAYS,
}: AlertRulesInput): Alert[] {
  const of = `job=${JSON.stringify(job)}`;
  const requests = "http_server_request_duration_seconds_count";
  const by = "sum by (job, instance, server, route)";
  return [
    {
      name: "PorticoAbsent",
      severity: "critical",
      when: `up{${of}} == 0 or absent(up{${of}})`,
      lasts: "2m",
      summary: "Portico {{ $labels.instance }} is not reachable",
      description:
        "Prometheus gets no metrics. Fix: run `systemctl status portico` on the host; check that the config has `metricsListener`, and that Prometheus can connect to it.",
    },
    {
      name: "PorticoServerErrors",
      severity: "critical",
      // A single error of a rarely used route raises no alert.
      when:
        `${by} (rate(${requests}{${of}, http_response_status_code=~"5.."}[5m])) * 100 ` +
        `/ ${by} (rate(${requests}{${of}}[5m])) > ${errorPercentMax} ` +
        `and ${by} (increase(${requests}{${of}, http_response_status_code=~"5.."}[5m])) > 5`,
      lasts: "5m",
      summary:
        '{{ $value | printf "%.1f" }} % of the responses of {{ $labels.server }}/{{ $labels.route }} on {{ $labels.instance }} are 5xx',
      description:
        "Requests fail with 5xx. Fix: `portico doctor` names the cause; `portico upstreams` shows servers that are down; the error log has a line for each 5xx response of Portico itself.",
    },
    {
      name: "PorticoUpstreamDown",
      severity: "critical",
      when: `portico_upstream_server_up{${of}} == 0`,
      lasts: "2m",
      summary:
        "Server {{ $labels.upstream_server }} of upstream {{ $labels.upstream }} is down on {{ $labels.instance }}",
      description:
        "The server gets no requests. Fix: start the server, or undrain it; `portico upstreams` shows the reason.",
    },
    {
      name: "PorticoCertificateEnds",
      severity: "warning",
      // Short certificates end soon in the last part of their life, as everywhere (`certificateEnd.ts`).
      when:
        `portico_certificate_not_after_timestamp_seconds{${of}} - time() < clamp_max(` +
        `(portico_certificate_not_after_timestamp_seconds{${of}} - portico_certificate_not_before_timestamp_seconds{${of}}) * ` +
        `${SOON_SHARE}, ${certificateDays} * 86400)`,
      lasts: "1h",
      summary:
        "The certificate {{ $labels.certificate }} of {{ $labels.instance }} expires in {{ $value | humanizeDuration }}",
      description:
        "The certificate was not renewed in time. Fix: `portico certificates` shows the last error; `portico certificates renew` asks the authority again. Portico does not renew certificates from files.",
    },
  ];
}

/** Alerts on faults of a proxy that still serves. */
function ownAlerts({ job = "portico" }: AlertRulesInput): Alert[] {
  const of = `job=${JSON.stringify(job)}`;
  return [
    {
      name: "PorticoWorkersRestart",
      severity: "critical",
      when: grown(`portico_worker_restarts_total{${of}}`, "10m", ">= 3"),
      lasts: "0m",
      summary: "Workers of {{ $labels.instance }} end repeatedly",
      description:
        "The requests of these workers are lost. Fix: `journalctl -u portico` shows how the workers ended; if memory ran out, raise `memoryMax`.",
    },
    {
      name: "PorticoReloadRefused",
      severity: "warning",
      when: grown(`portico_reloads_total{${of}, outcome="refused"}`, "15m", "> 0"),
      lasts: "0m",
      summary: "A reload of {{ $labels.instance }} was refused",
      description:
        "The previous config stays in force. Fix: `portico check` shows every problem with its fix.",
    },
    {
      name: "PorticoLogLinesLost",
      severity: "warning",
      when: grown(`portico_log_lines_lost_total{${of}}`, "10m", "> 0"),
      lasts: "0m",
      summary: "{{ $labels.instance }} loses log lines",
      description:
        "Portico could not write the lines. Fix: free space on the disk of the logs, or check the program that reads the log stream.",
    },
  ];
}

/**
 * The increase of a counter in a time. A counter that is new in that time has no earlier value to subtract, so all of
 * it counts; not if the target is new to Prometheus, because its counts may be older.
 */
const grown = (counter: string, time: string, by: string): string =>
  `increase(${counter}[${time}]) ${by} ` +
  `or (${counter} ${by} unless ${counter} offset ${time}) and on (job, instance) (up offset ${time} == 1)`;

/**
 * Prometheus alert rules in YAML, for `rule_files`. The same input always results in the same text, byte for byte.
 *
 * @param input thresholds, and the name of the scrape job; all have defaults
 */
export function renderAlertRules(input: AlertRulesInput = {}): string {
  const problems = alertRulesProblems("renderAlertRules", input);
  if (problems.length > 0) throw new ProblemError(problems);
  return alertRulesText(input);
}

/** Thresholds out of range, but for those that `isKnown` says are not known. */
export function alertRulesProblems(
  path: string,
  { errorPercentMax, certificateDays }: AlertRulesInput,
  isKnown: (value: unknown) => boolean = () => true,
): Problem[] {
  const outside = (name: string, min: number, max: number, received: number | undefined): Problem[] => {
    if (received === undefined || !isKnown(received)) return [];
    if (typeof received === "number" && received >= min && received <= max) return [];
    const allowed = `a number from ${min} to ${max}`;
    return [problem("config.out-of-range", `${path}.${name}`, "is out of range", { received, allowed })];
  };
  return [
    ...outside("errorPercentMax", 0.1, 100, errorPercentMax),
    ...outside("certificateDays", 1, 365, certificateDays),
  ];
}

/** The rules for thresholds that have been checked, or that only Terraform knows. */
export function alertRulesText(input: AlertRulesInput): string {
  const { documents = "cdktf-portico/docs/" } = input;
  const rules = alertsOf(input).map(
    ({ name, severity, when, lasts, summary, description }) => `      - alert: ${name}
        expr: ${JSON.stringify(when)}
        for: ${lasts}
        labels:
          severity: ${severity}
        annotations:
          summary: ${JSON.stringify(summary)}
          description: ${JSON.stringify(description)}
          runbook_url: ${JSON.stringify(`${documents}dashboards.md#${name.toLowerCase()}`)}
`,
  );
  // Strings are written as JSON, which YAML contains.
  return `# Written by Portico: docs/dashboards.md.
groups:
  - name: portico
    rules:
${rules.join("")}`;
}
