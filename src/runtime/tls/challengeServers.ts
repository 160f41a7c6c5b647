import { createServer, type Server as TlsServer, type TLSSocket } from "node:tls";
import { NO_ROOTS } from "./tlsContexts.js";
import type { Challenge } from "../dispatch/challenge.js";
import { CHALLENGE_PROTOCOL } from "./clientHello.js";

/**
 * TLS servers that answer challenges (RFC 8737), by name. They only do the handshake. They use OpenSSL's own defaults: the listener's
 * policy is for its clients, and an authority may not support it.
 */
export function challengeServers(
  challenges: readonly Challenge[],
  failed: (error: Error, socket: TLSSocket) => void,
): ReadonlyMap<string, TlsServer> {
  return new Map(
    challenges.flatMap((one) => {
      if (one.type !== "tls-alpn-01") return [];
      const { name, key, cert } = one;
      const server = createServer({ key, cert, ca: NO_ROOTS, ALPNProtocols: [CHALLENGE_PROTOCOL] });
      server.on("secureConnection", (socket) => socket.on("error", () => socket.destroy()).end());
      server.on("tlsClientError", failed);
      return [[name, server] as const];
    }),
  );
}
