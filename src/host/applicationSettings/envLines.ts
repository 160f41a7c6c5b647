import { isUnended } from "./textEdit.js";

/**
 * Files of environment variables have several readers, which differ in what a quote, a backslash and a comment do. None
 * of them is the reference, so a place in such a file is known only where all of them agree about it.
 */

const END = String.raw`(?:\n|$)`;
const LINE = String.raw`[^\n]*${END}`;
const QUOTED = String.raw`"(?:\\[^]|[^"\\])*"`;
/** Up to a line end without a backslash before it. */
const CONTINUED = String.raw`(?:\\(?:[^]|$)|[^\n\\])*${END}`;

/** `name` and `value` begin behind blanks that are skipped. */
const statement = (comment: string, name: string, value: string): RegExp =>
  new RegExp(String.raw`[^\S\n]*(?:${comment}|((?!\s)${name}+)?(?:${END}|${value}))`, "y");

const systemd = (comment: string): RegExp => {
  const quoted = String.raw`(?:${QUOTED}|'[^']*')[ \t]*`;
  return statement(`[#;]${comment}`, String.raw`[^=\n]`, `=[ \\t]*(?:${quoted})*(?![ \\t"'])${CONTINUED}`);
};

/** Patterns of a statement, as each reader delimits it; the group is the name. */
const READERS: readonly RegExp[] = [
  // Docker Compose: a value in quotes may have several lines, and text after it is another statement.
  statement(
    `#${LINE}`,
    String.raw`[^=:\n]`,
    String.raw`[=:][^\S\n]*(?:${QUOTED}|'(?:\\[^]|[^'\\])*'|(?![^\S\n]|["'])${LINE})`,
  ),
  // `docker run --env-file`: a line is a line.
  statement(`#${LINE}`, String.raw`[^=\n]`, `=${LINE}`),
  // systemd: values in quotes next to each other are one; a backslash continues a line, before 254 a comment as well.
  systemd(LINE),
  systemd(CONTINUED),
];

/** A file as all its readers see it. */
export interface EnvText {
  /** The text with a line end at its end, and an empty line. */
  readonly whole: string;
  /** The offset after the last line. */
  readonly end: number;
  /** The offsets at which a statement begins for every reader: at the beginning of a line. */
  readonly agreed: ReadonlySet<number>;
  /** The offsets of statements, for each reader: up to a quote that is never closed. */
  readonly starts: readonly (readonly number[])[];
  /** The offsets at which some reader finds a statement that sets the name, in their order. */
  readonly placesOf: (name: string) => readonly number[];
}

export function readEnv(text: string): EnvText {
  const whole = `${text}${isUnended(text) ? "\n" : ""}\n`;
  const begin = text.startsWith("\ufeff") ? 1 : 0;
  const places = new Map<string, Set<number>>();
  const starts = READERS.map((reader) => {
    const own: number[] = [];
    for (let at = begin; at < whole.length; at = reader.lastIndex) {
      own.push(at);
      reader.lastIndex = at;
      const match = reader.exec(whole);
      if (match === null) break;
      const name = nameIn(match[1] ?? "");
      places.set(name, (places.get(name) ?? new Set()).add(at));
    }
    return own;
  });
  const [first, ...others] = starts.map((own) => new Set(own));
  // systemd takes a byte order mark for a part of the first line.
  const agreed = [...first!].filter(
    (at) => (begin === 0 || at > begin) && others.every((own) => own.has(at)),
  );
  return {
    whole,
    end: whole.length - 1,
    agreed: new Set(agreed),
    starts,
    placesOf: (name) => [...(places.get(name) ?? [])].sort((a, b) => a - b),
  };
}

/** Blanks are those of Go. */
const nameIn = (text: string): string =>
  text
    .replaceAll("\x85", " ")
    .replace(/^export\s+/, "")
    .trim();

/** The place of the value in a line that every reader takes for `NAME=value`. */
export interface EnvValue {
  readonly from: number;
  readonly to: number;
  /** The value as it is written. */
  readonly text: string;
  /** The value without quotes around it. */
  readonly value: string;
  /** The offset of the value's line. */
  readonly line: number;
  /** The offset of the next line. */
  readonly next: number;
}

const ODD: readonly [RegExp, string][] = [
  [/^\s*export\s/, "is exported, which not every reader understands"],
  [/^[^=]*(?::|$)/, "is not set with `=`, which not every reader understands"],
  [/^(?![ \t]*\w+=(?!\s+\S))/, "has blanks that not every reader skips"],
  [/^[^=]*=(?!["']).*\s#/, "has a comment behind its value, which some readers take as a part of it"],
  [
    /^[^=]*=(?!"(?:\\.|[^"\\])*"\s*$|'(?:\\.|[^'\\])*'\s*$)["']/,
    "has something behind its quotes that not every reader takes as a part of the value",
  ],
];

/** The value that is set there, or a message about how its readers differ. */
export function valueAt({ whole, agreed }: EnvText, line: number): EnvValue | string {
  const next = whole.indexOf("\n", line) + 1;
  if (!agreed.has(next)) return "has a value that some programs continue on the next line";
  const to = whole[next - 2] === "\r" ? next - 2 : next - 1;
  const content = whole.slice(line, to);
  const odd = ODD.find(([pattern]) => pattern.test(content));
  if (odd !== undefined) return odd[1];
  const from = line + content.indexOf("=") + 1;
  const text = whole.slice(from, to);
  return { from, to, text, value: /^(["'])(.*)\1$/.exec(text)?.[2] ?? text, line, next };
}
