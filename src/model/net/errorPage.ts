import { afterBlanks, beginsPart } from "../text/blanks.js";

/**
 * Pages of the administrator's in place of the proxy's own error pages: when they are sent, what may be in them, and how
 * they are filled in.
 */

/** Statuses of the proxy's own responses that a person may see in a browser. */
export const ERROR_PAGE_STATUSES = [403, 404, 405, 408, 413, 421, 500, 502, 503, 504] as const;

/** The limit of a page: each stream of a client that reads nothing holds a filled-in page (docs/limits.md). */
export const ERROR_PAGE_BYTES_MAX = 32_768;

/** The placeholders `{{name}}` of a page. */
export const PLACEHOLDERS = [
  "status",
  "reason",
  "message",
  "requestId",
  "time",
  "serverName",
  "retryAfter",
] as const;

export type Placeholder = (typeof PLACEHOLDERS)[number];

/** Each may become as long as a host name: 8 KiB in all. */
const PLACEHOLDER_COUNT_MAX = 32;

/** The fault of a page, to follow its path, and the allowed values; undefined if there is none. */
export function errorPageFault(
  html: string,
):
  | { readonly message: string; readonly received?: unknown; readonly allowed: string; readonly fix?: string }
  | undefined {
  const bytes = Buffer.byteLength(html);
  if (bytes === 0) return { message: "is empty", allowed: "HTML" };
  if (bytes > ERROR_PAGE_BYTES_MAX)
    return {
      message: `has ${bytes} bytes`,
      allowed: `up to ${ERROR_PAGE_BYTES_MAX} bytes, including embedded images`,
    };
  // The decoder puts U+FFFD where bytes are not UTF-8.
  if (html.includes("\ufffd")) return { message: "is not in UTF-8", allowed: "UTF-8, without U+FFFD" };
  if (FILE_NAME.test(html.trim()))
    return {
      message: "is the path of a file",
      received: html,
      allowed: "HTML",
      fix:
        'Write the HTML itself, for instance with `readFileSync(path, "utf8")`; `errorPages` also take the path of a ' +
        "file on the host as `file`.",
    };
  const names = namesIn(html);
  const unknown = names.find((name) => !PLACEHOLDERS.includes(name as Placeholder));
  const known = PLACEHOLDERS.map((name) => `{{${name}}}`).join(", ");
  if (unknown !== undefined)
    return { message: "contains an unknown placeholder", received: `{{${unknown}}}`, allowed: known };
  if (names.length <= PLACEHOLDER_COUNT_MAX) return undefined;
  return {
    message: `has ${names.length} placeholders`,
    allowed: `up to ${PLACEHOLDER_COUNT_MAX} placeholders`,
  };
}

/** A word that begins as a path does, or ends as a page does. */
const FILE_NAME = /^(?:(?:\.{0,2}|~)\/[^\s<>]*|[^\s<>{}]+\.html?)$/;

/** Has a group, so that `split` returns text and names of placeholders in turn. */
const PLACEHOLDER = /\{\{([^{}]*)\}\}/;

const namesIn = (html: string): string[] => html.split(PLACEHOLDER).filter((_, i) => i % 2 === 1);

/** A page, ready to be filled in. */
export class PageTemplate {
  private readonly parts: readonly string[];

  /** @param html without a {@link errorPageFault} */
  constructor(html: string) {
    this.parts = html.split(PLACEHOLDER);
  }

  fill(values: Readonly<Record<Placeholder, string>>): string {
    return this.parts
      .map((part, i) => (i % 2 === 0 ? part : escapeHtml(values[part as Placeholder])))
      .join("");
  }
}

/** Text that stays text wherever HTML may have some, quoted attributes included. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}

/**
 * Whether a client asks for HTML explicitly, as browsers do for pages (RFC 9110, 12.5.1). Programs accept any type, or
 * send no field, and get a shorter page.
 */
export function acceptsHtml(headers: readonly string[]): boolean {
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i]!.toLowerCase() !== "accept") continue;
    if (listsHtml(headers[i + 1]!)) return true;
  }
  return false;
}

/** The list is read in a single pass, because a client may fill a head with members. */
function listsHtml(value: string): boolean {
  const list = value.toLowerCase();
  for (let at = list.indexOf(HTML); at !== -1; at = list.indexOf(HTML, at)) {
    const begin = at;
    at = afterBlanks(list, at + HTML.length);
    if (!beginsPart(list, begin, COMMA) || !(at === list.length || list[at] === "," || list[at] === ";"))
      continue;
    let accepted = true;
    for (let code; at < list.length && (code = list.charCodeAt(at)) !== COMMA; at++) {
      if (code === SEMICOLON && isRefusal(list, at + 1)) accepted = false;
    }
    if (accepted) return true;
  }
  return false;
}

const HTML = "text/html";
const [COMMA, SEMICOLON, DOT, ZERO, EQUALS, Q] = [0x2c, 0x3b, 0x2e, 0x30, 0x3d, 0x71];

/** Whether a parameter is the weight of a type that a client does not accept (RFC 9110, 12.4.2). */
function isRefusal(list: string, from: number): boolean {
  let at = afterBlanks(list, from);
  if (list.charCodeAt(at++) !== Q || list.charCodeAt(at++) !== EQUALS || list.charCodeAt(at++) !== ZERO)
    return false;
  if (list.charCodeAt(at) === DOT) {
    at++;
    for (let digits = 0; digits < 3 && list.charCodeAt(at) === ZERO; digits++) at++;
  }
  at = afterBlanks(list, at);
  return at === list.length || list.charCodeAt(at) === COMMA || list.charCodeAt(at) === SEMICOLON;
}
