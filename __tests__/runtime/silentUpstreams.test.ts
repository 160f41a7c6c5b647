import { pass } from "../../testkit/clock.js";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { ask, connectHttp2 } from "../../testkit/http2Server.js";
import { type Accepted, connectTo, RawUpstream } from "../../testkit/peers.js";
import { eventually } from "../../testkit/waiting.js";

/**
 * Connections after responses that have no body because of their method or status: used again where the server has proved
 * that it sends none, and never for a stranger.
 */

interface Kind {
  readonly method: string;
  readonly head: string;
  /** Whether the same client's other requests go on there. */
  readonly any: boolean;
}

const KINDS: readonly Kind[] = [
  { method: "HEAD", head: "200 OK\r\nContent-Length: 7", any: false },
  { method: "HEAD", head: "200 OK\r\nTransfer-Encoding: chunked", any: false },
  { method: "HEAD", head: "404 Not Found", any: false },
  { method: "HEAD", head: "304 Not Modified", any: false },
  { method: "DELETE", head: "204 No Content", any: true },
  { method: "GET", head: "304 Not Modified\r\nETag: a", any: true },
];
const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const EVIL = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL";

let upstream: RawUpstream;
let front: EveryProtocol;
/** What the upstream sends after `HTTP/1.1 ` as the response to requests of `/web/empty`. */
let head: string;

async function start(more: { connectionsMax?: number; idleConnectionsMax?: number } = {}): Promise<void> {
  upstream = await new RawUpstream((peer) => {
    let answered = 0;
    peer.socket.on("data", () => {
      const requests = peer.received.split("\r\n\r\n").slice(0, -1);
      for (; answered < requests.length; answered++)
        peer.send(requests[answered]!.includes(" /web/empty ") ? `HTTP/1.1 ${head}\r\n\r\n` : OK);
    });
  }).listen();
  front = await startEveryProtocol({
    routes: [{ name: "web", path: "/web", action: { type: "proxy", upstream: "web" } }],
    upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}`, idleTimeoutMs: 60_000, ...more }],
  });
}
afterEach(async () => {
  const faults = front.serving.faults.count;
  await front.close();
  await upstream.close();
  expect(faults).toBe(0);
});

/** Sends a request on the client's connection, and waits for its response. */
async function asks(client: Accepted, method: string, path: string): Promise<string> {
  const from = client.received.length;
  client.send(`${method} /web/${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
  const isWhole = path === "empty" ? /\r\n\r\n/ : /\r\n\r\n(ok|EVIL)/;
  await client.until(({ received }) => isWhole.test(received.slice(from)));
  return client.received.slice(from);
}

/** Another client's request. */
async function strangerAsks(method = "GET", path = "page"): Promise<string> {
  const stranger = await connectTo(front.plainPort);
  const response = await asks(stranger, method, path);
  stranger.socket.destroy();
  return response;
}

/** As many silent connections as it takes, a second each. */
async function prove(method: string): Promise<void> {
  for (let i = 0; i < 2; i++) {
    for (let each = 0; each < 4; each++) await strangerAsks(method, "empty");
    await pass(1_100);
  }
  await eventually(() => upstream.connections.every(({ closed }) => closed));
}

const opened = (): number => upstream.connections.length;

describe.each(KINDS)("after $method with $head", ({ method, head: sent, any }) => {
  beforeEach(async () => {
    head = sent;
    await start();
  });

  test("the same client connection goes on once the server has proved its silence, and no other does", async () => {
    const client = await connectTo(front.plainPort);
    const same = (): Promise<string> => asks(client, method, "empty");
    await same();
    await same();
    expect(opened()).toBe(2);
    await prove(method);
    const before = opened();
    await same();
    await same();
    expect(opened()).toBe(before + 1);
    await strangerAsks(method, "empty");
    await strangerAsks("GET", "page");
    expect(opened()).toBe(before + 3);
    // The stranger's second connection is one for everybody.
    await asks(client, "POST", "page");
    expect(opened()).toBe(before + 3);
    const last = upstream.connections.filter(({ received }) => received.includes("POST "));
    expect(last.map(({ received }) => received.includes(" /web/empty "))).toEqual([any]);
    await same();
    expect(opened()).toBe(before + 3);
    client.socket.destroy();
  });

  test.each([
    ["while it is on trial", false],
    ["after the proofs", true],
  ])("a byte %s refutes the server for good, and is nobody's", async (_when, proved) => {
    if (proved) await prove(method);
    const client = await connectTo(front.plainPort);
    await asks(client, method, "empty");
    upstream.connections.at(-1)!.send(EVIL);
    await eventually(() => upstream.connections.every(({ closed }) => closed));
    await prove(method);
    const before = opened();
    for (let i = 0; i < 3; i++) await asks(client, method, "empty");
    expect(opened()).toBe(before + 3);
    // Those that had a whole response are used as ever.
    for (let i = 0; i < 3; i++) expect(await strangerAsks()).toMatch(/ok$/);
    expect(opened()).toBe(before + 4);
    expect([client.received.includes("EVIL"), await front.errorLog()]).toEqual([false, ""]);
    client.socket.destroy();
  });

  test("what comes in place of a later response reaches no other client", async () => {
    await prove(method);
    const client = await connectTo(front.plainPort);
    await asks(client, method, "empty");
    const silent = upstream.connections.at(-1)!;
    head = `${sent}\r\n\r\n${EVIL}`;
    client.send(`${method} /web/empty HTTP/1.1\r\nHost: a\r\n\r\n`);
    await silent.until(({ received }) => received.split("\r\n\r\n").length > 2);
    head = sent;
    for (let i = 0; i < 10; i++) expect(await strangerAsks()).toMatch(/ok$/);
    expect(await strangerAsks(method, "empty")).not.toContain("EVIL");
    client.socket.destroy();
  });

  test("over HTTP/2 the streams of a connection share them", async () => {
    await prove(method);
    const before = opened();
    const session = connectHttp2(front.securePort);
    for (let round = 0; round < 3; round++)
      await Promise.all(
        Array.from({ length: 5 }, () => ask(session, { ":method": method, ":path": "/web/empty" })),
      );
    expect(opened()).toBe(before + 5);
    session.destroy();
  });
});

test.each([false, true])(
  "a connection that serves nobody makes room for a request (server proved: %j)",
  async (proved) => {
    head = "204 No Content";
    await start({ connectionsMax: 4 });
    if (proved) await prove("DELETE");
    const clients = await Promise.all(Array.from({ length: 4 }, () => connectTo(front.plainPort)));
    for (const client of clients) await asks(client, "DELETE", "empty");
    for (let i = 0; i < 2; i++) expect(await strangerAsks()).toMatch(/ok$/);
    for (const client of clients) client.socket.destroy();
  },
);

test("there are no more of them than `idleConnectionsMax`, and those that wait longest go first", async () => {
  head = "204 No Content";
  await start({ idleConnectionsMax: 2 });
  await prove("DELETE");
  const clients = await Promise.all(Array.from({ length: 3 }, () => connectTo(front.plainPort)));
  for (const client of clients) await asks(client, "DELETE", "empty");
  const [first, ...others] = upstream.connections.slice(-3);
  await first!.until(({ ended, closed }) => ended || closed);
  for (const client of clients.slice(1)) await asks(client, "DELETE", "empty");
  expect(others.map(({ received }) => received.split("\r\n\r\n").length)).toEqual([3, 3]);
  for (const client of clients) client.socket.destroy();
});

test("an upstream without idle connections has none of these", async () => {
  head = "204 No Content";
  await start({ idleConnectionsMax: 0 });
  for (let i = 0; i < 3; i++) await strangerAsks("DELETE", "empty");
  await eventually(() => upstream.connections.every(({ closed }) => closed));
  expect(opened()).toBe(3);
});
