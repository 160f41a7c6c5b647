import type { VerifiedUser } from "../actions/forwardedRequest.js";
import { usualSpelling } from "../actions/fieldFates.js";
import type { AccessRefusal } from "./accessJudge.js";
import type { VirtualServerConfig } from "./config.js";

/** Rules for certificates of clients, of a virtual server. */
export type ClientCertificateConfig = NonNullable<VirtualServerConfig["clientCertificate"]>;

/** Fields by which upstreams get a certificate (RFC 9440, 2). */
export const CERTIFICATE_FIELDS = ["Client-Cert", "Client-Cert-Chain"] as const;

/** A verified certificate, as upstreams get it. */
export interface ClientIdentity {
  /** Value of `Client-Cert`. */
  readonly certificate: string;
  /** Value of `Client-Cert-Chain`; empty without intermediate certificates. */
  readonly chain: string;
  /** The name of the certificate; undefined if it has none. */
  readonly user: string | undefined;
}

/** What a certificate changes in a request to the upstream. @param identity undefined for a client without one */
export function certificateUser(
  { userField }: ClientCertificateConfig,
  identity: ClientIdentity | undefined,
): VerifiedUser {
  const [certificate, chain] = CERTIFICATE_FIELDS;
  const dropped = new Set(
    [certificate, chain, ...(userField === undefined ? [] : [userField])].map(usualSpelling),
  );
  if (identity === undefined) return { dropped, fields: [] };
  const { user } = identity;
  return {
    dropped,
    fields: [
      [certificate, identity.certificate],
      ...(identity.chain === "" ? [] : [[chain, identity.chain] as const]),
      ...(userField === undefined || user === undefined
        ? []
        : [[userField, Buffer.from(user, "utf8").toString("latin1")] as const]),
    ],
  };
}

/** A certificate that was not presented, or none of whose names may come in. */
export const certificateRefusal = ({ name }: Pick<VirtualServerConfig, "name">): AccessRefusal => ({
  policy: name,
  by: "clientCertificate",
  refusal: 403,
});

/** The authorities and the revoked certificates by which handshakes are judged: equal for servers that name the same files. */
export const authorityKey = ({ ca, crl = "" }: Pick<ClientCertificateConfig, "ca" | "crl">): string =>
  `${ca}\n${crl}`;

/** The first of a certificate's names that may come in; undefined if none may. */
export const admittedName = (
  { names }: Pick<ClientCertificateConfig, "names">,
  given: readonly string[],
): string | undefined => (names === undefined ? given[0] : given.find((name) => names.includes(name)));
