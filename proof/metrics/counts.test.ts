import { once } from "node:events";
import { readFileSync } from "node:fs";
import * as http from "node:http";
import * as http2 from "node:http2";
import * as https from "node:https";
import * as net from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { ProxyConfigInput } from "../../src/model/index.js";
import { askMaster } from "../../src/runtime/supervisor/control/askMaster.js";
import { issue } from "../../testkit/certificates.js";
import { loopback, oneServer, writeCertificate } from "../../testkit/oneServer.js";
import { freePort } from "../../testkit/ports.js";
import { killAll, openFolder, Portico, processes, SELDOM } from "../../testkit/portico.js";
import { eventually, nextEvent } from "../../testkit/waiting.js";
import { logEntries } from "../../testkit/logEntries.js";
import { Scrapes, sumOf } from "./scrapes.js";
import { randomBody } from "../../testkit/random.js";

/** What is counted, against what clients did: exact to the request and byte, whatever happens to the processes. */

let folder: string;
let upstream: http.Server;
let portico: Portico;
let ports: { http: number; https: number; metrics: number };
let tlsFiles: ReturnType<typeof writeCertificate>;
let scrapes: Scrapes;
/** What clients did, by `METHOD STATUS`; and bytes of bodies that they sent. */
let did: Map<string, number>;
let sent: number;

beforeAll(async () => {
  folder = openFolder();
  tlsFiles = writeCertificate(folder, await issue());
  upstream = http.createServer((request, response) => {
    request.resume().on("end", () => {
      const bytes = Number(new URL(request.url!, "http://a").searchParams.get("bytes") ?? 0);
      response.end(randomBody(bytes));
    });
  });
  await once(upstream.listen(0, "127.0.0.1"), "listening");
});

afterAll(() => {
  upstream.closeAllConnections();
  upstream.close();
});

beforeEach(async () => {
  ports = { http: await freePort(), https: await freePort(), metrics: await freePort() };
  did = new Map();
  sent = 0;
});

afterEach(async () => {
  await scrapes?.stop();
  killAll();
  await eventually(() => processes("master").length === 0, "for the processes to go", SELDOM);
});

const accessLog = (): string => join(folder, "access.log");

function config(): ProxyConfigInput {
  const { port } = upstream.address() as net.AddressInfo;
  const proxy = { type: "proxy", upstream: "web" } as const;
  return oneServer({
    workers: 2,
    logs: { access: { path: accessLog(), format: "json" }, error: "off" },
    listeners: [loopback("http", ports.http), { ...loopback("https", ports.https, tlsFiles), http2: true }],
    metricsListener: { address: "127.0.0.1", port: ports.metrics },
    upstreams: [
      { name: "web", url: `http://127.0.0.1:${port}` },
      { name: "gone", url: "http://127.0.0.1:1", holdMs: 0 },
    ],
    routes: [
      { name: "load", path: "/load", action: proxy },
      { name: "small", path: "/small", action: proxy, requestBodyBytesMax: 10 },
      { name: "gone", path: "/gone", action: { type: "proxy", upstream: "gone" } },
    ],
  });
}

async function start(): Promise<void> {
  portico = await Portico.start(config(), { env: { RUNTIME_DIRECTORY: folder } });
  scrapes = new Scrapes(ports.metrics);
}

const ask = (command: "reload" | "upgrade") => askMaster(join(folder, "control.sock"), { command }, 60_000);

function note(method: string, status: number): void {
  const key = `${method} ${status}`;
  did.set(key, (did.get(key) ?? 0) + 1);
}

/** One request on a connection of its own. */
async function request(secure: boolean, method: string, path: string, bytes = 0): Promise<void> {
  const options = {
    host: "127.0.0.1",
    port: ports[secure ? "https" : "http"],
    method,
    path,
    agent: false as const,
  };
  const made = secure ? https.request({ ...options, rejectUnauthorized: false }) : http.request(options);
  made.end(Buffer.alloc(bytes));
  const [response] = (await nextEvent(made, "response")) as [http.IncomingMessage];
  response.resume();
  await once(response, "end");
  sent += bytes;
  note(method, response.statusCode!);
}

/**
 * Some requests at once on one connection over HTTP/2. Those that are refused, as they came after the connection's last
 * ones, were not begun (RFC 9113 section 8.7): they are sent again on another connection.
 */
async function streams(numbers: readonly number[]): Promise<void> {
  const session = http2.connect(`https://127.0.0.1:${ports.https}`, { rejectUnauthorized: false });
  const closed = once(session, "close");
  const refused: number[] = [];
  const send = async (i: number): Promise<void> => {
    const [method, body] = i % 3 === 0 ? (["PUT", Buffer.alloc(i * 100)] as const) : (["GET"] as const);
    const stream = session.request({ ":method": method, ":path": `/load?bytes=${i * 1_000}` });
    stream.end(body);
    try {
      const [head] = (await nextEvent(stream, "response")) as [http2.IncomingHttpHeaders];
      stream.resume();
      await once(stream, "end");
      sent += body?.length ?? 0;
      note(method, Number(head[":status"]));
    } catch (error) {
      if (stream.rstCode !== http2.constants.NGHTTP2_REFUSED_STREAM) throw error;
      refused.push(i);
    }
  };
  await Promise.all(numbers.map(send));
  session.close();
  await closed;
  if (refused.length > 0) await streams(refused);
}

/** A download that the client leaves in its middle. */
async function cutOff(): Promise<void> {
  const socket = net.connect(ports.http, "127.0.0.1");
  socket.write("GET /load?bytes=50000000 HTTP/1.1\r\nHost: a\r\n\r\n");
  await nextEvent(socket, "data");
  socket.resetAndDestroy();
  note("GET", 200);
}

/** What no parser takes, and methods that clients made up. */
async function garbage(): Promise<void> {
  const socket = net.connect(ports.http, "127.0.0.1");
  socket.write("GET / HTTP/1.1\r\n\r\n");
  socket.resume();
  await once(socket, "close");
  note("_OTHER", 400);
  // The upstream does not know it either, and says so.
  const odd = net.connect(ports.http, "127.0.0.1");
  odd.write("BREW /load HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  odd.resume();
  await once(odd, "close");
  note("_OTHER", 400);
}

/** Everything that clients do, some of it at once. */
async function round(): Promise<void> {
  await Promise.all([
    request(false, "GET", "/load?bytes=100000"),
    request(true, "POST", "/load?bytes=10", 123_457),
    request(false, "PUT", "/load", 65_537),
    request(true, "HEAD", "/load?bytes=77"),
    request(false, "PROPFIND", "/load?bytes=5"),
    request(false, "GET", "/nothing-here"),
    request(false, "GET", "/gone"),
    streams([0, 1, 2, 3, 4, 5, 6, 7]),
    cutOff(),
    garbage(),
  ]);
}

/** What the access log has: a line for each request. */
function logged(): { requests: number; bytes: number } {
  const entries = logEntries<{ body_bytes_sent: number }>(readFileSync(accessLog(), "utf8"));
  return {
    requests: entries.length,
    bytes: entries.reduce((sum, { body_bytes_sent }) => sum + body_bytes_sent, 0),
  };
}

const REQUESTS = "http_server_request_duration_seconds_count";

/** Compares sums with what clients did, when all of it is over. */
async function compare(): Promise<void> {
  const total = [...did.values()].reduce((sum, n) => sum + n, 0);
  await eventually(() => logged().requests === total, "for all lines of the log", {
    seen: () => `${logged().requests} of ${total}`,
  });
  const now = await scrapes.scrape();
  expect(sumOf(now, REQUESTS)).toBe(total);
  const byStatus = [...did].map(([key]) => {
    const [method, status] = key.split(" ");
    return [
      key,
      sumOf(now, REQUESTS, `http_request_method="${method}"`, `http_response_status_code="${status}"`),
    ];
  });
  expect(Object.fromEntries(byStatus)).toEqual(Object.fromEntries(did));
  expect(sumOf(now, "portico_request_body_bytes_total")).toBe(sent);
  expect(sumOf(now, "portico_response_body_bytes_total")).toBe(logged().bytes);
  expect(sumOf(now, "portico_transfers_in_flight")).toBe(0);
}

test("sums are exact over reloads, kills of workers and upgrades, and no counter falls", async () => {
  await start();
  // From the beginning: Prometheus sees no increase of what comes with its first event.
  const seldom = [...(await scrapes.scrape())].filter(([name]) => /reload|upgrade|restart|lost/.test(name));
  expect(seldom.map(([, value]) => value)).toEqual([0, 0, 0, 0, 0, 0]);
  await round();
  await compare();

  const reloads = Promise.all([ask("reload"), round(), round()]);
  expect((await reloads)[0].ok).toBe(true);
  await compare();

  for (let i = 0; i < 2; i++) {
    // More than a quarter of a second: what a worker counted since it last said so goes with it.
    await sleep(600);
    const [victim] = portico.workers();
    process.kill(victim!, "SIGKILL");
    await eventually(() => portico.workers().length === 2 && !portico.workers().includes(victim!));
    await round();
  }
  await compare();

  const upgraded = Promise.all([ask("upgrade"), round(), round(), round()]);
  expect((await upgraded)[0].ok).toBe(true);
  await round();
  await compare();
  await eventually(() => processes("master").length === 1, "for the old master to go", SELDOM);
  await round();
  expect((await ask("upgrade")).ok).toBe(true);
  await compare();

  const last = await scrapes.scrape();
  expect(sumOf(last, "portico_worker_restarts_total")).toBe(2);
  expect(sumOf(last, "portico_reloads_total", 'outcome="done"')).toBe(1);
  expect(sumOf(last, "portico_upgrades_total", 'outcome="done"')).toBe(2);
  expect(sumOf(last, "portico_tls_handshakes_total", 'tls_version="TLSv1.')).toBeGreaterThan(10);
  expect(sumOf(last, "portico_upstream_failures_total", 'error_type="connection_refused"')).toBe(
    did.get("GET 502")!,
  );
  expect(scrapes.count).toBeGreaterThan(20);
  expect(scrapes.fallen).toEqual([]);
}, 180_000);

test("whatever clients send, no label is theirs", async () => {
  await start();
  const random = (): string => Buffer.from(Math.random().toString(36)).toString("base64url");
  for (let i = 0; i < 60; i++) {
    const socket = net.connect(ports.http, "127.0.0.1");
    const word = `evil${random()}`;
    socket.end(
      `${word} /${word}?${word} HTTP/1.1\r\nHost: ${word}.example\r\nUser-Agent: ${word}\u001b[31m"\r\n\r\n`,
    );
    socket.resume();
    await once(socket, "close");
  }
  const text = await scrapes.text();
  expect(text).not.toMatch(/evil|\u001b/);
  expect(sumOf(await scrapes.scrape(), REQUESTS)).toBe(60);
});

test("bytes of a transfer are counted while it runs, and it is one of those in flight", async () => {
  await start();
  const upload = http.request({
    host: "127.0.0.1",
    port: ports.http,
    method: "PUT",
    path: "/load",
    agent: false,
  });
  upload.write(Buffer.alloc(40_000));
  const counted = async (): Promise<number> =>
    sumOf(await scrapes.scrape(), "portico_request_body_bytes_total");
  await eventually(async () => (await counted()) === 40_000);
  const running = await scrapes.scrape();
  expect(sumOf(running, "portico_transfers_in_flight", 'route="load"')).toBe(1);
  expect(sumOf(running, "portico_connections_open", 'listener="http"')).toBe(1);
  expect(sumOf(running, REQUESTS)).toBe(0);
  upload.end();
  await nextEvent(upload, "response");
  await eventually(async () => sumOf(await scrapes.scrape(), REQUESTS) === 1);
  expect(await counted()).toBe(40_000);
});
