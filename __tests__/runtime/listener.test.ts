import { once } from "node:events";
import * as net from "node:net";
import { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import * as tls from "node:tls";
import type { ListenerConfig, ProxyConfig } from "../../src/model/index.js";
import { WorkerCounts } from "../../src/runtime/counting/workerCounts.js";
import { Faults, type WorkerContext } from "../../src/runtime/dispatch/workerContext.js";
import { clientInfo, type Endpoints } from "../../src/runtime/listen/clientInfo.js";
import { ConnectionGate } from "../../src/runtime/listen/gate.js";
import { type Acceptor, ListenerServer } from "../../src/runtime/listen/listener.js";
import { bind } from "../../src/runtime/sockets/node/boundSockets.js";
import { issue } from "../../testkit/certificates.js";
import { fakeRoute } from "../../testkit/fakeExchange.js";
import { Accepted } from "../../testkit/peers.js";
import { freePort } from "../../testkit/ports.js";
import { eventually as waited, nextEvent } from "../../testkit/waiting.js";

/**
 * What a listener does with a connection before a protocol has it: to whom it is given, when it is closed, what is
 * logged.
 */

const eventually = (holds: () => boolean) => waited(holds);

interface Given {
  readonly protocol: "http1" | "http2";
  readonly socket: net.Socket;
  readonly secured: boolean;
  readonly announced: Endpoints | undefined;
  readonly read: string | undefined;
}

interface Started {
  readonly server: ListenerServer;
  readonly port: number;
  readonly given: Given[];
  readonly log: string[];
  readonly faults: Faults;
  /** Connects from another address than a proxy in front would. */
  connect(localAddress?: string): Promise<Accepted>;
}

interface Options {
  readonly certificates?: number;
  readonly http2?: boolean;
  readonly announced?: boolean;
  readonly tlsHandshakeMs?: number;
  readonly requestHeadMs?: number;
  readonly connectionsMax?: number;
  readonly accepts?: () => void;
}

const closing: (() => void)[] = [];
afterEach(() => {
  jest.useRealTimers();
  jest.restoreAllMocks();
  for (const close of closing.splice(0)) close();
});

const BALANCER = "127.0.0.2";
const V1 = "PROXY TCP4 192.0.2.1 198.51.100.2 55555 443\r\n";
const CLIENT = { address: "192.0.2.1", port: 55_555, localAddress: "198.51.100.2", localPort: 443 };

async function start(options: Options = {}): Promise<Started> {
  const { certificates = 0, announced = false, tlsHandshakeMs = 10_000, requestHeadMs = 10_000 } = options;
  const port = await freePort();
  const listener = {
    name: "front",
    address: "127.0.0.1",
    port,
    protocol: certificates === 0 ? "http" : "https",
    http2: options.http2 ?? true,
    ...(certificates === 0 ? {} : { tls: { policy: "mozilla-intermediate" } }),
    ...(announced ? { proxyProtocol: { from: [BALANCER] } } : {}),
  } as unknown as ListenerConfig;
  const log: string[] = [];
  const faults = new Faults(fakeRoute({}, []).errorLog);
  const context = {
    config: { timeouts: { tlsHandshakeMs, requestHeadMs } },
    mainError: { write: (level: string, message: string) => void log.push(`${level} ${message}`) },
    faults,
    counts: new WorkerCounts(() => true),
    trusted: () => false,
    dispatcher: { defaultServer: () => ({ versionTokens: false, responseHeaders: { set: {}, remove: [] } }) },
  } as unknown as WorkerContext;
  const limits = { connectionsMax: options.connectionsMax ?? 9, connectionsPerClientMax: 9 };
  const given: Given[] = [];
  const acceptor = (protocol: Given["protocol"]): Acceptor => ({
    accept: (socket, _listener, secured, from, read) => {
      socket.on("error", () => socket.destroy());
      closing.push(() => socket.destroy());
      options.accepts?.();
      given.push({
        protocol,
        socket,
        secured: secured !== undefined,
        announced: from,
        read: read?.toString(),
      });
    },
  });
  const names = ["one.example", "two.example"].slice(0, certificates);
  const issued = await Promise.all(names.map((name) => issue({ type: "ec", names: [name] })));
  const server = new ListenerServer({
    listener,
    tls:
      certificates === 0
        ? undefined
        : { certificates: issued.map((one, i) => ({ id: String(i), source: "files" as const, ...one })) },
    ticketKeys: Buffer.alloc(48, 7).toString("base64"),
    context,
    gate: new ConnectionGate(
      limits as ProxyConfig["limits"],
      () => false,
      (message) => log.push(message),
      () => [],
    ),
    http1: acceptor("http1"),
    http2: acceptor("http2"),
  });
  const socket = bind("127.0.0.1", port);
  if (typeof socket === "number") throw new Error(`cannot bind: ${socket}`);
  // From here on it is the server's, which closes it.
  expect(await server.listen(socket)).toBeUndefined();
  closing.push(() => {
    server.stopAccepting();
    server.closeAll();
  });
  const connect = async (localAddress?: string): Promise<Accepted> => {
    const client = net.connect({ port, host: "127.0.0.1", ...(localAddress && { localAddress }) });
    closing.push(() => client.destroy());
    const peer = new Accepted(client);
    await once(client, "connect");
    return peer;
  };
  return { server, port, given, log, faults, connect };
}

async function secure(
  socket: net.Socket,
  protocols: string[],
  servername = "one.example",
): Promise<tls.TLSSocket> {
  socket.removeAllListeners("data");
  const client = tls.connect({ socket, servername, ALPNProtocols: protocols, rejectUnauthorized: false });
  client.on("error", () => client.destroy());
  await once(client, "secureConnect");
  return client;
}

/** The first message of a TLS client. */
async function clientHello(): Promise<Buffer> {
  return new Promise((done) => {
    const socket = new Duplex({ read: () => undefined, write: (chunk: Buffer) => done(chunk) });
    tls.connect({ socket, servername: "two.example" }).on("error", () => undefined);
  });
}

/** A handshake whose ClientHello comes in pieces that begin at these bytes, each in a segment of its own. */
async function secureInPieces(tcp: net.Socket, cuts: readonly number[], offers: readonly string[]) {
  let hello: Buffer | undefined;
  const send = async (chunk: Buffer): Promise<void> => {
    const ends = hello === undefined ? [...cuts, chunk.length] : [chunk.length];
    hello ??= chunk;
    for (const [i, end] of ends.entries()) {
      if (i > 0) await sleep(2);
      tcp.write(chunk.subarray(ends[i - 1] ?? 0, end));
    }
  };
  const socket = new Duplex({
    read: () => undefined,
    write: (chunk: Buffer, _encoding, done) => void send(chunk).then(() => done()),
  });
  tcp.removeAllListeners("data").on("data", (chunk: Buffer) => socket.push(chunk));
  const name = { servername: "two.example", ALPNProtocols: [...offers] };
  const client = tls.connect({ socket, rejectUnauthorized: false, ...name });
  await once(client, "secureConnect");
  return {
    bytes: hello!.length,
    protocol: client.alpnProtocol,
    names: client.getPeerCertificate().subjectaltname,
  };
}

const closed = (peer: Accepted): Promise<Accepted> => peer.until((one) => one.ended || one.closed);

test("plain connections are for HTTP/1.1, and their clients may end their side", async () => {
  const { connect, given, log } = await start();
  await connect();
  await eventually(() => given.length === 1);
  const [{ socket, ...rest }] = given as [Given];
  expect(rest).toEqual({ protocol: "http1", secured: false, announced: undefined, read: undefined });
  expect([socket.allowHalfOpen, log]).toEqual([true, []]);
});

test.each<
  [certificates: number, http2: boolean, offers: string[], protocol: Given["protocol"], alpn: string | false]
>([
  [1, true, ["h2", "http/1.1"], "http2", "h2"],
  [1, true, ["http/1.1"], "http1", "http/1.1"],
  [1, false, ["h2", "http/1.1"], "http1", "http/1.1"],
  [2, true, ["h2"], "http2", "h2"],
  [2, true, [], "http1", false],
])(
  "with %i certificates and HTTP/2: %j, %j is for %s",
  async (certificates, http2, offers, protocol, alpn) => {
    const { connect, given, server } = await start({ certificates, http2 });
    const client = await secure((await connect()).socket, offers);
    await eventually(() => given.length === 1);
    const [{ socket, ...rest }] = given as [Given];
    expect(rest).toEqual({ protocol, secured: true, announced: undefined, read: undefined });
    expect([client.alpnProtocol, socket.allowHalfOpen]).toEqual([alpn, protocol === "http1"]);
    // It is no longer this listener's to close.
    server.closeAll();
    socket.write("still here");
    expect(String((await nextEvent(client, "data"))[0])).toBe("still here");
  },
);

describe("a connection that begins with a PROXY protocol header", () => {
  test("is its client's, with what follows the header", async () => {
    for (const rest of ["", "G", "GET / HTTP/1.1\r\n"]) {
      const { connect, given } = await start({ announced: true });
      (await connect(BALANCER)).send(V1 + rest);
      await eventually(() => given.length === 1);
      expect(given[0]).toMatchObject({ protocol: "http1", announced: CLIENT, read: rest });
    }
  });

  test("is its proxy's own if the header names nobody", async () => {
    const { connect, given } = await start({ announced: true });
    const { socket } = (await connect(BALANCER)).send("PROXY UNKNOWN\r\n");
    await eventually(() => given.length === 1);
    const announced = { address: BALANCER, port: socket.localPort, localAddress: "127.0.0.1" };
    expect(given[0]).toMatchObject({ announced, read: "" });
  });

  test("has no deadline once it was read, and its client may end its side", async () => {
    const { connect, given, log } = await start({ announced: true, requestHeadMs: 100 });
    const peer = (await connect(BALANCER)).send(V1);
    await eventually(() => given.length === 1);
    const { socket } = given[0]!;
    peer.socket.end();
    // Whoever has it reads on.
    socket.resume();
    await sleep(150);
    socket.end("still here");
    await peer.receives(/still here/);
    expect(log).toEqual([]);
  });

  test.each([1, 2])("may be one of TLS: %i certificates", async (certificates) => {
    const { connect, given, server } = await start({ announced: true, certificates });
    const peer = await connect(BALANCER);
    peer.send(V1);
    const client = await secure(peer.socket, ["http/1.1"]);
    await eventually(() => given.length === 1);
    expect(given[0]).toMatchObject({ protocol: "http1", secured: true, announced: CLIENT });
    server.closeAll();
    given[0]!.socket.write("still here");
    expect(String((await nextEvent(client, "data"))[0])).toBe("still here");
  });

  test.each([1, 2])("may bring one byte of the ClientHello: %i certificates", async (certificates) => {
    const { connect } = await start({ announced: true, certificates });
    const hello = await clientHello();
    const peer = await connect(BALANCER);
    peer.send(Buffer.concat([Buffer.from(V1), hello.subarray(0, 1)]));
    await sleep(30);
    peer.send(hello.subarray(1));
    await peer.receives(/^\x16\x03\x03/);
  });

  test.each<[protocol: string, options: Options, message: string]>([
    ["HTTP", { requestHeadMs: 200 }, "it did not come within 200 ms"],
    ["TLS", { certificates: 1, tlsHandshakeMs: 300 }, "it did not come within 300 ms"],
  ])("has the time of its protocol: %s", async (_protocol, options, message) => {
    const { connect, log, given } = await start({ announced: true, ...options });
    await closed(await connect(BALANCER));
    expect([log, given]).toEqual([
      [`warn no valid PROXY protocol header: ${message}, client: ${BALANCER}, listener: front`],
      [],
    ]);
  });

  test.each([1, 2])("has the time of a handshake with it: %i certificates", async (certificates) => {
    const { connect, log } = await start({ announced: true, certificates, tlsHandshakeMs: 2_000 });
    const begun = performance.now();
    const peer = await connect(BALANCER);
    await sleep(1_500);
    peer.send(Buffer.concat([Buffer.from(V1), (await clientHello()).subarray(0, 20)]));
    await closed(peer);
    expect(performance.now() - begun).toBeLessThan(3_400);
    expect(log).toEqual([
      "info TLS handshake failed (TLS handshake timeout), client: 192.0.2.1, listener: front",
    ]);
  });

  test("is refused by its end, or by what is not one, and nothing is said of one without a byte", async () => {
    const { connect, log, given } = await start({ announced: true });
    for (const bytes of ["", "P", "GET /"]) {
      const peer = await connect(BALANCER);
      peer.socket.end(bytes);
      await closed(peer);
    }
    const why = ["the connection ended before the header was complete", "it begins with other bytes"];
    expect(log).toEqual(
      why.map((one) => `warn no valid PROXY protocol header: ${one}, client: ${BALANCER}, listener: front`),
    );
    expect(given).toEqual([]);
  });
});

describe("a handshake", () => {
  const FAILED = "info TLS handshake failed";
  const WHO = "client: 127.0.0.1, listener: front";

  test.each([1, 2])("that fails is logged with its reason: %i certificates", async (certificates) => {
    const { connect, log } = await start({ certificates });
    const peer = await connect();
    peer.send("\x16\x03\x01\x00\x05hello");
    await closed(peer);
    await eventually(() => log.length === 1);
    expect(log[0]).toMatch(
      /^info TLS handshake failed \([a-z][\w ]+\), client: 127\.0\.0\.1, listener: front$/,
    );
  });

  test.each([1, 2])("that is a plain request gets a page: %i certificates", async (certificates) => {
    const { connect, log } = await start({ certificates });
    const peer = await connect();
    peer.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await closed(peer);
    const why = "The plain HTTP request was sent to HTTPS port";
    const page = [
      "<html>",
      `<head><title>400 ${why}</title></head>`,
      "<body>",
      "<center><h1>400 Bad Request</h1></center>",
      `<center>${why}</center>`,
      "<hr><center>portico</center>",
      "</body>",
      "</html>",
    ].map((line) => `${line}\r\n`);
    expect(peer.received.replace(/(?<=Date: )[^\r]+/, "now").split(/(?<=\n)/)).toEqual([
      "HTTP/1.1 400 Bad Request\r\n",
      "Server: portico\r\n",
      "Date: now\r\n",
      `Content-Length: ${page.join("").length}\r\n`,
      "Connection: close\r\n",
      "Content-Type: text/html\r\n",
      "\r\n",
      ...page,
    ]);
    expect(log).toEqual([`info client sent plain HTTP request to HTTPS port, ${WHO}`]);
  });

  test.each([1, 2])("of a peer that goes away is not logged: %i certificates", async (certificates) => {
    const { connect, log, given } = await start({ certificates });
    const hello = await clientHello();
    for (const bytes of [Buffer.alloc(0), hello.subarray(0, 20)])
      for (const end of ["end", "resetAndDestroy"] as const) {
        const peer = await connect();
        if (bytes.length > 0) peer.send(bytes);
        await sleep(20);
        peer.socket[end]();
        await peer.until((one) => one.closed);
      }
    await sleep(50);
    expect([log, given]).toEqual([[], []]);
  });

  test.each<[certificates: number, sent: number]>([
    [1, 0],
    [1, 20],
    [2, 0],
    [2, 20],
    [2, 10_000],
  ])("has its time, with %i certificates and %i bytes of it", async (certificates, sent) => {
    const { connect, log } = await start({ certificates, tlsHandshakeMs: 300 });
    const begun = performance.now();
    const peer = await connect();
    if (sent > 0) peer.send((await clientHello()).subarray(0, sent));
    await closed(peer);
    expect(performance.now() - begun).toBeGreaterThan(250);
    expect(log).toEqual([`${FAILED} (TLS handshake timeout), ${WHO}`]);
  });

  test.each<[what: string, options: Options]>([
    ["by what the client said first", { certificates: 2 }],
    ["after a header", { certificates: 1, announced: true }],
    ["after both", { certificates: 2, announced: true }],
  ])("that is complete has no deadline any more: %s", async (_what, options) => {
    const { connect, given, log } = await start({ ...options, tlsHandshakeMs: 300 });
    const peer = await connect(BALANCER);
    if (options.announced === true) peer.send(V1);
    await secure(peer.socket, ["http/1.1"]);
    await eventually(() => given.length > 0);
    await sleep(400);
    expect([given.length, given[0]!.socket.destroyed, log]).toEqual([1, false, []]);
  });

  test.each<[what: string, cuts: (bytes: number) => number[][]]>([
    ["at its headers", () => [...Array(50).keys()].map((i) => [i + 1])],
    ["anywhere", (bytes) => [...Array(Math.floor(bytes / 61)).keys()].map((i) => [50 + i * 61])],
    [
      "at the end of a segment",
      () => [1_380, 1_428, 1_440, 1_448, 1_460].flatMap((at) => [[at - 1], [at], [at + 1]]),
    ],
    ["before its last bytes", (bytes) => [1, 2, 3].map((left) => [bytes - left])],
    ["byte by byte at first", () => [[...Array(50).keys()].map((i) => i + 1)]],
    ["in many segments", (bytes) => [[...Array(bytes - 1).keys()].filter((i) => i > 0 && i % 100 === 0)]],
  ])("whose first message has more than a segment's bytes may be cut %s", async (_what, cuts) => {
    const { connect, given } = await start({ certificates: 2 });
    // As much as a key that resists quantum computers, which not every OpenSSL sends.
    const offers = [..."abcdefg"].map((letter) => letter.repeat(200)).concat("http/1.1");
    const shake = async (at: readonly number[]) => {
      const { socket } = await connect();
      const { bytes, ...result } = await secureInPieces(socket, at, offers);
      await eventually(() => given.length === 1);
      given.pop()!.socket.destroy();
      return { bytes, result };
    };
    const { bytes } = await shake([]);
    expect(bytes).toBeGreaterThan(1_500);
    for (const at of cuts(bytes)) {
      const { result } = await shake(at);
      expect({ at, ...result }).toEqual({ at, protocol: "http/1.1", names: "DNS:two.example" });
    }
  });

  test("that has not begun is ended like one that has", async () => {
    for (const options of [{ announced: true }, { certificates: 1 }, { certificates: 2 }]) {
      const { connect, server } = await start(options);
      const peer = await connect(BALANCER);
      await sleep(30);
      server.closeAll();
      await closed(peer);
    }
  });

  test("in progress has a moment after nothing more is accepted", async () => {
    const { connect, server } = await start({ certificates: 1 });
    const peer = await connect();
    await sleep(30);
    jest.useFakeTimers({ doNotFake: ["nextTick", "setImmediate", "performance", "Date", "queueMicrotask"] });
    server.stopAccepting();
    jest.advanceTimersByTime(4_900);
    await new Promise(setImmediate);
    const before = peer.closed || peer.ended;
    jest.advanceTimersByTime(200);
    jest.useRealTimers();
    await closed(peer);
    expect(before).toBe(false);
  });
});

test.each<[what: string, options: Options]>([
  ["plain", {}],
  ["TLS", { certificates: 1 }],
  ["announced", { announced: true }],
])("a connection beyond the limit is closed: %s", async (_what, options) => {
  const { connect, log } = await start({ ...options, connectionsMax: 1 });
  await connect(BALANCER);
  await sleep(30);
  await closed(await connect(BALANCER));
  expect(log).toEqual(["limits.connectionsMax (1) is reached: new connections are closed"]);
});

test("an accept that fails is reported once a minute", async () => {
  const { server, log, port } = await start();
  const { server: inner } = server as unknown as { server: net.Server };
  const error = Object.assign(new Error("accept EMFILE"), { code: "EMFILE", errno: -24, syscall: "accept" });
  const now = jest.spyOn(performance, "now");
  for (const at of [100_000, 159_999, 160_000]) {
    now.mockReturnValue(at);
    inner.emit("error", error);
  }
  const line = `crit accept() on 127.0.0.1:${port} failed (24: Too many open files)`;
  expect(log).toEqual([line, line]);
});

describe("what is known about a client", () => {
  const gone = new net.Socket();

  test.each<[trusted: boolean, temporary: boolean | undefined, rules: string, misdirected: boolean]>([
    [false, undefined, "https", false],
    [false, false, "https", true],
    [false, true, "http", true],
    [true, false, "https", false],
    [true, true, "http", false],
  ])(
    "trusted %j, with a temporary certificate %j: responses have the rules of %s, names are checked %j",
    (trusted, temporary, responseRules, checked) => {
      const listener = { name: "front", protocol: "https" } as ListenerConfig;
      const context = {
        trusted: (address: string) => trusted && address === CLIENT.address,
      } as WorkerContext;
      const misdirected = (): boolean => true;
      const secured = temporary === undefined ? undefined : { misdirected, temporary };
      const info = () => clientInfo(gone, listener, context, secured, CLIENT);
      const { connectionId, ...known } = info();
      expect(known).toEqual({
        ...CLIENT,
        ...{ scheme: "https", listener: "front", trusted, responseRules },
        misdirected: checked ? misdirected : undefined,
      });
      expect(info().connectionId).toBe(connectionId + 1);
    },
  );
});
