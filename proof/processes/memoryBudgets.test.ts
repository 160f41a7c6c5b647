import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import * as http from "node:http";
import * as net from "node:net";
import { join } from "node:path";
import * as tls from "node:tls";
import { LoopbackServer } from "../../testkit/peers.js";
import { COLLECT_OPTIONS, collected } from "../../testkit/collected.js";
import { logsIn, loopback, oneServer, writeCertificate } from "../../testkit/oneServer.js";
import { freePorts } from "../../testkit/ports.js";
import { issue } from "../../testkit/certificates.js";
import { END_STREAM, Frame, GET, RawClient } from "../../testkit/http2RawClient.js";
import { openFolder, Portico } from "../../testkit/portico.js";
import { eventually, nextEvent, settled } from "../../testkit/waiting.js";
import { secureContext } from "../../testkit/tlsClient.js";
import { randomBody } from "../../testkit/random.js";

/** Resident memory stands still when a second brings less than a megabyte a look. */
const GROWTH = { by: 1024 * 1024, looks: 4, everyMs: 250 };

/**
 * What clients cost that are idle, or ask for much and read nothing (docs/limits.md): memory of the worker, without what
 * the kernel holds. Some read to the end afterwards: what waited for them is what it was.
 */

/** More than the kernels of both sides take, and than what a client gets before its pieces grow. */
const RESPONSE_BYTES = 10_000_000;
/** Doubled by the kernel. */
const SEND_BUFFER_BYTES = 200_000;
const CLIENTS = 100;
const READERS = 5;
/** Of one client that does not read, beyond an idle connection. */
const BUDGET_BYTES = 128 * 1024;
/** By protocol, of a connection that had a response. */
const IDLE_BYTES: Readonly<Record<string, number>> = {
  "HTTP/1.1": 16 * 1024,
  // OpenSSL keeps the keys of an exchange by ML-KEM as long as the connection.
  "HTTP/1.1 over TLS": 64 * 1024,
  "HTTP/2": 96 * 1024,
};
/** By protocol, of a connection whose upload the upstream does not take (HTTP/2: heldBytes.test.ts). */
const UPLOAD_BYTES: Readonly<Record<string, number>> = {
  "HTTP/1.1": 1024 * 1024,
  "HTTP/1.1 over TLS": 2.125 * 1024 * 1024,
};
const UPLOADERS = 40;
/** Code compiled meanwhile, and buffers that the worker keeps for others. */
const WORKER_BYTES = 4 * 1024 * 1024;
/** Garbage is collected before memory is measured, and what is freed goes back to the kernel at once (mallopt(3)). */
const MEASURED = {
  NODE_OPTIONS: COLLECT_OPTIONS.join(" "),
  MALLOC_MMAP_THRESHOLD_: "16384",
  MALLOC_TRIM_THRESHOLD_: "65536",
};

const content = randomBody(RESPONSE_BYTES);

interface Ports {
  readonly plain: number;
  readonly tls: number;
}

let folder: string;
let files: ReturnType<typeof writeCertificate>;
let upstream: http.Server;
/** Reads nothing. */
const deaf = new LoopbackServer((socket) => void socket.pause());
/**
 * Ports of the proxy. For a client that does not read, the kernel takes 4 MB, which must not look as if it read; moving
 * them costs more than all else, so it takes little on the narrow ones.
 */
let wide: Ports;
let narrow: Ports;
let portico: Portico;

beforeAll(async () => {
  folder = openFolder();
  files = writeCertificate(folder, await issue({ type: "ec" }));
  writeFileSync(join(folder, "large.bin"), content);
  upstream = http.createServer((request, response) => {
    if (request.url !== "/proxied/chunked") response.setHeader("Content-Length", RESPONSE_BYTES);
    // Chunks that no read brings whole; and what nobody takes is not given to the kernel.
    let at = 0;
    const send = (): void => {
      while (at < RESPONSE_BYTES) if (!response.write(content.subarray(at, (at += 50_000)))) return;
      response.end();
    };
    response.on("drain", send);
    send();
  });
  await listenNarrowly(upstream);
  await deaf.listen();
  const passed = [net.createServer(), net.createServer()] as const;
  narrow = { plain: await listenNarrowly(passed[0]), tls: await listenNarrowly(passed[1]) };
  const [plain, tls] = (await freePorts(2)) as [number, number];
  wide = { plain, tls };
  portico = await start(passed);
  // This process would take connections away as long as it listens as well.
  for (const server of passed) server.close();
});

afterAll(async () => {
  await portico?.stop();
  upstream?.closeAllConnections();
  upstream?.close();
  deaf.cut();
  await deaf.close();
});

/** Listens with small send buffers for all that is accepted, as by `SendBuffer=` of systemd. @returns the port */
async function listenNarrowly(server: net.Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const set = `setsockopt(STDIN, SOL_SOCKET, SO_SNDBUF, ${SEND_BUFFER_BYTES}) or die $!`;
  execFileSync("perl", ["-MSocket", "-e", set], { stdio: [fdOf(server), "ignore", "inherit"] });
  return (server.address() as net.AddressInfo).port;
}

const fdOf = (server: net.Server): number => (server as unknown as { _handle: { fd: number } })._handle.fd;

function start(passed: readonly net.Server[]): Promise<Portico> {
  const config = oneServer({
    logs: logsIn(folder),
    upstreams: [
      { name: "web", url: `http://127.0.0.1:${(upstream.address() as net.AddressInfo).port}` },
      { name: "deaf", url: `http://127.0.0.1:${deaf.port}` },
    ],
    listeners: Object.entries({ wide, narrow }).flatMap(([name, { plain, tls }]) => [
      loopback(`${name}-plain`, plain),
      loopback(`${name}-tls`, tls, { ...files, policy: "mozilla-intermediate" }),
    ]),
    routes: [
      { name: "small", path: "/small", action: { type: "respond", status: 200, body: "small" } },
      { name: "files", path: "/files/", action: { type: "staticFiles", directory: folder } },
      { name: "proxied", path: "/proxied", action: { type: "proxy", upstream: "web" } },
      { name: "deaf", path: "/deaf", action: { type: "proxy", upstream: "deaf" } },
    ],
  });
  const sockets = passed.map((server) => ({ fd: fdOf(server), name: "portico.socket" }));
  return Portico.start(config, { env: MEASURED, sockets });
}

/** A worker that has served nobody yet: what another client left behind counts for none. */
async function freshWorker(): Promise<number> {
  const [old] = portico.workers();
  portico.output = "";
  portico.signal("SIGHUP");
  await portico.says(/configuration reloaded/);
  await eventually(() => !portico.workers().includes(old!), "for the old worker to end", { everyMs: 50 });
  const [worker, ...others] = portico.workers();
  expect(others).toEqual([]);
  return worker!;
}

/** A client that has asked and does not read until it is told to. */
interface Client {
  /** Reads to the end. @returns whether the response was right */
  read(): Promise<boolean>;
  destroy(): void;
}

async function http1Client(secure: boolean, { path, ports }: Source): Promise<Client> {
  const socket = await connect(secure, ports());
  socket.pause();
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
  return {
    read: async () => {
      const body = path.endsWith("chunked") ? new ChunkedBody() : new Body();
      let head: Buffer | undefined = Buffer.alloc(0);
      const take = (chunk: Buffer): void => {
        if (head === undefined) return body.take(chunk);
        head = Buffer.concat([head, chunk]);
        const end = head.indexOf("\r\n\r\n");
        if (end < 0) return;
        body.take(head.subarray(end + 4));
        head = undefined;
      };
      socket.on("data", take).resume();
      if (!socket.closed) await once(socket, "close");
      return body.isContent();
    },
    destroy: () => socket.destroy(),
  };
}

async function connect(secure: boolean, ports: Ports): Promise<net.Socket> {
  const at = { port: secure ? ports.tls : ports.plain, host: "127.0.0.1" };
  const socket = secure
    ? tls.connect({ ...at, secureContext, rejectUnauthorized: false, ALPNProtocols: ["http/1.1"] })
    : net.connect(at);
  socket.on("error", () => undefined);
  await once(socket, secure ? "secureConnect" : "connect");
  return socket;
}

async function http2Client({ path, ports }: Source): Promise<Client> {
  const client = await RawClient.connect(ports().tls);
  client.send(Frame.SETTINGS, 0, 0, Buffer.from([0, 4, 0x3f, 0xff, 0xff, 0xff]));
  client.send(Frame.WINDOW_UPDATE, 0, 0, Buffer.from([0x3f, 0xff, 0xff, 0xff]));
  client.request(
    1,
    GET.map(([name, value]) => [name, name === ":path" ? path : value] as const),
  );
  client.socket.pause();
  return {
    read: async () => {
      const body = new Body();
      const ended = new Promise<void>((resolve) => {
        client.onFrame = ({ type, flags, payload }) => {
          if (type !== Frame.DATA) return;
          body.take(payload);
          if ((flags & END_STREAM) !== 0) resolve();
        };
      });
      client.socket.resume();
      await Promise.race([ended, once(client.socket, "close")]);
      return body.isContent();
    },
    destroy: () => client.destroy(),
  };
}

/** Compares a body piece by piece: several of this size at once are much to collect. */
class Body {
  private right = true;
  private length = 0;

  take(piece: Buffer): void {
    this.right &&= piece.equals(content.subarray(this.length, this.length + piece.length));
    this.length += piece.length;
  }

  isContent(): boolean {
    return this.right && this.length === RESPONSE_BYTES;
  }
}

class ChunkedBody extends Body {
  private line = "";
  /** Bytes of the chunk that are still to come, with the line end after it. */
  private left = 0;

  override take(piece: Buffer): void {
    for (let at = 0; at < piece.length;) {
      if (this.left === 0) {
        const end = piece.indexOf("\n", at);
        this.line += piece.toString("latin1", at, end < 0 ? piece.length : end + 1);
        if (end < 0) return;
        at = end + 1;
        this.left = parseInt(this.line, 16) + 2;
        this.line = "";
      } else {
        const data = piece.subarray(at, at + this.left);
        this.left -= data.length;
        at += data.length;
        super.take(data.subarray(0, Math.max(0, data.length - Math.max(0, 2 - this.left))));
      }
    }
  }
}

/** Memory that a process holds in bytes: its own pages, and of V8's only what lives in them, as V8 keeps free ones. */
async function heldBytes(pid: number): Promise<number> {
  const { heapUsed } = await collected(pid);
  const maps = readFileSync(`/proc/${pid}/smaps`, "utf8").split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m);
  const others = maps.filter((map) => sizeOf(map, "Size") !== V8_PAGE_BYTES);
  return others.reduce((sum, map) => sum + sizeOf(map, "Anonymous"), heapUsed);
}

const V8_PAGE_BYTES = 256 * 1024;

/** @param map of `/proc/PID/smaps` */
function sizeOf(map: string, what: "Size" | "Anonymous"): number {
  return Number(new RegExp(`^${what}:\\s+(\\d+) kB`, "m").exec(map)?.[1] ?? 0) * 1024;
}

/** Resident memory of a process in bytes. */
function residentBytes(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) * 1024;
}

const PROTOCOLS: Readonly<Record<string, (source: Source) => Promise<Client>>> = {
  "HTTP/1.1": (source) => http1Client(false, source),
  "HTTP/1.1 over TLS": (source) => http1Client(true, source),
  "HTTP/2": http2Client,
};

interface Source {
  readonly path: string;
  /** Known once the proxy runs. */
  readonly ports: () => Ports;
}

const SOURCES: readonly Source[] = [
  { path: "/files/large.bin", ports: () => wide },
  { path: "/proxied/length", ports: () => narrow },
  { path: "/proxied/chunked", ports: () => narrow },
];

describe.each(Object.keys(PROTOCOLS))("clients over %s that read nothing", (protocol) => {
  test.each(SOURCES)("of $path cost 128 KiB more than idle ones at most", async (source) => {
    const worker = await freshWorker();
    const connect = PROTOCOLS[protocol]!;
    // What is compiled and kept by the first does not count for the others.
    const warm = await connect(source);
    expect(await warm.read()).toBe(true);
    warm.destroy();
    const before = await heldBytes(worker);
    const clients: Client[] = [];
    while (clients.length < CLIENTS)
      clients.push(...(await Promise.all(Array.from({ length: 25 }, () => connect(source)))));
    await settled(() => residentBytes(worker), GROWTH);
    const grown = (await heldBytes(worker)) - before;
    const read = await Promise.all(clients.slice(0, READERS).map((client) => client.read()));
    for (const client of clients) client.destroy();
    expect(read).toEqual(read.map(() => true));
    expect(grown).toBeLessThan(CLIENTS * (BUDGET_BYTES + IDLE_BYTES[protocol]!) + WORKER_BYTES);
  });
});

/** Sends a body until nobody takes more of it. */
async function uploader(secure: boolean): Promise<net.Socket> {
  const socket = await connect(secure, wide);
  socket.write(`POST /deaf HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${100 * RESPONSE_BYTES}\r\n\r\n`);
  const send = (): void => {
    while (!socket.destroyed && socket.write(content.subarray(0, 65_536)));
  };
  socket.on("drain", send);
  send();
  return socket;
}

test.each(Object.entries(UPLOAD_BYTES))(
  "clients over %s that upload what the upstream does not take cost %i bytes more than idle ones at most",
  async (name, budget) => {
    const worker = await freshWorker();
    const secure = name.endsWith("TLS");
    (await uploader(secure)).destroy();
    const before = await heldBytes(worker);
    const sockets = await Promise.all(Array.from({ length: UPLOADERS }, () => uploader(secure)));
    await settled(() => residentBytes(worker), GROWTH);
    const grown = (await heldBytes(worker)) - before;
    for (const socket of sockets) socket.destroy();
    deaf.cut();
    expect(grown).toBeLessThan(UPLOADERS * (budget + IDLE_BYTES[name]!) + WORKER_BYTES);
  },
);

const IDLE_CLIENTS = 500;

test.each(Object.entries(IDLE_BYTES))(
  "clients over %s that idle cost %i bytes at most",
  async (name, budget) => {
    const worker = await freshWorker();
    const connect = IDLERS[name]!;
    await Promise.all(Array.from({ length: 25 }, connect));
    const before = await heldBytes(worker);
    const sockets: net.Socket[] = [];
    while (sockets.length < IDLE_CLIENTS)
      sockets.push(...(await Promise.all(Array.from({ length: 50 }, connect))));
    await settled(() => residentBytes(worker), GROWTH);
    const grown = (await heldBytes(worker)) - before;
    for (const socket of sockets) socket.destroy();
    expect(grown).toBeLessThan(IDLE_CLIENTS * budget + WORKER_BYTES);
  },
);

/** Connections that asked once and have their response. */
const IDLERS: Readonly<Record<string, () => Promise<net.Socket>>> = {
  "HTTP/1.1": () => idler(false),
  "HTTP/1.1 over TLS": () => idler(true),
  "HTTP/2": async () => {
    const client = await RawClient.connect(wide.tls);
    client.request(
      1,
      GET.map(([name, value]) => [name, name === ":path" ? "/small" : value] as const),
    );
    await client.outcome(1);
    return client.socket;
  },
};

async function idler(secure: boolean): Promise<net.Socket> {
  const socket = await connect(secure, wide);
  socket.write("GET /small HTTP/1.1\r\nHost: localhost\r\n\r\n");
  await nextEvent(socket, "data");
  return socket;
}
