import { type ConnectionOptions, getCiphers } from "node:tls";
import type { Facts } from "../facts.js";

/** What a client offers in a TLS handshake (service 3.2), and what must come of it. */
export interface Handshake {
  readonly name: string;
  readonly offer: ConnectionOptions;
  readonly expect: Facts;
}

const ECDHE = "ECDHE-RSA-AES256-GCM-SHA384";

export const HANDSHAKES: readonly Handshake[] = [
  { name: "TLS 1.2 with the best suite, the one curve and HTTP/2", offer: { ALPNProtocols: ["h2", "http/1.1"] },
    expect: { protocol: "TLSv1.2", cipher: ECDHE, key: "ECDH secp384r1 384", alpn: "h2" } },
  { name: "HTTP/1.1 by ALPN", offer: { ALPNProtocols: ["http/1.1"] }, expect: { alpn: "http/1.1" } },
  { name: "no ALPN", offer: {}, expect: { protocol: "TLSv1.2" } },
  { name: "an application protocol that nobody knows", offer: { ALPNProtocols: ["spdy/3"] },
    expect: { error: "ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL" } },
  { name: "TLS 1.1 alone", offer: { minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "ALL@SECLEVEL=0" },
    expect: { error: "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION" } },
  { name: "TLS 1.3 alone", offer: { minVersion: "TLSv1.3" },
    expect: { error: "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION" } },
  { name: "other curves alone: Diffie-Hellman with the parameters of the file",
    offer: { ecdhCurve: "prime256v1:X25519" }, expect: { cipher: "DHE-RSA-AES256-GCM-SHA384", key: "DH  2048" } },
  { name: "other curves and no finite fields: nothing is left",
    offer: { ecdhCurve: "prime256v1:X25519", ciphers: ECDHE },
    expect: { error: "ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE" } },
  { name: "the order of the server counts",
    offer: { ciphers: `DHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:${ECDHE}` }, expect: { cipher: ECDHE } },
  { name: "no server name", offer: { servername: "" }, expect: { protocol: "TLSv1.2" } },
  { name: "another server name", offer: { servername: "other.example" }, expect: { protocol: "TLSv1.2" } },
  // Each suite that this Node knows, offered alone: the cipher string in full.
  ...getCiphers().filter((name) => !name.startsWith("tls_")).map((name) => name.toUpperCase()).map((name): Handshake =>
    ({ name: `${name} alone`, offer: { ciphers: `${name}@SECLEVEL=0` }, expect: {} })),
];
