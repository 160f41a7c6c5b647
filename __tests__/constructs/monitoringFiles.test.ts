import * as z from "zod";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { renderAlertRules, renderDashboard } from "../../src/index.js";
import { OVERDUE_HOURS, SOON_DAYS, SOON_SHARE } from "../../src/model/net/certificateEnd.js";
import { FAMILIES, type Family } from "../../src/runtime/counting/families.js";
import { alerts, dashboardQueries } from "../../testkit/monitoring.js";

/** Alert rules and dashboard, against what a proxy counts. */

const families: readonly Family[] = Object.values(FAMILIES);
/** Labels of Prometheus itself, and of histograms. */
const OWN_LABELS = ["job", "instance", "le"];
const WORDS = [
  "unless",
  "offset",
  "by",
  "on",
  "and",
  "or",
  "sum",
  "vector",
  "min",
  "max",
  "rate",
  "increase",
  "time",
  "absent",
  "clamp_max",
  "histogram_quantile",
];

/** Metrics and labels that an expression uses, and that nothing counts. */
function unknownIn(expression: string): string[] {
  const texts = expression.replace(/"(?:[^"\\]|\\.)*"/g, '""').replace(/\$\w+/g, "1m");
  const labels = [
    ...[...texts.matchAll(/\b(?:by|on) \(([^)]*)\)/g)].flatMap(([, list]) => list!.split(/,\s*/)),
    ...[...texts.matchAll(/\{([^}]*)\}/g)].flatMap(([, list]) => list!.match(/[a-z_]+(?==|!)/g) ?? []),
  ];
  const bare = texts.replace(/\b(?:by|on) \([^)]*\)/g, "").replace(/\{[^}]*\}/g, "");
  const metrics = (bare.match(/\b[a-z_]{2,}\b/g) ?? []).filter((word) => !WORDS.includes(word));
  const used = families.filter(({ name }) => metrics.some((metric) => isOf(metric, name)));
  const known = [...OWN_LABELS, ...used.flatMap((family) => family.labels)];
  return [
    ...metrics.filter((metric) => metric !== "up" && !families.some(({ name }) => isOf(metric, name))),
    ...labels.filter((label) => !known.includes(label)),
  ];
}

const isOf = (metric: string, name: string): boolean =>
  metric === name || ["_bucket", "_count", "_sum"].some((part) => metric === `${name}${part}`);

test.each([...alerts().map(({ when }) => when), ...dashboardQueries()])(
  "%s uses what is counted",
  (query) => {
    expect(unknownIn(query)).toEqual([]);
  },
);

test("what is not counted is found", () => {
  expect(unknownIn('sum by (colour) (rate(portico_none_total{job="a", shape=~"b"}[5m]))')).toEqual([
    "portico_none_total",
    "colour",
    "shape",
  ]);
});

test("each alert says what to do, and where to read on", () => {
  const page = readFileSync(join(__dirname, "../../docs/dashboards.md"), "utf8");
  for (const { name, description, summary } of alerts()) {
    expect(description).toMatch(/Fix: /);
    expect(summary).not.toMatch(/\.$/);
    expect(page).toContain(`\n### ${name}\n`);
  }
});

const source = z.strictObject({ type: z.literal("prometheus"), uid: z.literal("${datasource}") });
const position = z.strictObject({ x: z.int(), y: z.int(), w: z.int().max(24), h: z.int() });
/** Grafana's dashboard JSON model, as far as it is documented and used here. */
const MODEL = z.strictObject({
  uid: z.string().regex(/^[A-Za-z0-9_-]{1,40}$/),
  title: z.string().min(1),
  description: z.string(),
  tags: z.array(z.string()),
  schemaVersion: z.int().min(36),
  editable: z.boolean(),
  graphTooltip: z.union([z.literal(0), z.literal(1), z.literal(2)]),
  time: z.strictObject({ from: z.string(), to: z.string() }),
  refresh: z.string(),
  timezone: z.enum(["browser", "utc"]),
  templating: z.strictObject({
    list: z.array(z.looseObject({ name: z.string(), type: z.enum(["datasource", "query"]) })),
  }),
  panels: z.array(
    z.strictObject({
      id: z.int().min(1),
      type: z.enum(["stat", "timeseries"]),
      title: z.string().min(1),
      description: z.string().min(1),
      datasource: source,
      gridPos: position,
      fieldConfig: z.strictObject({
        defaults: z.strictObject({ unit: z.string(), min: z.number() }),
        overrides: z.array(z.never()),
      }),
      options: z.looseObject({}),
      targets: z
        .array(
          z.strictObject({
            refId: z.string().regex(/^[A-F]$/),
            datasource: source,
            expr: z.string().min(1),
            legendFormat: z.string(),
            range: z.literal(true),
          }),
        )
        .min(1),
    }),
  ),
});

test("the dashboard is what Grafana imports: unique ids, panels that do not overlap, queries with a letter each", () => {
  const { panels } = MODEL.parse(JSON.parse(renderDashboard()));
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, i) => `${x + (i % w)} ${y + Math.floor(i / w)}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
  expect(cells.every((cell) => Number(cell.split(" ")[0]) < 24)).toBe(true);
  for (const { targets } of panels)
    expect(new Set(targets.map(({ refId }) => refId)).size).toBe(targets.length);
});

test("names of a job are text wherever they are written", () => {
  const job = 'a"} or vector(1) #$&\n';
  const { panels } = MODEL.parse(JSON.parse(renderDashboard({ job })));
  expect(panels[0]!.targets[0]!.expr).toContain('{job="a\\"} or vector(1) #$&\\n", instance');
  expect(renderAlertRules({ job }).split("\n")).toHaveLength(renderAlertRules().split("\n").length);
});

/** Lines of a text that are not in another. */
const changed = (text: string, other: string): string[] => {
  const others = other.split("\n");
  return text.split("\n").filter((line, i) => line !== others[i]);
};

test.each([
  [{ errorPercentMax: 0.5 }, 1, "* 100 / sum by", " > 0.5 and sum by"],
  [{ certificateDays: 30 }, 1, "_not_before_", `* ${SOON_SHARE}, 30 * 86400)`],
  [{ documents: "https://a/b/" }, 7, 'runbook_url: "https://a/b/dashboards.md#portico'],
  [{ job: "14 * 86400" }, 7, 'job=\\"14 * 86400\\"'],
])("%j changes the rules only where it belongs", (input, lines, ...texts) => {
  const found = changed(renderAlertRules(input), renderAlertRules());
  expect(found).toHaveLength(lines);
  for (const line of found) for (const text of texts) expect(line).toContain(text);
  expect(changed(renderAlertRules(), renderAlertRules(input))).toHaveLength(lines);
});

test("the default of days before a certificate's end is that of all others", () => {
  expect(renderAlertRules({})).toContain(`* ${SOON_SHARE}, ${SOON_DAYS} * 86400)`);
  expect(renderAlertRules({})).toContain(` > time() - ${OVERDUE_HOURS * 3_600}"`);
  expect(renderAlertRules({ certificateDays: SOON_DAYS })).toBe(renderAlertRules());
});

test("a dashboard has its title and id, and is otherwise the same", () => {
  const [title, uid] = ['"Front" portico $&', "front"];
  const dashboard = JSON.parse(renderDashboard()) as object;
  expect(JSON.parse(renderDashboard({ title, uid }))).toEqual({ ...dashboard, title, uid });
});
