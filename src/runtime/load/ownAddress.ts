import { createSocket } from "node:dgram";
import { canonicalAddress, isIpv6 } from "../../model/net/address.js";

/** Whether this machine has an address now: only then is it also the source address for packets to itself. */
export async function isOwnAddress(address: string): Promise<boolean> {
  const source = await sourceTo(address);
  return source !== undefined && canonicalAddress(source) === canonicalAddress(address);
}

/**
 * The source address that the kernel chooses on the way to an address; nothing is sent. Unlike a list of all addresses
 * it needs no netlink socket, which the service may not open.
 */
export function sourceTo(address: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = createSocket(isIpv6(address) ? "udp6" : "udp4");
    const done = (source?: string): void => {
      socket.close();
      resolve(source);
    };
    socket.once("error", () => done());
    socket.once("connect", () => done(socket.address().address));
    socket.connect(9, address);
  });
}
