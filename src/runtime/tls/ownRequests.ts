import type { ClientRequest } from "node:http";
import { Agent, type AgentOptions } from "node:https";
import type { TcpNetConnectOpts } from "node:net";
import type { ConnectionOptions, TLSSocket } from "node:tls";
import { TlsCarrier } from "./tlsCarrier.js";
import { clientContext } from "./tlsContexts.js";

/** What all https requests of the proxy's own have in common: to authorities, to acme-dns, to targets of notifications. */

/**
 * Their connections: the server has to be trusted, whatever `NODE_TLS_REJECT_UNAUTHORIZED` says, and what it sends keeps
 * this process from nothing else for longer than one read takes.
 */
export class OwnAgent extends Agent {
  /** @param roots PEM of the only roots that are trusted; default: those that Node brings along */
  constructor(roots: string | undefined, options: AgentOptions = {}) {
    super({ ...options, rejectUnauthorized: true, secureContext: clientContext(roots) } as AgentOptions);
  }

  override createConnection(options: ConnectionOptions & TcpNetConnectOpts): TLSSocket {
    const { host, port } = options;
    const carrier = new TlsCarrier({ host, port, noDelay: true }, true);
    const over = { ...options, socket: carrier };
    const socket = super.createConnection(over) as TLSSocket;
    carrier.begin(socket);
    return socket;
  }
}

/** Calls `tooMany` for a server that would keep this process busy with interim responses for as long as it likes. */
export function boundInformational(sent: ClientRequest, tooMany: (why: string) => void): void {
  let seen = 0;
  sent.on("information", () => {
    if (++seen === INFORMATIONAL_MAX + 1) tooMany("it sent too many interim responses");
  });
}

const INFORMATIONAL_MAX = 100;
