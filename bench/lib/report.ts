import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Result } from "./judge.js";
import type { Machine } from "./machine.js";
import type { Options } from "./options.js";
import { summaryTable } from "./table.js";

const BENCH = path.resolve(__dirname, "..");
const README = path.join(BENCH, "README.md");
const BEGIN = "<!-- results: written by `npm run bench` -->";
const END = "<!-- end of results -->";

/** Writes `results/last.json`; after a complete run `results/complete.json`, and the summary in the README. */
export function writeReport(results: readonly Result[], machine: Machine, options: Options): void {
  const { rounds, workers, quick, complete } = options;
  const at = new Date().toISOString();
  const document = { at, machine, rounds, workers, quick, results };
  mkdirSync(path.join(BENCH, "results"), { recursive: true });
  const file = complete ? "complete.json" : "last.json";
  writeFileSync(path.join(BENCH, "results", file), `${JSON.stringify(document, null, 2)}\n`);
  if (!complete) return;
  const text = readFileSync(README, "utf8");
  const [before, after] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (before === -1 || after === -1) throw new Error(`${README} has lost the marks around its results`);
  const section = `${BEGIN}\n\n${machineText(machine, at, rounds)}\n\n${summaryTable(results)}\n`;
  writeFileSync(README, `${text.slice(0, before)}${section}${text.slice(after)}`);
}

function machineText(machine: Machine, at: string, rounds: number): string {
  const { cpu, cores, memoryGiB, kernel, node, openssl, versions } = machine;
  const list = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return (
    `Measured ${at.slice(0, 10)}, ${rounds} rounds, on ${cores} cores of ${cpu}, ${memoryGiB} GiB, Linux ${kernel}, ` +
    `Node ${node} with OpenSSL ${openssl}. Versions: ${list.join(", ")}.`
  );
}
