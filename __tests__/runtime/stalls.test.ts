import { setTimeout as sleep } from "node:timers/promises";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { RawClient } from "../../testkit/http2RawClient.js";
import { type Accepted, connectTo, RawUpstream } from "../../testkit/peers.js";
import { eventually, stall } from "../../testkit/waiting.js";
import { readFirst } from "../../src/runtime/sockets/firstBytes.js";

/**
 * A process that gets no processor for longer than its timeouts, as on a suspended or a very busy machine: what was sent
 * in time lies in the sockets, and nobody is told to have been late.
 */

const TIMEOUT_MS = 1_000;
/** Longer than any timeout here. */
const STALL_MS = 1.5 * TIMEOUT_MS;
const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";

let front: EveryProtocol;
let upstream: RawUpstream;
let script: (peer: Accepted) => void;

beforeAll(async () => {
  upstream = await new RawUpstream((peer) => script(peer)).listen();
  const url = `http://127.0.0.1:${upstream.port}`;
  const proxied = { requestBodyTimeoutMs: TIMEOUT_MS, sendTimeoutMs: TIMEOUT_MS };
  front = await startEveryProtocol({
    routes: Object.entries({ web: "/", prompt: "/prompt" }).map(([name, path]) => ({
      name,
      path,
      action: { type: "proxy", upstream: name },
      ...proxied,
    })),
    // The one of most tests needs turns for its response, and a busy machine may take its time for each.
    upstreams: [
      { name: "web", url, idleTimeoutMs: TIMEOUT_MS },
      { name: "prompt", url, readTimeoutMs: TIMEOUT_MS },
    ],
    config: { timeouts: { requestHeadMs: TIMEOUT_MS, keepAliveMs: TIMEOUT_MS } },
  });
});
afterAll(async () => {
  await front.close();
  await upstream.close();
});
/** Responds once all of a request has arrived. */
const complete = (peer: Accepted): void =>
  void peer.receives(/^GET [^]*\r\n\r\n|\r\n\r\nabcd/).then(() => peer.send(OK));
beforeEach(() => (script = complete));

const POST = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n";

test.each<[what: string, before: string, after: string]>([
  ["the rest of a request head", "GET / HTTP/1.1\r\nHost", ": a\r\n\r\n"],
  ["the rest of a request body", `${POST}ab`, "cd"],
  [
    "the next request of a kept connection",
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
  ],
])("%s", async (_what, before, after) => {
  for (const secure of [false, true]) {
    const client = await connectTo(secure ? front.securePort : front.plainPort, secure);
    client.send(before);
    await sleep(TIMEOUT_MS / 4);
    const { length } = client.received;
    client.send(after);
    stall(STALL_MS);
    await client.until(({ received, closed, ended }) => received.length > length || closed || ended);
    expect(client.received.slice(length).split("\r\n")[0]).toBe("HTTP/1.1 200 OK");
    client.socket.destroy();
  }
});

test("an upstream's response", async () => {
  script = (peer) =>
    peer.socket.once("data", () => {
      peer.send(OK);
      stall(STALL_MS);
    });
  const client = await connectTo(front.plainPort);
  client.send("GET /prompt HTTP/1.1\r\nHost: a\r\n\r\n");
  await client.receives("ok");
  expect(client.received).toMatch(/^HTTP\/1.1 200 /);
  client.socket.destroy();
});

test.each(["POST", "GET"])(
  "no %s goes to an upstream that has closed its kept connection meanwhile",
  async (method) => {
    const KEPT = OK.replace("Connection: close\r\n", "");
    script = (peer) => void peer.socket.on("data", () => peer.send(KEPT));
    const client = await connectTo(front.plainPort);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await client.receives("ok");
    const kept = upstream.connections.at(-1)!;
    const before = kept.received.length;
    const { length } = client.received;
    client.send(`${method} / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab`);
    kept.socket.destroy();
    stall(STALL_MS);
    await client.until(({ received }) => received.length > length);
    expect(client.received.slice(length)).toMatch(/^HTTP\/1.1 200 /);
    expect(kept.received).toHaveLength(before);
    client.socket.destroy();
  },
);

test("a request over HTTP/2 on a kept connection", async () => {
  const client = await RawClient.connect(front.securePort);
  client.request(1, []);
  expect(await client.outcome(1)).toBe("200");
  client.request(3, []);
  stall(STALL_MS);
  expect(await client.outcome(3)).toBe("200");
  client.destroy();
});

test("the first bytes of a connection", async () => {
  const failed: string[] = [];
  let found: string | undefined;
  const server = await new RawUpstream(({ socket }) => {
    socket.removeAllListeners("data");
    readFirst(socket, {
      parse: (bytes) => (bytes.length < 4 ? undefined : String(bytes)),
      timeoutMs: TIMEOUT_MS,
      found: (text) => (found = text),
      failed: (why) => failed.push(why),
    });
  }).listen();
  const client = await connectTo(server.port);
  client.send("ab");
  await sleep(TIMEOUT_MS / 4);
  client.send("cd");
  stall(STALL_MS);
  await eventually(() => found !== undefined || failed.length > 0);
  expect([found, failed]).toEqual(["abcd", []]);
  client.socket.destroy();
  await server.close();
});
