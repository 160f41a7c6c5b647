import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { formatProblem, type Problem } from "../src/model/index.js";

/** Goldens of what is said. */
export const SAID = join(__dirname, "../__tests__/render/golden/said");

const PAGE = readFileSync(join(__dirname, "../docs/errors.md"), "utf8");
/** The examples of `docs/errors.md`, which `errors.test.ts` makes. */
export const SHOWN: readonly string[] = [...PAGE.matchAll(/^```text\n([^]*?)\n```$/gm)].map(
  ([, text]) => text!,
);

/** What is said, on one line without its place and what was received. */
export const wordsOf = (text: string): string =>
  text
    .replace(/^\S+(?: \(\S+\))?: /, "")
    .replace(/\n +received: .*/, "")
    .replace(/\n +see: .*$/, "")
    .replaceAll(/\n +(allowed|fix): +/g, " | $1: ");

/**
 * For tests that name codes and places only: what is said there has to be in the golden of this name, each text once,
 * without its place and what was received, or to be an example of `docs/errors.md`. `UPDATE_GOLDEN=1` writes the golden
 * anew.
 *
 * @returns a function that compares, and returns what it gets
 */
export function sayings(name: string): <T extends Problem | string>(said: readonly T[]) => readonly T[] {
  const file = join(SAID, `${name}.txt`);
  const update = process.env.UPDATE_GOLDEN === "1";
  const shown = new Set(SHOWN.map(wordsOf));
  const known = new Set(update ? [] : readFileSync(file, "utf8").split("\n"));
  if (update)
    afterAll(() => {
      mkdirSync(SAID, { recursive: true });
      writeFileSync(file, `${[...known].sort().join("\n")}\n`);
    });
  return (said) => {
    const lines = said
      .map((one) => (typeof one === "string" ? one : wordsOf(formatProblem({ ...one, path: "at" }))))
      .filter((line) => !shown.has(line));
    if (update) for (const line of lines) known.add(line);
    expect(lines.filter((line) => !known.has(line))).toEqual([]);
    return said;
  };
}
