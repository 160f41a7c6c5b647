import { scryptSync } from "node:crypto";
import { hashText, type Users } from "../../src/model/serving.js";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { connectTo, type Accepted } from "../../testkit/peers.js";

/** What a client learns of users from the time that a wrong password takes, over many tries on one connection. */

const TRIES = 1_500;

const unpadded = (bytes: Buffer): string => bytes.toString("base64").replace(/=+$/, "");

function line(name: string): Users[number] {
  const salt = Buffer.from(name.padEnd(16, "x"));
  const hash = scryptSync("right", salt, 32, { N: 2 ** 10, r: 8, p: 1 });
  const text = hashText({ kind: "scrypt", ln: 10, r: 8, p: 1, salt: unpadded(salt), hash: unpadded(hash) });
  return [name, text];
}

let front: EveryProtocol;

beforeAll(async () => {
  front = await startEveryProtocol({
    routes: [{ name: "all", path: "/", access: "all", action: { type: "respond", status: 200, body: "in" } }],
    config: { accessPolicies: { all: { basic: { usersFile: "/users" } } } },
    users: { "/users": ["alice", "bob", "carol"].map(line) },
  });
});
afterAll(() => front?.close());

async function took(client: Accepted, user: string, password: string): Promise<number> {
  const credentials = Buffer.from(`${user}:${password}`).toString("base64");
  const before = client.received.length;
  const begun = performance.now();
  client.send(`GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Basic ${credentials}\r\n\r\n`);
  await client.until((peer) => peer.received.endsWith("</html>\r\n") && peer.received.length > before);
  expect(client.received.slice(before)).toMatch(/^HTTP\/1\.1 401 /);
  return performance.now() - begun;
}

test("a wrong password of an unknown user takes as long as one of a user", async () => {
  let client = await connectTo(front.plainPort);
  const times = { known: [] as number[], unknown: [] as number[] };
  for (let i = 0; i < TRIES; i++) {
    const order = i % 2 === 0 ? (["known", "unknown"] as const) : (["unknown", "known"] as const);
    for (const kind of order)
      times[kind].push(await took(client, kind === "known" ? "alice" : `user${i}`, `wrong${i}`));
    // A connection serves a limited number of requests.
    if (i % 100 !== 99) continue;
    client.socket.destroy();
    client = await connectTo(front.plainPort);
  }
  client.socket.destroy();
  const sorted = Object.values(times).map((all) => [...all].sort((a, b) => a - b)) as [number[], number[]];
  const [known, unknown] = sorted.map((all) => all[TRIES / 2]!) as [number, number];
  // How often an unknown user took longer: half of the time, if time tells nothing.
  const longer = times.unknown.filter((time, i) => time > times.known[i]!).length / TRIES;
  process.stdout.write(
    `median: ${known.toFixed(2)} ms of a user, ${unknown.toFixed(2)} ms of none; longer: ${longer.toFixed(3)}\n`,
  );
  expect(unknown / known).toBeGreaterThan(0.8);
  expect(unknown / known).toBeLessThan(1.25);
  expect(longer).toBeGreaterThan(0.4);
  expect(longer).toBeLessThan(0.6);
  // What is known costs nothing, and tells as little.
  const again = await connectTo(front.plainPort);
  expect(await took(again, "alice", "wrong1")).toBeLessThan(known * 3);
  again.socket.destroy();
}, 300_000);
