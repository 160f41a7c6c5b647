import { admittedName, certificateRefusal, certificateUser } from "../../model/serving.js";
import type { WorkerCounts } from "../counting/workerCounts.js";
import type { VirtualServerConfig } from "../../model/index.js";
import type { CertificateFault, ErrorLog, Exchange } from "../exchange/exchange.js";
import { respondFailure } from "./errorPages.js";

/**
 * Judges the certificate of a request's connection by the rules of the virtual server that the request is for: over
 * HTTP/2, clients use one connection for several hosts (RFC 9113, 9.1.1), and over HTTP/1.1 nothing prevents it.
 */
export class CertificateStep {
  /** @param requestOf who asks for the certificates of a server */
  constructor(
    private readonly requestOf: (server: VirtualServerConfig) => object | undefined,
    private readonly counts: WorkerCounts,
    private readonly mainError: ErrorLog,
  ) {}

  /** @returns whether the request may come in; else it was refused */
  admits(exchange: Exchange): boolean {
    const { client, server } = exchange;
    const rules = server.clientCertificate;
    if (rules === undefined) return true;
    const { presented } = client;
    // Also for a trusted proxy, which may connect by any name: nobody asked it for this server's certificate.
    if (presented === undefined || presented.request !== this.requestOf(server)) {
      this.tell(
        exchange,
        "misdirected",
        "the connection was made for another server, and needs to be made again",
      );
      respondFailure(exchange, "http_request_error", 421);
      return false;
    }
    const fault = presented.faultAt(Date.now());
    if (fault === "none" && !rules.required) {
      exchange.user = certificateUser(rules, undefined);
      return true;
    }
    if (fault !== undefined) return this.refuse(exchange, fault, `${MESSAGES[fault]}${of(presented.shown)}`);
    const name = admittedName(rules, presented.names);
    if (name === undefined && rules.names !== undefined) {
      const message = `none of the certificate's names may come in${of(presented.names.join(", "))}`;
      return this.refuse(exchange, "name", message);
    }
    exchange.user = certificateUser(rules, presented.identity(name));
    return true;
  }

  private refuse(exchange: Exchange, reason: CertificateFault | "name", message: string): false {
    exchange.accessRefusal = certificateRefusal(exchange.server);
    // A browser asks for a certificate only on a new connection.
    exchange.closes = true;
    this.tell(exchange, reason, message);
    respondFailure(exchange, "http_request_denied", 403);
    return false;
  }

  private tell(exchange: Exchange, reason: string, message: string): void {
    const { name } = exchange.server;
    this.counts.refusedCertificate(name, reason);
    const log = exchange.route?.errorLog ?? this.mainError;
    log.write("error", `access="${name} clientCertificate": ${reason}: ${message}`, exchange);
  }
}

const of = (shown: string): string => (shown === "" ? "" : `: ${JSON.stringify(shown)}`);

const MESSAGES: Readonly<Record<CertificateFault, string>> = {
  none: "the client has sent no certificate",
  "unknown-authority": "no authority of `ca` has signed the certificate",
  expired: "the certificate, or that of an authority, has expired",
  "not-yet-valid": "the certificate, or that of an authority, is not valid yet",
  revoked: "the certificate, or that of an authority, is revoked",
  "crl-expired": "a list of `crl` has expired, so that nobody knows which certificates are revoked",
  invalid: "the certificate is not one of a client that the authorities have signed",
};
