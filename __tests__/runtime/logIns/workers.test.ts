import { createServer, type Server } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { askMaster } from "../../../src/runtime/supervisor/control/askMaster.js";
import { loopback, logsIn, oneServer } from "../../../testkit/oneServer.js";
import { exchange } from "../../../testkit/peers.js";
import { openFolder, Portico } from "../../../testkit/portico.js";
import { freePort } from "../../../testkit/ports.js";
import { eventually } from "../../../testkit/waiting.js";

/** What two workers and their master know of log-ins, and the commands about it. */

const basic = (password: string): string => `Basic ${Buffer.from(`ada:${password}`).toString("base64")}`;

let application: Server;
let portico: Portico;
let port: number;
let folder: string;

beforeAll(async () => {
  application = createServer((request, response) => {
    response.writeHead(request.headers.authorization === basic("right") ? 200 : 401).end();
  }).listen(0, "127.0.0.1");
  await once(application, "listening");
  [port, folder] = [await freePort(), openFolder()];
  const config = oneServer({
    workers: 2,
    logs: logsIn(folder),
    trustedProxies: ["127.0.0.1"],
    passwordGuards: { web: { wrongSecretsMax: 5, slowAfter: 5, slowMs: 1, closeMs: 60_000 } },
    listeners: [loopback("http", port)],
    upstreams: [{ name: "web", url: `http://127.0.0.1:${(application.address() as AddressInfo).port}` }],
    routes: [{ name: "web", path: "/", action: { type: "proxy", upstream: "web" } }],
    server: {
      passwordGuard: "web",
      logIns: [{ path: "/", match: "segment", secret: "authorization", failed: [401] }],
    },
  });
  portico = await Portico.start(config, { env: { RUNTIME_DIRECTORY: folder } });
}, 60_000);
afterAll(async () => {
  await portico.stop();
  application.close();
  application.closeAllConnections();
});

async function status(password: string, client: string): Promise<number> {
  const fields = `Host: a\r\nX-Forwarded-For: ${client}\r\nAuthorization: ${basic(password)}\r\n`;
  return (await exchange(port, `GET / HTTP/1.1\r\n${fields}Connection: close\r\n\r\n`)).status;
}

const control = (request: Parameters<typeof askMaster>[1]) =>
  askMaster(join(folder, "control.sock"), request, 10_000);

/** Many connections: both workers get some. */
const statuses = async (password: string, client: string): Promise<ReadonlySet<number>> =>
  new Set(await Promise.all(Array.from({ length: 30 }, () => status(password, client))));

test("what one worker saw counts in each, after a reload and an upgrade as well, until unban", async () => {
  const client = "2001:db8:1:2::7";
  for (const password of ["a", "b", "c", "d", "e"]) expect(await status(password, client)).toBe(401);
  let looks = 0;
  const isRefused = async (): Promise<boolean> => {
    // A new one each time: until a worker has heard of the others, the secret is one that was tried before.
    const seen = await statuses(`new ${looks++}`, "2001:db8:1:2::8");
    return seen.size === 1 && seen.has(429);
  };
  await eventually(isRefused);
  expect(await statuses("a", client)).toEqual(new Set([401]));
  const listed = await control({ command: "bans" });
  expect(listed).toMatchObject({ ok: true, value: { bans: [{ guard: "web", reason: "closed" }] } });
  const { address, wrong } = listed.ok ? listed.value.bans![0]! : { address: "", wrong: 0 };
  expect(wrong).toBe(4 + looks);
  expect(JSON.stringify(listed)).not.toMatch(/ada|YWRh/);

  expect((await control({ command: "reload" })).ok).toBe(true);
  await eventually(isRefused);
  expect(await statuses("a", client)).toEqual(new Set([401]));
  expect((await control({ command: "upgrade" })).ok).toBe(true);
  await eventually(isRefused);
  expect(await statuses("a", client)).toEqual(new Set([401]));

  expect(await control({ command: "unban", address })).toMatchObject({
    ok: true,
    value: { message: expect.stringContaining(`closed, distinct wrong secrets: ${wrong}`) },
  });
  expect(await status("right", client)).toBe(200);
  const again = await control({ command: "unban", address });
  expect(again).toMatchObject({ ok: false, problems: [{ code: "control.not-banned" }] });
  await portico.says(/passwordGuard="web closed": .* gets no new secret tried for 60 s/);
  await portico.says(/portico unban: .* may log in again/);
}, 120_000);

test("a phone with an old password is never refused, while others at its address guess", async () => {
  const client = "203.0.113.7";
  const seen = new Map<number, number>();
  for (let request = 0; request < 200; request += 1) {
    const code = await status("old", client);
    seen.set(code, (seen.get(code) ?? 0) + 1);
    if (request > 100) await status(`guess ${request}`, client);
  }
  expect([...seen]).toEqual([[401, 200]]);
  expect(await status("new", client)).toBe(429);
});
