import { setTimeout as sleep } from "node:timers/promises";
import { pass } from "../../testkit/clock.js";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { connectHttp2 } from "../../testkit/http2Server.js";
import { type Accepted, connectTo, RawUpstream } from "../../testkit/peers.js";
import { eventually } from "../../testkit/waiting.js";

/** A tunnel of which one side has ended, and the other side ignores that. The timeouts of the service are ten hours. */

const HOURS_MS = 36_000_000;
const SWITCHED = "HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
const UPGRADE =
  "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";

let upstream: RawUpstream;
let front: EveryProtocol;
beforeEach(async () => {
  upstream = await new RawUpstream((peer) => {
    const switches = (): void => {
      if (!peer.received.includes("\r\n\r\n")) return;
      peer.socket.off("data", switches);
      peer.send(SWITCHED);
    };
    peer.socket.on("data", switches);
  }).listen();
  const url = `http://127.0.0.1:${upstream.port}`;
  front = await startEveryProtocol({
    routes: [{ name: "web", path: "/", action: { type: "proxy", upstream: "web" } }],
    upstreams: [{ name: "web", url, readTimeoutMs: HOURS_MS, sendTimeoutMs: HOURS_MS }],
  });
});
afterEach(async () => {
  const faults = front.serving.faults.count;
  await front.close();
  await upstream.close();
  expect(faults).toBe(0);
});

/** The client's side of a tunnel. */
interface Client {
  send(data: Buffer): void;
  end(): void;
  readonly received: () => string;
  readonly over: () => boolean;
}

const CLIENTS: Readonly<Record<string, () => Promise<Client>>> = {
  "HTTP/1.1": async () => {
    const peer = await connectTo(front.plainPort);
    peer.send(UPGRADE);
    await peer.receives("\r\n\r\n");
    return {
      send: (data) => void peer.send(data),
      end: () => void peer.socket.end(),
      received: () => peer.received.slice(peer.received.indexOf("\r\n\r\n") + 4),
      over: () => peer.ended || peer.closed,
    };
  },
  "HTTP/2": async () => {
    const session = connectHttp2(front.securePort);
    const stream = session.request(
      {
        ":method": "CONNECT",
        ":protocol": "websocket",
        ":path": "/ws",
        ":scheme": "https",
        ":authority": "a",
      },
      { endStream: false },
    );
    let [received, over, switched] = ["", false, false];
    stream.on("response", () => (switched = true)).on("error", () => undefined);
    stream.on("data", (data: Buffer) => (received += data.toString("latin1")));
    stream.on("end", () => (over = true)).on("close", () => session.destroy());
    await eventually(() => switched);
    return {
      send: (data) => void stream.write(data),
      end: () => void stream.end(),
      received: () => received,
      over: () => over,
    };
  },
};

const open = async (protocol: string): Promise<{ client: Client; server: Accepted }> => {
  const client = await CLIENTS[protocol]!();
  return { client, server: upstream.connections[0]! };
};
const connections = (): number => front.serving.holdings().upstreamConnections;

describe.each(Object.keys(CLIENTS))("over %s", (protocol) => {
  test("the client has ended: the upstream may send on, and a silent one has a minute", async () => {
    const { client, server } = await open(protocol);
    client.end();
    await eventually(() => server.ended);
    for (let i = 0; i < 3; i++) {
      await pass(50_000);
      server.send(`${i}`);
      await eventually(() => client.received().length === i + 1);
    }
    expect([connections(), client.over()]).toEqual([1, false]);
    await pass(59_000);
    expect(connections()).toBe(1);
    await pass(2_000);
    await eventually(() => client.over() && connections() === 0);
    expect(client.received()).toBe("012");
    server.socket.destroy();
  });

  test("the upstream has ended: the client is told at once, and a silent one keeps nothing", async () => {
    const { client, server } = await open(protocol);
    server.socket.end();
    await eventually(() => client.over() && server.closed);
    expect(connections()).toBe(0);
  });

  test("the upstream has ended and reads no more: what the client sent last has a minute", async () => {
    const { client, server } = await open(protocol);
    server.socket.pause();
    client.send(Buffer.alloc(16 << 20));
    await sleep(300);
    server.socket.end();
    await eventually(() => client.over());
    await pass(61_000);
    await eventually(() => connections() === 0);
    server.socket.destroy();
  });

  test("neither has ended: nothing is cut", async () => {
    const { client, server } = await open(protocol);
    await pass(300_000);
    server.send("late");
    await eventually(() => client.received() === "late");
    client.end();
    await eventually(() => server.ended);
    server.socket.end();
    await eventually(() => client.over() && server.closed);
  });
});
