import { BlockList } from "node:net";
import { isIpv6 } from "./address.js";

/** Whether an address is in one of these ranges, as `trustedProxies` names them; none is if the list is empty. */
export function withinRanges(ranges: readonly string[]): (address: string) => boolean {
  // One list per family: in a shared one, `::/0` would match every IPv4 address as well.
  const lists = { ipv4: new BlockList(), ipv6: new BlockList() };
  for (const range of ranges) {
    const [address, length] = range.split("/") as [string, string?];
    const family = familyOf(address);
    if (length === undefined) lists[family].addAddress(address, family);
    else lists[family].addSubnet(address, Number(length), family);
  }
  return (address) => address !== "" && lists[familyOf(address)].check(address, familyOf(address));
}

const familyOf = (address: string): "ipv4" | "ipv6" => (isIpv6(address) ? "ipv6" : "ipv4");
