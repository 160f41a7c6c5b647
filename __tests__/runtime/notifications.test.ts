import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import fc from "../../testkit/property.js";
import { issue } from "../../testkit/certificates.js";
import { eventually, settled } from "../../testkit/waiting.js";
import { parseConfig } from "../../src/model/index.js";
import { type NotificationsConfig, Notifier } from "../../src/runtime/notifications/notifier.js";

/** Targets of notifications: real servers that refuse, hang, respond with what they like, or are somebody else. */

interface Got {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

const folder = mkdtempSync(join(tmpdir(), "portico-notifications-"));
const roots = join(folder, "roots.pem");
let server: Server;
let got: Got[] = [];
let respond: (response: ServerResponse, number: number) => void;
let notifiers: Notifier[] = [];
let lines: string[] = [];
let serving = true;

beforeAll(async () => {
  const { key, cert } = await issue({ type: "ec", names: ["127.0.0.1"] });
  writeFileSync(roots, cert);
  server = createServer({ key, cert }, (request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("error", () => undefined);
    request.on("end", () => {
      const { method = "", url: path = "", headers } = request;
      got.push({ method, path, headers, body: Buffer.concat(pieces).toString() });
      respond(response, got.length);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true });
});
beforeEach(() => {
  [got, lines, serving] = [[], [], true];
  respond = (response) => void response.end();
});
afterEach(() => {
  for (const one of notifiers) one.stop();
  notifiers = [];
});

const url = (path = "/hook"): string => `https://127.0.0.1:${(server.address() as AddressInfo).port}${path}`;

function secret(name: string, text: string): string {
  const file = join(folder, name);
  writeFileSync(file, `${text}\n`, { mode: 0o600 });
  return file;
}

function configOf(...targets: object[]): NotificationsConfig {
  const parsed = parseConfig({
    version: 1,
    notifications: { targets: targets.map((one, i) => ({ name: `t${i}`, roots, ...one })) },
    listeners: [{ name: "l", address: "127.0.0.1", port: 80, protocol: "http" }],
    virtualServers: [{ name: "s", serverNames: ["_"], listeners: ["l"], default: true, routes: [] }],
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.value.notifications!;
}

/** @param deadlineMs short only where it has to pass: on a busy machine a response may take any time */
function notifierOf(config: NotificationsConfig, file?: string, deadlineMs = 60_000): Notifier {
  const host = {
    isServing: () => serving,
    find: () => Promise.resolve(() => Promise.resolve(undefined)),
    log: (level: string, message: string) => void lines.push(`${level} ${message}`),
  };
  const pace = { firstMs: 20, mostMs: 100, deadlineMs };
  const made = new Notifier(config, file, host, pace, 10);
  notifiers.push(made);
  return made;
}

const one = (key: string, what = `what ${key}`) => ({ key, what, fix: "Do something." });
const hook = { type: "webhook" } as const;
const events = ({ body }: Got): string[] =>
  (JSON.parse(body) as { events: { state: string; key: string }[] }).events.map(
    ({ state, key }) => `${state} ${key}`,
  );

test("a webhook gets one JSON document", async () => {
  const notifier = notifierOf(configOf({ ...hook, url: url(), tokenFile: secret("token", "t0k3n") }));
  notifier.raise(one("a/1"));
  notifier.happened(one("e/1"));
  await eventually(() => got.length > 0);
  const [{ method, path, headers, body }] = got as [Got];
  expect([method, path, headers["content-type"], headers.authorization]).toEqual([
    "POST",
    "/hook",
    "application/json",
    "Bearer t0k3n",
  ]);
  expect(JSON.parse(body)).toMatchObject({
    source: "portico",
    title: expect.stringMatching(/^portico on .*: 1 problem, 1 event$/),
    text: expect.stringContaining("what a/1"),
    events: [
      { state: "problem", key: "a/1", what: "what a/1", fix: "Do something." },
      { state: "event", key: "e/1" },
    ],
    dropped: 0,
  });
});

test("ntfy is published to as JSON, Gotify with its key", async () => {
  const ntfy = { type: "ntfy", urlFile: secret("topic", url("/base/t0p1c")) };
  const gotify = { type: "gotify", url: url("/gotify/"), tokenFile: secret("key", "k3y") };
  notifierOf(configOf(ntfy, gotify)).raise(one("a/1"));
  await eventually(() => got.length === 2);
  const [first, second] = got.sort((a, b) => (a.path < b.path ? -1 : 1)) as [Got, Got];
  expect([first.path, JSON.parse(first.body)]).toEqual([
    "/base/",
    {
      topic: "t0p1c",
      title: expect.stringContaining("1 problem"),
      message: expect.stringContaining("Fix: Do something."),
      priority: 4,
      tags: ["warning"],
    },
  ]);
  expect([second.path, second.headers["x-gotify-key"], JSON.parse(second.body)]).toEqual([
    "/gotify/message",
    "k3y",
    { title: expect.any(String), message: expect.any(String), priority: 8 },
  ]);
});

test("500 and then 200: told once, with what came meanwhile, and said once", async () => {
  respond = (response, number) => void response.writeHead(number < 4 ? 500 : 200).end();
  const notifier = notifierOf(configOf({ ...hook, url: url() }));
  notifier.raise(one("a/1"));
  await eventually(() => got.length >= 2);
  notifier.raise(one("a/2"));
  await eventually(() => got.length >= 4);
  await sleep(150);
  expect(got).toHaveLength(4);
  expect(events(got[3]!)).toEqual(["problem a/1", "problem a/2"]);
  expect(lines).toEqual([
    'warn the message to notification target "t0" was not delivered: the server responded with 500; portico will retry',
    'info notification target "t0" accepts messages again',
  ]);
});

test("one that keeps refusing is asked ever more rarely, down to the rarest", async () => {
  const at: number[] = [];
  respond = (response) => {
    at.push(performance.now());
    response.writeHead(500).end();
  };
  notifierOf(configOf({ ...hook, url: url() })).raise(one("a/1"));
  await eventually(() => at.length > 6);
  const pauses = at.slice(1).map((ms, i) => ms - at[i]!);
  // 20, 40, 80 and 100 ms, each a quarter less at most; a timer may be a millisecond early.
  expect([15, 30, 60, 75, 75, 75].map((least, i) => pauses[i]! >= least - 1)).toEqual(Array(6).fill(true));
});

test.each([
  ["1", true],
  ["3600", true],
  ["3601", false],
  ["0", false],
  ["Wed, 21 Oct 2037 07:28:00 GMT", false],
])("Retry-After: %s is waited for: %s", async (value, waits) => {
  respond = (response) => void response.writeHead(503, { "Retry-After": value }).end();
  notifierOf(configOf({ ...hook, url: url() })).raise(one("a/1"));
  await eventually(() => lines.length > 0);
  if (!waits) return eventually(() => got.length > 1);
  await sleep(500);
  expect(got).toHaveLength(1);
});

test.each<[string, (response: ServerResponse) => void, string]>([
  ["hangs", () => undefined, "no response within 0.3 s"],
  ["hangs up", (response) => void response.socket?.destroy(), "it cannot be reached (ECONNRESET)"],
  [
    "leads elsewhere",
    (response) => void response.writeHead(302, { location: url("/stolen") }).end(),
    "the server responded with 302, and redirects are not followed",
  ],
  [
    "rejects the token",
    (response) => void response.writeHead(401).end(),
    "the server responded with 401: it rejects the token, or requires one",
  ],
])("one that %s is not told, and its secret not shown", async (how, message, why) => {
  respond = message;
  const urlFile = secret("secret-url", url("/s3cr3t?key=s3cr3t"));
  const config = configOf({ ...hook, urlFile, tokenFile: secret("token", "s3cr3t") });
  const notifier = notifierOf(config, undefined, how === "hangs" ? 300 : undefined);
  expect(await notifier.test()).toEqual([{ name: "t0", type: "webhook", why }]);
  notifier.raise(one("a/1"));
  await eventually(() => lines.length > 0);
  expect(lines.join()).not.toContain("s3cr3t");
  expect(got.map(({ path }) => path)).not.toContain("/stolen");
});

test("one that floods with a response is cut off", async () => {
  respond = (response) => {
    const more = (): void => {
      while (response.writable && response.write("x".repeat(65_536)));
    };
    response.on("drain", more).on("error", () => undefined);
    response.writeHead(200);
    more();
  };
  const notifier = notifierOf(configOf({ ...hook, url: url() }));
  expect(await notifier.test()).toEqual([{ name: "t0", type: "webhook" }]);
});

test("a certificate of somebody else is refused, whatever the environment says", async () => {
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
  try {
    const other = join(folder, "other.pem");
    writeFileSync(other, (await issue({ type: "ec", names: ["127.0.0.1"] })).cert);
    const port = (server.address() as AddressInfo).port;
    const notifier = notifierOf(
      configOf({ ...hook, url: url(), roots: other }, { ...hook, url: `https://localhost:${port}/` }),
    );
    const refused = expect.stringMatching(/^its certificate is not trusted \(/);
    expect(await notifier.test()).toEqual([
      { name: "t0", type: "webhook", why: refused },
      { name: "t1", type: "webhook", why: refused },
    ]);
    expect(got).toEqual([]);
  } finally {
    delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
  }
});

test("a flood of events while no target responds is bounded, and counted", async () => {
  respond = (response) => void response.writeHead(503).end();
  const notifier = notifierOf(configOf({ ...hook, url: url() }));
  for (let i = 0; i < 400; i++) notifier.happened(one(`e/${i}`));
  await eventually(() => got.length > 1);
  respond = (response) => void response.end();
  const before = got.length;
  await eventually(() => got.length > before);
  type Last = { events: unknown[]; dropped: number; title: string; text: string };
  const last = JSON.parse(got.at(-1)!.body) as Last;
  expect([last.events.length, last.dropped]).toEqual([100, 300]);
  // People read a few of them, and how many there are.
  expect(last.title).toMatch(/: 100 events, 300 more$/);
  expect(last.text.split(/\n\n|\n(?!Fix)/).map((part) => part.split(" (")[0])).toEqual([
    last.title,
    ...Array.from({ length: 20 }, (_, i) => `what e/${i + 300}`),
    "and 380 more",
  ]);
  expect(got.at(-1)!.body.length).toBeLessThan(200_000);
});

test("a process that is killed at any moment does not tell it all again", async () => {
  const file = join(folder, "notified.json");
  const config = configOf({ ...hook, url: url() });
  // Nothing is stopped in order: the next one finds only the file.
  const live = async (): Promise<void> => {
    const notifier = notifierOf(config, file);
    notifier.observe("a", [one("a/1"), one("a/2")]);
    notifier.happened(one("e/1"));
    await sleep(30);
  };
  // Of those that are killed before they had a response, each tells it once more.
  for (let life = 0; life < 3; life++) await live();
  await eventually(() => got.length > 0);
  await settled(() => got.length);
  expect(new Set(got.flatMap(events))).toEqual(new Set(["problem a/1", "problem a/2", "event e/1"]));
  expect(got.length).toBeLessThanOrEqual(3);
  const before = got.length;
  for (let life = 0; life < 17; life++) await live();
  await settled(() => got.length);
  expect(got.length).toBe(before);
  expect(readFileSync(file, "utf8")).not.toContain("127.0.0.1");
});

test("a healthcheck is pinged while nothing is wrong", async () => {
  const config = configOf({ type: "healthcheck", url: url("/ping"), intervalMs: 10_000 });
  notifierOf(config);
  await eventually(() => got.length === 1);
  expect(got[0]).toMatchObject({ method: "GET", path: "/ping", body: "" });
  serving = false;
  notifierOf(config);
  serving = true;
  const file = join(folder, "open.json");
  const kept = { key: "a/1", what: "w", fix: "f", open: true, since: 1, told: true, toldAt: 1, quietMs: 1 };
  writeFileSync(file, JSON.stringify([{ ...kept, ended: false }]));
  notifierOf(config, file);
  await sleep(100);
  expect(got).toHaveLength(1);
});

test("pings go on while nothing is wrong, and one at a time", async () => {
  const { targets, ...rest } = configOf({ type: "healthcheck", url: url("/ping") });
  const notifier = notifierOf({ ...rest, targets: targets.map((target) => ({ ...target, intervalMs: 20 })) });
  await eventually(() => got.length > 3);
  notifier.raise(one("a/1"));
  await sleep(100);
  const during = got.length;
  await sleep(100);
  expect(got).toHaveLength(during);
  let held: ServerResponse | undefined;
  respond = (response) => void (held = response);
  notifier.resolve("a/1");
  await eventually(() => held !== undefined);
  await sleep(100);
  expect(got).toHaveLength(during + 1);
  held!.end();
  await eventually(() => got.length > during + 1);
});

test.each([
  { ...hook, path: "/hook" },
  { type: "healthcheck", path: "/ping" },
])(
  "a stop leaves a target at once that does not respond, and says nothing: %j",
  async ({ path, ...target }) => {
    let closed = 0;
    respond = (response) => void response.on("close", () => closed++);
    const notifier = notifierOf(configOf({ ...target, url: url(path) }));
    if (target.type === "webhook") notifier.raise(one("a/1"));
    await eventually(() => got.length === 1);
    notifier.stop();
    await eventually(() => closed === 1, "for the connection to be closed", { ms: 20_000 });
    await sleep(200);
    expect([got.length, lines]).toEqual([1, []]);
  },
);

test("a reload keeps what waits for a target that stays, and drops one that goes", async () => {
  respond = (response) => void response.writeHead(500).end();
  const [stays, goes] = [
    { ...hook, url: url("/stays") },
    { ...hook, url: url("/goes") },
  ];
  const notifier = notifierOf(configOf(stays, goes));
  notifier.raise(one("a/1"));
  await eventually(() => got.length >= 2);
  notifier.use(configOf(stays));
  await sleep(50);
  respond = (response) => void response.end();
  got = [];
  await eventually(() => got.length > 0);
  await sleep(200);
  expect(got.map(({ path }) => path)).toEqual(["/stays"]);
  expect(events(got[0]!)).toEqual(["problem a/1"]);
});

test("no word of an event becomes a field, a line or broken JSON", async () => {
  const targets = [
    { ...hook, url: url("/hook") },
    { type: "ntfy", url: url("/topic") },
    { type: "gotify", url: url("/g"), tokenFile: secret("key", "k3y") },
  ];
  const notifier = notifierOf(configOf(...targets));
  const anything = fc.oneof(
    fc.string({ unit: "binary", maxLength: 2_000 }),
    fc.stringMatching(/^[\r\n\0\t\x1b[\]"\\:x-]{0,80}$/),
    fc.constant("a\r\nX-Injected: yes\r\n\r\nGET / HTTP/1.1"),
    fc.constant("\ud83d"),
  );
  const texts = fc.array(fc.tuple(anything, anything, anything), { minLength: 1, maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(texts, async (list) => {
      got = [];
      const id = Math.random();
      list.forEach(([key, what, fix], i) => notifier.happened({ key: `e/${id} ${i} ${key}`, what, fix }));
      // A target of a busy machine is told again.
      await eventually(() => new Set(got.map(({ path }) => path)).size === 3);
      for (const { method, headers, body } of got) {
        expect(method).toBe("POST");
        const known = ["user-agent", "content-type", "content-length", "host", "connection", "x-gotify-key"];
        expect(Object.keys(headers).filter((name) => !known.includes(name))).toEqual([]);
        const document = JSON.parse(body) as { title: string; message?: string; events?: { what: string }[] };
        expect(document.title).not.toMatch(/[\0-\x1f]/);
        for (const { what } of document.events ?? []) expect(what).not.toMatch(/[\0-\x1f]/);
        expect(Buffer.byteLength(document.message ?? "")).toBeLessThan(30_000);
        expect(body).not.toMatch(/\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f])/i);
      }
    }),
    { numRuns: 40 },
  );
});
