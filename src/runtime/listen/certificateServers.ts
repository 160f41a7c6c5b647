import { X509Certificate } from "node:crypto";
import type { Server as TlsServer } from "node:tls";
import { CertificateNames, sniNames } from "../../model/serving.js";
import type { CertificateContents } from "../load/tlsContents.js";

/** Whether a request for a host name may not be answered on a connection; see {@link CertificateServers}. */
export type Misdirected = (serverName: string) => boolean;

/**
 * The TLS servers of a listener, one for each of its certificates, and the choice between them by server name.
 *
 * Separate servers instead of Node's `SNICallback`, because of session tickets. OpenSSL opens a ticket with the keys of
 * the context that a handshake begins with, and asks for another certificate only if that fails; so a ticket for one
 * name would be valid for all. Separate servers have separate keys. And Node does not tell which name a resumed session
 * of TLS 1.2 belongs to; here the server shows it.
 */
export class CertificateServers {
  all: readonly CertificateServer[] = [];
  private byName = new CertificateNames<TlsServer>();

  /**
   * @param create makes the server of a certificate; its connections come with a check of the host names that must not
   * be requested there, undefined if there is only one certificate
   */
  constructor(
    certificates: readonly CertificateContents[],
    private readonly create: (
      certificate: CertificateContents,
      misdirected: Misdirected | undefined,
    ) => TlsServer,
  ) {
    this.replace(certificates);
  }

  /** Uses these from now on. The servers of certificates that stay are kept: there may be hundreds. */
  replace(certificates: readonly CertificateContents[]): void {
    const before = new Map(this.all.map((one) => [textOf(one.certificate), one]));
    const make = (certificate: CertificateContents): CertificateServer =>
      certificates.length === 1
        ? { certificate, names: [], server: this.create(certificate, undefined) }
        : this.oneOfSeveral(certificate);
    this.all = certificates.map((certificate) => before.get(textOf(certificate)) ?? make(certificate));
    this.byName = new CertificateNames();
    for (const { names, server } of this.all) this.byName.add(names, server);
  }

  /** Answers clients that name no server, or one that no certificate covers. */
  get default(): TlsServer {
    return this.all[0]!.server;
  }

  for(serverName: string): TlsServer {
    return this.byName.find(serverName) ?? this.default;
  }

  private oneOfSeveral(certificate: CertificateContents): CertificateServer {
    const names = sniNames(new X509Certificate(certificate.cert).subjectAltName);
    const own = new CertificateNames<true>();
    own.add(names, true);
    const misdirected: Misdirected = (name) =>
      own.find(name) === undefined && this.byName.find(name) !== undefined;
    return { certificate, names, server: this.create(certificate, misdirected) };
  }
}

interface CertificateServer {
  readonly certificate: CertificateContents;
  /** By which it is chosen; empty where there is no choice. */
  readonly names: readonly string[];
  readonly server: TlsServer;
}

const textOf = ({ key, cert }: CertificateContents): string => key + cert;
