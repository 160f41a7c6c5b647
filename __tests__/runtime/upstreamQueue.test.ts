import type { ClientHttp2Session } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import type { UpstreamInput } from "../../src/model/index.js";
import { pass } from "../../testkit/clock.js";
import { proxiedRoutes, startProxy, type TestProxy } from "../../testkit/harness.js";
import { responseOf, connectHttp2, type Http2Server, startHttp2Server } from "../../testkit/http2Server.js";
import { type Accepted, connectTo, isComplete, parseResponse, RawUpstream } from "../../testkit/peers.js";
import { eventually } from "../../testkit/waiting.js";
import { randomText } from "../../testkit/random.js";

/** The limit of connections to an upstream, and the queue in front of it. */

/** What the upstream received, in the order it came; each waits for a response. */
interface Received {
  readonly path: string;
  readonly peer: Accepted;
  readonly text: string;
}

interface Responded {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly body: string;
}

interface Asked {
  readonly response: Promise<Responded>;
  leave(): void;
}

interface Front {
  ask(path: string, body?: string): Promise<Asked>;
  errorLog(): Promise<string>;
  close(): Promise<void>;
}

let upstream: RawUpstream;
let received: Received[];
let front: Front;
/** Connections that the upstream has, and the most it had at a time. */
let open: { now: number; most: number };

beforeEach(async () => {
  received = [];
  const count = (open = { now: 0, most: 0 });
  upstream = await new RawUpstream((peer) => {
    count.most = Math.max(count.most, ++count.now);
    peer.socket.on("close", () => count.now--);
    let at = 0;
    peer.socket.on("data", () => {
      for (;;) {
        const end = peer.received.indexOf("\r\n\r\n", at);
        if (end === -1) return;
        const length = Number(/content-length: (\d+)/i.exec(peer.received.slice(at, end))?.[1] ?? 0);
        const next = end + 4 + length;
        if (peer.received.length < next) return;
        const text = peer.received.slice(at, next);
        received.push({ path: text.split(" ")[1]!, peer, text });
        at = next;
      }
    });
  }).listen();
});
afterEach(async () => {
  await front.close();
  await upstream.close();
});

const paths = (): string[] => received.map(({ path }) => path);

function respond(index: number): void {
  const { peer, path } = received[index]!;
  peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${path.length}\r\n\r\n${path}`);
}

/** All requests here come of one client, which may have everything unless a test says otherwise. */
const web = (): UpstreamInput => ({
  name: "web",
  url: `http://127.0.0.1:${upstream.port}`,
  clientSharePercent: 100,
});

async function overHttp1(limits: Partial<UpstreamInput>): Promise<Front & { readonly proxy: TestProxy }> {
  const proxy = await startProxy({ routes: proxiedRoutes(), upstreams: [{ ...web(), ...limits }] });
  return {
    proxy,
    async ask(path, body) {
      const client = await connectTo(proxy.port);
      const length = body === undefined ? "" : `Content-Length: ${body.length}\r\n`;
      const method = body === undefined ? "GET" : "PUT";
      client.send(`${method} ${path} HTTP/1.1\r\nHost: a\r\n${length}\r\n${body ?? ""}`);
      const complete = client.until(({ received: text, closed }) => closed || isComplete(text));
      return {
        response: complete.then((peer) => {
          peer.socket.destroy();
          const { status, headers, body: text } = parseResponse(peer.received);
          return { status, retryAfter: headers["retry-after"], body: text };
        }),
        leave: () => client.socket.destroy(),
      };
    },
    errorLog: () => proxy.errorLog(),
    close: () => proxy.close(),
  };
}

async function overHttp2(limits: Partial<UpstreamInput>): Promise<Front & { readonly server: Http2Server }> {
  const server = await startHttp2Server({
    routes: proxiedRoutes(),
    config: { upstreams: [{ ...web(), ...limits }] },
  });
  // All of it comes of one client, on one connection.
  const session: ClientHttp2Session = connectHttp2(server.port);
  return {
    server,
    ask(path, body) {
      const method = body === undefined ? "GET" : "PUT";
      const length = body === undefined ? {} : { "content-length": String(body.length) };
      const stream = session.request(
        { ":path": path, ":method": method, ":authority": "app.example", ...length },
        { endStream: body === undefined },
      );
      if (body !== undefined) stream.end(body);
      const over = responseOf(stream).then(({ status, headers, body: text }) => ({
        status,
        retryAfter: headers["retry-after"] as string | undefined,
        body: text,
      }));
      return Promise.resolve({ response: over, leave: () => stream.close(8) });
    },
    errorLog: () => server.errorLog(),
    close: async () => {
      session.destroy();
      await server.close();
    },
  };
}

describe.each([
  ["HTTP/1.1", overHttp1],
  ["HTTP/2", overHttp2],
] as const)("over %s", (_, start) => {
  /** Asks in order: each is in before the next is sent. */
  async function askAll(names: readonly string[], seen: number): Promise<Asked[]> {
    const asked: Asked[] = [];
    for (const name of names) {
      asked.push(await front.ask(`/sync/${name}`));
      await eventually(() => received.length >= Math.min(asked.length, seen));
      await sleep(10);
    }
    return asked;
  }

  test("many requests use no more than the allowed connections, and are served in order", async () => {
    front = await start({ connectionsMax: 2 });
    const names = ["0", "1", "2", "3", "4", "5", "6", "7"];
    const asked = await askAll(names, 2);
    expect(paths()).toEqual(["/sync/0", "/sync/1"]);
    for (let i = 0; i < names.length; i++) {
      await eventually(() => received.length > i);
      respond(i);
    }
    const responses = await Promise.all(asked.map((one) => one.response));
    expect(responses.map(({ status, body }) => [status, body])).toEqual(
      names.map((n) => [200, `/sync/${n}`]),
    );
    expect(paths()).toEqual(names.map((n) => `/sync/${n}`));
    expect(open.most).toBe(2);
  });

  test("without reuse, or if an upstream closes, the next in line gets a new connection", async () => {
    front = await start({ connectionsMax: 1, idleConnectionsMax: 0 });
    const asked = await askAll(["a", "b", "c"], 1);
    respond(0);
    await eventually(() => received.length === 2);
    received[1]!.peer.socket.destroy();
    await eventually(() => received.length === 3);
    respond(2);
    const statuses = await Promise.all(asked.map(async (one) => (await one.response).status));
    expect(statuses).toEqual([200, 502, 200]);
    expect(upstream.connections).toHaveLength(3);
  });

  test("when the queue is full, one more gets a 503 at once, with Retry-After", async () => {
    front = await start({ connectionsMax: 1, queuedRequestsMax: 1 });
    const [first, second, third] = await askAll(["a", "b", "c"], 1);
    expect(await third!.response).toMatchObject({ status: 503, retryAfter: "5" });
    expect(await front.errorLog()).toContain(
      "all 1 connections to upstream are in use, and the queue for one is full",
    );
    respond(0);
    await eventually(() => received.length === 2);
    respond(1);
    expect([(await first!.response).status, (await second!.response).status]).toEqual([200, 200]);
  });

  test("a request that waits too long gets a 503", async () => {
    front = await start({ connectionsMax: 1, queueTimeoutMs: 300 });
    const [first, second] = await askAll(["a", "b"], 1);
    expect(await second!.response).toMatchObject({ status: 503, retryAfter: "5" });
    expect(await front.errorLog()).toContain("and no connection became free within 300 ms");
    respond(0);
    expect((await first!.response).status).toBe(200);
    // Nothing of it is left: the connection serves whoever comes.
    const later = await front.ask("/sync/later");
    await eventually(() => received.length === 2);
    respond(1);
    expect((await later.response).body).toBe("/sync/later");
  });

  test("a client that leaves is removed from the queue", async () => {
    front = await start({ connectionsMax: 1, queuedRequestsMax: 2 });
    const [first, second, third] = await askAll(["a", "b", "c"], 1);
    void second!.response.catch(() => undefined);
    second!.leave();
    // Over HTTP/1.1 the end of a client's data leaves it a second for the response to begin (decisions 4.4).
    await pass(1_500);
    // Its place in the queue is free again.
    const fourth = await front.ask("/sync/d");
    respond(0);
    await eventually(() => received.length === 2);
    respond(1);
    await eventually(() => received.length === 3);
    respond(2);
    await Promise.all([first!.response, third!.response, fourth.response]);
    expect(paths()).toEqual(["/sync/a", "/sync/c", "/sync/d"]);
  });

  test("the only client that waits leaves, and its request goes nowhere", async () => {
    front = await start({ connectionsMax: 1 });
    const [first, second] = await askAll(["a", "b"], 1);
    void second!.response.catch(() => undefined);
    second!.leave();
    await pass(1_500);
    const third = await front.ask("/sync/c");
    respond(0);
    await first!.response;
    await eventually(() => received.length === 2);
    respond(1);
    await third.response;
    expect(paths()).toEqual(["/sync/a", "/sync/c"]);
  });

  test("a client that leaves its response frees the connection", async () => {
    front = await start({ connectionsMax: 1 });
    const [first, second] = await askAll(["a", "b"], 1);
    void first!.response.catch(() => undefined);
    first!.leave();
    await eventually(() => received.length === 2);
    respond(1);
    expect((await second!.response).body).toBe("/sync/b");
  });

  test("an upload waits with its body, and arrives complete", async () => {
    front = await start({ connectionsMax: 1 });
    const first = await front.ask("/sync/a");
    await eventually(() => received.length === 1);
    const body = randomText(200_000);
    const upload = await front.ask("/sync/up", body);
    await sleep(100);
    respond(0);
    await first.response;
    await eventually(() => received.length === 2);
    expect(received[1]!.text.endsWith(`\r\n\r\n${body}`)).toBe(true);
    respond(1);
    expect((await upload.response).status).toBe(200);
  });

  test("a retry takes the place of the broken connection, before all waiting requests", async () => {
    front = await start({ connectionsMax: 1 });
    const warm = await front.ask("/sync/warm");
    await eventually(() => received.length === 1);
    respond(0);
    await warm.response;
    const asked = await askAll(["a", "b"], 2);
    await eventually(() => received.length === 2);
    received[1]!.peer.socket.destroy();
    await eventually(() => received.length === 3);
    expect(paths()).toEqual(["/sync/warm", "/sync/a", "/sync/a"]);
    respond(2);
    await eventually(() => received.length === 4);
    respond(3);
    expect((await Promise.all(asked.map((one) => one.response))).map(({ body }) => body)).toEqual([
      "/sync/a",
      "/sync/b",
    ]);
  });
});

test("a tunnel counts as long as it is open", async () => {
  const started = await overHttp1({ connectionsMax: 1 });
  front = started;
  const client = await connectTo(started.proxy.port);
  client.send(
    "GET /sync/ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
  );
  await eventually(() => received.length === 1);
  received[0]!.peer.send(
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
  );
  await client.receives("101 Switching");
  const waiting = await front.ask("/sync/next");
  await sleep(100);
  expect(received).toHaveLength(1);
  received[0]!.peer.socket.end();
  await eventually(() => received.length === 2);
  respond(1);
  expect((await waiting.response).status).toBe(200);
  client.socket.destroy();
});

test("a drain serves the waiting requests", async () => {
  const started = await overHttp1({ connectionsMax: 1 });
  front = started;
  const first = await front.ask("/sync/a");
  await eventually(() => received.length === 1);
  const second = await front.ask("/sync/b");
  await sleep(50);
  started.proxy.drain();
  respond(0);
  await eventually(() => received.length === 2);
  respond(1);
  expect([(await first.response).status, (await second.response).status]).toEqual([200, 200]);
});

test("a request that was sent together with the one before it does not overtake those that wait", async () => {
  const started = await overHttp1({ connectionsMax: 1 });
  front = started;
  const client = await connectTo(started.proxy.port);
  client.send(["/sync/a", "/sync/c"].map((path) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`).join(""));
  await eventually(() => received.length === 1);
  const waiting = await front.ask("/sync/b");
  await sleep(50);
  for (let i = 0; i < 3; i++) {
    await eventually(() => received.length === i + 1);
    respond(i);
  }
  expect((await waiting.response).status).toBe(200);
  expect(paths()).toEqual(["/sync/a", "/sync/b", "/sync/c"]);
  client.socket.destroy();
});
