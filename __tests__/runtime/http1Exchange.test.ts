import type { Socket } from "node:net";
import { AnswerWriter } from "../../src/runtime/server/http1Writer.js";
import { type ExchangeConnection, Http1Exchange } from "../../src/runtime/server/http1Exchange.js";
import type { ParsedRequest } from "../../src/runtime/codec/http1/requestHead.js";
import { unroutable } from "../../src/runtime/codec/http1/requestHead.js";
import type { BodySink, ClientInfo } from "../../src/runtime/exchange/exchange.js";
import type { VirtualServerConfig } from "../../src/model/index.js";

/** One HTTP/1.1 exchange between its action and its connection: what it still does once it is over, and its head. */

let calls: string[];
let written: string;
/** How often its connection was told of a write, which it times. */
let timed: number;
let mayKeepAlive: boolean;
const turn = (): Promise<void> => new Promise(setImmediate);

beforeEach(() => {
  calls = [];
  written = "";
  timed = 0;
  mayKeepAlive = true;
});
afterEach(() => jest.restoreAllMocks());

function start(request: Partial<ParsedRequest> = {}): Http1Exchange {
  const note = (what: string) => () => void calls.push(what);
  const connection: ExchangeConnection = {
    inputPaused: false,
    pauseInput: note("pause"),
    inputWanted: note("wanted"),
    openTunnel: note("tunnel"),
    mayKeepAlive: () => mayKeepAlive,
    finished: () => undefined,
    exchangeEnded: note("ended"),
    exchangeAborted: note("aborted"),
    linger: note("linger"),
    onFault: (error) => void calls.push(String(error)),
  };
  const socket = {
    writableLength: 0,
    destroyed: false,
    write: (bytes: string | Buffer) => (written += bytes.toString("latin1")),
    cork: () => undefined,
    uncork: () => undefined,
  } as unknown as Socket;
  const listener = { onWrite: () => void timed++, onWritten: () => undefined, onFault: connection.onFault };
  const whole = { ...unroutable("GET / HTTP/1.1"), method: "GET", ...request };
  const client = { scheme: "http", answerRules: "http" } as ClientInfo;
  const server = serverWith(false);
  return new Http1Exchange(connection, new AnswerWriter(socket, listener), whole, client, server);
}

const serverWith = (versionTokens: boolean): VirtualServerConfig =>
  ({ versionTokens, responseHeaders: { set: {}, remove: [] } }) as unknown as VirtualServerConfig;

const sink: BodySink = {
  onData: () => calls.push("data") > 0,
  onEnd: () => void calls.push("end"),
};

test.each<[what: string, body: number]>([
  ["without a body", 0],
  ["with a body", 5],
])("does nothing more once it is over: %s", async (_what, bodyLength) => {
  const exchange = start({ bodyLength, expectContinue: true });
  exchange.abort();
  exchange.abort();
  exchange.readBody(sink);
  exchange.sendContinue();
  exchange.sendHead(200, "OK", [], 2);
  expect(exchange.sendData(Buffer.from("ok"))).toBe(false);
  expect(exchange.sendData(Buffer.alloc(0))).toBe(false);
  exchange.flush();
  exchange.end();
  await turn();
  expect([calls, written, exchange.status, exchange.headSent]).toEqual([["aborted"], "", 0, false]);
});

test("is over once its answer is complete, and cut if that has not begun", async () => {
  const answered = start();
  answered.sendHead(204, "No Content", [], 0);
  answered.end();
  answered.end();
  answered.abort();
  const silent = start();
  silent.end();
  expect([calls, answered.over, silent.over]).toEqual([["ended", "aborted"], true, true]);
  await turn();
  expect(written).toMatch(/^HTTP\/1\.1 204 No Content\r\n[^]*?\r\n\r\n$/);
});

test("has one head, and no 100 after it", async () => {
  const exchange = start({ bodyLength: 5, expectContinue: true });
  exchange.sendHead(200, "OK", [], 2);
  exchange.sendHead(500, "No", [], 0);
  exchange.sendContinue();
  expect([exchange.sendData(Buffer.from("ok")), exchange.bodyBytesSent, exchange.status]).toEqual([
    true,
    2,
    200,
  ]);
  exchange.end();
  await turn();
  expect(written).toMatch(
    /^HTTP\/1\.1 200 OK\r\nServer: portico\r\nDate: [^\r]+\r\nContent-Length: 2\r\n\r\nok$/,
  );
});

test.each([false, true])(
  "what waits for the end of the turn goes out before bytes that do not wait: %j",
  (transient) => {
    const bytes = Buffer.alloc(1 << 20, "x");
    const exchange = start({ bodyLength: 5, expectContinue: true });
    exchange.sendContinue();
    exchange.sendHead(200, "OK", [], 2 * bytes.length);
    exchange.flush();
    exchange.sendData(bytes, transient);
    expect(timed).toBe(2);
    exchange.sendData(bytes, transient);
    expect(timed).toBe(3);
    exchange.end();
    const [interim, head, ...body] = written.split("\r\n\r\n");
    expect(interim).toBe("HTTP/1.1 100 Continue");
    expect(head).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(body).toEqual(["x".repeat(2 * bytes.length)]);
  },
);

test("what was sent before it is cut goes out", async () => {
  const exchange = start();
  exchange.sendHead(200, "OK", [], 5);
  exchange.sendData(Buffer.from("ok"));
  exchange.abort();
  await turn();
  expect([calls, written.endsWith("\r\n\r\nok")]).toEqual([["aborted"], true]);
});

test("takes no more bytes than were announced, and none for an answer without a body", () => {
  const exchange = start();
  exchange.sendHead(200, "OK", [], 2);
  expect([exchange.sendData(Buffer.from("long")), exchange.bodyBytesSent]).toEqual([false, 0]);
  expect(calls).toEqual(["Error: 4 bytes where 2 may follow"]);
  const empty = start();
  empty.sendHead(304, "Not Modified", [], 2);
  expect([empty.sendData(Buffer.from("no")), empty.bodyBytesSent]).toEqual([true, 0]);
});

test.each<[what: string, expects: boolean, early: string, sent: boolean]>([
  ["a client that waits for it", true, "", true],
  ["a client that does not wait", false, "", false],
  ["a client that has sent all of it", true, "hello", false],
])("100 Continue is sent to %s, once", async (_what, expectContinue, early, sent) => {
  const exchange = start({ bodyLength: 5, expectContinue });
  if (early !== "") {
    exchange.body!.read(Buffer.from(early), 0, true);
    exchange.body!.end();
  }
  exchange.readBody(sink);
  if (early === "") exchange.sendContinue();
  await turn();
  expect(written).toBe(sent ? "HTTP/1.1 100 Continue\r\n\r\n" : "");
  expect(exchange.awaitsContinue).toBe(expectContinue && !sent);
});

test("the head says which answer it is, and of which second", async () => {
  const now = jest.spyOn(Date, "now").mockReturnValue(1_700_000_000_000);
  const heads: string[] = [];
  for (const [status, reason, seconds, versionTokens] of [
    [200, "OK", 0, false],
    [200, "OK", 0, false],
    [200, "Fine", 0, false],
    [201, "Fine", 0, false],
    [201, "Fine", 1, false],
    [201, "Fine", 1, true],
  ] as const) {
    now.mockReturnValue(1_700_000_000_000 + seconds * 1_000);
    const exchange = start({ version: "1.0" });
    exchange.server = serverWith(versionTokens);
    exchange.sendHead(status, reason, [], 0);
    exchange.end();
    await turn();
    heads.push(
      written
        .split("\r\n")
        .slice(0, 4)
        .join("|")
        .replace(/portico\/\S+?\|/, "portico/x|"),
    );
    written = "";
  }
  const at = "Tue, 14 Nov 2023 22:13:2";
  expect(heads).toEqual([
    `HTTP/1.1 200 OK|Server: portico|Date: ${at}0 GMT|Content-Length: 0`,
    `HTTP/1.1 200 OK|Server: portico|Date: ${at}0 GMT|Content-Length: 0`,
    `HTTP/1.1 200 Fine|Server: portico|Date: ${at}0 GMT|Content-Length: 0`,
    `HTTP/1.1 201 Fine|Server: portico|Date: ${at}0 GMT|Content-Length: 0`,
    `HTTP/1.1 201 Fine|Server: portico|Date: ${at}1 GMT|Content-Length: 0`,
    `HTTP/1.1 201 Fine|Server: portico/x|Date: ${at}1 GMT|Content-Length: 0`,
  ]);
});

test.each<[version: "1.0" | "1.1", keeps: boolean, says: string]>([
  ["1.1", true, ""],
  ["1.1", false, "Connection: close\r\n"],
  ["1.0", true, "Connection: keep-alive\r\n"],
  ["1.0", false, "Connection: close\r\n"],
])("in HTTP/%s, where the connection stays open: %j, the head says %j", async (version, keeps, says) => {
  mayKeepAlive = keeps;
  const exchange = start({ version });
  exchange.sendHead(204, "No Content", [], 0);
  exchange.end();
  await turn();
  expect(written.slice(written.indexOf("GMT\r\n") + 5)).toBe(`${says}\r\n`);
});
