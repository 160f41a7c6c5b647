import { type Problem, problem, type SettingsFile, type StoredItem } from "../../model/index.js";
import type { ItemChange, Reverted, SettingsEdit } from "./edit.js";
import { editEnv, revertEnv } from "./envFile.js";
import { editIni, isText, readLines, revertIni } from "./iniFile.js";
import { revertPython } from "./pythonBlock.js";
import { editPython } from "./pythonFile.js";
import { readEnv } from "./envLines.js";
import { type PythonLine, readPython } from "./pythonLines.js";
import { lineNumbers, splitLines } from "./textEdit.js";

/** The functions for one kind of settings file. */
interface SettingsKind<F extends SettingsFile> {
  /** In messages. */
  readonly words: string;
  /** How the names of such files end, and of no other kind. */
  readonly suffix: string;
  /**
   * Plans the changes.
   *
   * @param elsewhere values of names that other files set for the application
   */
  edit(
    text: string,
    items: F["items"],
    path: string,
    elsewhere: ReadonlyMap<string, StoredItem>,
  ): SettingsEdit;
  /** Undoes a change. */
  revert(text: string, change: ItemChange): Reverted;
  /** Numbers of the lines that may contain a secret. */
  secretLines(text: string): ReadonlySet<number>;
}

const KINDS: { readonly [F in SettingsFile as F["kind"]]: SettingsKind<F> } = {
  ini: {
    words: "an INI file",
    suffix: ".ini",
    edit: editIni,
    revert: revertIni,
    secretLines: secretIniLines,
  },
  python: {
    words: "a Python module",
    suffix: ".py",
    edit: editPython,
    revert: revertPython,
    secretLines: secretPythonLines,
  },
  env: {
    words: "a file of environment variables",
    suffix: ".env",
    edit: editEnv,
    revert: revertEnv,
    secretLines: secretEnvLines,
  },
};

export type SettingsFileKind = SettingsFile["kind"];
export const KIND_NAMES = Object.keys(KINDS) as readonly SettingsFileKind[];
export const kindOf = (kind: SettingsFileKind): SettingsKind<SettingsFile> => KINDS[kind];

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

function kindByName(path: string): [SettingsFileKind, string] | undefined {
  const ends = KIND_NAMES.find((one) => path.endsWith(kindOf(one).suffix));
  return ends && [ends, `has a name that ends in ${kindOf(ends).suffix}`];
}

/** A line of variables; the second is nothing that Python could read: an empty value, a path, a URL. */
const VARIABLE = /^(?:export[ \t]+)?\w+=(?:\S|$)/;
const NO_PYTHON = /^export\s|^\w+=(?:\s*$|\/|\w+:\/)/;
/** How modules begin, and no line of variables does. */
const PYTHON = /^(?:(?:import|from|def|class|if|try|with)\b|[@"'])|^\w+[ \t]+=/;

function kindByText(text: string, kind: SettingsFileKind): [SettingsFileKind, string] | undefined {
  const lines = readLines(text).filter(isText);
  const [first] = lines;
  if (first === undefined) return undefined;
  if (first.kind === "header" && first.rest === "") return ["ini", "begins with a section"];
  const contents = lines.map(({ from, to }) => text.slice(from, to).trim());
  switch (kind) {
    case "ini":
      return [VARIABLE.test(contents[0]!) ? "env" : "python", "begins outside a section"];
    case "python": {
      const isEnv =
        contents.every((one) => VARIABLE.test(one)) && contents.some((one) => NO_PYTHON.test(one));
      return isEnv ? ["env", "has values that are not expressions"] : undefined;
    }
    case "env":
      return PYTHON.test(contents[0]!) ? ["python", "begins with a statement"] : undefined;
  }
}

/** Words that hint at a secret in or next to them, and a password in a URL. */
const SECRET =
  /secret|passw|passphrase|_pass\b|_pwd\b|token|private|credential|salt|dsn|key\b|:\/\/[^\s/@:]*:[^\s/@]*@/i;

/** A secret shorter than this would hide half of the file. */
const SECRET_LENGTH_MIN = 4;

/** More keys than anybody has one after the other: then every line is hidden, as looking for each in each takes long. */
const SECRETS_MAX = 100;

/**
 * Numbers of the lines of a Python module that may contain a secret: every statement or comment that mentions one, and
 * every line that repeats the secret key.
 */
export function secretPythonLines(text: string): ReadonlySet<number> {
  const read = readPython(text);
  if ("fault" in read) return everyLine(text);
  const naming = read.lines.filter((line) => SECRET.test(text.slice(line.from, line.to)));
  const keys = read.lines.filter(({ code }) => /^SECRET_KEY ?[:=](?!=)/.test(code));
  const texts = keys.flatMap(({ source }) =>
    [...source.matchAll(/("""|'''|["'])([^]*?)\1/g)].map((m) => m[2]!),
  );
  const secrets = [...new Set(texts)].filter((secret) => secret.length >= SECRET_LENGTH_MIN);
  if (secrets.length > SECRETS_MAX) return everyLine(text);
  const matching = splitLines(text).flatMap((line, i) =>
    SECRET.test(line) || secrets.some((secret) => line.includes(secret)) ? [i + 1] : [],
  );
  const lineAt = lineNumbers(text);
  return new Set([...naming.flatMap((line) => numbers(text, line, lineAt)), ...matching]);
}

function everyLine(text: string): ReadonlySet<number> {
  return new Set(splitLines(text).map((_, i) => i + 1));
}

/** The same for an ini file: such a key with the indented lines below it, and comments. */
export function secretIniLines(text: string): ReadonlySet<number> {
  const hidden = new Set<number>();
  for (const [i, line] of splitLines(text).entries()) {
    if (SECRET.test(line) || (/^[ \t]+\S/.test(line) && hidden.has(i))) hidden.add(i + 1);
  }
  return hidden;
}

/** The same for a file of environment variables: all lines that any reader takes for a value. */
export function secretEnvLines(text: string): ReadonlySet<number> {
  const lineAt = lineNumbers(text);
  const { starts, end } = readEnv(text);
  const hidden = new Set<number>();
  for (const own of starts) {
    for (const [i, from] of own.entries()) {
      const to = own[i + 1] ?? end;
      if (!SECRET.test(text.slice(from, to))) continue;
      for (let line = lineAt(from); line <= lineAt(Math.max(from, to - 1)); line++) hidden.add(line);
    }
  }
  return hidden;
}

function numbers(text: string, { from, to }: PythonLine, lineAt: (at: number) => number): number[] {
  const first = lineAt(from);
  // A comment may follow the last token on a separate line, after a backslash; the line end is not part of the comment.
  const ended = text.startsWith("\r\n", to - 2) ? 2 : /[\r\n]/.test(text.charAt(to - 1)) ? 1 : 0;
  const last = lineAt(to - ended);
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}
