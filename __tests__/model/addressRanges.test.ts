import { withinRanges } from "../../src/model/index.js";

describe("ranges of addresses", () => {
  test.each<[string, string[], string[]]>([
    ["10.0.0.0/8", ["10.0.0.0", "10.255.255.255"], ["11.0.0.0", "fd00::1", ""]],
    ["192.0.2.1", ["192.0.2.1"], ["192.0.2.2"]],
    ["fd00::/8", ["fd00::1"], ["fe80::1", "10.0.0.1"]],
    ["::/0", ["2001:db8::1"], ["10.0.0.1"]],
    ["::ffff:10.0.0.0/104", ["10.0.0.1", "10.255.255.255"], ["11.0.0.0", "fd00::1"]],
    ["::ffff:0a00:0/104", ["10.0.0.1"], ["11.0.0.0"]],
    ["0:0:0:0:0:FFFF:192.0.2.1", ["192.0.2.1"], ["192.0.2.2", "192.0.2.0"]],
    ["::ffff:0:0/96", ["10.0.0.1", "203.0.113.1"], ["2001:db8::1"]],
  ])("%s", (range, inside, outside) => {
    const within = withinRanges([range]);
    expect(inside.filter((address) => !within(address))).toEqual([]);
    expect(outside.filter(within)).toEqual([]);
  });
});
