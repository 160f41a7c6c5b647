import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Result } from "./judge.js";
import type { Machine } from "./machine.js";
import type { Options } from "./options.js";
import { pictures } from "./pictures.js";
import { resultTable, summaryTable } from "./table.js";

const BENCH = path.resolve(__dirname, "..");
const README = path.join(BENCH, "README.md");
const LAST = path.join(BENCH, "results", "last.json");
const COMPLETE = path.join(BENCH, "results", "complete.json");
const PICTURES = path.join(BENCH, "pictures");
const BEGIN = "<!-- results: written by `npm run bench` -->";
const END = "<!-- end of results -->";

/**
 * Writes `results/last.json`; after a complete run `results/complete.json`, and from it the pictures and the summary in the
 * README.
 */
export function writeReport(results: readonly Result[], machine: Machine, options: Options): void {
  const { rounds, workers, quick, complete } = options;
  const at = new Date().toISOString();
  const document = { at, machine, rounds, workers, quick, results };
  mkdirSync(path.join(BENCH, "results"), { recursive: true });
  writeFileSync(complete ? COMPLETE : LAST, `${JSON.stringify(document, null, 2)}\n`);
  if (complete) redraw();
}

/** Writes the pictures and the README's summary of the last complete run. */
export function redraw(): void {
  mkdirSync(PICTURES, { recursive: true });
  for (const [file, text] of summaryFiles()) writeFileSync(file, text);
}

/** What the last complete run has in files that are read: their contents, by path. */
export function summaryFiles(): ReadonlyMap<string, string> {
  const { at, machine, rounds, results } = JSON.parse(readFileSync(COMPLETE, "utf8")) as Report;
  const drawn = pictures(results);
  const images = [...drawn.keys()].map((name) => `![${PICTURED[name]}](pictures/${name})`);
  const text = readFileSync(README, "utf8");
  const [before, after] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (before === -1 || after === -1) throw new Error(`${README} has lost the marks around its results`);
  const details = results.filter(({ isDetailed }) => isDetailed === true).map((one) => resultTable(one));
  const tables = [summaryTable(results), ...details].map((table) => table.trimEnd());
  const parts = [BEGIN, machineText(machine, at, rounds), ...images, ...tables];
  return new Map([
    ...[...drawn].map(([name, picture]) => [path.join(PICTURES, name), picture] as const),
    [README, `${text.slice(0, before)}${parts.join("\n\n")}\n\n${text.slice(after)}`],
  ]);
}

interface Report {
  readonly at: string;
  readonly machine: Machine;
  readonly rounds: number;
  readonly results: readonly Result[];
}

/** What the pictures show, for those who do not see them. */
const PICTURED: Readonly<Record<string, string>> = {
  "ratios.svg":
    "Ratios of Portico, haproxy and caddy to nginx, for each item; the table has the same figures",
  "load-curve.svg": "Processor time of a small request over 1 to 10,000 connections",
  "size-curve.svg": "Processor time of a response over bodies of 1 B to 1 GiB",
};

function machineText(machine: Machine, at: string, rounds: number): string {
  const { cpu, cores, memoryGiB, kernel, node, openssl, versions } = machine;
  const list = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return (
    `Measured ${at.slice(0, 10)}, ${rounds} rounds, on ${cores} cores of ${cpu}, ${memoryGiB} GiB, Linux ${kernel}, ` +
    `Node ${node} with OpenSSL ${openssl}. Versions: ${list.join(", ")}.`
  );
}
