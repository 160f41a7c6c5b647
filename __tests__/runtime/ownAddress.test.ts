import { readdirSync } from "node:fs";
import { networkInterfaces } from "node:os";
import fc from "../../testkit/property.js";
import { canonicalAddress } from "../../src/model/net/address.js";
import { isOwnAddress } from "../../src/runtime/load/ownAddress.js";

const OWN = Object.values(networkInterfaces())
  .flat()
  .map((one) => canonicalAddress(one!.address));

test.each([
  ["127.0.0.1", true],
  // In the loopback network, and no interface's.
  ["127.77.0.20", false],
  ["192.0.2.20", false],
  ["255.255.255.255", false],
  ["2001:db8::20", false],
])("%s is an address of this machine: %s", async (address, expected) => {
  expect(await isOwnAddress(address)).toBe(expected);
});

test("nothing stays open", async () => {
  const open = (): number => readdirSync("/proc/self/fd").length;
  const before = open();
  await isOwnAddress("127.0.0.1");
  expect(open()).toBe(before);
});

test("an IPv6 address is compared by its value", async () => {
  expect(await isOwnAddress("::1")).toBe(OWN.includes("::1"));
  expect(await isOwnAddress("0:0:0:0:0:0:0:1")).toBe(OWN.includes("::1"));
});

test("exactly the addresses of the interfaces are own ones", async () => {
  const any = fc.oneof(
    fc.constantFrom(...OWN.filter((one) => !one.startsWith("fe80:"))),
    fc.ipV4(),
    fc.ipV6(),
  );
  await fc.assert(
    fc.asyncProperty(any, async (address) => {
      expect(await isOwnAddress(address)).toBe(OWN.includes(canonicalAddress(address)));
    }),
    { numRuns: 200 },
  );
});
