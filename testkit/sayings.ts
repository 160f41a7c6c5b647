import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { formatProblem, type Problem } from "../src/model/index.js";

const FOLDER = join(__dirname, "../__tests__/render/golden/said");

/**
 * For tests that name codes and places only: what is said there has to be in the golden of this name, each text once, without
 * its place and what was received. `UPDATE_GOLDEN=1` writes it anew.
 *
 * @returns a function that compares, and returns what it gets
 */
export function sayings(name: string): <T extends Problem | string>(said: readonly T[]) => readonly T[] {
  const file = join(FOLDER, `${name}.txt`);
  const update = process.env.UPDATE_GOLDEN === "1";
  const known = new Set(update ? [] : readFileSync(file, "utf8").split("\n"));
  if (update)
    afterAll(() => {
      mkdirSync(FOLDER, { recursive: true });
      writeFileSync(file, `${[...known].sort().join("\n")}\n`);
    });
  return (said) => {
    const lines = said.map((one) => (typeof one === "string" ? one : lineOf(one)));
    if (update) for (const line of lines) known.add(line);
    expect(lines.filter((line) => !known.has(line))).toEqual([]);
    return said;
  };
}

const lineOf = (problem: Problem): string =>
  formatProblem({ ...problem, path: "", received: undefined })
    .replace(/\n +see: .*$/, "")
    .replaceAll(/\n +(allowed|fix): +/g, " | $1: ");
