import { readEnv } from "./envLines.js";
import { type PythonLine, readPython } from "./pythonLines.js";
import { lineNumbers, splitLines } from "./textEdit.js";

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
