import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/**
 * Compares a text with a golden file beside this one; `UPDATE_GOLDEN=1` writes the file instead.
 *
 * @param like a text that has a golden: then this one's is the difference
 */
export function expectGolden(name: string, whole: string, like?: string): void {
  const text = like === undefined ? whole : `${difference(like.split("\n"), whole.split("\n")).join("\n")}\n`;
  const path = join(__dirname, "golden", name);
  if (process.env.UPDATE_GOLDEN === "1") {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  expect(text).toBe(readFileSync(path, "utf8"));
}

/** What fits stands on one line. */
export function folded(lines: readonly string[]): string[] {
  const out: string[] = [];
  for (const line of lines) {
    out.push(line);
    const indent = /^( *)[}\]],?$/.exec(line)?.[1];
    if (indent === undefined) continue;
    const from = out.findLastIndex((one) => /[{[]$/.test(one) && one.search(/\S/) === indent.length);
    const joined = `${out[from]} ${out
      .slice(from + 1)
      .map((one) => one.trim())
      .join(" ")}`;
    if (joined.length <= 200) out.splice(from, out.length, joined);
  }
  return out;
}

/** Lines that one has and the other has not, in order. */
export function difference(from: readonly string[], to: readonly string[]): string[] {
  const common = from.map(() => to.map(() => 0));
  const at = (i: number, j: number): number => common[i]?.[j] ?? 0;
  for (let i = from.length - 1; i >= 0; i--)
    for (let j = to.length - 1; j >= 0; j--)
      common[i]![j] = from[i] === to[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  const found: string[] = [];
  for (let i = 0, j = 0; i < from.length || j < to.length;)
    if (i < from.length && from[i] === to[j]) {
      i++;
      j++;
    } else if (j === to.length || (i < from.length && at(i + 1, j) >= at(i, j + 1)))
      found.push(`- ${from[i++]}`);
    else found.push(`+ ${to[j++]}`);
  return found;
}
