import { clientNetwork, ipv4Bits } from "../../model/serving.js";

/**
 * What counts as one client: an IPv4 address, or an IPv6 network.
 *
 * A table that keeps the text keeps nothing else: an address of a request's field is a part of the whole field for the
 * engine, so the text is made anew.
 *
 * @param address as {@link ClientInfo} has it
 * @param ipv6Prefix length of the prefix of an IPv6 network
 */
export function clientKey(address: string, ipv6Prefix: number): string {
  const bits = ipv4Bits(address);
  if (bits === undefined) return clientNetwork(address, ipv6Prefix);
  return `${bits >>> 24}.${(bits >>> 16) & 0xff}.${(bits >>> 8) & 0xff}.${bits & 0xff}`;
}
