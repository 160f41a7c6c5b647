import path from "node:path";
import { pathToFileURL } from "node:url";
import { type FindingLevel, type ReviewFinding, FINDINGS } from "../model/review/findings.js";
import type { SecurityFinding } from "../model/review/security.js";
import { SECURITY_FINDINGS } from "../model/review/securityFindings.js";
import { type Problem, PROBLEM_CODES } from "../model/serving.js";
import { VERSION } from "../model/text/version.js";
import { STANDARD_INPUT } from "../runtime/load/files.js";

/** Findings as SARIF 2.1.0 (OASIS), which code hosts show beside the lines that they are about. */

interface Text {
  readonly file: string;
  readonly text: string;
}

/** The log of differences between two configs. */
export function sarifOfFindings(
  findings: readonly ReviewFinding[],
  texts: Readonly<Record<ReviewFinding["document"], Text>>,
): object {
  const ids = Object.keys(FINDINGS);
  const rules = rulesOf(FINDINGS);
  const lines = { new: linesOfJson(texts.new.text), old: linesOfJson(texts.old.text) };
  const results = findings.map(({ id, level, place, document, message, old, new: now, ways }) => ({
    ruleId: id,
    ruleIndex: ids.indexOf(id),
    level,
    message: { text: [`${message}.`, ...said("Old", old), ...said("New", now)].join(" ") },
    locations: [location(texts[document].file, place, lines[document](place))],
    properties: {
      document,
      old,
      new: now,
      ways: ways ?? [],
    },
  }));
  return sarif(rules, results);
}

/** The log of a security review; what is accepted is suppressed, with its reason (SARIF 2.1.0, 3.27.23). */
export function sarifOfReview(findings: readonly SecurityFinding[], { file, text }: Text): object {
  const ids = Object.keys(SECURITY_FINDINGS);
  const lines = linesOfJson(text);
  const results = findings.map(({ id, level, place, message, fix, value, accepted }) => ({
    ruleId: id,
    ruleIndex: ids.indexOf(id),
    level,
    message: { text: [`${message}.`, ...said("Here", value), fix].join(" ") },
    locations: [location(file, place, lines(place))],
    ...(accepted === undefined ? {} : { suppressions: [{ kind: "external", justification: accepted }] }),
  }));
  return sarif(rulesOf(SECURITY_FINDINGS), results);
}

const rulesOf = (
  table: Readonly<Record<string, readonly [FindingLevel, string, ...string[]]>>,
): readonly object[] =>
  Object.entries(table).map(([id, [level, text]]) => ({
    id,
    shortDescription: { text },
    defaultConfiguration: { level },
  }));

/** The log of a config that is refused. */
export function sarifOfProblems(problems: readonly Problem[], file: string): object {
  const ids = [...new Set(problems.map(({ code }) => code))];
  const rules = ids.map((id) => ({ id, shortDescription: { text: PROBLEM_CODES[id] } }));
  const results = problems.map(({ code, path: place, message, fix }) => ({
    ruleId: code,
    ruleIndex: ids.indexOf(code),
    level: "error",
    message: { text: `${message}. ${fix}` },
    locations: [location(file, place, 1)],
  }));
  return sarif(rules, results);
}

const said = (label: string, text: string | undefined): string[] =>
  text === undefined ? [] : [`${label}: ${text}.`];

function location(file: string, place: string, startLine: number): object {
  const uri = path.isAbsolute(file) ? pathToFileURL(file).href : encodeURI(file.split(path.sep).join("/"));
  return {
    // Standard input has no location that could be shown.
    ...(file === STANDARD_INPUT
      ? {}
      : { physicalLocation: { artifactLocation: { uri }, region: { startLine } } }),
    logicalLocations: [{ fullyQualifiedName: place, kind: "member" }],
  };
}

function sarif(rules: readonly object[], results: readonly object[]): object {
  return {
    $schema: "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
    version: "2.1.0",
    runs: [{ tool: { driver: { name: "portico", version: VERSION, rules } }, results }],
  };
}

/**
 * Lines of a JSON document, which is valid: a function that gives the line of a path such as `listeners[0].port`,
 * counted from 1. For a missing field, it is the line of the object that would contain it.
 */
export function linesOfJson(text: string): (place: string) => number {
  const lines = new Map<string, number>();
  const open: { readonly path: string; readonly isList: boolean; key: string; next: number }[] = [];
  let line = 1;
  let isKey = false;
  for (const [token] of text.matchAll(TOKEN)) {
    const inner = open.at(-1);
    if (token === "\n") line++;
    else if (token === "}" || token === "]") open.pop();
    else if (token === ",") isKey = inner?.isList === false;
    else if (isKey && token.startsWith('"')) {
      inner!.key = JSON.parse(token) as string;
      isKey = false;
    } else if (token !== ":") {
      const at =
        inner === undefined
          ? ""
          : inner.isList
            ? `${inner.path}[${inner.next++}]`
            : dotted(inner.path, inner.key);
      if (!lines.has(at)) lines.set(at, line);
      isKey = token === "{";
      if (token === "{" || token === "[") open.push({ path: at, isList: token === "[", key: "", next: 0 });
    }
  }
  return (place) => {
    for (let at = place; at !== ""; at = at.slice(0, Math.max(at.lastIndexOf("."), at.lastIndexOf("["), 0))) {
      const found = lines.get(at);
      if (found !== undefined) return found;
    }
    return 1;
  };
}

const dotted = (path: string, key: string): string => (path === "" ? key : `${path}.${key}`);

/** A text, a line's end, punctuation, or a number or word. */
const TOKEN = /"(?:[^"\\]|\\.)*"|\n|[{}[\]:,]|[^\s{}[\]:,"]+/g;
