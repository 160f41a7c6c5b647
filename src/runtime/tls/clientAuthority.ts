import { X509Certificate } from "node:crypto";
import { type RevocationList, revocationListsOf, serialOf } from "./revocations.js";

/** Authorities of clients, and their lists of revoked certificates, as PEM. */
export interface ClientAuthorityContents {
  /** The certificates of the authorities. */
  readonly ca: string;
  /**
   * Lists of revoked certificates, one of each authority.
   * @default - the config names no file of lists
   */
  readonly crl?: string;
}

/** A file of authorities that cannot be used. */
export interface UnfitAuthority {
  readonly file: "ca" | "crl";
  /** Continues the path. */
  readonly message: string;
}

/** An authority with its list. */
export interface SigningAuthority {
  readonly certificate: X509Certificate;
  /** Undefined if the config names no file of lists. */
  readonly list: RevocationList | undefined;
}

/** What handshakes of clients are judged by: the contents of the files at one time. */
export class ClientAuthority {
  private constructor(readonly all: readonly SigningAuthority[]) {}

  /** Reads the files' contents. Their ends are judged elsewhere: a service also starts with files that have ended. */
  static of({ ca, crl }: ClientAuthorityContents): ClientAuthority | UnfitAuthority {
    const certificates = authoritiesOf(ca);
    if (typeof certificates === "string") return { file: "ca", message: certificates };
    if (crl === undefined)
      return new ClientAuthority(certificates.map((certificate) => ({ certificate, list: undefined })));
    const lists = revocationListsOf(crl);
    if (typeof lists === "string") return { file: "crl", message: lists };
    const all: SigningAuthority[] = [];
    for (const certificate of certificates) {
      const own = lists.filter((list) => list.isSignedBy(certificate.publicKey));
      const which = `list that the authority ${oneLine(certificate.subject)} has signed`;
      // OpenSSL would refuse every client of an authority without one.
      if (own.length === 0) return { file: "crl", message: `contains no ${which}` };
      if (own.length > 1) return { file: "crl", message: `contains more than one ${which}` };
      all.push({ certificate, list: own[0] });
    }
    const stray = lists.some((list) => !all.some((one) => one.list === list));
    if (stray) return { file: "crl", message: "contains a list that no authority of `ca` has signed" };
    return new ClientAuthority(all);
  }

  /** The files as options of a TLS server: OpenSSL takes one list at a time. */
  get options(): { readonly ca: string[]; readonly crl?: string[] } {
    const lists = [...new Set(this.all.flatMap(({ list }) => list?.pem ?? []))];
    const ca = this.all.map(({ certificate }) => certificate.toString());
    return lists.length === 0 ? { ca } : { ca, crl: lists };
  }

  /**
   * The certificates from a client's own to a root, all others of the file. Those that the client sent do not count: an
   * authority that nobody listed has no list of revoked certificates either, and Node 24.21 does not show them
   * (nodejs/node#65579).
   */
  chainOf(own: X509Certificate): readonly X509Certificate[] | undefined {
    const chain = [own];
    while (chain.length <= CHAIN_MAX) {
      const last = chain.at(-1)!;
      if (isRoot(last)) return this.find(last) === undefined ? undefined : chain;
      const issuer = this.all.find(
        ({ certificate }) => last.checkIssued(certificate) && last.verify(certificate.publicKey),
      )?.certificate;
      if (issuer === undefined || chain.includes(issuer)) return undefined;
      chain.push(issuer);
    }
    return undefined;
  }

  private find({ raw }: X509Certificate): SigningAuthority | undefined {
    return this.all.find(({ certificate }) => certificate.raw.equals(raw));
  }

  /**
   * Judges a chain that OpenSSL took under these files or earlier ones: all else that OpenSSL checks does not change.
   *
   * @returns until when the chain stays good, in milliseconds since 1970; or why it is not good any more
   */
  stillGood(chain: readonly X509Certificate[]): { readonly until: number } | "revoked" | "unknown-authority" {
    let until = Infinity;
    for (const [i, certificate] of chain.entries()) {
      const issuer = chain[i + 1] ?? certificate;
      const known = this.find(issuer);
      if (known === undefined) return "unknown-authority";
      if (known.list?.revoked.has(serialOf(certificate)) === true) return "revoked";
      until = Math.min(until, Date.parse(certificate.validTo), known.list?.nextUpdate ?? Infinity);
    }
    return { until };
  }
}

/** @returns a sentence that says what is wrong with the file, in place of the certificates */
function authoritiesOf(pem: string): readonly X509Certificate[] | string {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) return "contains no certificate in PEM form";
  const all: X509Certificate[] = [];
  for (const block of blocks) {
    const certificate = certificateOf(block);
    if (certificate === undefined) return "contains a damaged certificate";
    if (!all.some(({ raw }) => raw.equals(certificate.raw))) all.push(certificate);
  }
  const named = (one: X509Certificate): string => `the certificate ${oneLine(one.subject)}`;
  const stranger = all.find(({ ca }) => !ca);
  if (stranger !== undefined) return `contains ${named(stranger)}, which may sign no other (\`CA:TRUE\`)`;
  const rootless = all.find((one) => !isRoot(one) && !all.some((issuer) => one.checkIssued(issuer)));
  if (rootless !== undefined) return `contains ${named(rootless)}, but not the certificate that signed it`;
  return all;
}

function certificateOf(block: string): X509Certificate | undefined {
  try {
    return new X509Certificate(block);
  } catch {
    return undefined;
  }
}

const isRoot = (certificate: X509Certificate): boolean => certificate.checkIssued(certificate);

/** A subject in messages: `CN=Clients, O=Example`. */
export const oneLine = (subject: string): string => subject.split("\n").join(", ");

/** Longer than any that is in use; OpenSSL's own limit is 100. */
const CHAIN_MAX = 10;
