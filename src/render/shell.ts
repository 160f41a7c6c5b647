import { formatProblem, type Problem } from "../model/text/problem.js";

/**
 * Parts of shell scripts. Terraform takes `${` and `%{` in a script for its own, so no script contains them: `$1` and
 * `$(basename "$1")` stand where a shell would allow more.
 */

/** The text as a word for the shell. */
export function quote(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Place of a word of the shell in the texts of a problem; see {@link refusal}. */
export const WORD = "%s";

/**
 * Commands that end a script with a problem.
 * @param words words of the shell, for each {@link WORD} in the texts of the problem
 */
export function refusal(found: Problem, ...words: string[]): string {
  return `{ printf ${[quote(`${formatProblem(found)}\\n`), ...words].join(" ")} >&2; exit 1; }`;
}

/** A text that is part of a problem for {@link refusal}. */
export const literal = (text: string): string => text.replaceAll("%", "%%").replaceAll("\\", "\\\\");

export function heredoc(script: string): string {
  return `/bin/sh -eu <<'PORTICO'\n${script}PORTICO`;
}

export function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}
