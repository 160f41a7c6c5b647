/** What the fields of an HTTP/1.1 request say about an upgrade. */
export interface UpgradeFields {
  /** Whether `upgrade` is an option in `Connection`. */
  readonly connectionUpgrade: boolean;
  /** Value of `Upgrade`, lower case. */
  readonly upgrade: string | undefined;
}

/**
 * The protocol that a request asks for, lower case; undefined if it does not ask for an upgrade. `Upgrade` without
 * `Connection: upgrade`, or in HTTP/1.0, has to be ignored (RFC 9110, 7.8), and a WebSocket is asked for by a GET
 * (RFC 6455, 4.1). After a body, it would not be clear where the tunnel's bytes begin.
 */
export function requestedUpgrade(
  { method, version }: { readonly method: string; readonly version: "1.0" | "1.1" },
  fields: UpgradeFields,
  bodyLength: number,
): string | undefined {
  const allowed = fields.connectionUpgrade && version === "1.1" && method === "GET" && bodyLength === 0;
  return allowed ? fields.upgrade : undefined;
}
