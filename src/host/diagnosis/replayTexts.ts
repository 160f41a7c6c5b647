import { endOfPath } from "../../model/index.js";

/** What is shown of a log: nothing that acts on a terminal, and no secret unless it is asked for. */

/** The same target with a query that says nothing; one with a `#`, which is refused, keeps that. */
export function hiddenQuery(target: string): string {
  const end = endOfPath(target);
  if (end >= target.length - 1) return target;
  return `${target.slice(0, end)}${target.includes("#", end) ? "?#" : HIDDEN_QUERY}`;
}

const HIDDEN_QUERY = "?...";

/**
 * One line of printable ASCII. Other bytes are written as `\xHH`, as in the log.
 *
 * @param secrets whether parts of a path that look like tokens are shown
 */
export function shownText(text: string, secrets: boolean): string {
  const shown = secrets ? text : text.split("/").map(hiddenToken).join("/");
  const cut = shown.length > SHOWN_MAX ? `${shown.slice(0, SHOWN_MAX)}...` : shown;
  return cut.replace(NOT_PRINTABLE, (char) => {
    const code = char.charCodeAt(0);
    return code < 0x100
      ? `\\x${code.toString(16).toUpperCase().padStart(2, "0")}`
      : `\\u${code.toString(16)}`;
  });
}

const SHOWN_MAX = 200;
const NOT_PRINTABLE = /[^ -~]/g;

/** Links that are shared, and downloads, have their secret in the path: whoever knows it may read. */
function hiddenToken(segment: string): string {
  const query = endOfPath(segment);
  const name = segment.slice(0, query);
  return isToken(name) ? `***${segment.slice(query)}` : segment;
}

function isToken(name: string): boolean {
  if (name.length < 10 || !/\d/.test(name)) return false;
  if (/^[0-9a-f-]+$/i.test(name)) return /[a-f]/i.test(name) || name.length >= 16;
  if (name.startsWith("eyJ")) return true;
  return name.length >= 12 && /^[\w=~+-]+$/.test(name) && /[a-z]/.test(name) && /[A-Z]/.test(name);
}
