import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { formatProblem, ProblemError } from "../../src/index.js";
import { MISTAKES, OTHER_LIBRARY, site, type Site } from "./mistakes.js";
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
    if ((error as Error).message.startsWith("Validation failed")) return (error as Error).message;
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

/** What is said about each mistake, word for word, by what was done; `UPDATE_GOLDEN=1` writes it anew. */
const GOLDEN = join(__dirname, "golden", "mistakes.txt");
const golden = new Map(
  readFileSync(GOLDEN, "utf8")
    .split(/^# /m)
    .slice(1)
    .map((part): [string, string] => [part.slice(0, part.indexOf("\n")), part.slice(part.indexOf("\n") + 1)]),
);
afterAll(() => {
  if (process.env.UPDATE_GOLDEN !== "1") return;
  writeFileSync(GOLDEN, MISTAKES.map(([what]) => `# ${what}\n${golden.get(what)}`).join(""));
});

describe("a mistake is reported with construct path, prop, what was received, what is allowed and the fix", () => {
  test("there are enough of them, each by a name of its own", () => {
    expect(MISTAKES.length).toBeGreaterThanOrEqual(150);
    expect([...golden.keys()]).toEqual(MISTAKES.map(([what]) => what));
  });

  test.each(MISTAKES)("%s", (what, make, code, path) => {
    // Wherever the project is.
    const text = asOnCdktf(said(make).replaceAll(__dirname, "/project/__tests__/constructs"));
    if (process.env.UPDATE_GOLDEN === "1") golden.set(what, `${text}\n`);
    expect(`${text}\n`).toBe(golden.get(what));
    const lines = text.split("\n");
    const first = lines.findIndex((line) => line.includes(`${path}: `) && line.endsWith(`[${code}]`));
    expect(first === -1 ? text : lines[first]).toMatch(`${path}: `);
    const rest = lines.slice(first + 1).map((line) => line.trim());
    const end = rest.findIndex((line) => line.startsWith("fix: "));
    expect(end).not.toBe(-1);
    // A thing that is missing was not received, and a message that says what the thing is needs no list of others.
    expect(rest.slice(0, end + 1).join("\n")).toMatch(/^(?:received|allowed): /m);
    // Numbers are those of a config that nobody wrote.
    expect(text).not.toMatch(/\b(?:listeners|upstreams|virtualServers|routes)\[\d+\]\.(?!allowed)/);
    expect(text).not.toMatch(/TypeError|undefined \(|\[object /);
  });
});
