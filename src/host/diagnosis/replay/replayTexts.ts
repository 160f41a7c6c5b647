import { endOfPath } from "../../../model/index.js";

/** Prepares texts of a log for display: no control characters, and no secrets unless they are requested. */

/** The same target with its query hidden; a target with a `#`, which is refused, keeps the `#`. */
export function hiddenQuery(target: string): string {
  const end = endOfPath(target);
  if (end >= target.length - 1) return target;
  return `${target.slice(0, end)}${target.includes("#", end) ? "?#" : HIDDEN_QUERY}`;
}

const HIDDEN_QUERY = "?...";

/**
 * Makes a line of printable ASCII. Other bytes are written as `\xHH`, as in the log.
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

/** Share and download links have a secret in the path, which gives access. */
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
