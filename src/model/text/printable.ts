/**
 * A text that can be printed: characters that control a terminal, or reverse text on it, are replaced by their codes.
 * Values from the application's files, its database and its upstreams may contain anything.
 */
export function printable(text: string): string {
  return text.replace(TERMINAL_CONTROLS, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** A value that belongs on one line. */
export function printableValue(text: string): string {
  return printable(text).replace(/[\n\t]/g, (c) => (c === "\n" ? "\\n" : "\\t"));
}

/** Whose name a certificate has: RFC 5280, A.1 allows 64 characters for a part, and one of kilobytes would fill a table. */
export function printableName(text: string): string {
  const shown = printableValue(text);
  return shown.length > NAME_CHARACTERS_MAX ? `${shown.slice(0, NAME_CHARACTERS_MAX)}…` : shown;
}

const NAME_CHARACTERS_MAX = 130;

/** All controls but line feed and tab, and marks of direction and line of Unicode. */

const TERMINAL_CONTROLS = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
