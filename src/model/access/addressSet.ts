import { plainRange } from "../net/address.js";

/**
 * A set of addresses: disjoint ranges of each family in ascending order, in typed arrays. A million ranges of IPv4 take
 * 8 MB, those of IPv6 32 MB, and a lookup takes 20 steps. `BlockList` of Node takes a hundred times as much, and looks at
 * one range after the other.
 */
export class AddressSet {
  /** @param v4 first and last addresses in turn @param v6 the same, four words each */
  private constructor(
    private readonly v4: Uint32Array,
    private readonly v6: Uint32Array,
  ) {}

  /** @param ranges as {@link isCidr} accepts them */
  static of(ranges: readonly string[]): AddressSet {
    const builder = new AddressSetBuilder();
    for (const range of ranges) builder.add(range);
    return builder.done();
  }

  /** @internal */
  static made(v4: Uint32Array, v6: Uint32Array): AddressSet {
    return new AddressSet(v4, v6);
  }

  /** From a text that {@link packed} made on the same machine. */
  static unpacked({ v4, v6 }: PackedAddresses): AddressSet {
    return new AddressSet(words(v4), words(v6));
  }

  get packed(): PackedAddresses {
    return { v4: base64(this.v4), v6: base64(this.v6) };
  }

  /** Number of disjoint ranges. */
  get size(): number {
    return this.v4.length / 2 + this.v6.length / 8;
  }

  /** Whether an address is in the set; anything else is in none. IPv4-mapped IPv6 addresses are those of IPv4. */
  has(address: string): boolean {
    const bits = ipv4In(address);
    if (bits >= 0) return this.hasIpv4(bits);
    // A zone means something to its own host only (RFC 4007, 6).
    const zone = address.indexOf("%");
    if (!ipv6In(address, 0, zone === -1 ? address.length : zone, asked)) return false;
    const isMapped = asked[0] === 0 && asked[1] === 0 && asked[2] === 0xffff;
    return isMapped ? this.hasIpv4(asked[3]!) : this.hasAsked();
  }

  private hasIpv4(bits: number): boolean {
    const { v4 } = this;
    let [low, high] = [0, v4.length / 2];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (v4[2 * middle]! <= bits) low = middle + 1;
      else high = middle;
    }
    return low > 0 && bits <= v4[2 * low - 1]!;
  }

  private hasAsked(): boolean {
    const { v6 } = this;
    let [low, high] = [0, v6.length / 8];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compare(v6, 8 * middle, asked, 0) <= 0) low = middle + 1;
      else high = middle;
    }
    return low > 0 && compare(asked, 0, v6, 8 * low - 4) <= 0;
  }
}

/** A set as JSON: base64 of its words. */
export interface PackedAddresses {
  /** Ranges of IPv4 addresses: the first and the last address of each, as words of 32 bits. */
  readonly v4: string;
  /** Ranges of IPv6 addresses, in the same form with four words for an address. */
  readonly v6: string;
}

/** Words of the address that is looked up. */
const asked = new Uint32Array(4);

const base64 = ({ buffer, byteOffset, byteLength }: Uint32Array): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString("base64");

function words(text: string): Uint32Array {
  const bytes = new Uint8Array(Buffer.byteLength(text, "base64"));
  Buffer.from(bytes.buffer).write(text, "base64");
  return new Uint32Array(bytes.buffer);
}

/** Collects ranges in any order, and makes a set of them. */
export class AddressSetBuilder {
  /** First address times 64, plus the length of the prefix: sorted, a range is in front of those within it. */
  private v4 = new Float64Array(64);
  private v4Count = 0;
  /** Four words and the length of the prefix. */
  private v6 = new Uint32Array(64 * 5);
  private v6Count = 0;

  /** @param range an address or a range, as {@link isCidr} accepts it */
  add(range: string): void {
    const plain = range.includes(":") ? plainRange(range) : range;
    const [address, length] = plain.split("/") as [string, string?];
    const bits = ipv4In(address);
    if (bits >= 0) return this.addIpv4(bits, Number(length ?? 32));
    ipv6In(address, 0, address.includes("%") ? address.indexOf("%") : address.length, asked);
    this.addIpv6(asked, Number(length ?? 128));
  }

  /** @param length of the prefix; what is behind it in the address does not count */
  addIpv4(address: number, length: number): void {
    if (this.v4Count === this.v4.length) {
      const larger = new Float64Array(this.v4.length * 2);
      larger.set(this.v4);
      this.v4 = larger;
    }
    const others = 2 ** (32 - length);
    this.v4[this.v4Count++] = (address - (address % others)) * 64 + length;
  }

  /** The same for four words. */
  addIpv6(address: Uint32Array, length: number): void {
    const at = this.v6Count++ * 5;
    if (at === this.v6.length) {
      const larger = new Uint32Array(this.v6.length * 2);
      larger.set(this.v6);
      this.v6 = larger;
    }
    for (let i = 0; i < 4; i++) {
      this.v6[at + i] = address[i]! & maskOf(length - 32 * i);
    }
    this.v6[at + 4] = length;
  }

  done(): AddressSet {
    return AddressSet.made(this.merged4(), this.merged6());
  }

  private merged4(): Uint32Array {
    const keys = this.v4.subarray(0, this.v4Count).sort();
    const out = new Uint32Array(keys.length * 2);
    let end = 0;
    for (const key of keys) {
      const length = key % 64;
      const first = (key - length) / 64;
      const last = first + 2 ** (32 - length) - 1;
      if (end > 0 && first <= out[end - 1]! + 1) out[end - 1] = Math.max(out[end - 1]!, last);
      else {
        out[end++] = first;
        out[end++] = last;
      }
    }
    return out.slice(0, end);
  }

  private merged6(): Uint32Array {
    const { v6, v6Count } = this;
    const order = Uint32Array.from({ length: v6Count }, (_, i) => i * 5);
    const before = (a: number, b: number): number => compare(v6, a, v6, b) || v6[a + 4]! - v6[b + 4]!;
    // Published lists are in order: to sort a million of them takes a second.
    if (order.some((at, i) => i > 0 && before(order[i - 1]!, at) > 0)) order.sort(before);
    const out = new Uint32Array(v6Count * 8);
    let end = 0;
    for (const at of order) {
      // Two ranges have no address in common, unless one is within the other.
      if (end > 0 && compare(v6, at, out, end - 4) <= 0) continue;
      for (let i = 0; i < 4; i++) {
        out[end + i] = v6[at + i]!;
        out[end + 4 + i] = v6[at + i]! | ~maskOf(v6[at + 4]! - 32 * i);
      }
      end += 8;
    }
    return out.slice(0, end);
  }
}

/** Ones for the first `length` of 32 bits. */
const maskOf = (length: number): number => (length <= 0 ? 0 : length >= 32 ? -1 : -1 << (32 - length));

function compare(a: Uint32Array, at: number, b: Uint32Array, bt: number): number {
  for (let i = 0; i < 4; i++) if (a[at + i] !== b[bt + i]) return a[at + i]! < b[bt + i]! ? -1 : 1;
  return 0;
}

/** The 32 bits of a dotted address in a part of a text; -1 for anything else. In one pass: it runs for each request. */
export function ipv4In(text: string, from = 0, to = text.length): number {
  if (to - from > 15 || to - from < 7) return -1;
  let bits = 0;
  let octet = 0;
  let dots = 0;
  let digits = 0;
  for (let i = from; i < to; i++) {
    const code = text.charCodeAt(i);
    if (code === DOT) {
      if (digits === 0) return -1;
      bits = bits * 256 + octet;
      octet = digits = 0;
      dots++;
      continue;
    }
    // A leading zero means octal to some programs, and is no address to others.
    if (code < 0x30 || code > 0x39 || (digits > 0 && octet === 0)) return -1;
    octet = octet * 10 + code - 0x30;
    if (octet > 255) return -1;
    digits++;
  }
  return dots === 3 && digits > 0 ? bits * 256 + octet : -1;
}

/**
 * The same for an IPv6 address without brackets and zone.
 *
 * @param into gets its four words
 * @returns whether it is one
 */
export function ipv6In(text: string, from: number, to: number, into: Uint32Array): boolean {
  let count = 0;
  let gap = -1;
  let at = from;
  if (text.charCodeAt(at) === COLON) {
    if (to - from < 2 || text.charCodeAt(at + 1) !== COLON) return false;
    gap = 0;
    at += 2;
  }
  while (at < to) {
    if (count === 8) return false;
    let group = 0;
    let end = at;
    for (; end < to; end++) {
      const digit = hexDigit(text.charCodeAt(end));
      if (digit < 0) break;
      group = group * 16 + digit;
    }
    if (end < to && text.charCodeAt(end) === DOT) {
      const bits = ipv4In(text, at, to);
      if (bits < 0 || count > 6) return false;
      groups[count++] = bits >>> 16;
      groups[count++] = bits & 0xffff;
      break;
    }
    if (end === at || end - at > 4) return false;
    groups[count++] = group;
    if (end === to) break;
    if (text.charCodeAt(end) !== COLON || end + 1 === to) return false;
    at = end + 1;
    if (text.charCodeAt(at) !== COLON) continue;
    if (gap !== -1) return false;
    gap = count;
    at++;
  }
  if (gap === -1 ? count !== 8 : count > 7) return false;
  const zeros = 8 - count;
  const groupAt = (i: number): number =>
    gap === -1 || i < gap ? groups[i]! : i < gap + zeros ? 0 : groups[i - zeros]!;
  for (let i = 0; i < 4; i++) into[i] = groupAt(2 * i) * 65_536 + groupAt(2 * i + 1);
  return true;
}

const groups = new Uint16Array(8);
const [DOT, COLON] = [0x2e, 0x3a];

function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/** Whether the address has bits behind a prefix. */
export const hasBitsBehind = (address: Uint32Array, length: number): boolean =>
  address.some((word, i) => (word & ~maskOf(length - 32 * i)) !== 0);

/** Whether an address is in one of these ranges, as `trustedProxies` names them; none is if the list is empty. */
export function withinRanges(ranges: readonly string[]): (address: string) => boolean {
  const set = AddressSet.of(ranges);
  return (address) => set.has(address);
}

/** Whether two addresses or ranges have an address in common: then one of them has all of the other. */
export const overlap = (a: string, b: string): boolean =>
  withinRanges([a])(firstOf(b)) || withinRanges([b])(firstOf(a));

const firstOf = (range: string): string => plainRange(range).split("/")[0]!;
