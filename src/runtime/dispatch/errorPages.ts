import {
  acceptsHtml,
  type ErrorToken,
  escapeHtml,
  PageTemplate,
  type Placeholder,
  type ProxyConfig,
  type VirtualServerConfig,
} from "../../model/serving.js";
import { type Exchange, headerValue, type HeaderList } from "../exchange/exchange.js";
import { reasonPhrase } from "./reasonPhrases.js";
import { requestIdOf } from "./requestId.js";
import { VERSION } from "../../model/text/version.js";

export interface ErrorOptions {
  /** Further fields: `Allow` of a 405, `Content-Range` of a 416. */
  readonly headers?: HeaderList;
  /**
   * A more precise reason than the status (`Request Header Or Cookie Too Large`). It is shown on the page; the status
   * line keeps its usual words.
   */
  readonly reason?: string;
}

/**
 * Responds with an error page, or cuts the response short if its head is already sent: an error page in the middle of a
 * body would be read as content. After some statuses the connection closes ({@link CLOSING_STATUS}).
 */
export function respondError(exchange: Exchange, status: number, options: ErrorOptions = {}): void {
  if (exchange.headSent) return exchange.abort();
  if (CLOSING_STATUS.has(status)) exchange.closes = true;
  const { errorPages } = exchange.server;
  const page = errorPages.length === 0 ? undefined : ownPages(exchange.server).get(status);
  if (page === undefined) sendPage(exchange, status, options.headers, options.reason);
  else sendOwnPage(exchange, status, page, options);
}

/** The same for a request that failed in a way that has a name. */
export function respondFailure(
  exchange: Exchange,
  token: ErrorToken,
  status: number,
  options?: ErrorOptions,
): void {
  exchange.errorToken = token;
  respondError(exchange, status, options);
}

/**
 * Responds with a page of the administrator's where the client asks for HTML, as browsers do. Other clients get the default
 * page, which is short enough for logs and dialogs.
 */
export function sendOwnPage(
  exchange: Exchange,
  status: number,
  page: PageTemplate,
  { headers = [], reason }: ErrorOptions,
): void {
  const { headers: asked } = exchange.request;
  if (!acceptsHtml(asked)) return sendPage(exchange, status, [...OWN_PAGE_HEADERS, ...headers], reason);
  const html = Buffer.from(page.fill(valuesFor(exchange, status, headers, reason)));
  send(exchange, status, [...HTML_HEADERS, ...OWN_PAGE_HEADERS, ...headers], html);
}

/**
 * Responds with 503 to a request that is refused for now: browsers get a page that asks again, programs the virtual server's
 * own response, or a line of text.
 *
 * @param page of the administrator's; without one the virtual server's page for 503, or the proxy's own
 */
export function respondPaused(
  exchange: Exchange,
  { seconds, message, page }: { seconds: number; message: string; page: PageTemplate | undefined },
): void {
  const headers = ["Retry-After", String(seconds)];
  const { server, request } = exchange;
  if (acceptsHtml(request.headers)) {
    const own = page ?? (server.errorPages.length === 0 ? undefined : ownPages(server).get(503));
    return sendOwnPage(exchange, 503, own ?? PAUSE_PAGE, { headers, reason: message });
  }
  const own = server.pauseResponse;
  const type = own?.contentType ?? "text/plain; charset=utf-8";
  const body = own?.body ?? `503 ${reasonPhrase(503)}: ${message}\n`;
  const more = Object.entries(own?.headers ?? {}).flat();
  send(exchange, 503, ["Content-Type", type, ...OWN_PAGE_HEADERS, ...headers, ...more], Buffer.from(body));
}

function valuesFor(
  exchange: Exchange,
  status: number,
  headers: HeaderList,
  message = "",
): Record<Placeholder, string> {
  const { request, server } = exchange;
  return {
    status: String(status),
    reason: reasonPhrase(status),
    message,
    requestId: requestIdOf(exchange),
    time: new Date().toISOString().replace(/\.\d+/, ""),
    // A client may send a longer name than the DNS allows.
    serverName: (request.serverName === "" ? server.serverNames[0]! : request.serverName).slice(0, 255),
    retryAfter: headerValue(headers, "retry-after") ?? "",
  };
}

/** Responds with the small page for a status, as nginx does for errors and redirects; HEAD gets its length only. */
export function sendPage(exchange: Exchange, status: number, headers?: HeaderList, detail?: string): void {
  const page = pageFor(exchange.server, status, detail);
  send(exchange, status, headers === undefined ? PAGE_HEADERS : [...PAGE_HEADERS, ...headers], page);
}

function send(exchange: Exchange, status: number, headers: HeaderList, page: Buffer): void {
  exchange.sendHead(status, reasonPhrase(status), withProxyStatus(exchange, headers), page.length);
  if (exchange.request.method !== "HEAD") exchange.sendData(page);
  exchange.end();
}

/** Names the failure in `Proxy-Status` if the virtual server asks for that (RFC 9209); names no upstream. */
function withProxyStatus({ server, errorToken }: Exchange, headers: HeaderList): HeaderList {
  const by = namesInStatus.get(server);
  if (by === undefined || errorToken === undefined) return headers;
  // A name that a token of RFC 9651 cannot be is a string.
  const name = /^[A-Za-z]/.test(by) ? by : `"${by}"`;
  return [...headers, "Proxy-Status", `${name}; error=${errorToken}`];
}

/** Switches `Proxy-Status` on where the config asks for it. */
export function nameFailures({ virtualServers, proxyStatus }: ProxyConfig): void {
  for (const server of virtualServers) {
    const by = server.proxyStatus ?? proxyStatus;
    if (by !== undefined) namesInStatus.set(server, by);
  }
}

/** Only failures ask for it. */
const namesInStatus = new WeakMap<VirtualServerConfig, string>();

/** Value of `Server`: with a version only where the virtual server shows one (decisions 1.6). */
export function serverHeader(server: VirtualServerConfig): string {
  return server.versionTokens ? `portico/${VERSION}` : "portico";
}

/** After these nginx closes the connection, and so does Portico (decisions 4.8). */
const CLOSING_STATUS = new Set([400, 408, 413, 414, 500, 501, 505]);

/** Shared by every page: the list must not be changed. */
const PAGE_HEADERS = Object.freeze(["Content-Type", "text/html"]) as HeaderList;

/**
 * Fields of a response with the administrator's page for its status: the content depends on `Accept`, and is not cached.
 */
const OWN_PAGE_HEADERS = Object.freeze(["Vary", "Accept", "Cache-Control", "no-store"]) as HeaderList;

/**
 * A page is looked at while things fail: it runs no script and loads nothing from elsewhere, whatever is in it. A field
 * of the config with this name takes its place (decisions 5.5).
 */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

const HTML_HEADERS = Object.freeze([
  "Content-Type",
  "text/html; charset=utf-8",
  "Content-Security-Policy",
  CONTENT_SECURITY_POLICY,
]) as HeaderList;

/** The administrator's pages of a virtual server, by status. */
function ownPages(server: VirtualServerConfig): ReadonlyMap<number, PageTemplate> {
  let own = compiled.get(server);
  if (own === undefined) compiled.set(server, (own = compile(server)));
  return own;
}

const compiled = new WeakMap<VirtualServerConfig, ReadonlyMap<number, PageTemplate>>();

function compile({ errorPages }: VirtualServerConfig): ReadonlyMap<number, PageTemplate> {
  const own = new Map<number, PageTemplate>();
  for (const page of errorPages) {
    // Pages from files were put here when the config was loaded.
    if (!("html" in page)) continue;
    const template = new PageTemplate(page.html);
    for (const status of page.statuses) own.set(status, template);
  }
  return own;
}

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

/** The page for browsers while requests are refused for now: it reloads, without a script. */
const PAUSE_PAGE = new PageTemplate(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="refresh" content="20">
<title>{{serverName}}: back soon</title>
<style>
body { font: 1.1rem/1.5 system-ui, sans-serif; max-width: 34rem; margin: 20vh auto 0; padding: 0 1.5rem; }
h1 { font-size: 1.5rem; }
small { opacity: 0.7; }
</style>
</head>
<body>
<main>
<h1>{{serverName}} is back soon</h1>
<p>{{message}}</p>
<p>This page tries again every 20 seconds.</p>
<p><small>{{time}}, {{requestId}}</small></p>
</main>
</body>
</html>
`);
