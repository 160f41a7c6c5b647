import { Aspects, type TerraformResource } from "cdktf";
import { Construct } from "constructs";
import { type Problem, problem } from "../../model/index.js";
import { isFilePath } from "../../model/text/textRule.js";
import { freeId } from "../props/constructIds.js";
import type { IProxy } from "../proxy/proxyInterfaces.js";
import { PROXY } from "../proxy/proxyScope.js";
import {
  type AlertRulesInput,
  alertRulesProblems,
  alertRulesText,
  type DashboardInput,
  renderDashboard,
} from "./monitoringFiles.js";
import { warn } from "../props/warn.js";
import { localFile } from "../providers/local.js";
import { number, type PropTable, refuseProps, required, text } from "../props/propTable.js";
import { escapeTemplate, isKnown } from "../props/tokens.js";

/** Place of a file for a monitoring system. */
export interface MonitoringFileProps {
  /**
   * Path of the file on the machine that runs Terraform: absolute, or relative to the project's folder, which
   * contains the app's output folder (`cdktf.out`): `monitoring/portico.rules.yml`.
   */
  readonly file: string;
}

/** Options and file of alert rules. */
export interface AlertRulesProps extends MonitoringFileProps, AlertRulesInput {}

/** Options and file of a dashboard. */
export interface MetricsDashboardProps extends MonitoringFileProps, DashboardInput {}

/**
 * A file of Prometheus alert rules on the metrics of a proxy, for `rule_files` of Prometheus: 5xx responses, servers
 * that are down, certificates that expire, workers that repeatedly end, refused reloads, lost log lines, and a
 * missing proxy. `renderAlertRules` returns the same text without a file.
 */
export class AlertRules extends Construct {
  /** The file of the rules, for dependencies and overrides (escape hatch). */
  readonly resource: TerraformResource;

  constructor(scope: Construct, id: string, props: AlertRulesProps) {
    super(scope, freeId(scope, id));
    refuseProps(this, props, ALERT_RULES_PROPS, (fit) => [
      ...fileProblems(this.node.path, fit.file),
      ...alertRulesProblems(this.node.path, fit, isKnown),
    ]);
    const { file, ...input } = props;
    this.resource = written(this, file, alertRulesText(input));
  }
}

/**
 * A dashboard of the metrics of a proxy, as JSON for Grafana 10 or later. Import the dashboard by hand, or from a
 * folder by provisioning. `renderDashboard` returns the same text without a file.
 */
export class MetricsDashboard extends Construct {
  /** The file of the dashboard, for dependencies and overrides (escape hatch). */
  readonly resource: TerraformResource;

  constructor(scope: Construct, id: string, props: MetricsDashboardProps) {
    super(scope, freeId(scope, id));
    refuseProps(this, props, METRICS_DASHBOARD_PROPS, (fit) => [
      ...fileProblems(this.node.path, fit.file),
      ...uidProblem(`${this.node.path}.uid`, fit.uid),
    ]);
    const { file, ...input } = props;
    this.resource = written(this, file, renderDashboard(input));
  }
}

/** From where Terraform runs, `cdktf.out/stacks/STACK`, to the folder that holds `cdktf.out`. */
const PROJECT = "${path.module}/../../..";

function written(scope: Construct, file: string, content: string): TerraformResource {
  const filename = file.startsWith("/") ? escapeTemplate(file) : `${PROJECT}/${escapeTemplate(file)}`;
  warnWithoutMetrics(scope);
  const modes = { filePermission: "0644", directoryPermission: "0755" };
  return localFile(scope, "File", { filename, content: escapeTemplate(content), sensitive: false, ...modes });
}

/** Rules and dashboards are about metrics of a proxy of this app, if the app has any proxy. */
function warnWithoutMetrics(scope: Construct): void {
  let warned = false;
  Aspects.of(scope).add({
    visit: (node) => {
      if (node !== scope || warned) return;
      warned = true;
      const proxies = node.node.root.node.findAll().filter((one): one is IProxy & typeof one => PROXY in one);
      if (proxies.length === 0 || proxies.some(({ config }) => config.metricsListener !== undefined)) return;
      warn(
        scope,
        "No proxy of this app serves metrics: set `metricsListener` of the proxy, for Prometheus to read.",
      );
    },
  });
}

function fileProblems(at: string, file: string | undefined): Problem[] {
  if (file === undefined || !isKnown(file)) return [];
  if (file !== "" && isFilePath(file.startsWith("/") ? file : `/${file}`) && !file.endsWith("/")) return [];
  const allowed =
    "an absolute path, or a path relative to the project, without `//`, `.` or `..` segments and without `/` at the end";
  const more = {
    received: file,
    allowed,
    fix: "Use the path of a file, such as `monitoring/portico.rules.yml`.",
  };
  return [problem("config.bad-file-path", `${at}.file`, "is not the path of a file", more)];
}

function uidProblem(at: string, received: string | undefined): Problem[] {
  if (received === undefined || !isKnown(received) || /^[A-Za-z0-9_-]{1,40}$/.test(received)) return [];
  const allowed = "up to 40 letters, digits, `-` and `_`";
  return [problem("config.bad-name", at, "is not the uid of a Grafana dashboard", { received, allowed })];
}

const ALERT_RULES_PROPS: PropTable<AlertRulesProps> = {
  file: required(text),
  job: text,
  errorPercentMax: number,
  certificateDays: number,
  documents: text,
};

const METRICS_DASHBOARD_PROPS: PropTable<MetricsDashboardProps> = {
  file: required(text),
  title: text,
  uid: text,
  job: text,
};
