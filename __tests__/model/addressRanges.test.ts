import { plainRange } from "../../src/model/addressRanges.js";

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
