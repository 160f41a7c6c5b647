import { AddressSet } from "../../src/model/access/addressSet.js";
import { parseAddressList } from "../../src/model/access/addressList.js";
import { ipv6Groups } from "../../src/model/index.js";

/** Random numbers that are the same in each run. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** An address as one number, and its family; IPv4-mapped addresses are those of IPv4. */
function numberOf(address: string): readonly [family: 4 | 6, bits: bigint] {
  if (!address.includes(":"))
    return [4, address.split(".").reduce((bits, part) => bits * 256n + BigInt(part), 0n)];
  const bits = ipv6Groups(address)!.reduce((all, group) => all * 65_536n + BigInt(group), 0n);
  return bits >> 32n === 0xffffn ? [4, bits & 0xffff_ffffn] : [6, bits];
}

/** The definition, word for word. */
function naive(ranges: readonly string[], address: string): boolean {
  const [family, bits] = numberOf(address);
  return ranges.some((range) => {
    const [first, length] = range.split("/") as [string, string?];
    const mapped = numberOf(first)[0] === 4 && first.includes(":");
    // A range that has more than the mapped addresses is one of IPv6.
    const isWide = mapped && length !== undefined && Number(length) < 96;
    const [of, start] = isWide ? ([6, numberOf(first)[1] | (0xffffn << 32n)] as const) : numberOf(first);
    const width = of === 4 ? 32 : 128;
    const behind = BigInt(
      width - (length === undefined ? width : Number(length) - (mapped && !isWide ? 96 : 0)),
    );
    return of === family && start >> behind === bits >> behind;
  });
}

/** Few different bits, so that ranges contain each other, touch each other and have gaps. */
function address(next: (below: number) => number): string {
  const octets = Array.from({ length: 4 }, () => [0, 1, 127, 128, 254, 255][next(6)]!);
  const groups = Array.from({ length: 8 }, () => ["0", "1", "7fff", "8000", "ffff"][next(5)]!);
  return next(2) === 0 ? octets.join(".") : next(8) === 0 ? `::ffff:${octets.join(".")}` : groups.join(":");
}

function range(next: (below: number) => number): string {
  const first = address(next);
  if (next(3) === 0) return first;
  const lengths = first.includes(".")
    ? [1, 7, 8, 16, 23, 24, 30, 31, 32].map((length) => (first.includes(":") ? length + 96 : length))
    : [1, 15, 16, 32, 48, 64, 100, 127, 128];
  return `${first}/${lengths[next(lengths.length)]}`;
}

test("a set has the addresses that its ranges have: 3,000 lists against the definition", () => {
  const next = random(7);
  for (let i = 0; i < 3_000; i++) {
    const ranges = Array.from({ length: next(12) }, () => range(next));
    const set = AddressSet.unpacked(AddressSet.of(ranges).packed);
    // The edges of the ranges, and others.
    const asked = [
      ...ranges.map((one) => one.split("/")[0]!),
      ...Array.from({ length: 20 }, () => address(next)),
    ];
    for (const one of asked) {
      if (set.has(one) !== naive(ranges, one)) throw new Error(`${JSON.stringify(ranges)} and ${one}`);
    }
  }
});

test.each(["", "10.0.0", "10.0.0.01", "10.0.0.256", "1.2.3.4.5", "::g", "localhost", "10.0.0.1 "])(
  "%j is in no set",
  (text) => {
    expect(AddressSet.of(["0.0.0.0/0", "::/0"]).has(text)).toBe(false);
  },
);

const BOM = "\ufeff";

test.each<[string, string, readonly string[], readonly string[]]>([
  [
    "lines",
    "192.0.2.1\n198.51.100.0/24\n2001:db8::/32",
    ["192.0.2.1", "198.51.100.9", "2001:db8::9"],
    ["192.0.2.2"],
  ],
  [
    "CRLF and a byte order mark",
    `${BOM}192.0.2.1\r\n192.0.2.3\r\n`,
    ["192.0.2.1", "192.0.2.3"],
    ["192.0.2.2"],
  ],
  [
    "comments and blanks",
    "# list\n\n 192.0.2.1\t# one\n192.0.2.3;SBL1\n  ; end",
    ["192.0.2.1", "192.0.2.3"],
    [],
  ],
  [
    "mapped addresses",
    "::ffff:192.0.2.0/120",
    ["192.0.2.7", "::ffff:192.0.2.7", "::ffff:c000:207"],
    ["192.0.3.0"],
  ],
  ["only a comment", "# nobody", [], ["192.0.2.1"]],
])("a file with %s is read", (_, text, inside, outside) => {
  const list = parseAddressList(Buffer.from(text));
  if (!(list instanceof AddressSet)) throw new Error(list.message);
  expect([...inside, ...outside].filter((one) => list.has(one))).toEqual(inside);
});

test.each([
  ["", "is empty"],
  ["\r\n \n", "is empty"],
  ["192.0.2.1\n<html>", "has something else than an address in line 2"],
  ["192.0.2.1 192.0.2.2", "has something else than an address in line 1"],
  ["192.0.2.1-192.0.2.9", "has something else than an address in line 1"],
  ["\n\n192.0.2", "has something else than an address in line 3"],
  ["192.0.2.1\r192.0.2.2", "has something else than an address in line 1"],
  ["fe80::1%eth0", "has something else than an address in line 1"],
  ["192.0.2.1/33", "has something else than an address in line 1"],
  ["deny 192.0.2.1;", "has something else than an address in line 1"],
  [`${"9".repeat(100)}`, "has something else than an address in line 1"],
  ["192.0.2.1/24", "has a range whose address has bits behind its prefix in line 1"],
  ["# all\n0.0.0.0/0", "has a range of all addresses in line 2"],
  ["::/0", "has a range of all addresses in line 1"],
  ["192.0.2.1\0", "has something else than an address in line 1"],
])("%j is refused as a whole", (text, message) => {
  expect(parseAddressList(Buffer.from(text))).toMatchObject({ message });
});

test("a million entries are read and looked up within bounds", () => {
  const v4 = Array.from(
    { length: 900_000 },
    (_, i) => `${(i >> 16) + 20}.${(i >> 8) & 255}.${i & 255}.128/25`,
  );
  // In falling order: to be sorted.
  const v6 = Array.from({ length: 100_000 }, (_, i) => {
    const at = 100_000 - i;
    return `2001:${(at >> 8).toString(16)}:${(at & 255).toString(16)}::/48`;
  });
  const bytes = Buffer.from([...v4, ...v6].join("\n"));
  const list = parseAddressList(bytes);
  if (!(list instanceof AddressSet)) throw new Error(list.message);
  expect(list.size).toBeGreaterThan(990_000);
  const { v4: packed4, v6: packed6 } = list.packed;
  expect(packed4.length + packed6.length).toBeLessThan(16 * 1024 * 1024);
  expect(["20.0.0.128", "33.187.154.255"].map((one) => list.has(one))).toEqual([true, true]);
  expect(["20.0.0.127", "33.187.160.255"].map((one) => list.has(one))).toEqual([false, false]);
});
