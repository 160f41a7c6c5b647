import { readFileSync } from "node:fs";
import { packageFile } from "../packageFile.js";
import { SOON_DAYS } from "../../model/net/certificateEnd.js";
import { type Problem, problem, ProblemError } from "../../model/index.js";

/** Alert rules and a dashboard for the metrics of a proxy: the files of `monitoring/`, with names and limits filled in. */

/** Which metrics in Prometheus are those of proxies. */
export interface ScrapeJob {
  /**
   * Name of the scrape job in Prometheus: the label `job`.
   * @default "portico"
   */
  readonly job?: string;
}

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

/** @internal Thresholds out of range, but for those that `isKnown` says are not known. */
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

/** @internal The rules for thresholds that have been checked, or that only Terraform knows. */
export const alertRulesText = ({
  job = "portico",
  errorPercentMax = 5,
  certificateDays = SOON_DAYS,
  documents = "cdktf-portico/docs/",
}: AlertRulesInput): string =>
  filled("alerts.yml", /job=\\"portico\\"|(?<=> )5(?= and )|14(?= \* 86400)|cdktf-portico\/docs\//g, {
    [JOB]: jobText(job),
    5: String(errorPercentMax),
    14: String(certificateDays),
    "cdktf-portico/docs/": inQuotes(documents),
  });

/**
 * A dashboard as JSON, for import into Grafana 10 or later. Users choose the data source and the instances at the top
 * of the dashboard. The same input always results in the same text, byte for byte.
 *
 * @param input title, id, and the name of the scrape job; all have defaults
 */
export const renderDashboard = ({
  title = "Portico",
  uid = "portico",
  job = "portico",
}: DashboardInput = {}): string =>
  filled("dashboard.json", /job=\\"portico\\"|(?<="uid": ")portico(?=")|(?<="title": ")Portico(?=")/g, {
    [JOB]: jobText(job),
    portico: inQuotes(uid),
    Portico: inQuotes(title),
  });

/** As it is in both files, in which expressions are strings of JSON. */
const JOB = String.raw`job=\"portico\"`;
const inQuotes = (text: string): string => JSON.stringify(text).slice(1, -1);
const jobText = (job: string): string => inQuotes(`job=${JSON.stringify(job)}`);

/** A file of the package, in one pass: no name is replaced in another one. */
function filled(file: string, defaults: RegExp, names: Readonly<Record<string, string>>): string {
  const text = readFileSync(packageFile("monitoring", file), "utf8");
  return text.replace(defaults, (found) => names[found]!);
}
