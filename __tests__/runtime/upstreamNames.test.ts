import dns from "node:dns";
import type { LookupAddress } from "node:dns";
import { connect } from "node:net";
import { SharedLookup } from "../../src/runtime/upstream/sharedLookup.js";
import { holdSocket } from "../../src/runtime/sockets/node/socketHolder.js";
import { pass } from "../../testkit/clock.js";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { exchange, RawUpstream, responding } from "../../testkit/peers.js";
import { eventually } from "../../testkit/waiting.js";

/** Upstreams that are given by a name, and a resolver that takes its time. */

const GET = "GET /web HTTP/1.1\r\nHost: a\r\n\r\n";
const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

type Responded = (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void;

let upstream: RawUpstream;
let front: EveryProtocol;
/** Lookups that wait for the resolver. */
let asked: Responded[];

beforeEach(async () => {
  asked = [];
  upstream = await new RawUpstream(responding(OK)).listen();
  front = await startEveryProtocol({
    routes: [{ name: "web", path: "/web", action: { type: "proxy", upstream: "web" } }],
    upstreams: [
      {
        name: "web",
        url: `http://files.example.org:${upstream.port}`,
        connectTimeoutMs: 5_000,
        idleConnectionsMax: 0,
      },
    ],
  });
  const lookup = dns.lookup as (name: string, options: unknown, responded: Responded) => void;
  jest.spyOn(dns, "lookup").mockImplementation(((name: string, options: unknown, responded: Responded) => {
    // Servers look up their own addresses.
    if (name === "127.0.0.1") return lookup(name, options, responded);
    expect(name).toBe("files.example.org");
    asked.push(responded);
  }) as unknown as typeof dns.lookup);
});
afterEach(async () => {
  jest.restoreAllMocks();
  await front.close();
  await upstream.close();
});

const statuses = (count: number): Promise<number[]> =>
  Promise.all(Array.from({ length: count }, async () => (await exchange(front.plainPort, GET)).status));

test("are looked up once for all requests that wait for the resolver", async () => {
  const responses = statuses(30);
  await eventually(() => front.serving.holdings().upstreamConnections === 30);
  expect(asked).toHaveLength(1);
  asked[0]!(null, [{ address: "127.0.0.1", family: 4 }]);
  expect(await responses).toEqual(Array(30).fill(200));
  const again = statuses(1);
  await eventually(() => asked.length === 2);
  asked[1]!(null, [{ address: "127.0.0.1", family: 4 }]);
  expect(await again).toEqual([200]);
});

test("that do not exist are a 502 for all who wait", async () => {
  const responses = statuses(3);
  await eventually(() => front.serving.holdings().upstreamConnections === 3);
  asked[0]!(Object.assign(new Error("none"), { code: "ENOTFOUND", errno: -3008 }), []);
  expect(await responses).toEqual([502, 502, 502]);
  expect(await front.errorLog()).toContain("ENOTFOUND) while connecting to upstream");
});

test("are reached at the next address where one refuses, or does not respond for 250 ms", async () => {
  const deaf = holdSocket({ host: "127.0.0.3", port: upstream.port, backlog: 1 });
  if (typeof deaf === "number") throw new Error(`errno ${deaf}`);
  // What the kernel takes in its place.
  const waiting = Array.from({ length: 4 }, () =>
    connect(deaf.port, "127.0.0.3").on("error", () => undefined),
  );
  try {
    const responses = statuses(1);
    await eventually(() => asked.length === 1);
    const addresses = ["127.0.0.2", "127.0.0.3", "127.0.0.1"];
    asked[0]!(
      null,
      addresses.map((address) => ({ address, family: 4 })),
    );
    expect(await responses).toEqual([200]);
    expect(upstream.connections).toHaveLength(1);
  } finally {
    waiting.forEach((socket) => socket.destroy());
    deaf.close();
  }
});

test.each([
  ["by name", "files.example.org", false],
  ["by address", "127.0.0.1", true],
])(
  "are looked up anew: a connection %s that is ten seconds old is used again: %j",
  async (_, host, usedAgain) => {
    const responses: (() => void)[] = [];
    const slow = await new RawUpstream((peer) =>
      peer.socket.on("data", () => void responses.push(() => peer.send(OK))),
    ).listen();
    const web = { name: "web", url: `http://${host}:${slow.port}`, idleConnectionsMax: 3 };
    const routes = [{ name: "web", path: "/web", action: { type: "proxy", upstream: "web" } }] as const;
    const own = await startEveryProtocol({ routes, upstreams: [{ ...web, idleTimeoutMs: 60_000 }] });
    const open = (): number => own.serving.holdings().upstreamConnections;
    /** So many requests at once, with responses after so long. */
    const responded = async (count: number, ms: number): Promise<void> => {
      const all = Array.from({ length: count }, () => exchange(own.plainPort, GET));
      await eventually(() => {
        asked.splice(0).forEach((found) => found(null, [{ address: "127.0.0.1", family: 4 }]));
        return responses.length === count;
      });
      if (ms > 0) await pass(ms);
      responses.splice(0).forEach((respond) => respond());
      await Promise.all(all);
    };
    try {
      await responded(1, 9_500);
      await responded(1, 700);
      expect(slow.connections).toHaveLength(1);
      await responded(1, 0);
      expect(slow.connections).toHaveLength(usedAgain ? 1 : 2);
      // Three are kept, and none of a config that is served no more.
      await responded(4, 0);
      await eventually(() => open() === 3);
      const last = responded(1, 0);
      own.serving.close();
      await last;
      await eventually(() => open() === 0);
    } finally {
      await own.close();
      await slow.close();
    }
  },
);

test("of all upstreams together have two threads of Node's four, so files are still read", async () => {
  const hanging = Array.from({ length: 5 }, () => new SharedLookup());
  const found: unknown[] = [];
  for (const one of hanging)
    one.lookup("files.example.org", { all: true }, (_error, addresses) => void found.push(addresses));
  await new Promise(setImmediate);
  expect(asked).toHaveLength(2);
  for (let i = 0; i < 5; i++) {
    asked[i]!(null, []);
    await new Promise(setImmediate);
  }
  expect(found).toHaveLength(5);
});
