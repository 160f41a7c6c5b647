import { X509Certificate } from "node:crypto";
import type { PeerCertificate, TLSSocket } from "node:tls";
import { authorityKey, type ClientIdentity, type VirtualServerConfig } from "../../model/serving.js";
import type { CertificateFault, PresentedCertificate } from "../exchange/exchange.js";
import { ClientAuthority, type ClientAuthorityContents, oneLine } from "./clientAuthority.js";

/** Contents of the files that `clientCertificate` of virtual servers names, by `authorityKey`. */
export type ClientAuthorities = Readonly<Record<string, ClientAuthorityContents>>;

/** The authorities of a worker's virtual servers. */
export class ClientCertificates {
  private readonly byKey: ReadonlyMap<string, CertificateRequest>;

  constructor(contents: ClientAuthorities) {
    this.byKey = new Map(
      Object.entries(contents).map(([key, one]) => [key, new CertificateRequest(made(one))]),
    );
  }

  /** From now on the files have these contents; others stay as they are. */
  renew(contents: ClientAuthorities): void {
    for (const [key, one] of Object.entries(contents)) {
      const request = this.byKey.get(key);
      if (request !== undefined) request.authority = made(one);
    }
  }

  /** The request that a handshake for the server makes; undefined for none. */
  of({ clientCertificate }: VirtualServerConfig): CertificateRequest | undefined {
    return clientCertificate && this.byKey.get(authorityKey(clientCertificate));
  }
}

/** @throws Error if the master checked other files */
function made(contents: ClientAuthorityContents): ClientAuthority {
  const authority = ClientAuthority.of(contents);
  if (authority instanceof ClientAuthority) return authority;
  throw new Error(`${authority.file} ${authority.message}`);
}

/** What clients are asked for by virtual servers that name the same files. */
export class CertificateRequest {
  /** @param authority by the current contents of the files */
  constructor(public authority: ClientAuthority) {}

  /** What the client of a handshake that asked for a certificate presented. @param by the files that it was judged by */
  presented(socket: TLSSocket, by: ClientAuthority): PresentedCertificate {
    return new HandshakeCertificate(this, socket, by);
  }
}

/** The certificate of a connection: OpenSSL's judgement, which new contents of the files may take back. */
class HandshakeCertificate implements PresentedCertificate {
  private fault: CertificateFault | undefined = undefined;
  /** OpenSSL's name of the fault. */
  private code = "";
  /** Empty without a valid certificate. */
  private readonly chain: readonly X509Certificate[];
  private until = -Infinity;
  private readonly subject: string;
  readonly names: readonly string[] = [];

  constructor(
    readonly request: CertificateRequest,
    socket: TLSSocket,
    private judgedBy: ClientAuthority,
  ) {
    const own = ownCertificate(socket);
    this.subject = own === undefined ? "" : oneLine(own.subject);
    this.chain = [];
    if (own === undefined) {
      this.fault = "none";
      return;
    }
    if (!socket.authorized) {
      this.code = String(socket.authorizationError);
      this.fault = FAULTS_BY_CODE[this.code] ?? "invalid";
      return;
    }
    const chain = judgedBy.chainOf(own);
    if (chain === undefined) {
      this.fault = "unknown-authority";
      return;
    }
    this.chain = chain;
    this.names = namesOf(own);
    this.judge();
  }

  faultAt(now: number): CertificateFault | undefined {
    if (this.chain.length === 0) return this.fault;
    if (this.judgedBy !== this.request.authority) {
      this.judgedBy = this.request.authority;
      this.judge();
    }
    if (this.fault === undefined && now > this.until)
      this.fault = this.chain.some(({ validTo }) => now > Date.parse(validTo)) ? "expired" : "crl-expired";
    return this.fault;
  }

  private judge(): void {
    const judged = this.judgedBy.stillGood(this.chain);
    this.fault = typeof judged === "string" ? judged : undefined;
    if (typeof judged !== "string") this.until = judged.until;
  }

  get shown(): string {
    return this.code === "" ? this.subject : `${this.subject} (${this.code})`;
  }

  /** As upstreams get it (RFC 9440, 2). The root is left out: every receiver that trusts it has it. */
  identity(user: string | undefined): ClientIdentity {
    const [certificate, ...issuers] = this.chain.map(({ raw }) => `:${raw.toString("base64")}:`);
    return { certificate: certificate!, chain: issuers.slice(0, -1).join(", "), user };
  }
}

/**
 * The certificate that the client sent first. In a server, Node's `getPeerX509Certificate` never frees the others that the
 * client sent, so a stranger could fill the memory.
 */
function ownCertificate(socket: TLSSocket): X509Certificate | undefined {
  const { raw } = (socket.getPeerCertificate() as Partial<PeerCertificate> | null) ?? {};
  return raw && new X509Certificate(raw);
}

/** OpenSSL's results (X509_STORE_CTX_get_error(3)), as Node names them. */
const FAULTS_BY_CODE: Readonly<Record<string, CertificateFault>> = {
  UNABLE_TO_GET_ISSUER_CERT: "unknown-authority",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "unknown-authority",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "unknown-authority",
  SELF_SIGNED_CERT_IN_CHAIN: "unknown-authority",
  DEPTH_ZERO_SELF_SIGNED_CERT: "unknown-authority",
  CERT_UNTRUSTED: "unknown-authority",
  // Each authority of `ca` has a list.
  UNABLE_TO_GET_CRL: "unknown-authority",
  CERT_HAS_EXPIRED: "expired",
  CERT_NOT_YET_VALID: "not-yet-valid",
  CERT_REVOKED: "revoked",
  CRL_HAS_EXPIRED: "crl-expired",
};

/** The common names, then the alternative names, that a field and a log can show. */
function namesOf(own: X509Certificate): string[] {
  const { CN: common = [] } = own.toLegacyObject().subject as { readonly CN?: string | string[] };
  return [...[common].flat(), ...alternativeNames(own.subjectAltName ?? "")].filter((name) =>
    USABLE.test(name),
  );
}

/** A name without control characters, and without blanks at its ends: an upstream must not read another name. */
const USABLE = /^[^\p{Cc}\s](?:[^\p{Cc}]*[^\p{Cc}\s])?$/u;

/**
 * Mail addresses, DNS names and URIs of a certificate.
 *
 * @param text as Node writes it: values with odd characters are JSON strings, so that no value looks like two. Text of
 * another form gives no names
 */
export function alternativeNames(text: string): string[] {
  const names: string[] = [];
  for (let at = 0; at < text.length;) {
    ENTRY.lastIndex = at;
    const entry = ENTRY.exec(text);
    if (entry === null) return [];
    const [whole, kind, value] = entry as unknown as [string, string, string];
    if (NAME_KINDS.includes(kind)) names.push(value.startsWith('"') ? (JSON.parse(value) as string) : value);
    at += whole.length;
  }
  return names;
}

const ENTRY = /([A-Za-z][A-Za-z ]*):("(?:[^"\\]|\\.)*"|[^",]*)(?:, |$)/y;
const NAME_KINDS = ["email", "DNS", "URI"];
