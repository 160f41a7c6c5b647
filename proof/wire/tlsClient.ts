import { connect, createSecureContext, type TLSSocket } from "node:tls";

const CONTEXT = createSecureContext();
const sessions = new Map<string, Buffer>();

/**
 * A client's TLS connection. All but the first to a port resume its session: a whole handshake with this service's curve
 * takes both sides milliseconds. `handshakes.ts` asks for whole ones.
 */
export function connectTls(port: number, serverName: string, protocol: "http/1.1" | "h2"): TLSSocket {
  const key = `${port} ${protocol}`;
  const socket = connect({
    host: "127.0.0.1",
    port,
    servername: serverName,
    ALPNProtocols: [protocol],
    rejectUnauthorized: false,
    secureContext: CONTEXT,
    session: sessions.get(key),
  });
  return socket.on("session", (session: Buffer) => sessions.set(key, session));
}
