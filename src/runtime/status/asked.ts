import type { Shown } from "./overview.js";

/** Parts of the status that a client may ask for: the page, its data, and the files of the page. */
export type StatusPart = "page" | "json" | "script" | "style" | "icon";

/** A worker's request to its master, on behalf of a client. */
export interface AskedStatus extends Shown {
  readonly part: StatusPart;
}

/** The response for the client. */
export interface StatusResponse {
  readonly contentType: string;
  readonly body: string;
}

/** Asks for the response. */
export type AskStatus = (asked: AskedStatus) => Promise<StatusResponse | undefined>;

/** The page loads nothing but its own files, and no page may frame it. */
export const STATUS_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Fields of every response of a route. */
export const STATUS_FIELDS = [
  "Cache-Control",
  "no-store",
  "Content-Security-Policy",
  STATUS_POLICY,
  "X-Content-Type-Options",
  "nosniff",
  "Referrer-Policy",
  "no-referrer",
] as const;

/**
 * The part that a query names: the page's own files and its data are at its own path, so that they are found whatever
 * path a route has and however it matches. Undefined for another query.
 */
export function partOfQuery(query: string): StatusPart | undefined {
  return PARTS.get(query);
}

const PARTS: ReadonlyMap<string, StatusPart> = new Map([
  ["", "page"],
  ["json", "json"],
  ["script", "script"],
  ["style", "style"],
  ["icon", "icon"],
]);
