import { isIP, isIPv4, isIPv6 } from "node:net";

/** True for an IPv6 address without brackets. Node's own expression takes 4 ms to compile, and most hosts need none. */
export function isIpv6(address: string): boolean {
  return address.includes(":") && isIPv6(address);
}

/** The 32 bits of a dotted IPv4 address, unsigned; undefined for anything else. */
export function ipv4Bits(address: string): number | undefined {
  if (!isIPv4(address)) return undefined;
  return address.split(".").reduce((bits, octet) => bits * 256 + Number(octet), 0);
}

/** Prefix length of a dotted netmask (`255.255.255.0` → 24); undefined if its ones are not contiguous. */
export function netmaskLength(netmask: string): number | undefined {
  const bits = ipv4Bits(netmask);
  if (bits === undefined) return undefined;
  const ones = bits.toString(2).padStart(32, "0");
  const length = ones.lastIndexOf("1") + 1;
  return ones.slice(0, length).includes("0") ? undefined : length;
}

/** The eight 16-bit groups of an IPv6 address, zone id removed; undefined for anything else. */
export function ipv6Groups(address: string): number[] | undefined {
  const bare = address.split("%")[0]!;
  if (!isIpv6(bare)) return undefined;
  const last = bare.lastIndexOf(":") + 1;
  const v4 = ipv4Bits(bare.slice(last));
  const text =
    v4 === undefined
      ? bare
      : `${bare.slice(0, last)}${(v4 >>> 16).toString(16)}:${(v4 & 0xffff).toString(16)}`;
  const [left = "", right] = text.split("::");
  const groups = (part: string): number[] => (part === "" ? [] : part.split(":").map((g) => parseInt(g, 16)));
  if (right === undefined) return groups(left);
  const before = groups(left);
  const after = groups(right);
  return [...before, ...new Array<number>(8 - before.length - after.length).fill(0), ...after];
}

/** Canonical text of an IPv6 address (RFC 5952), without brackets. */
export function canonicalIpv6(address: string): string | undefined {
  const groups = ipv6Groups(address);
  if (groups === undefined) return undefined;
  let best = { at: -1, length: 1 };
  for (const at of groups.keys()) {
    let end = at;
    while (groups[end] === 0) end++;
    if (end - at > best.length) best = { at, length: end - at };
  }
  const hex = groups.map((g) => g.toString(16));
  if (best.at === -1) return hex.join(":");
  return `${hex.slice(0, best.at).join(":")}::${hex.slice(best.at + best.length).join(":")}`;
}

/** An address in the one form that it is compared by; anything else as it is. */
export const canonicalAddress = (address: string): string => canonicalIpv6(address) ?? address;

/** Whether a listener there takes connections to every address of its family. */
export const isWildcard = (address: string): boolean => ["0.0.0.0", "::"].includes(canonicalAddress(address));

/** The loopback address of an address's family. */
export const loopbackOf = (address: string): string => (isIpv6(address) ? "::1" : "127.0.0.1");

/** The address at which a listener can be reached on its own host: loopback if it takes connections to every address. */
export const reachableAt = (address: string): string => (isWildcard(address) ? loopbackOf(address) : address);

/** True for an IP address, or a range of them such as `10.0.0.0/8`. */
export function isCidr(value: string): boolean {
  const [address = "", length, ...rest] = value.split("/");
  if (rest.length > 0) return false;
  if (length === undefined) return isIP(address) !== 0;
  if (!/^\d{1,3}$/.test(length)) return false;
  return (isIPv4(address) && Number(length) <= 32) || (isIpv6(address) && Number(length) <= 128);
}

/** The scope of an address; decides whether DNS records and port forwards make sense (service 1.6). */
export type AddressScope = "public" | "private" | "loopback" | "linkLocal" | "unusable";

/** Ranges whose addresses are not public: first address, length of the prefix, scope. */
export const IPV4_SPECIAL_RANGES: readonly (readonly [string, number, AddressScope])[] = [
  ["0.0.0.0", 8, "unusable"],
  ["10.0.0.0", 8, "private"],
  ["100.64.0.0", 10, "private"],
  ["127.0.0.0", 8, "loopback"],
  ["169.254.0.0", 16, "linkLocal"],
  ["172.16.0.0", 12, "private"],
  ["192.0.2.0", 24, "private"],
  ["192.168.0.0", 16, "private"],
  ["198.18.0.0", 15, "private"],
  ["198.51.100.0", 24, "private"],
  ["203.0.113.0", 24, "private"],
  ["224.0.0.0", 3, "unusable"],
];

/** Scope of an IPv4 address after the IANA special-purpose registry; documentation ranges count as private. */
export function ipv4Scope(address: string): AddressScope | undefined {
  const bits = ipv4Bits(address);
  if (bits === undefined) return undefined;
  const hit = IPV4_SPECIAL_RANGES.find(([base, length]) => sameNetwork(bits, ipv4Bits(base)!, length));
  return hit?.[2] ?? "public";
}

/** True if both addresses share the first `length` bits. */
export function sameNetwork(a: number, b: number, length: number): boolean {
  const size = 2 ** (32 - length);
  return Math.floor(a / size) === Math.floor(b / size);
}

/** Ranges as in {@link IPV4_SPECIAL_RANGES}; the first that has an address counts, and an address in none is unusable. */
export const IPV6_RANGES: readonly (readonly [string, number, AddressScope])[] = [
  ["::1", 128, "loopback"],
  ["fe80::", 10, "linkLocal"],
  ["fc00::", 7, "private"],
  ["2001:db8::", 32, "private"],
  ["2000::", 3, "public"],
];

/** Scope of an IPv6 address; unique-local and documentation addresses count as private. */
export function ipv6Scope(address: string): AddressScope | undefined {
  const groups = ipv6Groups(address);
  if (groups === undefined) return undefined;
  const hit = IPV6_RANGES.find(([base, length]) => shareBits(groups, ipv6Groups(base)!, length));
  return hit?.[2] ?? "unusable";
}

/** Whether the first `length` bits of two IPv6 addresses are the same. */
function shareBits(a: readonly number[], b: readonly number[], length: number): boolean {
  return a.every((group, i) => {
    const others = 16 - Math.min(16, Math.max(0, length - i * 16));
    return group >> others === b[i]! >> others;
  });
}

/** True for a TCP or UDP port that can be listened on. */
export function isPort(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= 65_535;
}

/**
 * The network that counts as one client: an IPv4 address; with IPv6 a /48 network, the largest that a site gets (RFC
 * 6177). A site with a /48, or a home with a /56, has hundreds of /64 networks to choose from.
 *
 * @param length of the prefix of an IPv6 address, if another is wanted
 */
export function clientNetwork(address: string, length = 48): string {
  const groups = ipv6Groups(address);
  if (groups === undefined) return address;
  const shown = Math.ceil(length / 16);
  const network = groups.slice(0, shown).map((group, i) => {
    const others = Math.max(0, (i + 1) * 16 - length);
    return ((group >> others) << others).toString(16);
  });
  return `${network.join(":")}${shown < 8 ? "::" : ""}/${length}`;
}

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

/**
 * How much of all addresses a range has, in words; undefined for one that an operator may have: the shortest prefixes of
 * networks are those of 10.0.0.0/8 and fc00::/7.
 */
export function everyoneIn(range: string): string | undefined {
  const [address = "", length] = plainRange(range).split("/");
  if (length === undefined || Number(length) >= (isIpv6(address) ? 7 : 8)) return undefined;
  return Number(length) === 0
    ? "matches every IPv4 or IPv6 address"
    : "matches a great part of all IPv4 or IPv6 addresses";
}

/** The range that is meant by one whose address has bits behind the prefix; undefined if it has none. */
export function rangeMeant(range: string): string | undefined {
  const [address = "", length] = range.split("/");
  if (length === undefined || address.includes("%")) return undefined;
  const bits = ipv4Bits(address);
  const parts = bits === undefined ? ipv6Groups(address) : [bits >>> 16, bits & 0xffff];
  if (parts === undefined) return undefined;
  const kept = parts.map((part, i) => {
    const others = 16 - Math.min(16, Math.max(0, Number(length) - i * 16));
    return (part >> others) << others;
  });
  if (kept.every((part, i) => part === parts[i])) return undefined;
  const text = kept.map((part) => part.toString(16)).join(":");
  const octets = kept.flatMap((part) => [part >> 8, part & 0xff]).join(".");
  return `${bits === undefined ? canonicalIpv6(text)! : octets}/${Number(length)}`;
}
