import { connect, type ConnectionOptions, type TLSSocket } from "node:tls";
import type { Facts } from "./facts.js";
import { HOST } from "../wire/site.js";

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
    // OpenSSL 3.5, of Node 24, has another name for the alert.
    socket.once("error", ({ code, message }: NodeJS.ErrnoException) =>
      resolve({ error: (code ?? message).replace("SSL/TLS_ALERT", "SSLV3_ALERT") }),
    );
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
