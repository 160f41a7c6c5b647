import type { ErrorToken } from "../../model/index.js";

/** `111: ECONNREFUSED`, as nginx names errors of the system. */
export function systemError({ errno = 0, code }: { errno?: number; code?: string }): string {
  return `${Math.abs(errno)}: ${code}`;
}

/**
 * Why TLS to an upstream failed and what to do about it, for the error log; undefined if it is not TLS that failed.
 *
 * @param name that the certificate has to be for
 */
export function tlsFailure(error: Error & { readonly code?: string }, name: string): string | undefined {
  const { code = "" } = error;
  const known = FAILURES.find(({ codes }) => codes.test(code));
  if (known !== undefined) {
    const [says, fix] = [known.says, known.fix].map((text) => text.replaceAll("{name}", name));
    return `TLS to upstream failed (${code}): ${says}; ${fix}`;
  }
  // OpenSSL's reason is in the code; the rest of its message are file names and numbers.
  return /^(?:ERR_SSL|ERR_TLS|EPROTO)/.test(code) ? `TLS to upstream failed (${code})` : undefined;
}

/** What to call it (RFC 9209, 2.3.11 to 2.3.13). @param code of an error while TLS begins */
export function tlsToken(code: string): ErrorToken {
  if (/_ALERT_|_UNRECOGNIZED_NAME$/.test(code)) return "tls_alert_received";
  // All that OpenSSL says of a certificate is without these.
  const isProtocol = /^(?:ERR_SSL|ERR_TLS|EPROTO)/.test(code) && code !== "ERR_TLS_CERT_ALTNAME_INVALID";
  return isProtocol ? "tls_protocol_error" : "tls_certificate_error";
}

interface Failure {
  /** Codes of Node and of OpenSSL's verification and alerts. */
  readonly codes: RegExp;
  readonly says: string;
  readonly fix: string;
}

const FAILURES: readonly Failure[] = [
  { codes: /^CERT_HAS_EXPIRED$/, says: "its certificate has expired", fix: "renew it at the upstream" },
  {
    codes: /^CERT_NOT_YET_VALID$/,
    says: "its certificate is not valid yet",
    fix: "set the clocks of both hosts",
  },
  {
    codes: /^ERR_TLS_CERT_ALTNAME_INVALID$/,
    says: 'its certificate is not for "{name}"',
    fix: "set `tls.serverName` to a name of the certificate",
  },
  {
    codes: /SELF_SIGNED_CERT|^UNABLE_TO_/,
    says: "its certificate is from an unknown authority",
    fix: "set `tls.caFile` to the authority's root certificate, and let the upstream send the intermediate certificates",
  },
  {
    codes: /_(?:WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST|RECORD_TOO_SMALL)$/,
    says: "it does not speak TLS on this port",
    fix: "use another port, or an `http` URL",
  },
  {
    codes: /_(?:UNSUPPORTED_PROTOCOL|ALERT_PROTOCOL_VERSION)$/,
    says: "it speaks neither TLS 1.2 nor TLS 1.3",
    fix: "upgrade the upstream",
  },
  {
    codes: /_ALERT_(?:CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE)$/,
    says: "it refuses the handshake, possibly because it requires a client certificate",
    fix: "set `tls.certificateFile` and `tls.privateKeyFile`",
  },
  {
    codes: /_ALERT_(?:UNKNOWN_CA|ACCESS_DENIED|CERTIFICATE|BAD_CERTIFICATE|UNSUPPORTED_CERTIFICATE)/,
    says: "it refuses the client certificate",
    fix: "let the upstream trust the authority of `tls.certificateFile`",
  },
  {
    codes: /_UNRECOGNIZED_NAME$/,
    says: 'it does not know the name "{name}"',
    fix: "set `tls.serverName` to a name that the upstream knows",
  },
];
