import { once } from "node:events";
import { connect as connectHttp2, type ClientHttp2Stream } from "node:http2";
import { UpstreamConnection } from "../../src/runtime/upstream/upstreamConnection.js";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { type Accepted, connectTo, RawUpstream } from "../../testkit/peers.js";
import { eventually } from "../../testkit/waiting.js";

/**
 * A response with neither length nor chunks ends with its connection: by FIN it is whole, by RST it is not, and no
 * client may take it for whole. How much of the request was sent by then does not matter, nor who met the reset first.
 */

let upstream: RawUpstream;
let front: EveryProtocol;

beforeAll(async () => {
  upstream = await new RawUpstream().listen();
  front = await startEveryProtocol({
    routes: [{ name: "web", path: "/", action: { type: "proxy", upstream: "web" } }],
    upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}` }],
  });
});
afterAll(async () => {
  await front.close();
  await upstream.close();
});

const BODY = "as far as it goes";
const RESPONSE = `HTTP/1.1 200 OK\r\n\r\n${BODY}`;
/** More than kernels hold on both ways. */
const LENGTH = 32 << 20;

/** A client with a long upload, which it sends as it is told. */
interface Uploading {
  send(bytes: number): void;
  /** What came of the response's body. */
  body(): string;
  /** Resolves when the response is over. */
  readonly over: Promise<"whole" | "cut">;
  close(): void;
}

const http1 = (secure: boolean) => async (): Promise<Uploading> => {
  const client = await connectTo(secure ? front.securePort : front.plainPort, secure);
  client.send(`POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: ${LENGTH}\r\n\r\n`);
  const isWhole = (): boolean => client.received.endsWith("\r\n0\r\n\r\n");
  return {
    send: (bytes) => void client.send(Buffer.alloc(bytes)),
    body: () => client.received,
    over: client
      .until(({ ended, closed }) => isWhole() || ended || closed)
      .then(() => (isWhole() ? "whole" : "cut")),
    close: () => client.socket.destroy(),
  };
};

const http2 = async (): Promise<Uploading> => {
  const session = connectHttp2(`https://127.0.0.1:${front.securePort}`, {
    rejectUnauthorized: false,
    maxSessionMemory: (2 * LENGTH) >> 20,
  });
  session.on("error", () => undefined);
  await once(session, "connect");
  const stream: ClientHttp2Stream = session.request({
    ":method": "POST",
    ":path": "/x",
    "content-length": String(LENGTH),
  });
  let received = "";
  let ended = false;
  stream.on("error", () => undefined);
  stream.on("data", (chunk: Buffer) => (received += chunk.toString()));
  stream.on("end", () => (ended = true));
  return {
    send: (bytes) => void stream.write(Buffer.alloc(bytes)),
    body: () => received,
    // A response before the end of the request is followed by NO_ERROR (RFC 9113, 8.1).
    over: new Promise((resolve) => stream.once("close", resolve)).then(() =>
      ended && [0, undefined].includes(stream.rstCode) ? "whole" : "cut",
    ),
    close: () => session.destroy(),
  };
};

const PROTOCOLS: readonly [string, () => Promise<Uploading>][] = [
  ["HTTP/1.1", http1(false)],
  ["HTTP/1.1 over TLS", http1(true)],
  ["HTTP/2", http2],
];

/** The proxy's connection to the upstream, as it was written to last. */
const connection = (): UpstreamConnection => written.mock.contexts.at(-1)!;
let written: jest.SpyInstance<void, [], UpstreamConnection>;
beforeEach(() => {
  written = jest.spyOn(UpstreamConnection.prototype, "onWrite") as never;
});
afterEach(() => {
  jest.restoreAllMocks();
});

const turn = (): Promise<void> => new Promise(setImmediate);
/** How far the request is when the response ends. */
type State = (client: Uploading, peer: Accepted, end: () => Promise<void>) => Promise<void>;
const STATES: Readonly<Record<string, State>> = {
  "nothing of the request waits to be written": async (client, peer, end) => {
    client.send(1_000);
    await peer.until(({ received }) => received.length > 1_000);
    await end();
  },
  "some of it waits": async (client, peer, end) => {
    client.send(LENGTH - 2);
    await peer.receives("\r\n\r\n");
    peer.socket.pause();
    await eventually(() => connection().request.pending);
    await end();
  },
  "a write of it met the end before a read did": async (client, peer, end) => {
    client.send(1_000);
    await peer.receives("\r\n\r\n");
    const { request } = connection();
    connection().pause();
    await end();
    while (!request.failed) {
      client.send(1_000);
      await turn();
    }
    connection().resume();
  },
};

/** How the upstream ends the connection, with the response's last bytes. */
const ENDINGS: Readonly<Record<"whole" | "cut", (peer: Accepted) => Promise<void>>> = {
  cut: async (peer) => {
    peer.send(RESPONSE);
    peer.socket.resetAndDestroy();
  },
  // What it had not read by then gets RST, after the FIN.
  whole: async ({ socket }) => {
    socket.end(RESPONSE);
    await once(socket, "finish");
    socket.destroy();
  },
};

describe.each(PROTOCOLS)("over %s", (_, start) => {
  describe.each(Object.entries(STATES))("while %s", (_, state) => {
    test.each(Object.entries(ENDINGS))("is %s", async (expected, ending) => {
      const index = upstream.connections.length;
      const client = await start();
      client.send(1);
      const peer = await upstream.connection(index);
      await state(client, peer, () => ending(peer));
      expect(await client.over).toBe(expected);
      client.close();
      if (expected === "whole") expect(client.body()).toContain(BODY);
      else expect(await front.errorLog()).toContain("104: ECONNRESET) while reading upstream");
    });
  });
});
