import { coarseNow, sweepRegularly } from "../../src/runtime/sockets/deadlines.js";
import { Faults } from "../../src/runtime/dispatch/workerContext.js";
import { httpDate } from "../../src/runtime/dispatch/httpDate.js";
import { repeatedField, SINGLE_FIELDS } from "../../src/runtime/codec/request.js";
import { startEveryProtocol } from "../../testkit/everyProtocol.js";
import { FakeExchange, fakeRoute, type LoggedError } from "../../testkit/fakeExchange.js";
import {
  connectTo,
  exchange,
  isComplete,
  parseResponse,
  RawUpstream,
  responding,
} from "../../testkit/peers.js";

/** What happens to a request before an action has it, and what all exchanges share. */

afterEach(() => {
  jest.useRealTimers();
  jest.restoreAllMocks();
});

test("an authority's challenge gets a response over plain HTTP only, before anything else", async () => {
  const route = { name: "all", path: "/", action: { type: "respond", status: 403 } } as const;
  const front = await startEveryProtocol({ routes: [route] });
  const path = "/.well-known/acme-challenge/token";
  const ask = (method: string, target: string, secure = false) =>
    exchange(
      secure ? front.securePort : front.plainPort,
      `${method} ${target} HTTP/1.1\r\nHost: a\r\n\r\n`,
      secure,
    );
  try {
    expect((await ask("GET", path)).status).toBe(403);
    front.serving.dispatcher.setChallenges([
      { type: "http-01", token: "token", keyAuthorization: "token.print" },
    ]);
    expect(await ask("GET", path)).toMatchObject({
      status: 200,
      reason: "OK",
      headers: { "content-type": "application/octet-stream", "content-length": "11" },
      body: "token.print",
    });
    const head = await connectTo(front.plainPort);
    head.send(`HEAD ${path} HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n`);
    await head.until(({ received }) => isComplete(received.slice(received.indexOf("\r\n\r\n") + 4)));
    head.socket.destroy();
    expect(parseResponse(head.received)).toMatchObject({ status: 200, headers: { "content-length": "11" } });
    expect(head.received).not.toContain("token.print");
    expect((await ask("POST", path)).status).toBe(403);
    expect((await ask("GET", `${path}2`)).status).toBe(403);
    expect((await ask("GET", path, true)).status).toBe(403);
  } finally {
    await front.close();
  }
});

test("an authority's challenge does not go on to an upstream", async () => {
  const upstream = await new RawUpstream(
    responding("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
  ).listen();
  const front = await startEveryProtocol({
    routes: [{ name: "all", path: "/", action: { type: "proxy", upstream: "web" } }],
    upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}` }],
  });
  const path = "/.well-known/acme-challenge/token";
  front.serving.dispatcher.setChallenges([
    { type: "http-01", token: "token", keyAuthorization: "token.print" },
  ]);
  const get = (target: string) => exchange(front.plainPort, `GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`);
  expect((await get(path)).body).toBe("token.print");
  expect((await get("/x")).body).toBe("ok");
  expect(upstream.connections.map(({ received }) => received.split(" ")[1])).toEqual(["/x"]);
  expect(front.serving.faults.count).toBe(0);
  await front.close();
  await upstream.close();
});

test("a fault is logged where its exchange logs, with its stack; what cannot be ended is cut", () => {
  const [main, own]: [LoggedError[], LoggedError[]] = [[], []];
  const faults = new Faults(fakeRoute({}, main).errorLog);
  faults.report("no error object");
  const exchange = new FakeExchange({}, { route: fakeRoute({}, own) });
  const cut = jest.fn();
  faults.contain(new Error("first"), exchange, () => undefined, cut);
  expect([faults.count, cut.mock.calls.length]).toEqual([2, 0]);
  const fails = (): void => {
    throw new Error("second");
  };
  faults.contain(new Error("third"), exchange, fails, cut);
  expect([faults.count, cut.mock.calls.length]).toEqual([4, 1]);
  expect(main).toEqual([{ level: "crit", message: "internal fault 1 of this worker: no error object" }]);
  expect(own.map(({ level }) => level)).toEqual(["crit", "crit", "crit"]);
  for (const [i, name] of ["first", "third", "second"].entries())
    expect(own[i]!.message).toMatch(
      new RegExp(`^internal fault ${i + 2} of this worker: Error: ${name}\\n +at `),
    );
});

test("the date is that of the second", () => {
  const now = jest.spyOn(Date, "now");
  const dates = [1_700_000_000_000, 1_700_000_000_999, 1_700_000_001_000, 1_600_000_000_000].map((ms) => {
    now.mockReturnValue(ms);
    return httpDate();
  });
  expect(dates).toEqual([
    "Tue, 14 Nov 2023 22:13:20 GMT",
    "Tue, 14 Nov 2023 22:13:20 GMT",
    "Tue, 14 Nov 2023 22:13:21 GMT",
    "Sun, 13 Sep 2020 12:26:40 GMT",
  ]);
});

test("the clock goes four times a second while there are deadlines, and begins anew with the next", () => {
  jest.useFakeTimers();
  const swept: number[] = [];
  const item = { sweep: (now: number) => void swept.push(now), onFault: () => undefined };
  const begun = performance.now();
  let stop = sweepRegularly(item);
  expect(coarseNow()).toBe(begun);
  jest.advanceTimersByTime(250);
  // After what is ready to be read: not yet.
  expect(swept).toEqual([]);
  jest.advanceTimersByTime(1);
  stop();
  stop();
  expect(jest.getTimerCount()).toBe(0);
  jest.advanceTimersByTime(10_000);
  expect(coarseNow()).toBe(begun + 250);
  stop = sweepRegularly(item);
  expect(coarseNow()).toBe(begun + 10_251);
  const stopOther = sweepRegularly({ ...item, sweep: () => undefined });
  jest.advanceTimersByTime(249);
  stopOther();
  jest.advanceTimersByTime(1);
  jest.advanceTimersByTime(1);
  expect(swept.map((now) => now - begun)).toEqual([250, 10_501]);
  stop();
});

describe("a field that may be there once only", () => {
  test.each(SINGLE_FIELDS)("%s", (name) => {
    expect(repeatedField([name, "a", "Accept", "b"])).toBeUndefined();
    expect(repeatedField([name, "a", name.toUpperCase(), "a"])).toBe(name);
  });

  test("is found among others, of whatever length", () => {
    expect(SINGLE_FIELDS).toEqual([
      ...["authorization", "content-range", "expect", "if-match", "if-modified-since", "if-none-match"],
      ...["if-range", "if-unmodified-since"],
    ]);
    const others = Array.from({ length: 40 }, (_, i) => ["x".repeat(i + 1), "1"]).flat();
    expect(
      repeatedField([...others, ...others, ...SINGLE_FIELDS.flatMap((name) => [name, "1"])]),
    ).toBeUndefined();
    expect(repeatedField([...others, "Expect", "1", ...others, "expect", "2"])).toBe("expect");
  });
});
