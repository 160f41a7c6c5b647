import { BlockList } from "node:net";
import { ipv6Groups, isIpv6 } from "./address.js";

/** Whether an address is in one of these ranges, as `trustedProxies` names them; none is if the list is empty. */
export function withinRanges(ranges: readonly string[]): (address: string) => boolean {
  // One list per family: in a shared one, `::/0` would match every IPv4 address as well.
  const lists = { ipv4: new BlockList(), ipv6: new BlockList() };
  for (const range of ranges.map(plainRange)) {
    const [address, length] = range.split("/") as [string, string?];
    const family = familyOf(address);
    if (length === undefined) lists[family].addAddress(address, family);
    else lists[family].addSubnet(address, Number(length), family);
  }
  return (address) => address !== "" && lists[familyOf(address)].check(address, familyOf(address));
}

/** Whether two addresses or ranges have an address in common: then one of them has all of the other. */
export const overlap = (a: string, b: string): boolean =>
  withinRanges([a])(firstOf(b)) || withinRanges([b])(firstOf(a));

const firstOf = (range: string): string => plainRange(range).split("/")[0]!;

/**
 * A range of IPv4-mapped addresses (RFC 4291, 2.5.5.2), such as `::ffff:10.0.0.0/104`, as the range of IPv4 that it is;
 * any other as it is. Clients' addresses are compared in the same form.
 */
export function plainRange(range: string): string {
  const [address, length = "128"] = range.split("/") as [string, string?];
  const groups = ipv6Groups(address) ?? [];
  const [high, low] = groups.slice(6);
  const isMapped = groups.slice(0, 6).join(" ") === "0 0 0 0 0 65535" && Number(length) >= MAPPED_LENGTH;
  if (!isMapped) return range;
  const octets = [high! >> 8, high! & 0xff, low! >> 8, low! & 0xff];
  return `${octets.join(".")}/${Number(length) - MAPPED_LENGTH}`;
}

/** Bits in front of the IPv4 address. */
const MAPPED_LENGTH = 96;

const familyOf = (address: string): "ipv4" | "ipv6" => (isIpv6(address) ? "ipv6" : "ipv4");
