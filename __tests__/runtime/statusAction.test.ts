import { request } from "node:http";
import { StatusQuestions } from "../../src/runtime/worker/worker.js";
import type { AskedStatus } from "../../src/runtime/status/asked.js";
import { loopback, oneServer } from "../../testkit/oneServer.js";
import { Portico } from "../../testkit/portico.js";
import { freePort } from "../../testkit/ports.js";

/** The status as a route: who sees it, and what a worker gets from its master. */

let port: number;
let metrics: number;
let portico: Portico;

beforeAll(async () => {
  [port, metrics] = [await freePort(), await freePort()];
  const allowed = { type: "status", allow: ["127.0.0.1"] } as const;
  portico = await Portico.start(
    oneServer({
      workers: 2,
      logs: { access: "off", error: "off" },
      trustedProxies: ["127.0.0.1"],
      listeners: [loopback("http", port)],
      metricsListener: { address: "127.0.0.1", port: metrics },
      upstreams: [],
      routes: [
        { name: "own", path: "/status", action: { ...allowed, addresses: "whole" } },
        {
          name: "others",
          path: "/others",
          action: { type: "status", allow: ["10.0.0.0/8", "2001:db8::/32"] },
        },
        { name: "slash", path: "/ops/", action: allowed },
      ],
    }),
  );
});
afterAll(() => portico.stop());

interface Got {
  readonly status: number;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly body: string;
}

function get(path: string, headers: Record<string, string> = {}, method = "GET", to = port): Promise<Got> {
  return new Promise((resolve, reject) => {
    const sent = request({ port: to, path, headers, method, agent: false }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (text: string) => (body += text));
      response.on("end", () => resolve({ status: response.statusCode!, headers: response.headers, body }));
    });
    sent.on("error", reject).end();
  });
}

test.each([
  ["/status", "text/html; charset=utf-8", "<!doctype html>"],
  ["/status/", "text/html; charset=utf-8", "<!doctype html>"],
  ["/ops/", "text/html; charset=utf-8", "<!doctype html>"],
  ["/status?json", "application/json; charset=utf-8", '{"version":'],
  ["/status?script", "text/javascript; charset=utf-8", '"use strict";'],
  ["/status?style", "text/css; charset=utf-8", ":root"],
  ["/status?icon", "image/svg+xml", "<svg xmlns="],
])("%s is %s", async (path, type, begin) => {
  const { status, headers, body } = await get(path);
  expect([status, headers["content-type"], body.slice(0, begin.length)]).toEqual([200, type, begin]);
  expect(headers).toMatchObject({ "cache-control": "no-store", "x-content-type-options": "nosniff" });
  expect(headers["content-security-policy"]).toMatch(
    /^default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; /,
  );
});

test.each([
  ["a query that names no part", "/status?x", {}, "GET", 404],
  ["a path below", "/status/x", {}, "GET", 404],
  ["another method", "/status", {}, "POST", 405],
  ["a client that may not look", "/others", {}, "GET", 403],
  ["such a client that asks for the data", "/others?json", {}, "GET", 403],
  ["a client that a trusted proxy names", "/others", { "X-Forwarded-For": "10.1.2.3" }, "GET", 200],
  ["one that it names and that may not look", "/status", { "X-Forwarded-For": "203.0.113.9" }, "GET", 403],
])("%s: %s", async (_, path, headers, method, status) => {
  expect((await get(path, headers, method)).status).toBe(status);
});

test.each([
  ["127.0.0.1", 200],
  ["[::1]:80", 200],
  ["localhost", 200],
  ["proxy", 200],
  ["rebound.example", 421],
  ["127.0.0.1.rebound.example", 421],
])("for the host %s: %d", async (host, status) => {
  for (const path of ["/status", "/status?json"])
    expect((await get(path, { Host: host })).status).toBe(status);
});

test("HEAD gets the length, and no page", async () => {
  const { status, headers, body } = await get("/status", {}, "HEAD");
  expect([status, Number(headers["content-length"]) > 1_000, body]).toEqual([200, true, ""]);
});

test("the metrics listener has the page, its files and its data", async () => {
  const at = (path: string): Promise<Got> => get(path, {}, "GET", metrics);
  expect((await at("/status")).body).toMatch(/^<!doctype html>/);
  expect((await at("/status")).headers["content-security-policy"]).toMatch(/^default-src 'none'; /);
  expect((await at("/status?script")).headers["content-type"]).toBe("text/javascript; charset=utf-8");
  expect(JSON.parse((await at("/status.json")).body)).toMatchObject({ state: "serving", generation: 1 });
  expect((await at("/status?x")).status).toBe(404);
});

test("it says what is served", async () => {
  const { body } = await get("/status?json");
  expect(JSON.parse(body)).toMatchObject({
    state: "serving",
    generation: 1,
    workers: { running: 2, silent: 0 },
    listeners: [`http 127.0.0.1:${port}`],
    transfers: [],
  });
});

describe("questions of a worker", () => {
  const ASKED: AskedStatus = { part: "page", addresses: "whole", fileNames: true };
  const RESPONSE = { contentType: "text/html", body: "x" };
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  test("one that the master does not respond to ends after 5 s, and its late response is dropped", async () => {
    const sent: number[] = [];
    const questions = new StatusQuestions((turn) => sent.push(turn));
    const response = questions.ask(ASKED);
    jest.advanceTimersByTime(5_000);
    expect(await response).toBeUndefined();
    questions.responded(sent[0]!, RESPONSE);
    const next = questions.ask(ASKED);
    questions.responded(sent[1]!, RESPONSE);
    expect(await next).toBe(RESPONSE);
  });

  test("there are 32 at a time at most", async () => {
    const sent: number[] = [];
    const questions = new StatusQuestions((turn) => sent.push(turn));
    const open = Array.from({ length: 40 }, () => questions.ask(ASKED));
    expect(sent).toHaveLength(32);
    jest.advanceTimersByTime(5_000);
    expect(new Set(await Promise.all(open))).toEqual(new Set([undefined]));
  });
});
