import type { Socket } from "node:net";
import { connect, createSecureContext, type TLSSocket } from "node:tls";

/** One for all: making it costs more than the rest of a connection, and Node takes long to free many. */
export const secureContext = createSecureContext();
const sessions = new Map<string, Buffer>();

export interface TlsClient {
  readonly port: number;
  /** Undefined for none: the listener's own certificate responds. */
  readonly serverName?: string;
  readonly protocol: "http/1.1" | "h2";
  /**
   * All but the first to a port resume its session, as browsers do: a whole handshake takes both sides milliseconds. TLS is
   * but the way to the parsers then.
   */
  readonly resumes?: true;
  /** A connection to that port, if it was made already. */
  readonly over?: Socket;
}

/** A client's TLS connection to a loopback port. */
export function connectTls({ port, serverName, protocol, resumes, over }: TlsClient): TLSSocket {
  const key = `${port} ${protocol} ${serverName}`;
  const session = resumes === undefined ? undefined : sessions.get(key);
  const socket = connect({
    ...(over === undefined ? { host: "127.0.0.1", port } : { socket: over }),
    servername: serverName,
    session,
    ALPNProtocols: [protocol],
    rejectUnauthorized: false,
    secureContext,
  });
  if (resumes !== undefined) socket.on("session", (ticket: Buffer) => sessions.set(key, ticket));
  return socket;
}
