import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { formatProblem, ProblemError } from "../../src/index.js";
import { LEAKS, MISTAKES, OTHER_LIBRARY, site, type Site } from "./mistakes.js";
import { synthesize } from "../../proof/kit/stacks.js";

/** What is said about a mistake, when it is made or when the app is synthesized. */
function said(make: (s: Site) => unknown): string {
  const s = site();
  try {
    make(s);
    synthesize(s.stack);
  } catch (error) {
    if (error instanceof ProblemError) return error.problems.map(formatProblem).join("\n");
    // Validations reach the user as one error of cdktf.
    const [, said] = /^Validation failed[^]*?:\n([^]*?)\n+If you wish/.exec((error as Error).message) ?? [];
    if (said !== undefined) return said;
    throw error;
  }
  throw new Error("nothing was said");
}

/** On the fork the two libraries change their parts. */
const asOnCdktf = (text: string): string =>
  OTHER_LIBRARY === "cdktn"
    ? text
    : text
        .replace("a stack of cdktf ", "a stack of cdktn ")
        .replace('received: "cdktf"', 'received: "cdktn"')
        .replace("constructs of cdktn\n", "constructs of cdktf\n");

/**
 * What is said about each mistake: where and what, with the code, then what was received, what is allowed and the fix, and
 * without the link that every code has; `UPDATE_GOLDEN=1` writes it anew.
 */
const GOLDEN = join(__dirname, "golden", "mistakes.txt");
const golden = new Map(
  readFileSync(GOLDEN, "utf8")
    .split(/^# /m)
    .slice(1)
    .map((part): [string, string] => [part.slice(0, part.indexOf("\n")), part.slice(part.indexOf("\n") + 1)]),
);
const UPDATE = process.env.UPDATE_GOLDEN === "1";
afterAll(() => {
  if (UPDATE) writeFileSync(GOLDEN, MISTAKES.map(([what]) => `# ${what}\n${golden.get(what)}`).join(""));
});

const LINK = /\n +see: +cdktf-portico\/docs\/errors\.md#(\S+)/g;

describe("a mistake is reported with construct path, prop, what is wrong and the fix", () => {
  test("the golden has these, and no others", () => {
    if (!UPDATE) expect([...golden.keys()]).toEqual(MISTAKES.map(([what]) => what));
  });

  test.each(MISTAKES)("%s", (what, make) => {
    // Wherever the project is.
    const text = asOnCdktf(said(make).replaceAll(__dirname, "/project/__tests__/constructs"));
    const links = [...text.matchAll(LINK)].map(([, anchor]) => anchor);
    expect(links).toEqual(
      [...text.matchAll(/ \[([a-z]+)\.([a-z0-9-]+)\]$/gm)].map(([, area, rest]) => `${area}${rest}`),
    );
    const kept = `${text.replaceAll(LINK, "").replaceAll(/(?<! \[[a-z0-9.-]+\])\n +(allowed|fix): +/g, " | $1: ")}\n`;
    if (UPDATE) golden.set(what, kept);
    expect(kept).toBe(golden.get(what));
    // Numbers are those of a config that nobody wrote.
    expect(text).not.toMatch(/\b(?:listeners|upstreams|virtualServers|routes)\[\d+\]\.(?!allowed)/);
    expect(text).not.toMatch(LEAKS);
  });
});
