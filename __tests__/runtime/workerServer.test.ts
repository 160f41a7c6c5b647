import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import * as http2 from "node:http2";
import * as net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as tls from "node:tls";
import { parseConfig, type Problem } from "../../src/model/index.js";
import { ListenSockets } from "../../src/runtime/listen/sockets.js";
import type { StartMessage } from "../../src/runtime/worker/ipc.js";
import { WorkerServer } from "../../src/runtime/worker/workerServer.js";
import { ONLY_TIMEOUTS } from "../../proof/kit/fakeTimers.js";
import { issue, type Issued } from "../../proof/kit/certificates.js";
import { KeepAliveClient } from "../../proof/kit/keepAliveClient.js";
import { freePort } from "../../proof/kit/ports.js";
import { eventually } from "../../proof/kit/waiting.js";

/** What a worker serves with, by itself. */

let issued: Issued;
let silent: net.Server;
let folder: string;
let ports: { http: number; https: number };
let server: WorkerServer | undefined;
const sockets: ListenSockets[] = [];
const DRAIN_MS = 60_000;

const at = (name: string): string => join(folder, name);

beforeAll(async () => {
  issued = await issue();
  silent = net.createServer((socket) => void socket.resume().on("error", () => undefined));
  await once(silent.listen(0, "127.0.0.1"), "listening");
});
afterAll(() => void silent.close());
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "portico-worker-"));
  ports = { http: await freePort(), https: await freePort() };
});
afterEach(async () => {
  server?.stopAccepting();
  await server?.closeAll();
  await server?.logs.close();
  server = undefined;
  for (const each of sockets.splice(0)) each.closeAll();
  rmSync(folder, { recursive: true });
});

async function opened(more: Partial<StartMessage> = {}, warnings: object[] = []): Promise<WorkerServer> {
  server = made(more, warnings);
  expect(await server.open()).toStrictEqual([]);
  return server;
}

function made(more: Partial<StartMessage>, warnings: object[] = []): WorkerServer {
  const files = { certificate: "/cert.pem", key: "/key.pem" };
  const host = "127.0.0.1";
  const parsed = parseConfig({
    version: 1,
    workers: 1,
    timeouts: { drainMs: DRAIN_MS },
    logs: { access: { path: at("access.log") }, error: { path: at("error.log") } },
    listeners: [
      { name: "http", address: host, port: ports.http, protocol: "http" },
      { name: "https", address: host, port: ports.https, protocol: "https", tls: files },
    ],
    upstreams: [{ name: "silent", url: `http://${host}:${(silent.address() as net.AddressInfo).port}` }],
    virtualServers: [
      {
        ...{ name: "only", serverNames: ["_"], default: true, listeners: ["http", "https"] },
        routes: [{ name: "all", path: "/", match: "prefix", action: { type: "proxy", upstream: "silent" } }],
      },
    ],
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  const config = parsed.value;
  const own = new ListenSockets({});
  // In this process, the worker closes by number what it listens on: nobody may close it again.
  if (more.fds !== undefined) sockets.push(own);
  const acquired = own.acquire(config.listeners);
  if (!acquired.ok) throw new Error(JSON.stringify(acquired.problems));
  const certificate = { id: "/cert.pem", source: "files", key: issued.key, cert: issued.cert } as const;
  return new WorkerServer({
    type: "start",
    loaded: {
      ...{ config, tls: { https: { certificates: [certificate] } } },
      warnings: warnings as Problem[],
    },
    fds: Object.fromEntries([...acquired.value].map(([name, { fd }]) => [name, fd])),
    ticketKeys: Buffer.alloc(48).toString("base64"),
    ...{ challenges: [], logToStderr: false, without: [] },
    ...more,
  });
}

const log = (): string[] =>
  readFileSync(at("error.log"), "utf8")
    .split("\n")
    .slice(0, -1)
    .map((line) => line.replace(/^.* (\[\w*\]) \d+#\d+: /, "$1 "));

test.each<[string, (path: string) => object[], boolean]>([
  ["is reported", () => [], true],
  [
    "is not reported again after the master",
    (path) => [
      { code: "other", path: "p" },
      { code: "files.log-not-writable", path: `logs.access (${path})` },
    ],
    false,
  ],
  [
    "is not taken for another one, or for something else about it",
    (path) => [
      { code: "files.log-not-writable", path: `(${path}) and more` },
      { code: "files.log-not-writable", path: "logs.access (/other)" },
      { code: "other", path: `logs.access (${path})` },
    ],
    true,
  ],
])("a log that cannot be opened %s", async (_, warnings, reported) => {
  mkdirSync(at("access.log"));
  const { logs } = await opened({}, warnings(at("access.log")));
  await logs.flush();
  const why = "cannot be opened for appending (21: Illegal operation on a directory)";
  const line = expect.stringContaining(`[error] ${at("access.log")}: ${why}; `) as string;
  expect(log()).toEqual(reported ? [line] : []);
});

test("listeners that cannot accept are said", async () => {
  const worker = made({ fds: { http: 1_000_000, https: 1_000_001 } });
  const path = ["http", "https"];
  expect(await worker.open()).toMatchObject(path.map((name) => ({ code: "listen.failed", path: name })));
  await worker.logs.close();
});

test("a log that cannot be opened anew is reported", async () => {
  const { logs } = await opened();
  renameSync(at("access.log"), at("access.log.1"));
  mkdirSync(at("access.log"));
  server!.reopenLogs();
  await logs.flush();
  expect(log()).toEqual([expect.stringMatching(/^\[error\] .*access\.log: cannot be opened .*; .+$/)]);
});

test("an end cuts every connection, those in a handshake too", async () => {
  const worker = await opened();
  const handshaking = net.connect(ports.https, "127.0.0.1").resume();
  await once(handshaking, "connect");
  const client = await KeepAliveClient.connect(ports.http);
  client.send("/");
  const secure = { rejectUnauthorized: false };
  const session = http2.connect(`https://127.0.0.1:${ports.https}`, secure).on("error", () => undefined);
  const stream = session.request({ ":path": "/" }).on("error", () => undefined);
  await once(session, "connect");
  await new Promise((resolve) => session.ping(resolve));
  const closed = [once(handshaking, "close"), once(session, "close"), once(stream, "close")];
  await worker.closeAll();
  await Promise.all(closed);
  await expect(client.answer()).rejects.toThrow("closed without an answer");
  await worker.logs.flush();
  await eventually(() => readFileSync(at("access.log"), "utf8").match(/ 499 /g)?.length === 2);
});

test("a drain takes as long as requests run, or as they may", async () => {
  const worker = await opened();
  const idle = await KeepAliveClient.connect(ports.http);
  const busy = await KeepAliveClient.connect(ports.http);
  busy.send("/");
  await once(silent, "connection");
  jest.useFakeTimers(ONLY_TIMEOUTS);
  try {
    worker.stopAccepting();
    let over = false;
    const drained = worker.drain().then(() => (over = true));
    await idle.end();
    jest.advanceTimersByTime(DRAIN_MS - 1);
    await new Promise((resolve) => setImmediate(resolve));
    expect(over).toBe(false);
    jest.advanceTimersByTime(1);
    await drained;
  } finally {
    jest.useRealTimers();
  }
  await expect(busy.answer()).rejects.toThrow("closed without an answer");
});

test("challenges are answered, each in its way, and no longer when they are over", async () => {
  const { key, cert } = await issue({ names: ["a.example"], name: "proof" });
  const challenges = [
    { type: "http-01", token: "t", keyAuthorization: "t.k" },
    { type: "tls-alpn-01", name: "a.example", key, cert },
  ] as const;
  const worker = await opened({ challenges });
  const answer = async (): Promise<string> => {
    const client = await KeepAliveClient.connect(ports.http);
    client.send("/.well-known/acme-challenge/t");
    const { status, body } = await client.answer();
    client.socket.destroy();
    return `${status} ${body}`;
  };
  const proof = async (): Promise<unknown> => {
    const socket = tls.connect({
      ...{ port: ports.https, host: "127.0.0.1", servername: "a.example" },
      ...{ rejectUnauthorized: false, ALPNProtocols: ["acme-tls/1"] },
    });
    await once(socket, "secureConnect");
    const name = socket.getPeerCertificate().subject.CN;
    socket.destroy();
    return name;
  };
  expect([await answer(), await proof()]).toEqual(["200 t.k", "proof"]);
  worker.setChallenges([]);
  await expect(proof()).rejects.toThrow("no application protocol");
});
