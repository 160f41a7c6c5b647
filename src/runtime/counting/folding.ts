/** What clients and upstreams choose freely, folded into lists that they cannot add to. */

/** OpenTelemetry's known methods, and those of WebDAV (RFC 4918) and of what is built on it (RFC 3253, 3744, 5323). */
const METHODS = [
  ...["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY"],
  ...["PROPFIND", "PROPPATCH", "MKCOL", "COPY", "MOVE", "LOCK", "UNLOCK", "REPORT", "SEARCH", "ACL"],
];

/** How OpenTelemetry writes a method that is not known. */
const OTHER_METHOD = "_OTHER";

const INDEX: ReadonlyMap<string, number> = new Map(METHODS.map((method, i) => [method, i]));

export const isKnownMethod = (method: string): boolean => INDEX.has(method);

/** A small number for a method: the same for all that are not known. */
export function methodIndex(method: string): number {
  return method === "GET" ? 0 : (INDEX.get(method) ?? METHODS.length);
}

export const methodLabel = (index: number): string => METHODS[index] ?? OTHER_METHOD;

/** nginx's 499: the client went away before there was a response. */
const CLIENT_GONE = 499;

/**
 * The status that something is counted as. One that is not registered is treated as the x00 of its class (RFC 9110, 15).
 *
 * @param status 0 if nothing was answered
 */
export function foldedStatus(status: number, registered: (status: number) => boolean): number {
  if (status === 0) return CLIENT_GONE;
  if (registered(status)) return status;
  return status >= 100 && status < 600 ? status - (status % 100) : 500;
}
