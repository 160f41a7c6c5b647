import { renderAlertRules, renderDashboard } from "../src/index.js";

/** An alert of the rules' file. */
export interface Alert {
  readonly name: string;
  readonly severity: string;
  /** An expression of PromQL. */
  readonly when: string;
  readonly summary: string;
  readonly description: string;
}

const FIELD = (name: string): RegExp => new RegExp(`^ +(?:- )?${name}: (.*)$`, "m");

/** The alerts of the default rules; texts are strings of JSON there. */
export const alerts = (): readonly Alert[] =>
  renderAlertRules()
    .split(/(?=^ +- alert:)/m)
    .slice(1)
    .map((rule) => {
      const field = (name: string): string => FIELD(name).exec(rule)![1]!;
      const text = (name: string): string => JSON.parse(field(name)) as string;
      const [name, severity] = [field("alert"), field("severity")];
      return {
        name,
        severity,
        when: text("expr"),
        summary: text("summary"),
        description: text("description"),
      };
    });

interface Dashboard {
  readonly panels: readonly { readonly targets: readonly { readonly expr: string }[] }[];
}

/** Expressions of all panels of the default dashboard. */
export const dashboardQueries = (): readonly string[] =>
  (JSON.parse(renderDashboard()) as Dashboard).panels.flatMap(({ targets }) =>
    targets.map(({ expr }) => expr),
  );
