import { connect, type ConnectionOptions, getCiphers, type TLSSocket } from "node:tls";
import type { Facts } from "./facts.js";
import { HOST } from "../wire/site.js";

/** What a client offers in a TLS handshake (service 3.2), and what must come of it. */
export interface Handshake {
  readonly name: string;
  readonly offer: ConnectionOptions;
  readonly expect: Facts;
}

const ECDHE = "ECDHE-RSA-AES256-GCM-SHA384";

export const HANDSHAKES: readonly Handshake[] = [
  {
    name: "TLS 1.2 with the best suite, the one curve and HTTP/2",
    offer: { ALPNProtocols: ["h2", "http/1.1"] },
    expect: { protocol: "TLSv1.2", cipher: ECDHE, key: "ECDH secp384r1 384", alpn: "h2" },
  },
  { name: "HTTP/1.1 by ALPN", offer: { ALPNProtocols: ["http/1.1"] }, expect: { alpn: "http/1.1" } },
  { name: "no ALPN", offer: {}, expect: { protocol: "TLSv1.2" } },
  {
    name: "an application protocol that nobody knows",
    offer: { ALPNProtocols: ["spdy/3"] },
    expect: { error: "ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL" },
  },
  {
    name: "TLS 1.1 alone",
    offer: { minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "ALL@SECLEVEL=0" },
    expect: { error: "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION" },
  },
  {
    name: "TLS 1.3 alone",
    offer: { minVersion: "TLSv1.3" },
    expect: { error: "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION" },
  },
  {
    name: "other curves alone: Diffie-Hellman with the parameters of the file",
    offer: { ecdhCurve: "prime256v1:X25519" },
    expect: { cipher: "DHE-RSA-AES256-GCM-SHA384", key: "DH  2048" },
  },
  {
    name: "other curves and no finite fields: nothing is left",
    offer: { ecdhCurve: "prime256v1:X25519", ciphers: ECDHE },
    expect: { error: "ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE" },
  },
  {
    name: "the order of the server counts",
    offer: { ciphers: `DHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:${ECDHE}` },
    expect: { cipher: ECDHE },
  },
  { name: "no server name", offer: { servername: "" }, expect: { protocol: "TLSv1.2" } },
  { name: "another server name", offer: { servername: "other.example" }, expect: { protocol: "TLSv1.2" } },
  // Each suite that this Node knows, offered alone: the cipher string in full.
  ...getCiphers()
    .filter((name) => !name.startsWith("tls_"))
    .map((name) => name.toUpperCase())
    .map((name): Handshake => ({
      name: `${name} alone`,
      offer: { ciphers: `${name}@SECLEVEL=0` },
      expect: {},
    })),
];

const HANDSHAKE_MS = 5_000;

/** Facts of a handshake with the server on a port. */
export async function shakeHands(port: number, offer: ConnectionOptions): Promise<Facts> {
  const options = { host: "127.0.0.1", port, servername: HOST, rejectUnauthorized: false, ...offer };
  const first = await attempt(options);
  if ("error" in first) return first;
  const again = await attempt({ ...options, session: first.session });
  return { ...describe(first), "second time": "error" in again ? again.error : describe(again)["resumed"]! };
}

interface Established {
  readonly socket: TLSSocket;
  readonly session: Buffer | undefined;
}

function attempt(options: ConnectionOptions): Promise<Established | { error: string }> {
  return new Promise((resolve) => {
    const socket = connect(options);
    let session: Buffer | undefined;
    socket.setTimeout(HANDSHAKE_MS, () => socket.destroy(new Error("no handshake")));
    socket.on("session", (ticket) => (session = ticket));
    socket.once("error", (error: NodeJS.ErrnoException) => resolve({ error: error.code ?? error.message }));
    // With TLS 1.2 the ticket arrives before the handshake is complete.
    socket.once("secureConnect", () => resolve({ socket, session: session ?? socket.getSession() }));
  });
}

function describe({ socket }: Established): Record<string, string> {
  const key = socket.getEphemeralKeyInfo() as { type?: string; name?: string; size?: number } | null;
  const facts = {
    protocol: socket.getProtocol() ?? "",
    cipher: socket.getCipher().name,
    key: `${key?.type ?? ""} ${key?.name ?? ""} ${key?.size ?? ""}`,
    alpn: String(socket.alpnProtocol),
    certificate: socket.getPeerCertificate().fingerprint256 ?? "",
    resumed: String(socket.isSessionReused()),
  };
  socket.destroy();
  return facts;
}
