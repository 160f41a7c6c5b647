import type { RecordedResult } from "../kit/results.js";
import type { Tool } from "./tools.js";

/**
 * docs/reliability.md, only from what tools recorded.
 * @throws Error for a result that belongs to no tool
 */
export function renderReliability(
  tools: readonly Tool[],
  results: ReadonlyMap<string, RecordedResult>,
): string {
  for (const name of results.keys())
    if (!tools.some((tool) => tool.name === name))
      throw new Error(
        `proof/report/results/${name}.json is not the result of a tool in proof/report/tools.ts`,
      );
  return [
    "# Reliability",
    "",
    "What hostile input, faults and load do to Portico, by the last run of each tool. This page is written by `npm run reliability` from",
    "the figures that the tools leave in `proof/report/results`; do not edit it.",
    "",
    ...table(tools, results),
    "",
    ...tools.flatMap((tool) => section(tool, results.get(tool.name))),
  ].join("\n");
}

function table(tools: readonly Tool[], results: ReadonlyMap<string, RecordedResult>): string[] {
  const rows = tools.map(({ name, title, command }) => {
    const result = results.get(name);
    const verdict = result === undefined ? "not run" : result.passed ? "passed" : "**failed**";
    return [title, `\`${command}\``, verdict, result?.date.slice(0, 10) ?? ""];
  });
  return aligned([["", "command", "verdict", "date"], ...rows]);
}

/** Fields that are in the line above the figures. */
const SAID: ReadonlySet<string> = new Set(["name", "date", "passed", "seed", "seconds", "commit", "node"]);

function section({ title, command, shows }: Tool, result: RecordedResult | undefined): string[] {
  const head = [`## ${title}`, "", shows, ""];
  if (result === undefined) return [...head, `Not run: no result of \`${command}\` is recorded.`, ""];
  const { passed, date, seed } = result;
  const how = [
    `on ${date.slice(0, 10)}`,
    ...(result["commit"] === undefined ? [] : [`commit ${String(result["commit"])}`]),
    ...(result["node"] === undefined ? [] : [`Node ${String(result["node"])}`]),
    ...(result["seconds"] === undefined ? [] : [`${String(result["seconds"])} s`]),
  ];
  const repeat = seed === undefined ? command : `${command} -- --seed ${seed}`;
  const found = Object.entries(result).filter(([field]) => !SAID.has(field));
  const [lists, figures] = partition(found, isListOfThings);
  return [
    ...head,
    `${passed ? "Passed" : "**Failed**"} ${how.join(", ")}: \`${repeat}\``,
    "",
    ...(figures.length === 0
      ? []
      : [
          ...aligned([["", "figure"], ...figures.flatMap(([field, value]) => rows(inWords(field), value))]),
          "",
        ]),
    ...lists.flatMap(([field, things]) => [`${capitalised(inWords(field))}:`, "", ...tableOf(things), ""]),
  ];
}

type Thing = Readonly<Record<string, unknown>>;

const isListOfThings = (entry: [string, unknown]): entry is [string, Thing[]] =>
  Array.isArray(entry[1]) && entry[1].length > 0 && entry[1].every((item) => typeof item === "object");

function partition<T, U extends T>(list: readonly T[], test: (item: T) => item is U): [U[], T[]] {
  return [list.filter(test), list.filter((item) => !test(item))];
}

/** With more figures per item than this, items become columns. */
const COLUMNS_MAX = 7;

/** A table of items of one kind; the first field of each names it. */
function tableOf(things: readonly Thing[]): string[] {
  const flat = things.map(
    (thing) =>
      new Map(
        Object.entries(thing).flatMap(([field, value]) => rows(inWords(field), value)) as [string, string][],
      ),
  );
  const fields = [...new Set(flat.flatMap((thing) => [...thing.keys()]))];
  const lines = [fields, ...flat.map((thing) => fields.map((field) => thing.get(field) ?? ""))];
  return aligned(fields.length <= COLUMNS_MAX ? lines : fields.map((_, i) => lines.map((line) => line[i]!)));
}

const TEXT_CHARS_MAX = 250;

/** A value as rows of a name and a figure; an object gives a row for each field. */
function rows(path: string, value: unknown): string[][] {
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return Object.entries(value).flatMap(([field, inner]) => rows(`${path}: ${inWords(field)}`, inner));
  if (Array.isArray(value)) return [[path, cell(value.join(", "))]];
  return [[path, typeof value === "number" ? figure(value) : cell(String(value))]];
}

const figure = (value: number): string =>
  value.toLocaleString("en", { maximumFractionDigits: Math.abs(value) < 10 ? 2 : 0 });

function cell(text: string): string {
  // Names of folders such as __tests__ are not bold.
  const line = text.replaceAll("|", "\\|").replaceAll("__", "\\_\\_").replace(/\s+/g, " ").trim();
  return line.length <= TEXT_CHARS_MAX ? line : `${line.slice(0, TEXT_CHARS_MAX)}…`;
}

/** `reloadEverySeconds` → `reload every seconds`: names of fields read as text. */
const inWords = (field: string): string =>
  field.includes(" ")
    ? field.replaceAll("|", "\\|")
    : field.replace(/(?<=[a-z0-9])[A-Z](?![A-Z]|$)/g, (letter) => ` ${letter.toLowerCase()}`);

const capitalised = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** A table whose columns are as wide as their widest cell, as oxfmt formats it. */
function aligned(lines: readonly (readonly string[])[]): string[] {
  const widths = lines[0]!.map((_, i) => Math.max(3, ...lines.map((line) => line[i]!.length)));
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((text, i) => text.padEnd(widths[i]!)).join(" | ")} |`;
  return [line(lines[0]!), line(widths.map((width) => "-".repeat(width))), ...lines.slice(1).map(line)];
}
