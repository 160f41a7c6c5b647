import { DAY_MS, HOUR_MS } from "../../model/text/duration.js";
import { coversName } from "../../model/net/certificateName.js";
import type { StoredCertificate } from "./certificateFile.js";
import { extendedKeyUsageAllowsServers, unknownCriticalExtension } from "./x509.js";

/** Whether a certificate may take the place of another one: an authority and the other host of a pair are asked the same. */

/** A wrong time zone shifts the clock by less than a day. Clients refuse a certificate whose validity begins later. */
const EARLY_MS = DAY_MS;

/**
 * Why clients refuse a certificate, or would before it can be renewed; undefined if they accept it.
 *
 * @param here the certificate whose place it takes. As long as that one is valid, the new one must be valid too: nothing is
 *   gained by a certificate that begins tomorrow, or that ends within the hour until the next attempt
 */
export function unusable(
  issued: StoredCertificate,
  names: readonly string[],
  now: number,
  here: StoredCertificate | undefined,
): string | undefined {
  const { leaf } = issued;
  const missing = names.filter((name) => !coversName(leaf, name));
  if (missing.length > 0) return `it does not cover ${missing.join(", ")}`;
  const [from, to] = [Date.parse(leaf.validFrom), Date.parse(leaf.validTo)];
  if (to <= now) return `it expired on ${new Date(to).toISOString()}`;
  const until = here === undefined || here.cert === issued.cert ? now : Date.parse(here.leaf.validTo);
  if (to < until && to <= now + HOUR_MS)
    return `it ends on ${new Date(to).toISOString()}, before the certificate that it would replace`;
  if (from > now + (until > now ? HOUR_MS : EARLY_MS))
    return `by the clock of this host, it is not valid before ${new Date(from).toISOString()}`;
  if (!extendedKeyUsageAllowsServers(leaf)) return "its extended key usage does not allow servers";
  const unknown = unknownCriticalExtension(leaf);
  // RFC 5280, 4.2.
  if (unknown !== undefined) return `clients do not know its critical extension ${unknown}`;
  return undefined;
}
