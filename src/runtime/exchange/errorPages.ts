import type { VirtualServerConfig } from "../../model/index.js";
import type { Exchange, HeaderList } from "./exchange.js";
import { reasonPhrase } from "./reasonPhrases.js";
import { VERSION } from "../../model/version.js";

export interface ErrorOptions {
  /** Further fields: `Allow` of a 405, `Content-Range` of a 416. */
  readonly headers?: HeaderList;
  /**
   * What exactly is wrong, where the status alone says too little (`Request Header Or Cookie Too Large`). It is shown
   * on the page; the status line keeps its usual words.
   */
  readonly reason?: string;
}

/**
 * Answers with an error page, or cuts the answer short if its head is already sent: an error page in the middle of a
 * body would be read as content. The protocol decides by status whether the connection closes.
 */
export function respondError(exchange: Exchange, status: number, options: ErrorOptions = {}): void {
  if (exchange.headSent) return exchange.abort();
  if (CLOSING_STATUS.has(status)) exchange.closes = true;
  sendPage(exchange, status, options.headers, options.reason);
}

/** Answers with the small page for a status, as nginx does for errors and redirects; HEAD gets its length only. */
export function sendPage(exchange: Exchange, status: number, headers?: HeaderList, detail?: string): void {
  const page = pageFor(exchange.server, status, detail);
  const fields = headers === undefined ? PAGE_HEADERS : [...PAGE_HEADERS, ...headers];
  exchange.sendHead(status, reasonPhrase(status), fields, page.length);
  if (exchange.request.method !== "HEAD") exchange.sendData(page);
  exchange.end();
}

/** Value of `Server`: with a version only where the virtual server shows one (decisions 1.6). */
export function serverHeader(server: VirtualServerConfig): string {
  return server.versionTokens ? `portico/${VERSION}` : "portico";
}

/** After these nginx closes the connection, and so does Portico (decisions 4.8). */
const CLOSING_STATUS = new Set([400, 408, 413, 414, 431, 500, 501, 505]);

/** Shared by every page: the list must not be changed. */
const PAGE_HEADERS = Object.freeze(["Content-Type", "text/html"]) as HeaderList;

const pages = new Map<string, Buffer>();

/** Pages without a detail are built once; there are two for a status, with and without the version. */
function pageFor(server: VirtualServerConfig, status: number, detail: string | undefined): Buffer {
  const by = serverHeader(server);
  if (detail !== undefined) return Buffer.from(html(status, by, detail));
  const key = `${status} ${by}`;
  let page = pages.get(key);
  if (page === undefined) pages.set(key, (page = Buffer.from(html(status, by))));
  return page;
}

/** nginx's page to the byte, but for the name. */
function html(status: number, by: string, detail?: string): string {
  const phrase = `${status} ${reasonPhrase(status)}`.trimEnd();
  const title = detail === undefined ? phrase : `${status} ${escapeHtml(detail)}`;
  return [
    "<html>",
    `<head><title>${title}</title></head>`,
    "<body>",
    `<center><h1>${phrase}</h1></center>`,
    ...(detail === undefined ? [] : [`<center>${escapeHtml(detail)}</center>`]),
    `<hr><center>${by}</center>`,
    "</body>",
    "</html>",
    "",
  ].join("\r\n");
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (char) => `&#${char.charCodeAt(0)};`);
}
