import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import * as net from "node:net";
import { join } from "node:path";
import * as tls from "node:tls";
import type { ProxyConfigInput } from "../../src/model/index.js";
import { loopback, oneServer, writeCertificate } from "../../testkit/oneServer.js";
import { issue } from "../../testkit/certificates.js";
import { END_HEADERS, END_STREAM, Frame, frame, hpack, RawClient } from "../../testkit/http2RawClient.js";
import { LoopbackServer } from "../../testkit/peers.js";
import { openFolder, Portico } from "../../testkit/portico.js";
import { freePorts } from "../../testkit/ports.js";
import { eventually, settled } from "../../testkit/waiting.js";
import { randomBody } from "../../testkit/random.js";

/**
 * The proxy in a control group of its own, with the limits that follow from its memory: more clients than it admits, all of
 * which do what costs most, and no worker is killed (docs/limits.md, "Limited memory").
 */

const MIB = 1024 * 1024;
const MEMORY_MIB = 256;
/** One worker in 256 MiB admits 64 connections, of 16 streams each. */
const CLIENTS = 78;
const STREAMS = 16;
/** Memory stands still when two seconds bring less than a megabyte each quarter. */
const STANDING = { by: MIB, looks: 8, everyMs: 250 };

const V1 = "/sys/fs/cgroup/memory";
const V2 = "/sys/fs/cgroup";
const isV1 = existsSync(`${V1}/memory.limit_in_bytes`);
const isV2 =
  existsSync(`${V2}/cgroup.controllers`) && /\bmemory\b/.test(read(`${V2}/cgroup.subtree_control`));
const inGroup = process.getuid!() === 0 && (isV1 || isV2) ? describe : describe.skip;

inGroup("clients that stay within the limits", () => {
  let group: string;
  let portico: Portico;
  /** Reads nothing of what it is sent. */
  const upstream = new LoopbackServer((socket) => void socket.pause());
  let ports: { http: number; https: number };
  const clients = new Set<net.Socket>();

  beforeAll(async () => {
    group = mkdtempSync(join(isV1 ? V1 : V2, "portico-memory-"));
    writeFileSync(join(group, isV1 ? "memory.limit_in_bytes" : "memory.max"), String(MEMORY_MIB * MIB));
    await upstream.listen();
    const [http, https] = (await freePorts(2)) as [number, number];
    ports = { http, https };
    const before = `echo $$ > ${group}/cgroup.procs`;
    portico = await Portico.start(await config(), { before });
  });

  afterAll(async () => {
    for (const socket of clients) socket.destroy();
    upstream.cut();
    await portico?.stop();
    await upstream.close();
    await eventually(() => read(join(group, "cgroup.procs")) === "", "for the group to be empty");
    rmdirSync(group);
  });

  afterEach(async () => {
    for (const socket of clients) socket.destroy();
    upstream.cut();
    clients.clear();
    // Those of the last test would take the places of the next.
    await eventually(() => held() === 0, "for the end of all connections");
    await eventually(async () => (await response()) === 200, "until it responds again");
  });

  /** Connections that the proxy has and has not closed (`/proc/net/tcp`: established, closed by the client). */
  function held(): number {
    const own = [ports.http, ports.https].map((port) => port.toString(16).toUpperCase().padStart(4, "0"));
    return read("/proc/net/tcp")
      .split("\n")
      .map((line) => line.trim().split(/\s+/))
      .filter(([, local = "", , state = ""]) => own.includes(local.slice(-4)) && ["01", "08"].includes(state))
      .length;
  }

  const used = (): number => Number(read(join(group, isV1 ? "memory.usage_in_bytes" : "memory.current")));

  async function config(): Promise<ProxyConfigInput> {
    const folder = openFolder();
    const files = writeCertificate(folder, await issue());
    mkdirSync(join(folder, "files"));
    writeFileSync(join(folder, "files/large.bin"), randomBody(64 * MIB));
    return oneServer({
      // All clients have one address here.
      trustedProxies: ["127.0.0.1"],
      logs: { error: "off" },
      upstreams: [{ name: "deaf", url: `http://127.0.0.1:${upstream.port}` }],
      listeners: [loopback("http", ports.http), loopback("https", ports.https, files)],
      routes: [
        { name: "small", path: "/small", action: { type: "respond", status: 200, body: "small" } },
        { name: "files", path: "/files", action: { type: "staticFiles", directory: join(folder, "files") } },
        { name: "deaf", path: "/deaf", action: { type: "proxy", upstream: "deaf" } },
      ],
    });
  }

  async function response(): Promise<number> {
    const headers = { connection: "close" };
    return fetch(`http://127.0.0.1:${ports.http}/small`, { headers }).then(
      ({ status }) => status,
      () => 0,
    );
  }

  function plain(): net.Socket {
    const socket = net.connect(ports.http, "127.0.0.1").on("error", () => undefined);
    clients.add(socket);
    return socket;
  }

  function secured(): net.Socket {
    const at = { port: ports.https, host: "127.0.0.1", rejectUnauthorized: false };
    const socket = tls.connect({ ...at, ALPNProtocols: ["http/1.1"] }).on("error", () => undefined);
    clients.add(socket);
    return socket;
  }

  async function http2(): Promise<RawClient | undefined> {
    // Those beyond the limit are closed in the handshake.
    const client = await RawClient.connect(ports.https).catch(() => undefined);
    if (client !== undefined) clients.add(client.socket);
    return client;
  }

  const request = (method: string, path: string, more = ""): string =>
    `${method} ${path} HTTP/1.1\r\nHost: app.example\r\n${more}\r\n`;

  /** Sends until nobody takes it any more. */
  function sendOn(socket: net.Socket, head: string): void {
    socket.write(head);
    const piece = Buffer.alloc(65_536);
    const send = (): void => {
      for (let i = 0; i < 64 && !socket.destroyed; i++) if (!socket.write(piece)) return;
    };
    socket.on("drain", send);
    send();
  }

  const fields = (method: string, path: string, more: readonly (readonly [string, string])[] = []) => [
    [":method", method] as const,
    [":scheme", "https"] as const,
    [":authority", "app.example"] as const,
    [":path", path] as const,
    ...more,
  ];

  const streamIds = Array.from({ length: STREAMS }, (_, i) => 1 + 2 * i);

  /** Uploads on some streams as much as the windows allow. */
  function upload(client: RawClient, ids: readonly number[], bytes: number): void {
    const windows = new Map<number, number>([[0, 65_535], ...ids.map((id) => [id, 65_535] as const)]);
    const left = new Map(ids.map((id) => [id, bytes]));
    const send = (): void => {
      for (const id of ids) {
        for (let size = 1; size > 0 && !client.closed && !client.socket.writableNeedDrain;) {
          size = Math.min(16_384, windows.get(0)!, windows.get(id)!, left.get(id)!);
          if (size <= 0) break;
          client.send(Frame.DATA, 0, id, Buffer.alloc(size));
          for (const stream of [0, id]) windows.set(stream, windows.get(stream)! - size);
          left.set(id, left.get(id)! - size);
        }
      }
    };
    const granted = ({ type, stream, payload }: { type: number; stream: number; payload: Buffer }): void => {
      if (type === Frame.WINDOW_UPDATE && windows.has(stream))
        windows.set(stream, windows.get(stream)! + payload.readUInt32BE(0));
    };
    client.socket.on("drain", send);
    client.frames.forEach(granted);
    client.onFrame = (received) => {
      granted(received);
      send();
    };
    const length = ["content-length", String(bytes)] as const;
    for (const id of ids) client.request(id, fields("POST", "/deaf", [length]), 0);
    send();
  }

  const LONG_FIELDS = Array.from({ length: 170 }, (_, i) => [`x-${i}`, "a".repeat(150)] as const);

  /** A request on each stream whose head is about as long as heads may be, to an upstream that does not respond. */
  function longHeads(client: RawClient): void {
    const block = hpack(fields("GET", "/deaf", LONG_FIELDS));
    for (const id of streamIds) {
      const [first, rest] = [block.subarray(0, 16_384), block.subarray(16_384)];
      client.socket.write(frame(Frame.HEADERS, END_STREAM, id, first));
      client.socket.write(frame(Frame.CONTINUATION, END_HEADERS, id, rest));
    }
  }

  const each = (one: () => unknown): Promise<unknown> => Promise.all(Array.from({ length: CLIENTS }, one));
  const eachHttp2 = (one: (client: RawClient) => void): Promise<unknown> =>
    each(async () => {
      const client = await http2();
      if (client !== undefined) one(client);
    });
  const large = request("GET", "/files/large.bin");
  const body = request("POST", "/deaf", "Content-Length: 64000000\r\n");

  test("have the limits that the log says", () => {
    expect(portico.errors).toContain(
      `${MEMORY_MIB} MiB of memory: 1 worker, with heaps of up to 80 MiB and up to 64 connections of up to 16 streams\n`,
    );
  });

  test.each<[what: string, attack: () => Promise<unknown>]>([
    ["do not read a file", () => each(() => plain().pause().write(large))],
    ["do not read a file over TLS", () => each(() => secured().pause().write(large))],
    [
      "do not read files over HTTP/2",
      () =>
        eachHttp2((client) => {
          client.socket.pause();
          client.send(Frame.WINDOW_UPDATE, 0, 0, Buffer.from([0x7f, 0, 0, 0]));
          for (const id of streamIds) client.request(id, fields("GET", "/files/large.bin"));
        }),
    ],
    [
      "send heads without an end",
      () => each(() => plain().write(`${request("GET", "/small").slice(0, -2)}X: ${"a".repeat(31_000)}`)),
    ],
    ["send long heads on every stream, and wait", () => eachHttp2(longHeads)],
    ["upload what nobody takes", () => each(() => sendOn(plain(), body))],
    ["upload what nobody takes over TLS", () => each(() => sendOn(secured(), body))],
    [
      "upload on every stream what nobody takes",
      () => eachHttp2((client) => upload(client, streamIds, 6_000_000)),
    ],
  ])("%s, and no worker is killed", async (_, attack) => {
    const workers = portico.workers();
    await attack();
    await settled(used, STANDING);
    expect(portico.workers()).toEqual(workers);
    expect(clients.size).toBeGreaterThan(CLIENTS / 2);
  });
});

function read(file: string): string {
  return existsSync(file) ? readFileSync(file, "utf8").trim() : "";
}
