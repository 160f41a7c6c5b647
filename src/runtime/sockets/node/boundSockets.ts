import net from "node:net";
import { isIpv6 } from "../../../model/serving.js";
import { doWithout, uses } from "./pieces.js";
import { type BoundSocket, holdSocket } from "./socketHolder.js";

/** @returns a bound socket, or an errno */
export function bind(address: string, port: number): BoundSocket | number {
  const v6 = isIpv6(address);
  if (!uses.boundSockets) return holdSocket({ host: address, port, ipv6Only: v6 });
  const handle = createServerHandle!(address, port, v6 ? 6 : 4, -1, v6 ? IPV6_ONLY : 0);
  return typeof handle === "number" ? handle : boundSocket(handle);
}

/** A socket that this process was started with; undefined if it is not a TCP socket. */
export function socketOf(fd: number): BoundSocket | undefined {
  try {
    if (!uses.boundSockets) return tcpOnly(holdSocket({ fd }));
    const handle = createServerHandle!(null, null, null, fd);
    // A Unix socket has a handle, too.
    if (typeof handle === "number" || typeof handle.getsockname !== "function") return undefined;
    return tcpOnly(boundSocket(handle));
  } catch {
    return undefined;
  }
}

function boundSocket(handle: Handle): BoundSocket | number {
  const at: { address?: string; port?: number } = {};
  // libuv does not report EADDRINUSE before the next call on the handle.
  const failed = handle.getsockname(at);
  const { address = "", port = 0 } = at;
  if (failed === 0) return { fd: handle.fd, handle, address, port, close: () => handle.close() };
  handle.close();
  return failed;
}

function tcpOnly(socket: BoundSocket | number): BoundSocket | undefined {
  return typeof socket === "number" || socket.address === "" ? undefined : socket;
}

/** The part of libuv's TCP handle that is used. */
interface Handle {
  readonly fd: number;
  getsockname(out: { address?: string; port?: number }): number;
  close(): void;
}

/**
 * The call with which node:cluster makes the sockets it shares among its workers: a bound handle that does not listen
 * yet, or an errno. There is no public call: `server.listen` would accept here, in the master.
 */
const createServerHandle = (
  net as unknown as {
    _createServerHandle?(
      address: string | null,
      port: number | null,
      family: 4 | 6 | null,
      fd: number | undefined,
      flags?: number,
    ): Handle | number;
  }
)._createServerHandle;

if (typeof createServerHandle !== "function") doWithout(["boundSockets"]);

/** UV_TCP_IPV6ONLY: `::` leaves IPv4 to the listener on `0.0.0.0`. */
const IPV6_ONLY = 1;
