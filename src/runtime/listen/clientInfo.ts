import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { ListenerConfig } from "../../model/index.js";
import type { ClientInfo } from "../exchange/exchange.js";
import type { Secured } from "../tls/certificateServers.js";
import type { WorkerContext } from "../dispatch/workerContext.js";
import { tlsGroup } from "../tls/tlsGroup.js";

/** The client's address, and the address that the client connected to. */
export interface Endpoints {
  readonly address: string;
  readonly port: number;
  readonly localAddress: string;
  readonly localPort: number;
  /** Set if the addresses are those of the announcing proxy itself, because its header named no client. */
  readonly unnamed?: true;
}

/** The addresses of the connection itself; some are empty if the peer is already gone. */
export const endpointsOf = (socket: Socket): Endpoints => ({
  address: plainAddress(socket.remoteAddress ?? ""),
  port: socket.remotePort ?? 0,
  localAddress: plainAddress(socket.localAddress ?? ""),
  localPort: socket.localPort ?? 0,
});

/**
 * The properties of a client when its connection is accepted.
 *
 * @param announced addresses from a PROXY header; without one, those of the connection are used
 */
export function clientInfo(
  socket: Socket,
  listener: ListenerConfig,
  context: WorkerContext,
  secured: Secured | undefined,
  announced: Endpoints | undefined,
): ClientInfo {
  const { address, port, localAddress, localPort } = announced ?? endpointsOf(socket);
  // A header that names no client makes the connection untrusted, even if the address of the balancer is trusted.
  const trusted = announced?.unnamed !== true && context.trusted(address);
  return {
    address,
    port,
    scheme: listener.protocol,
    // Now, because a client that is gone before its line is written has no session any more.
    tlsGroup: context.showsTlsGroup && socket instanceof TLSSocket ? tlsGroup(socket) : undefined,
    // No HSTS with a temporary certificate: a user who accepts it must not be locked out for a year (RFC 6797, 11.3 and
    // 12.1).
    responseRules: secured?.temporary === true ? "http" : listener.protocol,
    listener: listener.name,
    localAddress,
    localPort,
    connectionId: ++lastConnectionId,
    trusted,
    // A gateway need not connect by the name that it asks for (RFC 9110, 7.4).
    misdirected: trusted ? undefined : secured?.misdirected,
    presented: secured?.presented,
  };
}

let lastConnectionId = 0;

/** Why a connection is closed, for the error log. */
export const closedFor = (reason: string, client: ClientInfo, protocol = ""): string =>
  `*${client.connectionId} ${protocol}connection closed: ${reason}, client: ${client.address}, listener: ${client.listener}`;

/** Writes IPv4 addresses as IPv4, also those that a dual-stack socket reports as `::ffff:192.0.2.1`. */
export function plainAddress(address: string): string {
  return address.startsWith("::ffff:") && address.includes(".") ? address.slice(7) : address;
}
