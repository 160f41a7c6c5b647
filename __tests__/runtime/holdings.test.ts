import { once } from "node:events";
import * as http from "node:http";
import * as http2 from "node:http2";
import type * as net from "node:net";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ProxyConfigInput } from "../../src/model/index.js";
import { askMaster } from "../../src/runtime/supervisor/control/askMaster.js";
import type { Holdings, WorkerHoldings } from "../../src/runtime/worker/holdings.js";
import { loopback, oneServer, writeCertificate } from "../../testkit/oneServer.js";
import { issue } from "../../testkit/certificates.js";
import { KeepAliveClient } from "../../testkit/keepAliveClient.js";
import { killAll, openFolder, Portico } from "../../testkit/portico.js";
import { freePort } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";

/** What workers say that they hold, as whoever asks at the control socket gets it. */

let folder: string;
let ports: { http: number; https: number };
let upstream: http.Server;
let owed: http.ServerResponse[];
let portico: Portico;

const at = (name: string): string => join(folder, name);
const FILE_BYTES = 64 * 2 ** 20;

beforeEach(async () => {
  folder = openFolder();
  ports = { http: await freePort(), https: await freePort() };
  owed = [];
  upstream = http.createServer((_, response) => owed.push(response)).listen(0, "127.0.0.1");
  await once(upstream, "listening");
  const tls = writeCertificate(folder, await issue());
  mkdirSync(at("files"));
  // Nothing is served from the proxy's own directories.
  mkdirSync(at("run"));
  writeFileSync(at("files/large"), Buffer.alloc(FILE_BYTES));
  portico = await Portico.start(config(tls), { env: { RUNTIME_DIRECTORY: at("run") } });
});

afterEach(async () => {
  await portico.stop();
  killAll();
  upstream.closeAllConnections();
  upstream.close();
});

function config(tls: ReturnType<typeof writeCertificate>): ProxyConfigInput {
  const { port } = upstream.address() as net.AddressInfo;
  const proxied = { type: "proxy", upstream: "web" } as const;
  const files = { type: "staticFiles", directory: at("files") } as const;
  return oneServer({
    workers: 2,
    logs: { access: "off", error: { path: at("error.log") } },
    listeners: [loopback("http", ports.http), loopback("https", ports.https, tls)],
    upstreams: [{ name: "web", url: `http://127.0.0.1:${port}`, connectionsMax: 1, queuedRequestsMax: 9 }],
    routes: [
      { name: "web", path: "/web", match: "prefix", action: proxied },
      { name: "files", path: "/files", match: "prefix", action: files },
    ],
  });
}

async function workers(): Promise<readonly WorkerHoldings[]> {
  const outcome = await askMaster(at("run/control.sock"), { command: "holdings" }, 10_000);
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.problems));
  return outcome.value.workers!;
}

/** Sums over the workers: which of them serves a connection is the kernel's choice. */
async function held(): Promise<Holdings> {
  const all = (await workers()).map(({ holdings }) => holdings!);
  const sum = (of: (one: Holdings) => number): number => all.reduce((total, one) => total + of(one), 0);
  return Object.fromEntries(
    Object.keys(all[0]!).map((name) => [name, sum((one) => one[name as keyof Holdings])]),
  ) as unknown as Holdings;
}

test("each worker says what it holds, and nothing more when its clients are gone", async () => {
  const before = await held();
  const none = { clientConnections: 0, exchanges: 0, http2Streams: 0, upstreamConnections: 0, openFiles: 0 };
  expect(before).toMatchObject({ ...none, exchangesBegun: 0, lentBytes: 0, queuedRequests: 0, clients: 0 });
  const client = await KeepAliveClient.connect(ports.http);
  client.send("/web");
  const reader = await KeepAliveClient.connect(ports.http);
  reader.socket.pause();
  reader.send("/files/large");
  const session = http2.connect(`https://127.0.0.1:${ports.https}`, { rejectUnauthorized: false });
  session.on("error", () => undefined);
  const streams = ["/web", "/web"].map((path) => session.request({ ":path": path }));
  for (const stream of streams) stream.on("error", () => undefined);
  // The two over HTTP/2 are for one worker: one of them waits for the other's connection, if not for another's.
  await eventually(async () => {
    const { exchanges, openFiles, upstreamConnectionsInUse, queuedRequests } = await held();
    return exchanges + openFiles === 5 && upstreamConnectionsInUse + queuedRequests === 3 && owed.length > 0;
  }, "for the requests");
  const during = await held();
  expect(during).toMatchObject({ clientConnections: 3, http2Streams: 2, openFiles: 1, exchangesBegun: 4 });
  expect(during.upstreamConnectionsInUse + during.queuedRequests).toBe(3);
  expect(during.queuedRequests).toBeGreaterThan(0);
  expect(during.sweptItems).toBeGreaterThan(before.sweptItems);
  session.destroy();
  client.socket.destroy();
  reader.socket.destroy();
  const rest = { ...before, exchangesBegun: 4, exchangesOver: 4, bytesForNobody: expect.any(Number) };
  await eventually(async () => (await held()).resources === before.resources, "for the sockets to close");
  expect(await held()).toEqual(rest);
});

test("those that only finish what runs say so", async () => {
  const client = await KeepAliveClient.connect(ports.http);
  client.send("/web");
  await eventually(() => owed.length === 1);
  const before = await workers();
  expect(before.map(({ accepts }) => accepts)).toEqual([true, true]);
  expect((await askMaster(at("run/control.sock"), { command: "reload" }, 10_000)).ok).toBe(true);
  await eventually(async () => (await workers()).length === 3, "for the idle one to leave");
  const [old, ...others] = await workers();
  expect(old).toMatchObject({ accepts: false, holdings: { exchanges: 1, clientConnections: 1 } });
  expect(before.map(({ pid }) => pid)).toContain(old!.pid);
  expect(others.map(({ accepts, holdings }) => [accepts, holdings?.exchangesBegun])).toEqual([
    [true, 0],
    [true, 0],
  ]);
  owed[0]!.end("done");
  expect(await client.response()).toMatchObject({ status: 200 });
  await eventually(async () => (await workers()).length === 2, "for the old one to leave");
});

test("one that hangs is listed without a response, and the others with theirs", async () => {
  const [hung] = portico.workers();
  process.kill(hung!, "SIGSTOP");
  try {
    const found = await workers();
    expect(found).toHaveLength(2);
    for (const { pid, holdings } of found) expect(holdings === undefined).toBe(pid === hung);
  } finally {
    process.kill(hung!, "SIGCONT");
  }
});
