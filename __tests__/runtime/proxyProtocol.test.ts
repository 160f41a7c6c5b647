import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import * as http from "node:http";
import * as http2 from "node:http2";
import * as net from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import * as tls from "node:tls";
import type { ListenerInput, ProxyConfigInput } from "../../src/model/index.js";
import { type ProbeOutcome, probe } from "../../src/host/diagnosis/expected/probe.js";
import { issue } from "../../testkit/certificates.js";
import { Accepted, parseResponse } from "../../testkit/peers.js";
import { freePorts } from "../../testkit/ports.js";
import { everywhere, oneServer } from "../../testkit/oneServer.js";
import { openFolder, Portico } from "../../testkit/portico.js";
import { randomBody, seeded } from "../../testkit/random.js";
import { eventually } from "../../testkit/waiting.js";
import { logEntries } from "../../testkit/logEntries.js";

/** The PROXY protocol in front of everything else, over sockets, with master and worker as processes. */

/** What a load balancer connects from, and what an ordinary client does. */
const BALANCER = "127.0.0.2";
const ORDINARY = "127.0.0.3";
const CLIENT = "192.0.2.1";
const NAMES = ["http", "https", "several"] as const;
type Name = (typeof NAMES)[number];

const V1 = Buffer.from(`PROXY TCP4 ${CLIENT} 198.51.100.2 55555 443\r\n`);
const V2 = Buffer.from("0d0a0d0a000d0a515549540a2111000cc0000201c6336402d90301bb", "hex");
const LOCAL = Buffer.from("0d0a0d0a000d0a515549540a20000000", "hex");

let folder: string;
let ports: Record<Name, number>;
let upstream: http.Server;
let portico: Portico;
const at = (name: string): string => join(folder, name);

beforeAll(async () => {
  folder = openFolder();
  const free = await freePorts(NAMES.length);
  ports = Object.fromEntries(NAMES.map((name, i) => [name, free[i]!])) as Record<Name, number>;
  for (const name of ["one", "two"]) {
    const { key, cert } = await issue({ type: "ec", names: [`${name}.example`] });
    writeFileSync(at(`${name}.key`), key, { mode: 0o600 });
    writeFileSync(at(`${name}.pem`), cert);
  }
  upstream = http.createServer((request, response) => {
    const { "x-forwarded-for": forwarded, "x-forwarded-proto": proto } = request.headers;
    response.setHeader("X-Seen-Proto", proto ?? "none");
    let bytes = 0;
    request.on("data", (chunk: Buffer) => (bytes += chunk.length));
    request.on("end", () => response.end(`for ${forwarded as string}, body ${bytes}`));
  });
  upstream.on("upgrade", (request, socket) => {
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n`);
    socket.write(`for ${request.headers["x-forwarded-for"] as string} `);
    socket.pipe(socket);
    socket.on("error", () => socket.destroy());
  });
  upstream.listen(0, "127.0.0.1");
  await once(upstream, "listening");
  portico = await Portico.start(config());
});

afterAll(async () => {
  await portico.stop();
  upstream.closeAllConnections();
  upstream.close();
});

/** @param timeoutMs short only where it has to pass: on a busy machine a client may take any time */
function config(timeoutMs = 60_000): ProxyConfigInput {
  const { port } = upstream.address() as net.AddressInfo;
  const files = (name: string) => ({ certificate: at(`${name}.pem`), key: at(`${name}.key`) });
  const policy = "mozilla-intermediate";
  const listener = (name: Name, certificates?: readonly string[]): ListenerInput => ({
    name,
    address: "127.0.0.1",
    port: ports[name],
    protocol: certificates === undefined ? "http" : "https",
    proxyProtocol: { from: [`${BALANCER}/32`] },
    tls: certificates && {
      ...files(certificates[0]!),
      certificates: certificates.slice(1).map(files),
      policy,
    },
  });
  return oneServer({
    trustedProxies: ["192.0.2.200"],
    limits: { connectionsPerClientMax: 3 },
    timeouts: { requestHeadMs: timeoutMs, tlsHandshakeMs: timeoutMs },
    logs: { access: { path: at("access.log"), format: "json" }, error: { path: at("error.log") } },
    listeners: [listener("http"), listener("https", ["one"]), listener("several", ["one", "two"])],
    upstreams: [{ name: "echo", url: `http://127.0.0.1:${port}` }],
    routes: [everywhere({ type: "proxy", upstream: "echo" })],
  });
}

async function connectFrom(localAddress: string, name: Name): Promise<net.Socket> {
  const socket = net.connect({ host: "127.0.0.1", port: ports[name], localAddress, noDelay: true });
  socket.on("error", () => socket.destroy());
  await once(socket, "connect");
  return socket;
}

/** The last request in the access log. */
async function logged(holds: (line: Record<string, unknown>) => boolean): Promise<void> {
  const last = (): Record<string, unknown> => logEntries(readFileSync(at("access.log"), "utf8")).at(-1) ?? {};
  await eventually(() => holds(last()), "a line in the access log", { seen: () => JSON.stringify(last()) });
}

async function complained(words: string | RegExp): Promise<void> {
  const text = (): string => readFileSync(at("error.log"), "utf8");
  const holds = (): boolean => (typeof words === "string" ? text().includes(words) : words.test(text()));
  await eventually(holds, `the error log to say ${words}`, { seen: text });
}

const get = (path = "/", more = ""): string => `GET ${path} HTTP/1.1\r\nHost: a.example\r\n${more}\r\n`;

/** A TLS connection after a header; the header and the ClientHello may be one piece. */
async function secured(socket: net.Socket, options: tls.ConnectionOptions = {}): Promise<tls.TLSSocket> {
  const secure = tls.connect({ socket, rejectUnauthorized: false, ALPNProtocols: ["http/1.1"], ...options });
  secure.on("error", () => secure.destroy());
  await once(secure, "secureConnect");
  return secure;
}

/** The response of the upstream to a request over HTTP/2. */
async function overHttp2(socket: net.Socket): Promise<string> {
  const createConnection = () => tls.connect({ socket, rejectUnauthorized: false, ALPNProtocols: ["h2"] });
  const session = http2.connect("https://a.example", { createConnection });
  session.on("error", () => undefined);
  const stream = session.request({ ":path": "/h2" }).setEncoding("utf8");
  const body = (await stream.toArray()).join("");
  session.destroy();
  return body;
}

describe.each([
  ["version 1", V1, CLIENT],
  ["version 2", V2, CLIENT],
  ["LOCAL", LOCAL, BALANCER],
  ["UNKNOWN", Buffer.from("PROXY UNKNOWN\r\n"), BALANCER],
  ["IPv6", Buffer.from("PROXY TCP6 2001:db8::7 2001:db8::8 1 2\r\n"), "2001:db8::7"],
  ["IPv4 as IPv6", Buffer.from("PROXY TCP6 ::ffff:192.0.2.9 ::ffff:198.51.100.2 1 2\r\n"), "192.0.2.9"],
])("%s", (_what, header, address) => {
  test("names the client of HTTP/1.1, in logs too", async () => {
    const peer = new Accepted(await connectFrom(BALANCER, "http"));
    peer.send(header).send(get("/first"));
    await peer.receives(`for ${address}, body 0`);
    await logged((line) => JSON.stringify(line).includes(`"${address}"`));
    peer.send(get("/second"));
    await peer.until(({ received }) => received.split(`for ${address}`).length === 3);
    peer.socket.destroy();
  });

  test.each(["https", "several"] as const)("names the client of TLS: %s", async (name) => {
    const socket = await connectFrom(BALANCER, name);
    socket.write(header);
    const peer = new Accepted(await secured(socket, { servername: "two.example" }));
    expect((peer.socket as tls.TLSSocket).getPeerCertificate().subjectaltname).toBe(
      name === "several" ? "DNS:two.example" : "DNS:one.example",
    );
    peer.send(get());
    await peer.receives(`for ${address}, body 0`);
    peer.socket.destroy();
    socket.destroy();
  });

  test("names the client of HTTP/2", async () => {
    const socket = await connectFrom(BALANCER, "https");
    socket.write(header);
    expect(await overHttp2(socket)).toBe(`for ${address}, body 0`);
    socket.destroy();
  });
});

describe("however it is cut into pieces", () => {
  /** Sends bytes in pieces that begin at these places, each in a packet of its own. */
  async function inPieces(socket: net.Socket, bytes: Buffer, cuts: readonly number[]): Promise<void> {
    for (const [i, from] of [0, ...cuts].entries()) {
      socket.write(bytes.subarray(from, cuts[i] ?? bytes.length));
      await sleep(2);
    }
  }

  const upload = (bytes: number): string =>
    `POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: ${bytes}\r\n\r\n`;

  test.each([
    ["version 1", V1],
    ["version 2", V2],
  ])(
    "%s, with what follows",
    (_what, header) =>
      seeded(async (random) => {
        const whole = Buffer.concat([header, Buffer.from(upload(5) + "hello" + get("/next"))]);
        for (let round = 0; round < 40; round++) {
          const peer = new Accepted(await connectFrom(BALANCER, "http"));
          const cuts = Array.from({ length: random.pick(6) }, () => 1 + random.pick(whole.length - 1));
          await inPieces(
            peer.socket,
            whole,
            [...new Set(cuts)].sort((a, b) => a - b),
          );
          await peer.receives(new RegExp(`for ${CLIENT}, body 5[^]*for ${CLIENT}, body 0`));
          peer.socket.destroy();
          await once(peer.socket, "close");
        }
      })(),
    30_000,
  );

  test("byte for byte", async () => {
    for (const header of [V1, V2]) {
      const peer = new Accepted(await connectFrom(BALANCER, "http"));
      const whole = Buffer.concat([header, Buffer.from(get())]);
      await inPieces(
        peer.socket,
        whole,
        Array.from({ length: whole.length - 1 }, (_, i) => i + 1),
      );
      await peer.receives(`for ${CLIENT}, body 0`);
      peer.socket.destroy();
    }
  });

  test("a large upload begins in the same piece", async () => {
    const peer = new Accepted(await connectFrom(BALANCER, "http"));
    const bytes = 3_000_000;
    peer.send(Buffer.concat([V2, Buffer.from(upload(bytes)), randomBody(bytes)]));
    await peer.receives(`for ${CLIENT}, body ${bytes}`);
    peer.socket.destroy();
  });

  test("a client may end its side at once", async () => {
    const peer = new Accepted(await connectFrom(BALANCER, "http"));
    peer.socket.end(Buffer.concat([V1, Buffer.from(get())]));
    await peer.receives(`for ${CLIENT}, body 0`);
    await peer.until(({ closed }) => closed);
  });

  test("with the ClientHello", async () => {
    for (const name of ["https", "several"] as const) {
      const socket = await connectFrom(BALANCER, name);
      socket.cork();
      socket.write(V2);
      setImmediate(() => socket.uncork());
      const peer = new Accepted(await secured(socket));
      peer.send(get());
      await peer.receives(`for ${CLIENT}, body 0`);
      peer.socket.destroy();
      socket.destroy();
    }
  });
});

test("an upgrade passes", async () => {
  const peer = new Accepted(await connectFrom(BALANCER, "http"));
  peer.send(V1).send(get("/ws", "Connection: Upgrade\r\nUpgrade: websocket\r\n"));
  await peer.receives(`for ${CLIENT} `);
  peer.send("back and forth");
  await peer.receives("back and forth");
  peer.socket.destroy();
});

test("a TLS session is resumed", async () => {
  const first = await connectFrom(BALANCER, "https");
  first.write(V1);
  const begun = await secured(first, { maxVersion: "TLSv1.2" });
  const session = begun.getSession();
  begun.destroy();
  const second = await connectFrom(BALANCER, "https");
  second.write(V2);
  const resumed = await secured(second, { maxVersion: "TLSv1.2", ...(session ? { session } : {}) });
  expect(resumed.isSessionReused()).toBe(true);
  resumed.destroy();
});

describe("nobody else is believed", () => {
  test("an ordinary client needs no header", async () => {
    const peer = new Accepted(await connectFrom(ORDINARY, "http"));
    peer.send(get());
    await peer.receives(`for ${ORDINARY}, body 0`);
    const secure = new Accepted(await secured(await connectFrom(ORDINARY, "several")));
    secure.send(get());
    await secure.receives(`for ${ORDINARY}, body 0`);
    peer.socket.destroy();
    secure.socket.destroy();
  });

  test.each([
    ["version 1", V1],
    ["version 2", V2],
  ])("its header is a malformed request: %s", async (_what, header) => {
    const peer = new Accepted(await connectFrom(ORDINARY, "http"));
    peer.send(header).send(get());
    await peer.receives("HTTP/1.1 400");
    expect(peer.received).not.toContain(`for ${CLIENT}`);
    const socket = await connectFrom(ORDINARY, "https");
    socket.write(header);
    await expect(secured(socket)).rejects.toThrow();
    peer.socket.destroy();
  });

  test("a second header is a malformed request", async () => {
    const peer = new Accepted(await connectFrom(BALANCER, "http"));
    peer.send(Buffer.concat([V1, V1])).send(get());
    await peer.receives("HTTP/1.1 400");
    const socket = await connectFrom(BALANCER, "https");
    socket.write(Buffer.concat([V2, V2]));
    await expect(secured(socket)).rejects.toThrow();
    await complained(`client: ${CLIENT}, listener: https`);
    peer.socket.destroy();
  });
});

describe("without a valid header the connection is closed", () => {
  test.each<[what: string, name: Name, bytes: string, why: string]>([
    ["a request", "http", get(), "it begins with other bytes"],
    ["a ClientHello", "https", "\x16\x03\x01", "it begins with other bytes"],
    [
      "a malformed line",
      "several",
      "PROXY TCP4 1.2.3.4 5.6.7.8 1\r\n",
      "it has malformed addresses or ports",
    ],
    ["a long line", "http", `PROXY UNKNOWN ${"x".repeat(200)}`, "it is longer than 107 bytes"],
  ])("%s", (_what, name, bytes, why) => isRefused(name, bytes, why));

  test("within its time", async () => {
    const reloaded = async (timeoutMs?: number): Promise<void> => {
      writeFileSync(at("error.log"), "");
      portico.rewrite(config(timeoutMs));
      portico.signal("SIGHUP");
      await complained("reloaded");
    };
    const why = "it did not come within 1000 ms";
    await reloaded(1_000);
    try {
      await isRefused("http", "", why);
      await isRefused("https", "", why);
      await isRefused("several", "PROXY TCP4 1.2", why);
    } finally {
      await reloaded();
    }
  });

  async function isRefused(name: Name, bytes: string, why: string): Promise<void> {
    writeFileSync(at("error.log"), "");
    const peer = new Accepted(await connectFrom(BALANCER, name));
    if (bytes !== "") peer.send(bytes);
    await peer.until(({ closed, ended }) => closed || ended);
    expect(peer.received).toBe("");
    await complained(`no valid PROXY protocol header: ${why}, client: ${BALANCER}, listener: ${name}`);
  }

  test("or ends itself: that is reported if it began one", async () => {
    for (const name of ["http", "https"] as const) {
      writeFileSync(at("error.log"), "");
      (await connectFrom(BALANCER, name)).end();
      (await connectFrom(BALANCER, name)).resetAndDestroy();
      const peer = new Accepted(await connectFrom(BALANCER, name));
      peer.socket.end("PROXY TCP4 1");
      await peer.until(({ closed }) => closed);
      await complained(
        `the connection ended before the header was complete, client: ${BALANCER}, listener: ${name}`,
      );
      expect(readFileSync(at("error.log"), "utf8").trim().split("\n")).toHaveLength(1);
    }
  });
});

test("a connection that is reset before it is accepted is nobody's: its header is not taken for a request", async () => {
  const lines = (): number => readFileSync(at("access.log"), "utf8").split("\n").length;
  const before = lines();
  const workers = portico.workers();
  for (const pid of workers) process.kill(pid, "SIGSTOP");
  try {
    for (let i = 0; i < 5; i++) {
      const socket = await connectFrom(BALANCER, "http");
      await new Promise<void>((done) => socket.write(LOCAL, () => done()));
      socket.resetAndDestroy();
    }
  } finally {
    for (const pid of workers) process.kill(pid, "SIGCONT");
  }
  const peer = new Accepted(await connectFrom(BALANCER, "http"));
  peer.send(V1).send(get("/afterwards"));
  await peer.receives(`for ${CLIENT}`);
  await logged((line) => JSON.stringify(line).includes("/afterwards"));
  expect(lines()).toBe(before + 1);
  peer.socket.destroy();
});

test("the limit of a client counts the one that is named", async () => {
  const held: Accepted[] = [];
  const open = async (address: string): Promise<Accepted> => {
    const peer = new Accepted(await connectFrom(BALANCER, "http"));
    held.push(peer);
    peer.send(`PROXY TCP4 ${address} 198.51.100.2 1 2\r\n`).send(get());
    await peer.until(({ received, closed, ended }) => closed || ended || received.includes("for "));
    return peer;
  };
  for (const address of ["192.0.2.50", "192.0.2.51", "192.0.2.50", "192.0.2.51", "192.0.2.50"])
    expect((await open(address)).received).toContain(`for ${address}`);
  expect((await open("192.0.2.50")).received).toBe("");
  await complained("limits.connectionsPerClientMax (3) is reached by 192.0.2.50");
  expect((await open("192.0.2.51")).received).toContain("for 192.0.2.51");
  held[0]!.socket.destroy();
  await eventually(async () => (await open("192.0.2.50")).received !== "", "room for another connection");
  for (const peer of held) peer.socket.destroy();
});

test("the one that is named decides whether forwarding fields are trusted", async () => {
  const seen = async (address: string): Promise<string> => {
    const peer = new Accepted(await connectFrom(BALANCER, "http"));
    peer.send(`PROXY TCP4 ${address} 198.51.100.2 1 2\r\n`).send(get("/", "X-Forwarded-Proto: https\r\n"));
    await peer.receives("for ");
    peer.socket.destroy();
    return parseResponse(peer.received).headers["x-seen-proto"]!;
  };
  expect(await seen("192.0.2.200")).toBe("https");
  expect(await seen(CLIENT)).toBe("http");
});

test("the one that is named may be a proxy of HTTP, which names its client", async () => {
  const peer = new Accepted(await connectFrom(BALANCER, "http"));
  peer.send("PROXY TCP4 192.0.2.200 198.51.100.2 1 2\r\n");
  peer.send(get("/named", "X-Forwarded-For: 6.6.6.6, 198.51.100.9\r\n"));
  await peer.receives("for 6.6.6.6, 198.51.100.9, 192.0.2.200");
  await logged((line) => line["remote_addr"] === "198.51.100.9" && JSON.stringify(line).includes("/named"));
  peer.socket.destroy();
});

test("a balancer that is a proxy of HTTP elsewhere is not believed where a header names nobody", async () => {
  const named = config();
  const free = await freePorts(2);
  const [http] = named.listeners as [ListenerInput];
  const { proxyProtocol: _, ...unannounced } = http;
  const other = await Portico.start({
    ...named,
    trustedProxies: [BALANCER],
    listeners: [
      { ...http, port: free[0]! },
      { ...unannounced, name: "https", port: free[1]! },
    ],
    virtualServers: [{ ...named.virtualServers[0]!, listeners: ["http", "https"] }],
    logs: { error: { path: at("other.log") } },
  });
  const seen = async (port: number, header: string | Buffer): Promise<string> => {
    const socket = net.connect({ host: "127.0.0.1", port, localAddress: BALANCER });
    await once(socket, "connect");
    const peer = new Accepted(socket).send(header).send(get("/", "X-Forwarded-Proto: https\r\n"));
    await peer.receives("for ");
    socket.destroy();
    return parseResponse(peer.received).headers["x-seen-proto"]!;
  };
  expect(await seen(free[1]!, "")).toBe("https");
  expect(await seen(free[0]!, LOCAL)).toBe("http");
  expect(await seen(free[0]!, "PROXY UNKNOWN\r\n")).toBe("http");
  await other.stop();
});

test("what checks the front end from a named address sends a header", async () => {
  const ask = (
    headerFrom: readonly string[],
    port: number,
    scheme: "http" | "https",
  ): Promise<ProbeOutcome> =>
    probe(
      { scheme, address: "127.0.0.1", port, headerFrom, host: "one.example", path: "/" },
      { timeoutMs: 5_000, insecure: true },
    );
  const from = ["127.0.0.0/8"];
  const named = config();
  const free = await freePorts(2);
  const other = await Portico.start({
    ...named,
    listeners: named.listeners
      .slice(0, 2)
      .map((listener, i) => ({ ...listener, port: free[i]!, proxyProtocol: { from } })),
    virtualServers: [{ ...named.virtualServers[0]!, listeners: ["http", "https"] }],
    logs: { error: { path: at("other.log") } },
  });
  for (const [i, scheme] of (["http", "https"] as const).entries()) {
    const port = free[i]!;
    expect(await ask(from, port, scheme)).toMatchObject({ response: { status: 200 } });
    expect(await ask(["192.0.2.0/24"], port, scheme)).toHaveProperty("failure");
  }
  await other.stop();
});

test("a drain does not wait for headers", async () => {
  const free = await freePorts(1);
  const named = config();
  const other = await Portico.start({
    ...named,
    listeners: [{ ...named.listeners[0]!, port: free[0]! }],
    virtualServers: [{ ...named.virtualServers[0]!, listeners: ["http"] }],
    logs: { error: { path: at("other.log") } },
  });
  const socket = net.connect({ host: "127.0.0.1", port: free[0]!, localAddress: BALANCER });
  socket.on("error", () => socket.destroy());
  await once(socket, "connect");
  socket.write("PROXY ");
  await sleep(100);
  const begun = performance.now();
  expect(await other.stop()).toBe(0);
  expect(performance.now() - begun).toBeLessThan(15_000);
});
