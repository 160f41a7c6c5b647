import { type Problem, problem, type SettingsFile } from "../../model/index.js";
import { isText, readLines } from "./iniFile.js";
import { type Kind, KIND_NAMES, kindOf } from "./kinds.js";

/**
 * Refuses a file that is evidently of another kind: an editor would add lines to it that its reader takes for something
 * else, or for an error. No reader of INI files accepts a first line outside of a section, and no other file has a reason
 * to begin with one.
 *
 * @param path for messages
 */
export function kindProblem(text: string, path: string, { name, kind }: SettingsFile): Problem | undefined {
  const [seen, how] = kindByName(path) ?? kindByText(text, kind) ?? [kind];
  if (seen === kind) return undefined;
  const { words } = kindOf(kind);
  const fix = `Use the path of ${words} for \`${name}\`, or list the file with \`kind: "${seen}"\`.`;
  const message = `is listed as ${words}, but ${how}, as ${kindOf(seen).words} does`;
  return problem("settings.wrong-kind", path, message, { fix });
}

function kindByName(path: string): [Kind, string] | undefined {
  const ends = KIND_NAMES.find((one) => path.endsWith(kindOf(one).suffix));
  return ends && [ends, `has a name that ends in ${kindOf(ends).suffix}`];
}

/** A line of variables; the second is nothing that Python could read: an empty value, a path, a URL. */
const VARIABLE = /^(?:export[ \t]+)?\w+=(?:\S|$)/;
const NO_PYTHON = /^export\s|^\w+=(?:\s*$|\/|\w+:\/)/;
/** How modules begin, and no line of variables does. */
const PYTHON = /^(?:(?:import|from|def|class|if|try|with)\b|[@"'])|^\w+[ \t]+=/;

function kindByText(text: string, kind: Kind): [Kind, string] | undefined {
  const lines = readLines(text).filter(isText);
  const [first] = lines;
  if (first === undefined) return undefined;
  if (first.kind === "header" && first.rest === "") return ["ini", "begins with a section"];
  const contents = lines.map(({ from, to }) => text.slice(from, to).trim());
  switch (kind) {
    case "ini":
      return [VARIABLE.test(contents[0]!) ? "env" : "python", "begins outside of a section"];
    case "python": {
      const isEnv =
        contents.every((one) => VARIABLE.test(one)) && contents.some((one) => NO_PYTHON.test(one));
      return isEnv ? ["env", "has values that are not expressions"] : undefined;
    }
    case "env":
      return PYTHON.test(contents[0]!) ? ["python", "begins with a statement"] : undefined;
  }
}
