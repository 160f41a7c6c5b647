import { X509Certificate } from "node:crypto";
import type { Server as TlsServer } from "node:tls";
import { NameTable, sniNames } from "../../model/serving.js";
import type { ClientAuthority } from "./clientAuthority.js";
import type { PresentedCertificate } from "../exchange/exchange.js";
import type { CertificateRequest } from "./clientCertificates.js";
import type { CertificateContents } from "./tlsContents.js";

/** Whether a request for a host name gets no response on a connection; see {@link CertificateServers}. */
export type Misdirected = (serverName: string) => boolean;

/** Consequences of a connection's handshake for the requests on it. */
export interface Secured {
  readonly misdirected: Misdirected | undefined;
  /** Whether one of its certificate's names, or a name below it, has a temporary certificate. */
  temporary: boolean;
  /** The certificate that the client was asked for; undefined if it was not asked. */
  readonly presented?: PresentedCertificate;
}

/**
 * The TLS servers of a listener, one for each of its certificates, and the choice between them by server name.
 *
 * Separate servers instead of Node's `SNICallback`, because of session tickets. OpenSSL opens a ticket with the keys of
 * the context that a handshake begins with, and asks for another certificate only if that fails; so a ticket for one
 * name would be valid for all. Separate servers have separate keys. And Node does not tell which name a resumed session
 * of TLS 1.2 belongs to; here the server shows it. For the same reason, clients that are asked for a certificate have
 * servers of their own: Node asks on all connections of a server or on none.
 */
export class CertificateServers {
  all: readonly CertificateServer[];
  private byName = new NameTable<CertificateServer>();

  /**
   * @param create makes the server of a certificate. `secured` has a check for host names that must not be requested
   * there, undefined if there is only one certificate
   */
  constructor(
    certificates: readonly CertificateContents[],
    private readonly create: (
      certificate: CertificateContents,
      secured: Secured,
      request?: CertificateRequest,
    ) => TlsServer,
  ) {
    this.all = certificates.map((one) => this.serverOf(one, certificates.length));
    this.index();
  }

  /** Replaces the certificates with the same ids. The servers of all others are kept: there may be hundreds. */
  renew(renewed: readonly CertificateContents[]): void {
    const byId = new Map(renewed.map((one) => [one.id, one]));
    if (!this.all.some(({ certificate }) => byId.has(certificate.id))) return;
    this.all = this.all.map((before) => {
      const certificate = byId.get(before.certificate.id);
      return certificate === undefined ? before : this.serverOf(certificate, this.all.length);
    });
    this.index();
  }

  /** The server for clients that name no server, or a server that no certificate covers. */
  get default(): TlsServer {
    return this.all[0]!.server;
  }

  /** @param request for clients that have to be asked for a certificate of their own */
  for(serverName: string, request?: CertificateRequest): TlsServer {
    const one = this.byName.find(serverName) ?? this.all[0]!;
    if (request === undefined) return one.server;
    let server = one.asking.get(request.authority);
    if (server === undefined)
      one.asking.set(request.authority, (server = this.create(one.certificate, one.secured, request)));
    return server;
  }

  private index(): void {
    this.byName = new NameTable();
    for (const one of this.all) this.byName.add(one.names, one);
    // This is a set: otherwise each renewal would compare hundreds of names with each other.
    const waiting = new Set(this.all.filter(isTemporary).flatMap(withNamesAbove));
    for (const one of this.all)
      one.secured.temporary = isTemporary(one) || one.names.some((name) => waiting.has(endOf(name)));
  }

  /** @param count how many certificates there are: without a choice nothing has to be known of their names */
  private serverOf(certificate: CertificateContents, count: number): CertificateServer {
    if (count === 1) return this.withServer(certificate, [], undefined);
    const covered = sniNames(new X509Certificate(certificate.cert).subjectAltName);
    // An authority may add names, and they may be those of another certificate.
    const names = covered.filter((name) => certificate.names?.includes(name) ?? true);
    const own = new NameTable<true>();
    own.add(names, true);
    const misdirected: Misdirected = (name) =>
      own.find(name) === undefined && this.byName.find(name) !== undefined;
    return this.withServer(certificate, names, misdirected);
  }

  private withServer(
    certificate: CertificateContents,
    names: readonly string[],
    misdirected: Misdirected | undefined,
  ): CertificateServer {
    const secured = { misdirected, temporary: false };
    return { certificate, names, secured, server: this.create(certificate, secured), asking: new WeakMap() };
  }
}

const isTemporary = ({ certificate }: CertificateServer): boolean => certificate.source === "temporary";

/** The names of a certificate, and all above them, whose HSTS may include subdomains: `.a.example.org`, `.example.org`, `.org`. */
function withNamesAbove({ names: covered, certificate }: CertificateServer): string[] {
  const { names = covered } = certificate;
  return names.flatMap((name) => {
    const labels = name.split(".");
    return labels.map((_, i) => endOf(labels.slice(i).join(".")));
  });
}

/** The common suffix of a name and all names below it; for a wildcard, of all names that it covers. */
const endOf = (name: string): string => (name.startsWith("*.") ? name.slice(1) : `.${name}`);

interface CertificateServer {
  readonly certificate: CertificateContents;
  /** The names by which the certificate is chosen; empty if there is no choice. */
  readonly names: readonly string[];
  readonly secured: Secured;
  readonly server: TlsServer;
  /**
   * Servers that ask clients for a certificate, by the authorities whose names they send. Made when a client comes: nothing
   * has to be made again when files or certificates change.
   */
  readonly asking: WeakMap<ClientAuthority, TlsServer>;
}
