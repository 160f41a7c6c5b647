import type { ErrorToken } from "../../src/model/net/errorTokens.js";
import { tlsFailure, tlsToken } from "../../src/runtime/upstream/failures.js";

/** What the error log says of TLS to an upstream, by the codes of Node and of OpenSSL, and what the access log calls it. */

const UNKNOWN =
  "its certificate is from an unknown authority; set `tls.caFile` to the authority's root certificate, and let the upstream send the intermediate certificates";
const NO_TLS = "it does not speak TLS on this port; use another port, or an `http` URL";
const OLD = "it speaks neither TLS 1.2 nor TLS 1.3; upgrade the upstream";
const DEMANDS =
  "it refuses the handshake, possibly because it requires a client certificate; set `tls.certificateFile` and `tls.privateKeyFile`";
const REFUSES =
  "it refuses the client certificate; let the upstream trust the authority of `tls.certificateFile`";

const CERTIFICATE: ErrorToken = "tls_certificate_error";
const PROTOCOL: ErrorToken = "tls_protocol_error";
const ALERT: ErrorToken = "tls_alert_received";

test.each<[code: string, token: ErrorToken, message: string]>([
  ["CERT_HAS_EXPIRED", CERTIFICATE, "its certificate has expired; renew it at the upstream"],
  ["CERT_NOT_YET_VALID", CERTIFICATE, "its certificate is not valid yet; set the clocks of both hosts"],
  [
    "ERR_TLS_CERT_ALTNAME_INVALID",
    CERTIFICATE,
    'its certificate is not for "app.example"; set `tls.serverName` to a name of the certificate',
  ],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", CERTIFICATE, UNKNOWN],
  ["SELF_SIGNED_CERT_IN_CHAIN", CERTIFICATE, UNKNOWN],
  ["UNABLE_TO_GET_ISSUER_CERT", CERTIFICATE, UNKNOWN],
  ["UNABLE_TO_GET_ISSUER_CERT_LOCALLY", CERTIFICATE, UNKNOWN],
  ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", CERTIFICATE, UNKNOWN],
  ["ERR_SSL_WRONG_VERSION_NUMBER", PROTOCOL, NO_TLS],
  ["ERR_SSL_PACKET_LENGTH_TOO_LONG", PROTOCOL, NO_TLS],
  ["ERR_SSL_HTTP_REQUEST", PROTOCOL, NO_TLS],
  ["ERR_SSL_DATA_LENGTH_TOO_LONG", PROTOCOL, NO_TLS],
  ["ERR_SSL_UNSUPPORTED_PROTOCOL", PROTOCOL, OLD],
  ["ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION", ALERT, OLD],
  ["ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED", ALERT, DEMANDS],
  ["ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE", ALERT, DEMANDS],
  ["ERR_SSL_TLSV1_ALERT_UNKNOWN_CA", ALERT, REFUSES],
  ["ERR_SSL_TLSV1_ALERT_ACCESS_DENIED", ALERT, REFUSES],
  ["ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED", ALERT, REFUSES],
  ["ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE", ALERT, REFUSES],
  ["ERR_SSL_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE", ALERT, REFUSES],
  [
    "ERR_SSL_TLSV1_UNRECOGNIZED_NAME",
    ALERT,
    'it does not know the name "app.example"; set `tls.serverName` to a name that the upstream knows',
  ],
])("%s is %s: %s", (code, token, message) => {
  const error = Object.assign(new Error("of OpenSSL"), { code });
  expect(tlsFailure(error, "app.example", true)).toBe(`TLS to upstream failed (${code}): ${message}`);
  expect(tlsToken(code)).toBe(token);
});

test.each([
  ["ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC", PROTOCOL, true],
  // It speaks TLS: the record is encrypted.
  ["ERR_SSL_RECORD_TOO_SMALL", PROTOCOL, true],
  ["ERR_TLS_HANDSHAKE_TIMEOUT", PROTOCOL, true],
  ["EPROTO", PROTOCOL, true],
  // Of a certificate; the log has the message that Node gives it.
  ["CERT_REVOKED", CERTIFICATE, false],
  ["UNABLE_TO_GET_CRL", CERTIFICATE, false],
  ["X_ERR_SSL", CERTIFICATE, false],
])("%s, which no row explains, is %s, and named if TLS failed: %s", (code, token, named) => {
  const error = Object.assign(new Error("of OpenSSL"), { code });
  expect(tlsFailure(error, "app.example", true)).toBe(named ? `TLS to upstream failed (${code})` : undefined);
  expect(tlsToken(code)).toBe(token);
});

test.each([
  ["ERR_SSL_WRONG_VERSION_NUMBER", ""],
  ["ERR_SSL_PACKET_LENGTH_TOO_LONG", ""],
  ["ERR_SSL_UNSUPPORTED_PROTOCOL", ""],
  ["ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED", `: ${DEMANDS}`],
  ["ERR_SSL_TLSV1_ALERT_UNKNOWN_CA", `: ${REFUSES}`],
])("after a handshake %s means %j", (code, meaning) => {
  const error = Object.assign(new Error("of OpenSSL"), { code });
  expect(tlsFailure(error, "app.example", false)).toBe(`TLS to upstream failed (${code})${meaning}`);
});

test("an error without a code is none of TLS", () => {
  expect(tlsFailure(new Error("closed"), "app.example", true)).toBeUndefined();
});
