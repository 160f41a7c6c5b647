import { accepting } from "../../model/text/textRule.js";
import { HEADER_VALUE } from "../../model/schema/fields.js";
import { type Problem, problem, type ProxyConfig } from "../../model/serving.js";
import type { FindCredential } from "./credentials.js";
import { readSecret } from "./files.js";

/** Values of request fields that are secrets, as their files are now. */
export interface FieldValues {
  /** The values by the path that the config names. They are never logged, and never part of a message. */
  readonly values: Readonly<Record<string, string>>;
  readonly problems: readonly Problem[];
  /** Warnings, with which the service still runs. */
  readonly warnings: readonly Problem[];
}

/** Reads the files that routes take fields from; each once. */
export async function loadFieldValues(config: ProxyConfig, find: FindCredential): Promise<FieldValues> {
  const values: Record<string, string> = {};
  const problems: Problem[] = [];
  const warnings: Problem[] = [];
  for (const [named, field] of fieldFiles(config)) {
    const read = await readSecret(named, field, find);
    problems.push(...read.problems);
    warnings.push(...read.warnings);
    if (read.text === undefined) continue;
    // Editors and `echo` end a line.
    const value = read.text.replace(/\r?\n$/, "");
    if (value === "" || !isValue(value)) {
      const more = {
        allowed: "one line of visible ASCII",
        fix: "Write only the value into the file, on one line.",
      };
      problems.push(problem("config.bad-header", read.label, "does not contain a valid field value", more));
    }
    values[named] = value;
  }
  return { values, problems, warnings };
}

const isValue = accepting(HEADER_VALUE);

/** The files, each with the field that first names it. */
function fieldFiles({ virtualServers }: ProxyConfig): Map<string, string> {
  const files = new Map<string, string>();
  virtualServers.forEach(({ routes }, s) =>
    routes.forEach(({ action }, r) => {
      if (action.type !== "proxy") return;
      for (const [name, file] of Object.entries(action.setHeadersFromCredential)) {
        const field = `virtualServers[${s}].routes[${r}].action.setHeadersFromCredential.${name}`;
        if (!files.has(file)) files.set(file, field);
      }
    }),
  );
  return files;
}
