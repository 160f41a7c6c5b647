import { writeFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type FrontEndFirewallProps, Mode } from "../../src/index.js";
import { synthesizedFile } from "../../src/testing/index.js";
import { frontEnd } from "../../testkit/stacks.js";
import { Namespace } from "../hosts/harness/namespace.js";

/** Which clients the rules of a front end let in: the kernel loads the rules, and the clients have several addresses. */

const folder = mkdtempSync(join(tmpdir(), "portico-firewall-"));
let host: Namespace;
let clients: Namespace;

beforeAll(async () => {
  host = await Namespace.create();
  clients = await Namespace.create();
  await host.connect(
    clients,
    { name: "host", addresses: ["203.0.113.1/24", "2001:db8:0:1::1/64"] },
    {
      name: "net",
      addresses: ["203.0.113.2/24", "203.0.113.3/24", "2001:db8:0:1::2/64", "2001:db8:0:1::3/64"],
    },
  );
  const listening = host.start(
    `${process.execPath} -e 'for (const port of [22, 80, 443]) require("net").createServer((s) => s.end("in")).listen(port, () => console.log(port))'`,
  );
  await new Promise((ready) => listening.stdout!.once("data", ready));
});

afterAll(() => {
  host?.remove();
  clients?.remove();
  rmSync(folder, { recursive: true });
});

/** The ports that a client with this address reaches. */
async function reached(from: string): Promise<number[]> {
  const to = from.includes(":") ? "2001:db8:0:1::1" : "203.0.113.1";
  const program = `for (const port of [22, 80, 443]) {
    const socket = require("net").connect({ host: "${to}", port, localAddress: "${from}" });
    socket.on("data", () => console.log(port)).on("error", () => {}).setTimeout(1500, () => socket.destroy());
  }`;
  const printed = await clients.must(`${process.execPath} -e '${program}'`);
  return printed
    .split("\n")
    .filter(Boolean)
    .map(Number)
    .sort((a, b) => a - b);
}

const WITHIN = ["203.0.113.2/32", "2001:db8:0:1::2"];

test.each<[string, FrontEndFirewallProps, number[], number[]]>([
  ["no limits", {}, [22, 80, 443], [22, 80, 443]],
  ["an entry for a listener's port", { allowed: [{ port: 443, from: WITHIN }] }, [22, 80, 443], [22, 80]],
  ["an entry for the SSH server's port", { allowed: [{ port: 22, from: WITHIN }] }, [22, 80, 443], [80, 443]],
  ["clients of all listeners", { from: WITHIN }, [22, 80, 443], [22]],
  ["one port for everyone", { from: WITHIN, allowed: [{ port: 80 }] }, [22, 80, 443], [22, 80]],
])("%s", async (_, firewall, inside, outside) => {
  const made = frontEnd({ mode: Mode.tls(), firewall }).firewall!;
  const file = join(folder, "rules.nft");
  writeFileSync(file, synthesizedFile(made, made.ruleSet.path).content!);
  await host.must(`nft -f ${file}`);
  expect(await Promise.all(["203.0.113.2", "203.0.113.3"].map(reached))).toEqual([inside, outside]);
  expect(await Promise.all(["2001:db8:0:1::2", "2001:db8:0:1::3"].map(reached))).toEqual([inside, outside]);
});
