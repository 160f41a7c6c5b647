import fc from "../../testkit/property.js";
import {
  encodePath,
  normalisePath,
  type NormalisedPath,
  parseHost,
  upstreamTarget,
  type Strip,
} from "../../src/model/index.js";
import { canonicalIpv6, ipv4Scope, ipv6Scope, netmaskLength } from "../../src/model/index.js";
import { hostAsked, redirectLocation, type RedirectGoal } from "../../src/model/actions/location.js";
import { ipv4Bits, isCidr, isPort, isWildcard, reachableAt } from "../../src/model/net/address.js";

describe("normalisePath (decisions 1.3)", () => {
  test.each([
    ["/", "/"],
    ["/sync", "/sync"],
    ["/sync?x=/../y", "/sync"],
    ["//sync/x", "/sync/x"],
    ["/%73ync/x", "/sync/x"],
    ["/sync/./a", "/sync/a"],
    ["/sync/../syncdav/x", "/syncdav/x"],
    ["/sync/%2e%2e/syncdav/y", "/syncdav/y"],
    ["/sync/%2E./syncdav/y", "/syncdav/y"],
    ["/synchttp/..%2fsync", "/sync"],
    ["/a/..", "/"],
    ["/a/.", "/a/"],
    ["/a/b/..", "/a/"],
    ["/a//", "/a/"],
    ["/...", "/..."],
    ["/.hidden", "/.hidden"],
    ["/sync%3Fx", "/sync?x"],
    ["/a%252e", "/a%2e"],
    ["/\xe4", "/\xe4"],
    ["/%E4", "/\xe4"],
    ["/../sync", undefined],
    ["/x/../../sync", undefined],
    ["/%2e%2e/x", undefined],
    ["/%", undefined],
    ["/%z1", undefined],
    ["/%1", undefined],
    ["/%00", undefined],
    ["/sync#frag", undefined],
    ["/sync?x#frag", undefined],
    ["/#", undefined],
    ["sync", undefined],
    ["", undefined],
  ])("%j → %j", (target, path) => expect(normalisePath(target)).toBe(path));

  test("the result is normal: normalising its encoded form changes nothing", () => {
    const piece = fc.constantFrom(
      "a",
      "b",
      "/",
      ".",
      "..",
      "%2e",
      "%2F",
      "%25",
      "%41",
      "?",
      "#",
      "\xff",
      "~",
      "%zz",
      "//",
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const path = normalisePath(`/${pieces.join("")}`);
        if (path === undefined) return;
        expect(normalisePath(encodePath(path))).toBe(path);
        expect(path).not.toMatch(/\/\.\.?(\/|$)|\/\//);
      }),
    );
  });
});

describe("upstreamTarget (decisions 2.1)", () => {
  const cases: readonly [Strip, string, string][] = [
    ["none", "/synchttp//a%2F?x", "/synchttp//a%2F?x"],
    ["raw", "/synchttp", "/"],
    ["raw", "/synchttp/", "/"],
    ["raw", "/synchttp?x=1", "/?x=1"],
    ["raw", "/synchttp/a%2Fb", "/a%2Fb"],
    ["raw", "/synchttp//a//b", "//a//b"],
    ["raw", "/synchttp/a%20b?x=%20", "/a%20b?x=%20"],
    ["raw", "/synchttp/a/../b", "/a/../b"],
    ["raw", "/%73ynchttp/a b".replace(" ", "%20"), "/a%20b"],
    ["raw", "//synchttp/a%7E", "/a~"],
    ["raw", "/synchttp/a/../../synchttp/b", "/b"],
    ["raw", "/synchttp/%2e%2e/synchttp/b", "/b"],
    ["raw", "/synchttp/.%2E/synchttp/b", "/b"],
    // Begins with the letters of the prefix, and is led there only by its dot segments.
    ["raw", "/synchttpx/../synchttp/a", "/a"],
    ["raw", "/synchttp%2F../synchttp/a", "/a"],
    // A route with `match: prefix` may cut within a segment: there is no raw rest then.
    ["raw", "/synchttpx%2Fa", "/x/a"],
    ["raw", "/synchttp/a?", "/a?"],
    ["nginx", "/synchttp/", "/"],
    ["nginx", "/synchttp/a%2Fb", "/a/b"],
    ["nginx", "/synchttp//a//b", "/a/b"],
    ["nginx", "/synchttp/%3F%23%25%2525", "/%3F%23%25%2525"],
    ["nginx", "/synchttp/%7E%3B%3A%40%26%3D%2B%24%5B%5D", "/~;:@&=+$[]"],
    ["nginx", '/synchttp/|{}^`"<>\\\xe4', "/%7C%7B%7D%5E%60%22%3C%3E%5C%E4"],
    ["nginx", "/synchttp/a?", "/a"],
    ["nginx", "/synchttp/a??b", "/a??b"],
  ];
  test.each(cases)("%s: %j → %j", (strip, target, sent) => {
    expect(upstreamTarget(strip, "/synchttp", target, normalisePath(target)!)).toBe(sent);
  });

  test("in a path that nginx rebuilt, every byte but these is encoded as two digits", () => {
    const plain = "!$&'()*+,-./0123456789:;=@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]_abcdefghijklmnopqrstuvwxyz~";
    for (let byte = 1; byte < 256; byte++) {
      const char = String.fromCharCode(byte);
      const encoded = `%${byte.toString(16).padStart(2, "0").toUpperCase()}`;
      expect(encodePath(`/a${char}b`)).toBe(plain.includes(char) ? `/a${char}b` : `/a${encoded}b`);
    }
  });

  test("the target upstream never climbs out of the route's path", () => {
    const piece = fc.constantFrom("a", "/", "..", ".", "%2e%2e", ".%2E", "%2F", "b", "?x", "//");
    const begin = fc.constantFrom("/synchttp/", "/synchttp", "/synchttpx/../synchttp/", "/a/../synchttp/");
    fc.assert(
      fc.property(
        begin,
        fc.array(piece, { maxLength: 10 }),
        fc.constantFrom<Strip>("raw", "nginx"),
        (prefix, pieces, strip) => {
          const target = prefix + pieces.join("");
          const path = normalisePath(target);
          if (path === undefined || !(path === "/synchttp" || path.startsWith("/synchttp/"))) return;
          const sent = normalisePath(upstreamTarget(strip, "/synchttp", target, path));
          expect(sent).toBe(path.slice("/synchttp".length) || "/");
        },
      ),
      { numRuns: 500 },
    );
  });
});

describe("parseHost (decisions 1.1)", () => {
  test.each([
    ["SYNC.Example.:99", "sync.example", "99"],
    ["a", "a", ""],
    ["a:", "a", ""],
    ["192.0.2.1:80", "192.0.2.1", "80"],
    ["[::1]", "::1", ""],
    ["[2001:DB8:0:0::1]:443", "2001:db8::1", "443"],
    ["x_y.example", "x_y.example", ""],
    ["a:65535", "a", "65535"],
    ["[::1]:65535", "::1", "65535"],
    ["[::1]:", "::1", ""],
  ])("%j → %j port %j", (value, serverName, port) => expect(parseHost(value)).toEqual({ serverName, port }));

  test.each([
    "",
    ".",
    "a/b",
    "a b",
    "a@b",
    "a..b",
    "a:b",
    "a:123456",
    "a:65536",
    "a:x",
    "a:8x",
    "-a",
    ".a",
    "a..",
    "[::1",
    "[::1]x",
    "[::1]x80",
    "[::1]:65536",
    "[::1]:123456",
    "[::1]:x",
    "[1.2.3.4]",
    "[a]",
    "[]",
    "]",
    "[fe80::1%eth0]",
    "a\tb",
    "ä",
    "a,b",
  ])("%j is not a host", (value) => expect(parseHost(value)).toBeUndefined());
});

describe("the host of a redirect", () => {
  test.each<[asked: string, names: string[], address: string, host: string]>([
    ["a.example", ["b.example"], "192.0.2.1", "a.example"],
    ["", ["_", "b.example", "c.example"], "192.0.2.1", "b.example"],
    ["", ["_"], "192.0.2.1", "192.0.2.1"],
    ["", ["_"], "::ffff:192.0.2.1", "192.0.2.1"],
    ["", ["_"], "::ffff:0:1", "::ffff:0:1"],
    ["", ["_"], "2001:db8::1", "2001:db8::1"],
    ["", [], "fe80::1%eth0", "fe80::1"],
  ])("asked for %j of %j at %s is %s", (asked, names, address, host) => {
    expect(hostAsked(asked, names, address)).toBe(host);
  });
});

describe("addresses", () => {
  test.each([
    ["8.8.8.8", "public"],
    ["10.1.2.3", "private"],
    ["100.64.0.1", "private"],
    ["172.32.0.1", "public"],
    ["172.31.255.255", "private"],
    ["127.0.0.1", "loopback"],
    ["169.254.1.1", "linkLocal"],
    ["224.0.0.1", "unusable"],
    ["255.255.255.255", "unusable"],
    ["0.0.0.0", "unusable"],
    ["1.2.3", undefined],
  ])("IPv4 %s is %s", (address, scope) => expect(ipv4Scope(address)).toBe(scope));

  test.each([
    ["0.0.0.0", "0.255.255.255", "unusable"],
    ["10.0.0.0", "10.255.255.255", "private"],
    ["100.64.0.0", "100.127.255.255", "private"],
    ["127.0.0.0", "127.255.255.255", "loopback"],
    ["169.254.0.0", "169.254.255.255", "linkLocal"],
    ["172.16.0.0", "172.31.255.255", "private"],
    ["192.0.2.0", "192.0.2.255", "private"],
    ["192.168.0.0", "192.168.255.255", "private"],
    ["198.18.0.0", "198.19.255.255", "private"],
    ["198.51.100.0", "198.51.100.255", "private"],
    ["203.0.113.0", "203.0.113.255", "private"],
    ["224.0.0.0", "255.255.255.255", "unusable"],
  ])("IPv4 from %s to %s is %s, and public around it", (first, last, scope) => {
    expect([first, last].map(ipv4Scope)).toEqual([scope, scope]);
    const beside = [ipv4Bits(first)! - 1, ipv4Bits(last)! + 1].filter((bits) => bits > 0 && bits < 2 ** 32);
    const dotted = (bits: number): string =>
      [24, 16, 8, 0].map((shift) => Math.floor(bits / 2 ** shift) % 256).join(".");
    expect(beside.map(dotted).map(ipv4Scope)).toEqual(beside.map(() => "public"));
  });

  test.each([
    ["2a00:1450::1", "public"],
    ["2001:db8::1", "private"],
    ["fd00::1", "private"],
    ["fe80::1", "linkLocal"],
    ["fec0::1", "unusable"],
    ["ff02::1", "unusable"],
    ["::1", "loopback"],
    ["::2", "unusable"],
    ["::", "unusable"],
    ["1fff:ffff::", "unusable"],
    ["2000::", "public"],
    ["2001:db7:ffff::", "public"],
    ["2001:db8::", "private"],
    ["2001:db8:ffff::", "private"],
    ["2001:db9::", "public"],
    ["3fff:ffff::", "public"],
    ["4000::", "unusable"],
    ["fbff:ffff::", "unusable"],
    ["fc00::", "private"],
    ["fdff:ffff::", "private"],
    ["fe00::", "unusable"],
    ["fe7f:ffff::", "unusable"],
    ["fe80::", "linkLocal"],
    ["febf:ffff::", "linkLocal"],
    ["::ffff:10.0.0.1", "unusable"],
    ["1::2::3", undefined],
    ["10.0.0.1", undefined],
  ])("IPv6 %s is %s", (address, scope) => expect(ipv6Scope(address)).toBe(scope));

  test.each([
    ["2001:DB8:0:0:0:0:0:1", "2001:db8::1"],
    ["::", "::"],
    ["1:0:0:2:0:0:0:3", "1:0:0:2::3"],
    ["::ffff:192.0.2.1", "::ffff:c000:201"],
    ["1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7"],
    // Of two runs of one length the first.
    ["1:0:0:2:3:0:0:4", "1::2:3:0:0:4"],
    ["0:0:3:4:5:6:7:8", "::3:4:5:6:7:8"],
    ["1:2:3:4:5:6:0:0", "1:2:3:4:5:6::"],
    ["1:2:3:4:5:6:255.254.1.2", "1:2:3:4:5:6:fffe:102"],
    ["fe80::1%eth0", "fe80::1"],
    ["10.0.0.1", undefined],
  ])("canonical form of %s is %s", (address, canonical) => expect(canonicalIpv6(address)).toBe(canonical));

  test.each([
    ["255.255.255.0", 24],
    ["255.255.255.255", 32],
    ["0.0.0.0", 0],
    ["128.0.0.0", 1],
    ["255.255.255.254", 31],
    ["255.0.255.0", undefined],
    ["127.255.255.255", undefined],
    ["0.0.0.255", undefined],
    ["24", undefined],
  ])("netmask %s has length %s", (netmask, length) => expect(netmaskLength(netmask)).toBe(length));

  test.each([
    ["0.0.0.0", true],
    ["::", true],
    ["0:0::0", true],
    ["127.0.0.1", false],
    ["::1", false],
  ])("a listener on %s takes connections to every address: %s", (address, wildcard) =>
    expect(isWildcard(address)).toBe(wildcard),
  );

  test.each([
    ["0.0.0.0", "127.0.0.1"],
    ["::", "::1"],
    ["192.0.2.1", "192.0.2.1"],
    ["2001:db8::1", "2001:db8::1"],
  ])("a listener on %s is reached on its own host at %s", (address, at) =>
    expect(reachableAt(address)).toBe(at),
  );

  test.each([
    ["10.0.0.0/8", true],
    ["10.0.0.1", true],
    ["10.0.0.0/0", true],
    ["10.0.0.0/32", true],
    ["10.0.0.0/33", false],
    ["::/0", true],
    ["2001:db8::/128", true],
    ["2001:db8::/129", false],
    ["2001:db8::1", true],
    ["2001:db8::/0064", false],
    ["10.0.0.0/8/8", false],
    ["10.0.0.0/", false],
    ["10.0.0.0/x8", false],
    ["10.0.0.0/8x", false],
    ["10.0.0.0/1e1", false],
    ["10.0.0.0/ 8", false],
    ["files.example/8", false],
    ["files.example", false],
    ["", false],
    ["/8", false],
  ])("%j is an address or a range: %s", (value, is) => expect(isCidr(value)).toBe(is));

  test.each([
    [0, false],
    [1, true],
    [65_535, true],
    [65_536, false],
    [80.5, false],
    ["80", false],
  ])("%j is a port: %s", (port, is) => expect(isPort(port)).toBe(is));
});

test("every byte can be written as two hex digits, in both cases", () => {
  for (let byte = 1; byte < 256; byte++) {
    const hex = byte.toString(16).padStart(2, "0");
    for (const digits of [hex, hex.toUpperCase()])
      expect([digits, normalisePath(`/a%${digits}b`)]).toEqual([digits, `/a${String.fromCharCode(byte)}b`]);
  }
  for (const digits of ["0", "", "g0", "0g", "/0", "0/", ":0", "0:", "@0", "0@", "`0", "0`", "G0", "0G"])
    expect([digits, normalisePath(`/a%${digits}`)]).toEqual([digits, undefined]);
});

test("a redirect names its own host and port, or the host that was asked for", () => {
  const to = (goal: RedirectGoal, target: string): string =>
    redirectLocation(goal, "a.example", target, "/", "/b" as NormalisedPath);
  expect(to({ scheme: "https" }, "/b?c")).toBe("https://a.example/b?c");
  expect(to({ scheme: "http", port: 8080, host: "o.example" }, "/")).toBe("http://o.example:8080/");
});
