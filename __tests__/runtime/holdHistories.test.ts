import { setTimeout as sleep } from "node:timers/promises";
import { pass } from "../../testkit/clock.js";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { ask, connectHttp2 } from "../../testkit/http2Server.js";
import { connectTo, exchange, parseResponse } from "../../testkit/peers.js";
import { freePort } from "../../testkit/ports.js";
import { randomText, seeded, type Random } from "../../testkit/random.js";
import { RestartingWeb } from "../../testkit/restartingWeb.js";
import { eventually } from "../../testkit/waiting.js";
import { tally } from "../../src/runtime/exchange/tally.js";

/** An upstream that comes and goes at random, with requests of all kinds between: each gets what the rules allow. */

const HOLD_MS = 5_000;
const QUEUED_MAX = 6;
const STEPS = 250;
/** Longer than all leaps together. */
const LONG = { readTimeoutMs: 36_000_000, sendTimeoutMs: 36_000_000 };
/** It is known by then that the upstream is back. */
const TRIED_MS = 200;
/** Nothing of an outage is known then any more. */
const QUIET_MS = 31_000;
const TURN_MS = 10;

/** What became of a request. */
interface Asked {
  readonly target: string;
  readonly kind: string;
  readonly began: number;
  /** How many others were under way with it at most. */
  others: number;
  over: number | undefined;
  overTurn: number;
  /** 0 for one whose client left. */
  status: number;
}

let web: RestartingWeb;
let front: EveryProtocol;
/** When it went down, and came back. */
let downs: { from: number; to: number }[];
let asked: Asked[];

/** Of the event loop that the proxy shares: a leap of the clock takes none, nor does a machine that is busy. */
let turns = 0;
const turning = setInterval(() => turns++, TURN_MS);
afterAll(() => clearInterval(turning));

beforeEach(async () => {
  web = new RestartingWeb(await freePort(), 10);
  downs = [];
  asked = [];
  const limits = { holdMs: HOLD_MS, queuedRequestsMax: QUEUED_MAX, clientSharePercent: 100 };
  // Time passes in leaps, which a connect on a busy machine would not be done in.
  const connectTimeoutMs = 3_600_000;
  front = await startEveryProtocol({
    routes: [{ name: "web", path: "/", action: { type: "proxy", upstream: "web" } }],
    upstreams: [{ name: "web", url: web.url, connectTimeoutMs, ...LONG, ...limits }],
  });
});
afterEach(async () => {
  await front.close();
  await web.kill();
});

const BODY = randomText(320_000);
const CHUNKED = `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`;
const UPGRADE =
  "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13";

const raw =
  (method: string, fields: string, body = "") =>
  async (target: string): Promise<number> => {
    const text = `${method} ${target} HTTP/1.1\r\nHost: a\r\n${fields}\r\n\r\n${body}`;
    return (await exchange(front.plainPort, text)).status;
  };
const http2 =
  (method: string, body?: string) =>
  async (target: string): Promise<number> => {
    const session = connectHttp2(front.securePort);
    const { status } = await ask(session, { ":path": target, ":method": method }, body);
    session.destroy();
    return status;
  };
const leaves =
  (method: string, fields: string) =>
  async (target: string): Promise<number> => {
    const client = await connectTo(front.plainPort);
    client.send(`${method} ${target} HTTP/1.1\r\nHost: a\r\n${fields}\r\n\r\n`);
    await sleep(20);
    client.socket.destroy();
    return 0;
  };

/** The upstream ignores the client's end, and its timeouts are longer than the history: only the proxy ends the tunnel. */
async function endsTunnel(target: string): Promise<number> {
  const client = await connectTo(front.plainPort);
  client.send(`GET ${target} HTTP/1.1\r\nHost: a\r\n${UPGRADE}\r\n\r\n`);
  await client.until(({ closed, ended, received }) => closed || ended || received.includes("\r\n\r\n"));
  client.socket.end();
  return parseResponse(client.received).status;
}

const KINDS: Readonly<Record<string, (target: string) => Promise<number>>> = {
  get: raw("GET", "Connection: close"),
  post: raw("POST", "Connection: close\r\nContent-Length: 3", "abc"),
  put: raw("PUT", `Connection: close\r\nContent-Length: ${BODY.length}`, BODY),
  chunked: raw("POST", "Connection: close\r\nTransfer-Encoding: chunked", CHUNKED),
  webSocket: raw("GET", UPGRADE),
  deafTunnel: endsTunnel,
  http2Get: http2("GET"),
  http2Post: http2("POST", BODY),
  leavingGet: leaves("GET", "Connection: close"),
  leavingPut: leaves("PUT", "Content-Length: 9"),
};
/** Those that may be sent twice. */
const REPEATABLE = new Set(["get", "http2Get", "leavingGet"]);

function begin(kind: string): void {
  const now = performance.now();
  // A client that closes after its request is given a second in which its response may begin.
  const running = asked.filter(
    ({ status, overTurn }) => turns - Math.min(overTurn, turns) < (status === 0 ? 1_500 / TURN_MS : 1),
  );
  const one: Asked = {
    target: `/${kind}${asked.length}`,
    kind,
    began: now,
    others: running.length,
    over: undefined,
    overTurn: Infinity,
    status: -1,
  };
  running.forEach((other) => other.others++);
  asked.push(one);
  void KINDS[kind]!(one.target).then((status) => {
    one.status = status;
    one.over = performance.now();
    one.overTurn = turns;
  });
}

async function goUp(): Promise<void> {
  if (web.isUp) return;
  await web.up();
  downs.at(-1)!.to = performance.now();
}

async function goDown(killed: boolean): Promise<void> {
  if (!web.isUp && downs.length > 0) return;
  downs.push({ from: performance.now(), to: Infinity });
  await (killed ? web.kill() : web.down());
}

/** Nobody asks for so long that nothing of an outage is known any more. */
async function quiet(): Promise<void> {
  await pass(HOLD_MS);
  await allResponded();
  await pass(QUIET_MS + 1_000);
}

const allResponded = (): Promise<void> =>
  eventually(() => asked.every(({ over }) => over !== undefined), "for all responses", {
    seen: () => JSON.stringify(asked.filter(({ over }) => over === undefined)),
    ms: 20_000,
  });

/**
 * As the proxy can know them: that it was back in between, only requests tell once they no longer wait; and what no request
 * has met for some time is forgotten.
 */
function outages(): { from: number; to: number }[] {
  const known: { from: number; to: number }[] = [];
  for (const { from, to } of downs) {
    const last = known.at(-1);
    if (last !== undefined && !wasServed(last.to, from)) last.to = to;
    else known.push({ from, to });
    for (const quietUntil of quietTimes().filter((at) => at > from && at < to)) {
      known.at(-1)!.to = quietUntil - QUIET_MS;
      known.push({ from: quietUntil, to });
    }
  }
  return known;
}

/** When a request came after a time without any. */
const quietTimes = (): number[] =>
  asked
    .filter(({ began }, i) => asked.slice(0, i).every(({ over }) => over! < began - QUIET_MS))
    .map(({ began }) => began);

const wasServed = (from: number, to: number): boolean =>
  asked.some(({ status, over }) => status > 0 && status < 300 && over! > from && over! < to);

/** @returns what is wrong with a request; undefined if nothing is */
function wrong({ target, kind, began, over, others, status }: Asked): string | undefined {
  const times = web.got.get(target) ?? 0;
  const end = over!;
  const message = `${target}: ${status}, beside ${others}, after ${Math.round(end - began)} ms, seen ${times} times by the upstream`;
  if (times > (REPEATABLE.has(kind) ? 2 : 1)) return message;
  if (end - began > 2 * HOLD_MS + 1_000) return message;
  const during = outages().filter(({ from, to }) => from <= end && to + TRIED_MS >= began);
  switch (status) {
    case 0:
      return undefined;
    case 101:
    case 200:
      return times > 0 ? undefined : message;
    case 502: {
      const brokenOff = downs.some(({ from }) => from >= began && from <= end);
      // Another one may have begun the outage, as long before as the upstream was away.
      const waited = during.some(({ from }) => end - from >= HOLD_MS - 300);
      return brokenOff || waited ? undefined : message;
    }
    case 503:
      return others >= QUEUED_MAX && times === 0 && during.length > 0 ? undefined : message;
    default:
      return message;
  }
}

async function history(random: Random): Promise<void> {
  await goDown(false);
  const kinds = Object.keys(KINDS);
  for (let step = 0; step < STEPS; step++) {
    const turn = random.pick(20);
    if (turn < 3) await goUp();
    else if (turn < 5) await goDown(turn === 3);
    else if (turn === 5)
      await random.of(
        () => pass(500),
        () => pass(2_000),
        () => pass(6_000),
        quiet,
      )();
    else if (turn === 6) await sleep(random.of(1, 30, 150));
    else begin(kinds[random.pick(kinds.length)]!);
    if (random.is(0.3)) await sleep(5);
  }
  await goUp();
  await allResponded();
  expect(asked.map(wrong).filter((one) => one !== undefined)).toEqual([]);
  const statuses = new Set(asked.map(({ status }) => status));
  expect([...statuses].sort((a, b) => a - b)).toEqual(expect.arrayContaining([0, 101, 200, 502]));
  await pass(70_000);
  await eventually(
    () => Object.values(front.serving.holdings()).every((held) => held === 0),
    "for its rest",
    {
      seen: () => JSON.stringify(front.serving.holdings()),
    },
  );
  await eventually(() => tally.exchangesBegun === tally.exchangesOver);
  expect(front.serving.faults.count).toBe(0);
}

test(
  "each request gets one response, or is refused where the rules allow it; nothing is left behind",
  seeded(history),
);
