import { withinRanges } from "../../src/model/access/addressSet.js";
import { plainRange } from "../../src/model/net/address.js";

test.each([
  ["::ffff:10.0.0.0/104", "10.0.0.0/8"],
  ["::ffff:0:0/96", "0.0.0.0/0"],
  ["::ffff:0:0/95", "::ffff:0:0/95"],
  ["::ffff:10.1.2.3", "10.1.2.3/32"],
  ["::FFFF:fffe:fdfc/128", "255.254.253.252/32"],
  ["::fffe:10.0.0.0/104", "::fffe:10.0.0.0/104"],
  ["1::ffff:10.0.0.0/104", "1::ffff:10.0.0.0/104"],
  ["10.0.0.0/8", "10.0.0.0/8"],
  ["10.0.0.1", "10.0.0.1"],
  ["2001:db8::/32", "2001:db8::/32"],
])("the clients of %s are those of %s", (range, plain) => {
  expect(plainRange(range)).toBe(plain);
});

test.each<[readonly string[], readonly string[], readonly string[]]>([
  [[], [], ["10.0.0.1", "::1", ""]],
  [
    ["10.1.0.0/16", "192.0.2.1"],
    ["10.1.255.255", "192.0.2.1"],
    ["10.2.0.0", "192.0.2.2", "::1", ""],
  ],
  // A range of one family has no address of the other.
  [["::/0"], ["::", "2001:db8::1"], ["10.0.0.1"]],
  [["0.0.0.0/0"], ["10.0.0.1"], ["2001:db8::1", ""]],
  [
    ["2001:db8::/33", "::1"],
    ["2001:db8:7fff::", "::1"],
    ["2001:db8:8000::", "::2"],
  ],
  [["::ffff:10.0.0.0/104"], ["10.255.0.1"], ["11.0.0.0"]],
])("within %j are %j, and not %j", (ranges, inside, outside) => {
  const within = withinRanges(ranges);
  expect([...inside, ...outside].filter(within)).toEqual(inside);
});
