import { clientKey } from "../../src/runtime/rates/clientKey.js";
import { ClientTable } from "../../src/runtime/rates/clientTable.js";

describe("what counts as one client", () => {
  it.each([
    ["192.0.2.17", 64, "192.0.2.17"],
    ["2001:db8:1:2:3:4:5:6", 64, "2001:db8:1:2::/64"],
    ["2001:db8:1:2::1", 64, "2001:db8:1:2::/64"],
    ["2001:db8:1:2ff::1", 56, "2001:db8:1:200::/56"],
    ["2001:db8:ffff::1", 33, "2001:db8:8000::/33"],
    ["2001:db8::1", 32, "2001:db8::/32"],
    ["2001:db8::1", 128, "2001:db8:0:0:0:0:0:1/128"],
    ["fe80::1%eth0", 64, "fe80:0:0:0::/64"],
  ])("%s by /%s is %s", (address, prefix, key) => expect(clientKey(address, prefix)).toBe(key));
});

describe("the table of clients", () => {
  it("has the time of each client until it has passed", () => {
    const table = new ClientTable();
    table.set("a", 100, 0);
    table.set("b", 200, 0);
    expect([table.timeOf("a", 50), table.timeOf("b", 50), table.timeOf("c", 50)]).toEqual([100, 200, 50]);
    expect([table.timeOf("a", 150), table.timeOf("b", 150)]).toEqual([150, 200]);
    table.set("b", 300, 150);
    expect([...table.entries(150)]).toEqual([["b", 300]]);
  });

  it("keeps every client as long as it may grow", () => {
    const table = new ClientTable();
    for (let i = 0; i < 5_000; i++) table.set(`client ${i}`, 1_000 + i, 0);
    for (let i = 0; i < 5_000; i++) expect(table.timeOf(`client ${i}`, 0)).toBe(1_000 + i);
    expect(table.places).toBeLessThanOrEqual(65_536);
  });

  it("needs bounded memory for a million clients at once", () => {
    const table = new ClientTable();
    const before = process.memoryUsage();
    for (let i = 0; i < 1_000_000; i++) table.set(`2001:db8:${i.toString(16)}::/64`, 1_000, 0);
    const after = process.memoryUsage();
    expect(table.places).toBe(65_536);
    expect([...table.entries(0)].length).toBe(65_536);
    expect(after.rss - before.rss).toBeLessThan(200 * 1_048_576);
  });

  it("forgets who did least, and gives the time of that one to who comes", () => {
    const table = new ClientTable(8);
    for (let i = 1; i <= 8; i++) table.set(`client ${i}`, i * 100, 0);
    expect(table.timeOf("another", 0)).toBe(100);
    table.set("another", 150, 0);
    expect(table.timeOf("client 8", 0)).toBe(800);
    // The one that was forgotten comes back, and begins with the earliest time as well.
    expect(table.timeOf("client 1", 0)).toBe(150);
  });

  it("lets a flood from more clients than it has places forget none of them in favour of the flood", () => {
    const table = new ClientTable(64);
    let passed = 0;
    for (let round = 0; round < 20; round++) {
      for (let i = 0; i < 1_000; i++) {
        const time = table.timeOf(`flood ${i}`, 0);
        if (time >= 10) continue;
        table.set(`flood ${i}`, time + 1, 0);
        passed++;
      }
    }
    // So many pass as if there were as many clients as places.
    expect(passed).toBe(640);
  });
});
