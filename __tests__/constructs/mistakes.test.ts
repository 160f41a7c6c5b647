import { formatProblem, ProblemError } from "../../src/index.js";
import { EXAMPLES_OTHERWISE, LEAKS, type Mistake, MISTAKES, site, type Site } from "./mistakes.js";
import { expectGolden } from "../render/golden.js";
import { SHOWN, wordsOf } from "../../testkit/sayings.js";
import { synthesize } from "../../testkit/stacks.js";

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

/** Between two problems: what belongs to a problem is indented. */
const NEXT_PROBLEM = /\n(?! {4})/;
const LINK = /\n +see: +cdktf-portico\/docs\/errors\.md#(\S+)/g;

/** Titles with their codes, allowed values and fixes that examples of `docs/errors.md` have. */
const SHOWN_TITLES = new Set(SHOWN.flatMap((text) => text.match(/(?<=: )[^:\n].* \[\S+\]$/gm) ?? []));
const SHOWN_ADVICE = new Set(SHOWN.flatMap((text) => text.match(/^ +(?:allowed|fix): .*$/gm) ?? []));

/** A problem without the words that `docs/errors.md` has. */
const withoutShown = (problem: string): string =>
  problem
    .split("\n")
    .filter((line) => !SHOWN_ADVICE.has(line))
    .map((line) => {
      const [, place, title] = /^(\S+?(?: \(\S+\))?: )(.*)$/.exec(line) ?? [];
      return title !== undefined && SHOWN_TITLES.has(title)
        ? place! + title.replace(/^.*(?= \[)/, "as shown")
        : line;
    })
    .join("\n");

/**
 * What is said about each mistake: where and what, with the code, and what was received; then what is allowed and the fix,
 * where they were not said before. `UPDATE_GOLDEN=1` writes it anew.
 */
test("a mistake is reported with construct path, prop, what is wrong and the fix", () => {
  const before = new Set<string>();
  const lines = MISTAKES.flatMap(([what, make]) => {
    // Wherever the project is.
    const text = said(make).replaceAll(__dirname, "/project/__tests__/constructs");
    const links = [...text.matchAll(LINK)].map(([, anchor]) => anchor);
    const codes = [...text.matchAll(/ \[([a-z]+)\.([a-z0-9-]+)\]$/gm)];
    expect({ what, links }).toEqual({ what, links: codes.map(([, area, rest]) => `${area}${rest}`) });
    // Numbers are those of a config that nobody wrote.
    expect(text).not.toMatch(/\b(?:listeners|upstreams|virtualServers|routes)\[\d+\]\.(?!allowed)/);
    expect(text).not.toMatch(LEAKS);
    const problems = withoutShown(text).replaceAll(LINK, "");
    const flat = problems.replaceAll(/\n +(received|allowed|fix): +/g, " | $1: ");
    return flat.split("\n").flatMap((problem) => {
      const [first, advice] = /^(.*?)((?: \| allowed: .*)? \| fix: .*)$/.exec(problem)?.slice(1) ?? [
        problem,
        "",
      ];
      const line = `${what} -> ${first}`;
      if (advice === "" || before.has(advice!)) return [line];
      before.add(advice!);
      return [line, `   ${advice}`];
    });
  });
  expectGolden("mistakes.txt", `${lines.join("\n")}\n`);
});

/** The prop, what is said of it and the fix; a name, a number or a place in the first line is that of one site. */
function kindOf(problem: string): string {
  const [, at = ""] = /^(\S+?)(?: \(\S+\))?: /.exec(problem) ?? [];
  const [prop] = /\w*$/.exec(
    at.replace(/^(?:.*\/[^.]*|\w+\[\d+\])(?=\.|$)/, "").replace(/(?:\[\d+\])+$/, ""),
  )!;
  const [title, ...advice] = wordsOf(problem).split(/ \| (?:allowed: .*? \| (?=fix))?/);
  const place =
    /\b(?:stack\/|(?:listeners|upstreams|virtualServers|routes)\[)\S+|\(\w+\) has|(?<= on )https?\b|\b\d[\d.:]*/g;
  return [prop, title!.replaceAll(place, "…"), ...advice].join(" | ");
}

/** Those of which nothing is said that no example says of the same prop. */
function repetitions(mistakes: readonly Mistake[]): string[] {
  const shown = new Set(SHOWN.map(kindOf));
  const problemsOf = ([, make]: Mistake): string[] =>
    said(make)
      .split(NEXT_PROBLEM)
      .map((text) => text.replace(/^ +\[\S+\] /, ""));
  return mistakes
    .filter((one) => problemsOf(one).every((text) => shown.has(kindOf(text))))
    .map(([what]) => what);
}

test("a mistake is stored once: as an example of docs/errors.md, or as a row here", () => {
  expect(repetitions(MISTAKES)).toEqual([]);
  expect(repetitions(EXAMPLES_OTHERWISE)).toEqual(EXAMPLES_OTHERWISE.map(([what]) => what));
});
