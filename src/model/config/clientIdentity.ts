import type { VerifiedUser } from "../actions/forwardedRequest.js";
import { usualSpelling } from "../actions/fieldFates.js";
import type { VirtualServerConfig } from "./config.js";

/** Rules for certificates of clients, of a virtual server. */
export type ClientCertificateConfig = NonNullable<VirtualServerConfig["clientCertificate"]>;

/** Fields by which upstreams get a certificate (RFC 9440, 2). */
export const CERTIFICATE_FIELDS = ["Client-Cert", "Client-Cert-Chain"] as const;

/** A verified certificate, as upstreams get it. */
export interface ClientIdentity {
  /** The certificate, then the intermediate certificates; without the root (RFC 9440, 2.3). */
  readonly chain: readonly { readonly raw: Uint8Array }[];
  /** The name of the certificate; undefined if it has none. */
  readonly user: string | undefined;
}

/** What a certificate changes in a request to the upstream. @param identity undefined for a client without one */
export function certificateUser(
  { userField }: ClientCertificateConfig,
  identity: ClientIdentity | undefined,
): VerifiedUser {
  const names = [...CERTIFICATE_FIELDS, ...(userField === undefined ? [] : [userField])];
  const dropped = new Set(names.map(usualSpelling));
  if (identity === undefined) return { dropped, fields: [] };
  const [leaf, ...issuers] = identity.chain.map(({ raw }) => `:${Buffer.from(raw).toString("base64")}:`);
  const { user } = identity;
  return {
    dropped,
    fields: [
      ["Client-Cert", leaf!],
      ...(issuers.length === 0 ? [] : [["Client-Cert-Chain", issuers.join(", ")] as const]),
      ...(userField === undefined || user === undefined
        ? []
        : [[userField, Buffer.from(user, "utf8").toString("latin1")] as const]),
    ],
  };
}

/** The authorities and the revoked certificates by which handshakes are judged: equal for servers that name the same files. */
export const authorityKey = ({ ca, crl = "" }: Pick<ClientCertificateConfig, "ca" | "crl">): string =>
  `${ca}\n${crl}`;

/** The first of a certificate's names that may come in; undefined if none may. */
export const admittedName = (
  { names }: Pick<ClientCertificateConfig, "names">,
  given: readonly string[],
): string | undefined => (names === undefined ? given[0] : given.find((name) => names.includes(name)));
