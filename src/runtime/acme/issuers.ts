import type { X509Certificate } from "node:crypto";
import { rootCertificates } from "node:tls";
import type { CertificateAuthorityConfig } from "../../model/serving.js";
import { certificatesOf } from "../load/certificateExpiry.js";
import { DAY_MS } from "./clock.js";
import { readState } from "./stateFiles.js";

/**
 * Whether a certificate may take the place of another one: who holds a key of the other host could issue himself one for
 * any name, for a hundred years, and it would be served from then on.
 */

/** A certificate with the chain that it is sent with, as PEM. */
interface Chained {
  readonly leaf: X509Certificate;
  readonly cert: string;
}

/**
 * Whether an issuer of the certificate that is replaced signed it, or one that the config names: `roots` of the
 * authority, or without them those that Node brings along.
 *
 * @param here the certificate that it replaces; without one there is nothing to compare with
 */
export async function isOfIssuer(
  sent: Chained,
  here: Chained | undefined,
  { roots }: Pick<CertificateAuthorityConfig, "roots">,
): Promise<boolean> {
  if (here === undefined) return true;
  const before = readable(here.cert).slice(1);
  if (leadsTo(sent, before)) return true;
  // Some authorities send no chain: then it can only be compared whom both name.
  if (before.length === 0 && !isSelfIssued(sent.leaf) && sent.leaf.issuer === here.leaf.issuer) return true;
  const named = roots === undefined ? rootCertificates.join("\n") : await readState(roots).catch(() => "");
  return leadsTo(sent, readable(named ?? ""));
}

/** Longest life of a certificate that is taken, in days, unless the one before it has a longer one (CA/Browser Forum). */
export const LIFE_DAYS_MAX = 398;

export function livesTooLong({ leaf }: Chained, here: Chained | undefined): boolean {
  const most = Math.max(LIFE_DAYS_MAX * DAY_MS, here === undefined ? 0 : lifeOf(here.leaf));
  return lifeOf(leaf) > most;
}

const lifeOf = ({ validFrom, validTo }: X509Certificate): number =>
  Date.parse(validTo) - Date.parse(validFrom);

const isSelfIssued = (leaf: X509Certificate): boolean => leaf.issuer === leaf.subject;

/** Whether signatures lead from the leaf by its chain to one of the certificates. */
function leadsTo({ cert }: Chained, anchors: readonly X509Certificate[]): boolean {
  const [leaf, ...chain] = readable(cert);
  let at = leaf!;
  // Each step takes one certificate of the chain, so a circle ends.
  for (let steps = 0; steps <= chain.length; steps++) {
    if (anchors.some((anchor) => isIssuedBy(at, anchor))) return true;
    const next = chain.find((one) => one !== at && isIssuedBy(at, one));
    if (next === undefined) return false;
    at = next;
  }
  return false;
}

function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return issuer.ca && certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

const readable = (text: string): X509Certificate[] => certificatesOf(text).filter((one) => one !== undefined);
