/** Fields of a connection, which HTTP/2 does not allow (RFC 9113, 8.2.2); lower case. */
export const CONNECTION_FIELDS: readonly string[] = [
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
];

/** Fields that apply to one connection only and are not forwarded, framing included (RFC 9110, 7.6.1). */
export const HOP_BY_HOP: readonly string[] = [
  ...CONNECTION_FIELDS,
  "te",
  "trailer",
  "http2-settings",
  "content-length",
];

/** Request fields that are never forwarded; lower case. */
export const NOT_FORWARDED: readonly string[] = [
  ...HOP_BY_HOP,
  ...["host", "expect", "proxy-authorization"],
  // To programs that read their environment it is the proxy to connect through (httpoxy, CVE-2016-5385).
  "proxy",
];

/** Statuses whose responses never have a body (RFC 9110, 15.3.5, 15.3.6 and 15.4.5). */
export const BODILESS: ReadonlySet<number> = new Set([204, 205, 304]);

/** The fields of an HTTP/1.1 request that request an upgrade. */
interface UpgradeFields {
  /** Whether `upgrade` is an option in `Connection`. */
  readonly connectionUpgrade: boolean;
  /** Value of `Upgrade`, lower case. */
  readonly upgrade: string | undefined;
}

/** The protocol of a request's upgrade as the route writes it; undefined if the route does not forward it. */
export const forwardedUpgrade = (
  upgrades: readonly string[],
  requested: string | undefined,
): string | undefined =>
  requested === undefined ? undefined : upgrades.find((one) => one.toLowerCase() === requested);

/**
 * The protocol that a request asks for, lower case; undefined if it does not ask for an upgrade. `Upgrade` without
 * `Connection: upgrade`, or in HTTP/1.0, has to be ignored (RFC 9110, 7.8), and a WebSocket is requested by a GET (RFC
 * 6455, 4.1). After a body, it would not be clear where the tunnel's bytes begin.
 */
export function requestedUpgrade(
  { method, version }: { readonly method: string; readonly version: "1.0" | "1.1" },
  fields: UpgradeFields,
  bodyLength: number,
): string | undefined {
  const allowed = fields.connectionUpgrade && version === "1.1" && method === "GET" && bodyLength === 0;
  return allowed ? fields.upgrade : undefined;
}
