import { scryptSync } from "node:crypto";
import { hashText, type Users } from "../../src/model/serving.js";
import { startEveryProtocol } from "../../testkit/everyProtocol.js";
import type { Verdict } from "../../testkit/laboratory.js";
import { connectTo, type Accepted } from "../../testkit/peers.js";

/** What a client learns of users from the time that a wrong password takes, over many tries on one connection. */

const unpadded = (bytes: Buffer): string => bytes.toString("base64").replace(/=+$/, "");

function line(name: string): Users[number] {
  const salt = Buffer.from(name.padEnd(16, "x"));
  const hash = scryptSync("right", salt, 32, { N: 2 ** 10, r: 8, p: 1 });
  const text = hashText({ kind: "scrypt", ln: 10, r: 8, p: 1, salt: unpadded(salt), hash: unpadded(hash) });
  return [name, text];
}

/** @param tries wrong passwords of a user, and as many of names that nobody has */
export async function unknownUsers(tries: number): Promise<Verdict> {
  const front = await startEveryProtocol({
    routes: [{ name: "all", path: "/", access: "all", action: { type: "respond", status: 200, body: "in" } }],
    config: { accessPolicies: { all: { basic: { usersFile: "/users" } } } },
    users: { "/users": ["alice", "bob", "carol"].map(line) },
  });
  let client = await connectTo(front.plainPort);
  try {
    const times = { known: [] as number[], unknown: [] as number[] };
    for (let i = 0; i < tries; i++) {
      const order = i % 2 === 0 ? (["known", "unknown"] as const) : (["unknown", "known"] as const);
      for (const kind of order)
        times[kind].push(await took(client, kind === "known" ? "alice" : `user${i}`, `wrong${i}`));
      // A connection serves a limited number of requests.
      if (i % 100 !== 99) continue;
      client.socket.destroy();
      client = await connectTo(front.plainPort);
    }
    return judge(times);
  } finally {
    client.socket.destroy();
    await front.close();
  }
}

function judge(times: { readonly known: number[]; readonly unknown: number[] }): Verdict {
  const tries = times.known.length;
  // How often an unknown user took longer: half of the time, if time tells nothing.
  const longer = times.unknown.filter((time, i) => time > times.known[i]!).length / tries;
  const sorted = Object.values(times).map((all) => [...all].sort((a, b) => a - b)) as [number[], number[]];
  const shares = [0.1, 0.5, 0.9].map((share) => {
    const [known, unknown] = sorted.map((all) => all[Math.floor(tries * share)]!) as [number, number];
    return { share, known, unknown, ratio: unknown / known };
  });
  for (const { share, known, unknown } of shares)
    console.log(`${share * 100} %: ${known.toFixed(2)} ms of a user, ${unknown.toFixed(2)} ms of none`);
  console.log(`an unknown user took longer in ${(longer * 100).toFixed(1)} % of ${tries} pairs`);
  const off = Math.abs(longer - 0.5);
  return {
    wrong: [],
    beyondLimit: [
      ...(off <= DEVIATIONS_MAX / (2 * Math.sqrt(tries)) ? [] : ["time tells who is a user"]),
      ...shares
        .filter(({ ratio }) => ratio < 1 / RATIO_MAX || ratio > RATIO_MAX)
        .map(({ share }) => `${share * 100} % differ`),
    ],
  };
}

/** So many standard deviations of a fair coin: chance alone exceeds it in one run of ten thousand. */
const DEVIATIONS_MAX = 4;
const RATIO_MAX = 1.1;

async function took(client: Accepted, user: string, password: string): Promise<number> {
  const credentials = Buffer.from(`${user}:${password}`).toString("base64");
  const before = client.received.length;
  const begun = performance.now();
  client.send(`GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Basic ${credentials}\r\n\r\n`);
  await client.until((peer) => peer.received.endsWith("</html>\r\n") && peer.received.length > before);
  const response = client.received.slice(before, before + 13);
  if (response !== "HTTP/1.1 401 ") throw new Error(`a wrong password gets ${response}`);
  return performance.now() - begun;
}
