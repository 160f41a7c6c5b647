import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { anchor } from "../build/docs/anchor.js";
import { CHECK_ERRORS } from "../build/docs/errors/checkErrors.js";
import { CONFIG_ERRORS } from "../build/docs/errors/configErrors.js";
import type { ErrorEntry } from "../build/docs/errors/entry.js";
import { HOST_ERRORS } from "../build/docs/errors/hostErrors.js";
import { STACK_ERRORS } from "../build/docs/errors/stackErrors.js";
import { formatProblem, PROBLEM_CODES, problem, type ProblemCode } from "../src/model/index.js";
import { SAID, SHOWN, wordsOf } from "../testkit/sayings.js";

/** The examples of `docs/errors.md` are the mistakes, and the page is what is said of each. */

const PAGE = readFileSync(join(__dirname, "../docs/errors.md"), "utf8");
const sections = new Map(PAGE.split("\n### `").map((text) => [text.slice(0, text.indexOf("`")), text]));
const ENTRIES: Readonly<Record<ProblemCode, ErrorEntry>> = {
  ...{ ...CONFIG_ERRORS, ...STACK_ERRORS },
  ...{ ...CHECK_ERRORS, ...HOST_ERRORS },
};

test.each(Object.entries(ENTRIES))("%s", async (code, { example }) => {
  const found = await example();
  expect(found.code).toBe(code);
  expect(sections.get(code)).toContain(`\`\`\`text\n${formatProblem(found)}\n\`\`\``);
});

test("the page explains exactly the codes that exist, where `see:` leads", () => {
  const documented = [...sections.keys()].slice(1);
  expect(documented).toEqual(Object.keys(PROBLEM_CODES));
  const leads = (Object.keys(PROBLEM_CODES) as ProblemCode[]).map(
    (code) => /see: +cdktf-portico\/docs\/errors\.md#(\S+)$/.exec(formatProblem(problem(code, "", "")))?.[1],
  );
  expect(leads).toEqual(documented.map((code) => anchor(`\`${code}\``)));
});

test("no golden of what is said repeats an example", () => {
  expect(SHOWN.length).toBeGreaterThanOrEqual(Object.keys(ENTRIES).length);
  const shown = new Set(SHOWN.map(wordsOf));
  const stored = readdirSync(SAID).flatMap((name) => readFileSync(join(SAID, name), "utf8").split("\n"));
  expect(stored.filter((line) => shown.has(line))).toEqual([]);
});
