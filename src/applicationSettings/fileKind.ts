import { type Problem, problem, type SettingsFile } from "../model/index.js";
import { isText, readLines } from "./iniFile.js";

type Kind = SettingsFile["kind"];

const KINDS: Readonly<Record<Kind, string>> = { ini: "an INI file", python: "a Python module" };

/**
 * Refuses a file that is evidently of the other kind: an editor would add lines to it that its reader takes for something
 * else, or for an error. No reader of INI files accepts a first line outside of a section, and no module has a reason to
 * begin with a list.
 *
 * @param path for messages
 */
export function kindProblem(text: string, path: string, { name, kind }: SettingsFile): Problem | undefined {
  const [seen, how] = kindByName(path) ?? kindByText(text) ?? [kind];
  if (seen === kind) return undefined;
  const fix = `Give the path of ${KINDS[kind]} for \`${name}\`, or list the file with \`kind: "${seen}"\`.`;
  const message = `is listed as ${KINDS[kind]}, and ${how}, as ${KINDS[seen]} does`;
  return problem("settings.wrong-kind", path, message, { fix });
}

function kindByName(path: string): [Kind, string] | undefined {
  const ends = (["py", "ini"] as const).find((one) => path.endsWith(`.${one}`));
  return ends && [ends === "py" ? "python" : "ini", `has a name that ends in .${ends}`];
}

function kindByText(text: string): [Kind, string] | undefined {
  const first = readLines(text).find(isText);
  if (first === undefined) return undefined;
  const isHeader = first.kind === "header" && first.rest === "";
  return isHeader ? ["ini", "begins with a section"] : ["python", "begins outside of a section"];
}
