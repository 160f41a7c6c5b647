import { type ChildProcess, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import type * as net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { UpstreamInput } from "../../src/model/index.js";
import { pass } from "../../testkit/clock.js";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { fillListenQueue } from "../../testkit/fullListenQueue.js";
import { exchange } from "../../testkit/peers.js";
import { eventually } from "../../testkit/waiting.js";

/** A service on a Unix socket that accepts too slowly: connect() gives EAGAIN, where a port would let the kernel try again. */

const SERVICE = `
const { createHash } = require("node:crypto");
const server = require("node:http").createServer((request, response) => {
  const hash = createHash("sha256");
  request.on("data", (data) => hash.update(data)).on("end", () => {
    if (process.argv[2] === "closes") response.setHeader("Connection", "close");
    response.end(process.argv[1].slice(-6) + request.url + " " + hash.digest("hex"));
  });
});
server.listen({ path: process.argv[1], backlog: 1 }, () => process.send("listens"));
`;

let folder: string;
let front: EveryProtocol;
let services: Service[];

/** A service in a process of its own, which a signal stops. */
class Service {
  readonly path: string;
  private readonly process: ChildProcess;
  private waiting: net.Socket[] = [];

  constructor(name: string, manner: "keeps" | "closes" = "keeps") {
    this.path = join(folder, `${name}.sock`);
    this.process = spawn(process.execPath, ["-e", SERVICE, this.path, manner], {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    services.push(this);
  }

  async listens(): Promise<this> {
    await once(this.process, "message");
    return this;
  }

  /** It accepts nothing, and its listen queue is full. */
  async stop(): Promise<void> {
    this.process.kill("SIGSTOP");
    await sleep(50);
    this.waiting = await fillListenQueue(this.path);
  }

  goOn(): void {
    this.process.kill("SIGCONT");
  }

  end(): void {
    for (const socket of this.waiting) socket.destroy();
    this.process.kill("SIGKILL");
  }
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "portico-full-"));
  services = [];
});
afterEach(async () => {
  services.forEach((one) => one.end());
  const faults = front.serving.faults.count;
  await front.close();
  rmSync(folder, { recursive: true });
  expect(faults).toBe(0);
});

async function start(more: Partial<UpstreamInput>): Promise<void> {
  front = await startEveryProtocol({
    routes: [{ name: "web", path: "/", action: { type: "proxy", upstream: "web" } }],
    upstreams: [{ name: "web", clientSharePercent: 100, ...more }],
  });
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`;
const ask = (path: string) => exchange(front.plainPort, get(path));
const held = (count: number) => eventually(() => front.serving.holdings().queuedRequests === count);
const sha256 = (bytes: Buffer | string): string => createHash("sha256").update(bytes).digest("hex");
const EMPTY = sha256("");

test.each<Partial<UpstreamInput>>([{}, { connectionsMax: 2 }, { holdMs: 5_000 }])(
  "requests and uploads wait until there is room: %j",
  async (more) => {
    const web = await new Service("a", "closes").listens();
    await start({ url: `unix:${web.path}`, ...more });
    await web.stop();
    const body = randomBytes(300_000);
    const upload = `PUT /up HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n`;
    const paths = Array.from({ length: 40 }, (_, i) => `/${i}`);
    const all = paths.map(ask);
    const sent = exchange(front.plainPort, Buffer.concat([Buffer.from(upload), body]).toString("latin1"));
    await held(41);
    web.goOn();
    expect((await Promise.all(all)).map(({ status, body: text }) => [status, text])).toEqual(
      paths.map((path) => [200, `a.sock${path} ${EMPTY}`]),
    );
    expect((await sent).body).toBe(`a.sock/up ${sha256(body)}`);
    const log = await front.errorLog();
    expect(log.match(/\[warn\] .*/g)).toEqual([
      expect.stringMatching(
        /upstream "web" has a full listen queue: requests wait for up to 30 s \(connect\(\) failed \(11: EAGAIN\) while connecting to upstream\)$/,
      ),
    ]);
    expect(log).not.toContain("[error]");
  },
);

test("connections that exist are used meanwhile", async () => {
  const web = await new Service("a").listens();
  await start({ url: `unix:${web.path}` });
  const { body } = await ask("/first");
  expect(body).toContain("/first");
  await web.stop();
  const [idle, waits] = [ask("/idle"), ask("/waits")];
  await held(1);
  web.goOn();
  expect((await Promise.all([idle, waits])).map(({ status }) => status)).toEqual([200, 200]);
});

test("after `queueTimeoutMs` a request gets 503, and the log says why", async () => {
  const web = await new Service("a").listens();
  await start({ url: `unix:${web.path}`, queueTimeoutMs: 2_000 });
  await web.stop();
  const asked = ask("/a");
  await held(1);
  await pass(2_000);
  const { status, headers } = await asked;
  expect([status, headers["retry-after"]]).toEqual([503, "5"]);
  expect(await front.errorLog()).toContain(
    "the listen queue of upstream is full, and no connection became free within 2000 ms",
  );
});

test("none waits where none may", async () => {
  const web = await new Service("a").listens();
  await start({ url: `unix:${web.path}`, queuedRequestsMax: 0 });
  await web.stop();
  const { status, headers } = await ask("/a");
  expect([status, headers["retry-after"]]).toEqual([503, "5"]);
});

test("a service that ends meanwhile has an outage, and one that comes back full has none", async () => {
  const web = await new Service("a").listens();
  await start({ url: `unix:${web.path}`, holdMs: 5_000 });
  await web.stop();
  const asked = ask("/a");
  await held(1);
  web.end();
  await eventually(async () => (await front.errorLog()).includes("ECONNREFUSED"));
  rmSync(web.path);
  const next = await new Service("a", "closes").listens();
  expect(await asked).toMatchObject({ status: 200 });
  await next.stop();
  const again = ask("/b");
  await held(1);
  next.goOn();
  expect((await again).status).toBe(200);
});

test("of several servers another one gets the request, and the full one is not out", async () => {
  const [a, b] = [await new Service("a", "closes").listens(), await new Service("b", "closes").listens()];
  await start({ servers: [{ url: `unix:${a.path}` }, { url: `unix:${b.path}` }] });
  await a.stop();
  for (let i = 0; i < 4; i++) expect((await ask("/x")).body).toMatch(/^b\.sock/);
  expect(await front.errorLog()).toContain("the request goes to another server");
  expect(await front.errorLog()).not.toMatch(/\[warn\] .*left out/);
  await b.stop();
  const asked = [ask("/y"), ask("/z")];
  await held(2);
  a.goOn();
  b.goOn();
  expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([200, 200]);
});
