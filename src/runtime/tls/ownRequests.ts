import type { ClientRequest } from "node:http";
import type { SecureContext } from "node:tls";
import { clientContext } from "./tlsContexts.js";

/** What all https requests of the proxy's own have in common: to authorities, to acme-dns, to targets of notifications. */

/**
 * Whom such a request trusts, whatever `NODE_TLS_REJECT_UNAUTHORIZED` says.
 *
 * @param roots PEM of the only roots that are trusted; default: those that Node brings along
 */
export const trusting = (
  roots: string | undefined,
): { readonly rejectUnauthorized: true; readonly secureContext: SecureContext } => ({
  rejectUnauthorized: true,
  secureContext: clientContext(roots),
});

/** Calls `tooMany` for a server that would keep this process busy with interim responses for as long as it likes. */
export function boundInformational(sent: ClientRequest, tooMany: (why: string) => void): void {
  let seen = 0;
  sent.on("information", () => {
    if (++seen === INFORMATIONAL_MAX + 1) tooMany("it sent too many interim responses");
  });
}

const INFORMATIONAL_MAX = 100;
