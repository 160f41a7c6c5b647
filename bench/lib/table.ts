import { ABSOLUTE } from "./work.js";
import { type Line, lineBeside, type Result, type Verdict } from "./judge.js";

/** Results as Markdown, which reads as a table in a terminal, too. */

export function resultTable(result: Result): string {
  const { name, what, unit, rate, by, lines, verdicts, failure } = result;
  const title = `### ${name}: ${what}\n`;
  if (failure !== undefined) return `${title}\nFAILED: ${failure}\n`;
  const columns: [string, (line: Line) => string][] = [
    ["proxy", (line) => line.proxy],
    [unit, (line) => digits(line.value)],
    ["lowest · median · highest", (line) => (line.rounds > 1 ? spread(line) : "")],
    ["ratio to nginx", (line) => digits(line.ratio)],
    [rate ?? "", (line) => digits(line.throughput)],
    ["p50 ms", (line) => digits(line.p50Ms)],
    ["p99 ms", (line) => digits(line.p99Ms)],
    ["peak MiB", (line) => digits(line.peakBytes && line.peakBytes / 2 ** 20)],
    ["other work", (line) => percent(line.othersShare)],
    ["remark", (line) => line.failure?.split("\n")[0]!.slice(0, 120) ?? line.note ?? ""],
  ];
  const used = columns.filter(([, cell], i) => i < 2 || lines.some((line) => cell(line) !== ""));
  const table = markdown(
    used.map(([head]) => head),
    lines.map((line) => used.map(([, cell]) => cell(line))),
  );
  return `${title}\n${table}${verdicts.map((v) => `\n${verdictText(v, unit)}, by ${by}\n`).join("")}`;
}

/** One line for every bar, and one for every item without. */
export function summaryTable(results: readonly Result[]): string {
  const rows = results.flatMap((result) =>
    result.verdicts.length === 0
      ? [shownRow(result)]
      : result.verdicts.map((verdict) => judgedRow(result, verdict)),
  );
  return markdown(["work", "unit", "portico", ...SUMMED, "ratio", "bar", "verdict"], rows);
}

/** The proxies that the summary shows beside Portico. */
const SUMMED = ["nginx", "haproxy", "caddy"] as const;

function judgedRow(result: Result, verdict: Verdict): string[] {
  const own = result.lines.find((line) => line.proxy === (verdict.row ?? "portico"));
  const ratio = verdict.to === ABSOLUTE ? own?.ratio : verdict.reached;
  const cells = figures(result, own, ratio);
  return [...cells, barText(verdict, result.unit), outcome(verdict, result)];
}

function shownRow(result: Result): string[] {
  const own = result.lines.find((line) => line.family === "portico");
  return [...figures(result, own, own?.ratio), "", result.failure === undefined ? "shown" : "FAILED"];
}

function figures({ name, unit, lines }: Result, own: Line | undefined, ratio: number | undefined): string[] {
  const beside = SUMMED.map((proxy) => own && lineBeside(own, proxy, lines)?.value);
  return [name, unit, ...[own?.value, ...beside, ratio].map(digits)];
}

export function verdictText(verdict: Verdict, unit: string): string {
  const reached = verdict.reached === undefined ? "" : `: ${digits(verdict.reached)}`;
  return `${barText(verdict, unit)}${reached}, ${outcome(verdict)}`;
}

function outcome(verdict: Verdict, result?: Result): string {
  if (result?.failure !== undefined) return "FAILED";
  if (verdict.passed === undefined) return "not comparable";
  return verdict.passed ? "pass" : "FAIL";
}

function barText({ row, to, limit, atLeast }: Verdict, unit: string): string {
  const sign = `${row === undefined ? "" : `${row}: `}${atLeast ? "≥" : "≤"}`;
  return to === ABSOLUTE ? `${sign} ${limit} ${unit}` : `${sign} ${limit} × ${to}`;
}

function spread({ lowest, median, highest }: Line): string {
  return [lowest, median, highest].map(digits).join(" · ");
}

/** Part of the core that others had; what is below 5 % is usual. */
function percent(share: number | undefined): string {
  return share === undefined || share < 0.05 ? "" : `${Math.round(share * 100)} %`;
}

/** Three significant digits; all of them before the point. */
export function digits(value: number | undefined): string {
  if (value === undefined || Number.isNaN(value)) return "";
  const abs = Math.abs(value);
  const places = abs >= 100 ? 0 : abs >= 10 ? 1 : abs >= 1 ? 2 : 3;
  return value.toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places });
}

/** Padded as oxfmt would. */
export function markdown(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((cell, i) => Math.max(3, cell.length, ...rows.map((row) => row[i]!.length)));
  const text = (row: readonly string[]): string =>
    `| ${row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join(" | ")} |\n`;
  const rule = widths.map((width, i) => (i === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`));
  return text(head) + text(rule) + rows.map(text).join("");
}
