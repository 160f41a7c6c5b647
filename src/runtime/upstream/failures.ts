import type { ErrorToken } from "../../model/index.js";
import { ChunkError } from "../codec/http1/chunkDecoder.js";
import { HeadError } from "../codec/http1/fields.js";
import type { UpstreamFailure } from "./responseReader.js";
import { isRefusal } from "./outage.js";
import { connectingTo, type UpstreamLink, type TlsToUpstream } from "./upstreamTls.js";

/** Why a connection gives no complete response: in nginx's words, and by the names of RFC 9209, 2.3. */
export type Failed = Pick<UpstreamFailure, "status" | "message" | "token">;

/** An error of a socket, as Node describes it. */
export type SocketError = Error & { readonly syscall?: string; readonly code?: string };

export function connectTimedOut(link: UpstreamLink): Failed {
  const message = `upstream timed out while ${connectingTo(link)} upstream`;
  return { status: 504, message, token: link.looksUp ? "dns_timeout" : "connection_timeout" };
}

/**
 * @param writing whether the upstream takes nothing of the request, and not: sends nothing
 * @param responded whether its response has begun
 */
export function timedOut(writing: boolean, responded: boolean): Failed {
  const what = writing ? "sending request to" : "reading response from";
  const read = responded ? "connection_read_timeout" : "http_response_timeout";
  const token = writing ? "connection_write_timeout" : read;
  return { status: 504, message: `upstream timed out while ${what} upstream`, token };
}

/**
 * The upstream, or a device in between, ended the connection.
 *
 * @param doing what was done with it, in nginx's words
 * @param responded whether its response has begun
 */
export function closedEarly(what: string, doing: string, responded: boolean): Failed {
  const token = responded ? "http_response_incomplete" : "connection_terminated";
  return { status: 502, message: `${what} while ${doing}`, token };
}

/**
 * The connection's socket failed.
 *
 * @param tls undefined if it does not speak TLS
 */
export function socketFailed(
  error: SocketError,
  doing: string,
  { opening, responded, tls }: { opening: boolean; responded: boolean; tls: TlsToUpstream | undefined },
): Failed {
  const failed = closedEarly(
    `${opening ? "connect" : "recv"}() failed (${systemError(error)})`,
    doing,
    responded,
  );
  const ofTls = tls && tlsFailure(error, tls.name, opening);
  const token = opening ? connectToken(error, tls !== undefined) : failed.token;
  return { status: 502, message: ofTls ?? failed.message, token };
}

/** The token of an error before a connection is established. @param tls whether the upstream speaks it */
export function connectToken(error: SocketError, tls: boolean): ErrorToken {
  if (isRefusal(error)) return "connection_refused";
  const { code = "", syscall } = error;
  if (syscall === "getaddrinfo") return "dns_error";
  return CONNECT_TOKENS[code] ?? (tls ? tlsToken(code) : "connection_terminated");
}

const CONNECT_TOKENS: Readonly<Partial<Record<string, ErrorToken>>> = {
  ECONNRESET: "connection_terminated",
  EPIPE: "connection_terminated",
  // The listen queue of a Unix socket is full.
  EAGAIN: "connection_limit_reached",
  ETIMEDOUT: "connection_timeout",
  EHOSTUNREACH: "destination_ip_unroutable",
  EHOSTDOWN: "destination_ip_unroutable",
  ENETUNREACH: "destination_ip_unroutable",
  // A socket of other users, a rule of the local firewall.
  EACCES: "proxy_configuration_error",
  EPERM: "proxy_configuration_error",
  // No descriptors, local ports or memory.
  EMFILE: "proxy_internal_error",
  ENFILE: "proxy_internal_error",
  EADDRNOTAVAIL: "proxy_internal_error",
  ENOBUFS: "proxy_internal_error",
  ENOMEM: "proxy_internal_error",
};

/**
 * The upstream's response breaks the rules of HTTP.
 *
 * @param upstream its name
 */
export function invalidResponse(error: HeadError | ChunkError, upstream: string): Failed {
  const field = error instanceof HeadError && error.field !== undefined ? ` (${error.field})` : "";
  const message = `upstream sent an invalid response: ${error.message}${field}; ${wayOut(error, upstream)}`;
  return { status: 502, message, token: invalidToken(error) };
}

function wayOut(error: HeadError | ChunkError, upstream: string): string {
  if (error instanceof HeadError && error.bareLineFeed)
    return `end lines with CR LF at upstream "${upstream}", or set its \`bareLineFeeds\` if nothing else is in front of it`;
  if (error instanceof HeadError && error.page !== undefined)
    return `increase \`headBytesMax\` of upstream "${upstream}"`;
  return `correct the response of upstream "${upstream}"`;
}

function invalidToken(error: HeadError | ChunkError): ErrorToken {
  if (error instanceof ChunkError) return "http_response_transfer_coding";
  // Only a head that is too long has words for a page.
  return error.page === undefined ? "http_protocol_error" : "http_response_header_section_size";
}

/** It came before the request was sent, which goes to another connection. */
export const TOO_EARLY: Failed = {
  status: 502,
  message: "upstream sent a response before the request",
  token: "http_protocol_error",
};

/** TLS distinguishes an end from a cut. */
export const TLS_CUT: Failed = {
  status: 502,
  message: "upstream closed connection without an end of TLS: its response is cut off",
  token: "http_response_incomplete",
};

/** `111: ECONNREFUSED`, as nginx names errors of the system. */
function systemError({ errno = 0, code }: { errno?: number; code?: string }): string {
  return `${Math.abs(errno)}: ${code}`;
}

/**
 * Why TLS to an upstream failed and what to do about it, for the error log; undefined if it is not TLS that failed.
 *
 * @param name that the certificate has to be for
 * @param opening whether the handshake is not over: after it, the same code of OpenSSL has another cause
 */
export function tlsFailure(
  error: Error & { readonly code?: string },
  name: string,
  opening: boolean,
): string | undefined {
  const { code = "" } = error;
  const known = FAILURES.find(({ codes, later }) => codes.test(code) && (opening || later === true));
  if (known !== undefined) {
    const [message, fix] = [known.message, known.fix].map((text) => text.replaceAll("{name}", name));
    return `TLS to upstream failed (${code}): ${message}; ${fix}`;
  }
  // OpenSSL's reason is in the code; the rest of its message is file names and numbers.
  return /^(?:ERR_SSL|ERR_TLS|EPROTO)/.test(code) ? `TLS to upstream failed (${code})` : undefined;
}

/** The token of a failure (RFC 9209, 2.3.11 to 2.3.13). @param code of an error in a TLS handshake */
export function tlsToken(code: string): ErrorToken {
  if (/_ALERT_|_UNRECOGNIZED_NAME$/.test(code)) return "tls_alert_received";
  // OpenSSL's errors about certificates have no such prefix.
  const isProtocol = /^(?:ERR_SSL|ERR_TLS|EPROTO)/.test(code) && code !== "ERR_TLS_CERT_ALTNAME_INVALID";
  return isProtocol ? "tls_protocol_error" : "tls_certificate_error";
}

interface FailureText {
  /** Codes of Node and of OpenSSL's verification and alerts. */
  readonly codes: RegExp;
  /** A TLS 1.3 server looks at the client's certificate when the client's handshake is over: the failure may come later. */
  readonly later?: true;
  readonly message: string;
  readonly fix: string;
}

const FAILURES: readonly FailureText[] = [
  { codes: /^CERT_HAS_EXPIRED$/, message: "its certificate has expired", fix: "renew it at the upstream" },
  {
    codes: /^CERT_NOT_YET_VALID$/,
    message: "its certificate is not valid yet",
    fix: "set the clocks of both hosts",
  },
  {
    codes: /^ERR_TLS_CERT_ALTNAME_INVALID$/,
    message: 'its certificate is not for "{name}"',
    fix: "set `tls.serverName` to a name of the certificate",
  },
  {
    codes: /SELF_SIGNED_CERT|^UNABLE_TO_(?:GET_ISSUER_CERT|VERIFY_LEAF_SIGNATURE)/,
    message: "its certificate is from an unknown authority",
    fix: "set `tls.caFile` to the authority's root certificate, and let the upstream send the intermediate certificates",
  },
  {
    codes: /_(?:WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|DATA_LENGTH_TOO_LONG|HTTP_REQUEST)$/,
    message: "it does not speak TLS on this port",
    fix: "use another port, or an `http` URL",
  },
  {
    codes: /_(?:UNSUPPORTED_PROTOCOL|ALERT_PROTOCOL_VERSION)$/,
    message: "it speaks neither TLS 1.2 nor TLS 1.3",
    fix: "upgrade the upstream",
  },
  {
    codes: /_ALERT_(?:CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE)$/,
    later: true,
    message: "it refuses the handshake, possibly because it requires a client certificate",
    fix: "set `tls.certificateFile` and `tls.privateKeyFile`",
  },
  {
    codes: /_ALERT_(?:UNKNOWN_CA|ACCESS_DENIED|CERTIFICATE|BAD_CERTIFICATE|UNSUPPORTED_CERTIFICATE)/,
    later: true,
    message: "it refuses the client certificate",
    fix: "let the upstream trust the authority of `tls.certificateFile`",
  },
  {
    codes: /^ERR_TLS_FLOOD$/,
    later: true,
    message: "it sends too many TLS messages without data",
    fix: "repair or replace the upstream's TLS: it keeps the proxy busy",
  },
  {
    codes: /_UNRECOGNIZED_NAME$/,
    message: 'it does not know the name "{name}"',
    fix: "set `tls.serverName` to a name that the upstream knows",
  },
];
