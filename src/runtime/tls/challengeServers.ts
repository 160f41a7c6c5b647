import { createServer, type Server as TlsServer, type TLSSocket } from "node:tls";
import { NO_ROOTS } from "./tlsContexts.js";
import { PROOF_PROTOCOL } from "./clientHello.js";

/** What a TLS listener uses to prove to an authority that a name leads to it (RFC 8737). */
export interface TlsProof {
  /** As the authority sends it in SNI; for an address its reverse name (RFC 8738, 6). */
  readonly name: string;
  readonly key: string;
  readonly cert: string;
}

/**
 * TLS servers that prove names, by name. They only do the handshake. They use OpenSSL's own defaults: the listener's
 * policy is for its clients, and an authority may not support it.
 */
export function proofServers(
  proofs: readonly TlsProof[],
  failed: (error: Error, socket: TLSSocket) => void,
): ReadonlyMap<string, TlsServer> {
  return new Map(
    proofs.map(({ name, key, cert }) => {
      const server = createServer({ key, cert, ca: NO_ROOTS, ALPNProtocols: [PROOF_PROTOCOL] });
      server.on("secureConnection", (socket) => socket.on("error", () => socket.destroy()).end());
      server.on("tlsClientError", failed);
      return [name, server];
    }),
  );
}
