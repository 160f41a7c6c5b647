import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { run } from "../../src/cli/program.js";
import type { ProxyConfigInput } from "../../src/model/index.js";
import { askMaster } from "../../src/runtime/supervisor/control/askMaster.js";
import { issue } from "../../testkit/certificates.js";
import { fixed, loopback, oneServer } from "../../testkit/oneServer.js";
import { killAll, openFolder, Portico, processes, SELDOM } from "../../testkit/portico.js";
import { freePort } from "../../testkit/ports.js";
import { sendWithoutEnd, type TlsRecords, tlsRecordServer } from "../../testkit/tlsRecords.js";
import { eventually } from "../../testkit/waiting.js";

/** Notifications of a real master: its command, its events, and its death. */

let folder: string;
let port: number;
let server: Server;
let status: number;
let got: { path: string; body: string }[];
const control = (): string => join(folder, "control.sock");
const env = () => ({ RUNTIME_DIRECTORY: folder });

beforeEach(async () => {
  folder = openFolder();
  port = await freePort();
  [status, got] = [200, []];
  const { key, cert } = await issue({ type: "ec", names: ["127.0.0.1"] });
  writeFileSync(join(folder, "roots.pem"), cert);
  server = createServer({ key, cert }, (request, response) => {
    let body = "";
    request.on("data", (text: Buffer) => (body += text.toString()));
    request.on("end", () => {
      got.push({ path: request.url!, body });
      response.writeHead(status).end();
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const at = (path: string): string => `https://127.0.0.1:${(server.address() as AddressInfo).port}${path}\n`;
  writeFileSync(join(folder, "hook"), at("/s3cr3t"), { mode: 0o600 });
  writeFileSync(join(folder, "ping"), at("/ping"), { mode: 0o600 });
});

afterEach(async () => {
  killAll();
  server.closeAllConnections();
  server.close();
  await eventually(() => processes("master").length === 0, "for the processes to go", SELDOM);
});

const config = (): ProxyConfigInput => {
  const roots = join(folder, "roots.pem");
  return oneServer({
    listeners: [loopback("http", port)],
    notifications: {
      targets: [
        { type: "webhook", name: "chat", urlFile: join(folder, "hook"), roots },
        { type: "healthcheck", name: "alive", urlFile: join(folder, "ping"), roots },
      ],
    },
    routes: [fixed("ok")],
  });
};

async function cli(...args: string[]): Promise<{ code: number; text: string }> {
  let text = "";
  const add = (more: string): void => void (text += more);
  const code = await run([...args, "--control", control()], {
    out: add,
    err: add,
    isTerminal: false,
  } as never);
  return { code, text };
}

/** Of a process, so far. */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]!.split(" ");
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

const TICK_MS = 10;
/** Far below the time that a target has for its response. */
const CPU_MS_MAX = 3_000;

const hooked = (): string[] => got.filter(({ path }) => path === "/s3cr3t").map(({ body }) => body);

test("`portico notify --test` says how each target took it, and shows no secret", async () => {
  const portico = await Portico.start(config(), { env: env() });
  expect(await cli("notify", "--test")).toEqual({
    code: 0,
    text: expect.stringMatching(/^TARGET +KIND +OUTCOME\nchat +webhook +sent\nalive +healthcheck +sent\n$/),
  });
  expect(JSON.parse(hooked()[0]!)).toMatchObject({ events: [{ state: "event", key: "test/test" }] });
  status = 403;
  const refused = await cli("notify", "--test");
  expect(refused.code).toBe(1);
  expect(refused.text).toMatch(
    /chat: did not accept the message: the server responded with 403: it rejects the token, or requires one \[control\.not-notified\]/,
  );
  expect(`${refused.text}${portico.errors}${portico.output}`).not.toContain("s3cr3t");
  portico.rewrite(oneServer({ listeners: [loopback("http", port)], routes: [fixed("ok")] }));
  expect((await cli("reload")).code).toBe(0);
  expect(await cli("notify", "--test")).toEqual({
    code: 1,
    text: expect.stringContaining("[control.no-notifications]"),
  });
});

test.each([
  ["KeyUpdates", (records: TlsRecords) => records.keyUpdates(100, 128)],
  ["session tickets", (records: TlsRecords) => records.tickets(100)],
])("a target that floods its connection with %s does not hold the master", async (_, many) => {
  const identity = await issue({ type: "ec", names: ["127.0.0.1"] });
  const hostile = tlsRecordServer(identity, (tcp, records) => sendWithoutEnd(tcp, () => many(records)));
  await once(hostile.listen(0, "127.0.0.1"), "listening");
  writeFileSync(join(folder, "roots.pem"), identity.cert);
  const { port: of } = hostile.address() as AddressInfo;
  writeFileSync(join(folder, "hook"), `https://127.0.0.1:${of}/s3cr3t\n`);
  await Portico.start(config(), { env: env() });
  const [master] = processes("master");
  const before = cpuMs(master!);
  const { code, text } = await cli("notify", "--test");
  expect([code, text]).toEqual([1, expect.stringContaining("it sends too many TLS messages without data")]);
  expect(text).not.toContain("s3cr3t");
  expect(cpuMs(master!) - before).toBeLessThan(CPU_MS_MAX);
  hostile.close();
});

test("what happens is told after a minute, and not again by a master that was killed", async () => {
  const rolledBack = { reason: "portico.service: does not run", fix: "See the journal." };
  const tell = () => askMaster(control(), { command: "notify", rolledBack }, 5_000);
  const first = await Portico.start(config(), { env: env() });
  await eventually(() => got.some(({ path }) => path === "/ping"), "for a ping");
  first.rewrite("no JSON");
  expect((await cli("reload")).code).toBe(1);
  expect(await tell()).toMatchObject({ ok: true });
  await eventually(() => hooked().length > 0, "for the message", { ms: 90_000, everyMs: 100 });
  const { events } = JSON.parse(hooked()[0]!) as { events: { key: string; state: string; what: string }[] };
  expect(events).toMatchObject([
    { state: "problem", key: "reload/refused", what: expect.stringContaining("[config.not-json]") },
    { state: "event", what: expect.stringContaining("rolled back") },
  ]);
  await sleep(1_000);
  first.signal("SIGKILL");
  await first.gone;
  await Portico.start(config(), { env: env() });
  expect(await tell()).toMatchObject({ ok: true });
  // What was refused is in force now.
  await eventually(() => hooked().length > 1, "for the end of it", { ms: 90_000, everyMs: 100 });
  expect(JSON.parse(hooked()[1]!)).toMatchObject({
    events: [{ state: "resolved", key: "reload/refused" }],
  });
  await sleep(5_000);
  expect(hooked()).toHaveLength(2);
}, 240_000);
