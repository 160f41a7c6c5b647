import type { RecordedResult } from "./results.js";
import type { Tool } from "./tools.js";

/**
 * docs/reliability.md, from what tools recorded and nothing else.
 * @throws Error for a result that belongs to no tool
 */
export function renderReliability(
  tools: readonly Tool[],
  results: ReadonlyMap<string, RecordedResult>,
): string {
  for (const name of results.keys())
    if (!tools.some((tool) => tool.name === name))
      throw new Error(`reliability/results/${name}.json is the result of no tool in reliability/tools.ts`);
  return [
    "# Reliability",
    "",
    "What hostile input, faults and load do to Portico, as last run. This page is written by `npm run reliability` from",
    "`reliability/results`, where each tool leaves its figures; do not edit it.",
    "",
    ...table(tools, results),
    "",
    ...tools.flatMap((tool) => section(tool, results.get(tool.name))),
  ].join("\n");
}

function table(tools: readonly Tool[], results: ReadonlyMap<string, RecordedResult>): string[] {
  const rows = tools.map(({ name, title, command }) => {
    const result = results.get(name);
    return [title, `\`${command}\``, result?.verdict ?? "not run", result?.date ?? ""];
  });
  return aligned([["", "command", "verdict", "date"], ...rows]);
}

function section({ title, command, shows }: Tool, result: RecordedResult | undefined): string[] {
  const head = [`## ${title}`, "", shows, ""];
  if (result === undefined) return [...head, `Not run: no result of \`${command}\` is recorded.`, ""];
  const { verdict, date, commit, node, seed, seconds, counts, notes = [] } = result;
  const repeat = seed === undefined ? `\`${command}\`` : `\`${command} -- --seed ${seed}\``;
  const run = `${verdict === "passed" ? "Passed" : "**Failed**"} on ${date}, commit ${commit}, Node ${node}, in ${seconds} s: ${repeat}`;
  const figures = Object.entries(counts).map(([what, count]) => [what, figure(count)]);
  return [
    ...head,
    run,
    "",
    ...aligned([["", "figure"], ...figures]),
    "",
    ...notes.flatMap((note) => [note, ""]),
  ];
}

const figure = (count: number | string): string =>
  typeof count === "number" ? count.toLocaleString("en") : count;

/** A table whose columns are as wide as their widest cell, as prettier has it. */
function aligned(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]!.map((_, i) => Math.max(3, ...rows.map((row) => row[i]!.length)));
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, i) => cell.padEnd(widths[i]!)).join(" | ")} |`;
  return [line(rows[0]!), line(widths.map((width) => "-".repeat(width))), ...rows.slice(1).map(line)];
}
