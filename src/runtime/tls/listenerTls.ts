import { createHash, hkdfSync } from "node:crypto";
import { createServer, type Server as TlsServer, type TLSSocket } from "node:tls";
import type { CertificateContents } from "./tlsContents.js";
import { challengeContext } from "./tlsContexts.js";
import { CHALLENGE_PROTOCOL } from "./clientHello.js";
import { type ListenerConfig, tlsPolicySettings } from "../../model/serving.js";
import type { Challenge } from "../dispatch/challenge.js";

/**
 * The session context of a listener, from its name, its policy and its certificate. A ticket proves the handshake that
 * issued it, so it may not replace a handshake of another listener, which has other rules or another key, nor one of
 * the same listener after these changed. Computed, not random: every worker, every generation and the next master get
 * the same result, so a reload that changes none of this keeps the clients' sessions. Groups that not every OpenSSL
 * knows are part of the policy everywhere, so that hosts with different ones resume each other's sessions.
 *
 * @returns 32 characters, as many as OpenSSL takes (SSL_MAX_SID_CTX_LENGTH)
 */
export function sessionContext(listener: ListenerConfig, { cert }: CertificateContents): string {
  const policy = tlsPolicySettings(listener.tls!.policy);
  const { minVersion, maxVersion, ciphers, curvesIfKnown = [] } = policy;
  const curves = [...curvesIfKnown, ...policy.curves];
  const belongsTo = JSON.stringify([listener.name, minVersion, maxVersion, ciphers, curves, cert]);
  return createHash("sha256").update(belongsTo).digest("hex").slice(0, CONTEXT_LENGTH);
}

/**
 * The keys of a listener's tickets, derived from those of the master. OpenSSL compares the context of a ticket only
 * after decrypting it; with separate keys a listener cannot even decrypt the ticket of another listener.
 *
 * @param ticketKeys 48 bytes in base64
 * @returns 48 bytes, as `tls.Server` takes them
 */
export function listenerTicketKeys(ticketKeys: string, context: string): Buffer {
  const keys = Buffer.from(ticketKeys, "base64");
  return Buffer.from(hkdfSync("sha256", keys, "", `portico tickets ${context}`, keys.length));
}

const CONTEXT_LENGTH = 32;

/** TLS servers that respond to challenges (RFC 8737), by name. They do the handshake only. */
export function challengeServers(
  challenges: readonly Challenge[],
  failed: (error: Error, socket: TLSSocket) => void,
): ReadonlyMap<string, TlsServer> {
  return new Map(
    challenges.flatMap((one) => {
      if (one.type !== "tls-alpn-01") return [];
      const server = createServer({ ...challengeContext(one), ALPNProtocols: [CHALLENGE_PROTOCOL] });
      server.on("secureConnection", (socket) => socket.on("error", () => socket.destroy()).end());
      server.on("tlsClientError", failed);
      return [[one.name, server] as const];
    }),
  );
}
