import { writeFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Http1Connection } from "../../src/runtime/server/http1Connection.js";
import { ResponseWriter } from "../../src/runtime/server/http1Writer.js";
import { Http2Connection } from "../../src/runtime/server/http2Connection.js";
import { Http2Exchange } from "../../src/runtime/server/http2Exchange.js";
import { Outbox } from "../../src/runtime/server/outbox.js";
import { RequestBody } from "../../src/runtime/exchange/requestBody.js";
import { UpstreamConnection } from "../../src/runtime/upstream/upstreamConnection.js";
import { RequestWriter } from "../../src/runtime/upstream/requestWriter.js";
import { UpstreamPool } from "../../src/runtime/upstream/pool.js";
import { Dispatcher } from "../../src/runtime/dispatch/dispatch.js";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { type Accepted, connectTo, RawUpstream } from "../../testkit/peers.js";
import { openFolder } from "../../testkit/portico.js";
import { eventually, nextEvent } from "../../testkit/waiting.js";
import { randomBody, randomText } from "../../testkit/random.js";

/**
 * One fault barrier: whatever code of ours throws when a socket, a timer or the end of a turn calls it, is logged as ours
 * with its stack, ends what it happened in, and leaves the worker and its other connections as they were.
 */

let upstream: RawUpstream;
let front: EveryProtocol;
let uncaught: unknown[];
const onUncaught = (fault: unknown): void => void uncaught.push(fault);

beforeAll(async () => {
  const folder = openFolder();
  writeFileSync(join(folder, "large"), randomBody(LARGE_BYTES));
  upstream = await new RawUpstream(respondToWholeRequests).listen();
  front = await startEveryProtocol({
    routes: [
      { name: "web", path: "/", action: { type: "proxy", upstream: "web" } },
      { name: "files", path: "/files/", action: { type: "staticFiles", directory: folder } },
    ],
    upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}` }],
  });
});
beforeEach(() => {
  uncaught = [];
  process.on("uncaughtException", onUncaught);
});
afterEach(() => {
  jest.restoreAllMocks();
  process.off("uncaughtException", onUncaught);
});
afterAll(async () => {
  await front.close();
  await upstream.close();
});

/** More than is read or written at once. */
const LARGE_BYTES = 2 << 20;

type Ask = () => Promise<string>;
const BODY = randomText(100);
const POST = `POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n`;

/** How long a client takes over its body: longer than a sweep where that is what shall throw. */
let bodyAfterMs = 20;

function respondToWholeRequests(peer: Accepted): void {
  let responded = 0;
  peer.socket.on("data", () => {
    const bodies = peer.received.split(BODY).length - 1;
    for (; responded < bodies; responded++) peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  });
}

/** Sends a request and its body in two turns; whatever comes of it is fine, as long as something does. */
const http1 =
  (secure: boolean): Ask =>
  async () => {
    const client = await connectTo(secure ? front.securePort : front.plainPort, secure);
    client.send(POST);
    await sleep(bodyAfterMs);
    client.send(BODY);
    await client.until((peer) => peer.ended || peer.closed || peer.received.endsWith("ok"));
    client.socket.destroy();
    return client.received.slice(9, 12);
  };

const http2: Ask = () =>
  new Promise((resolve) => {
    const session = connectHttp2(`https://127.0.0.1:${front.securePort}`, { rejectUnauthorized: false });
    session.on("error", () => undefined);
    const stream = session.request({ ":method": "POST", ":path": "/x", "content-length": "100" });
    let status = "";
    stream.on("response", (headers) => (status = String(headers[":status"])));
    stream.on("error", () => undefined);
    stream.on("data", () => undefined);
    stream.on("close", () => {
      session.destroy();
      resolve(status);
    });
    setTimeout(() => stream.end(BODY), bodyAfterMs);
  });

const PROTOCOLS: Readonly<Record<string, Ask>> = {
  "HTTP/1.1": http1(false),
  "HTTP/1.1 over TLS": http1(true),
  "HTTP/2": http2,
};
const HTTP1 = ["HTTP/1.1", "HTTP/1.1 over TLS"];
const HTTP2 = ["HTTP/2"];
const ALL = [...HTTP1, ...HTTP2];

/** Every step that the event loop calls: of which class, its name, and the protocols whose requests come by it. */
const STEPS: readonly [object, string, string, readonly string[]][] = [
  [Http1Connection.prototype, "Http1Connection", "take", HTTP1],
  [Http1Connection.prototype, "Http1Connection", "closed", HTTP1],
  [Http1Connection.prototype, "Http1Connection", "sweep", HTTP1],
  [ResponseWriter.prototype, "ResponseWriter", "writeBatched", HTTP1],
  [Http2Connection.prototype, "Http2Connection", "take", HTTP2],
  [Http2Connection.prototype, "Http2Connection", "written", HTTP2],
  [Http2Connection.prototype, "Http2Connection", "closed", HTTP2],
  [Http2Connection.prototype, "Http2Connection", "sweep", HTTP2],
  [Http2Exchange.prototype, "Http2Exchange", "sweep", HTTP2],
  [Outbox.prototype, "Outbox", "writeBatched", HTTP2],
  [Dispatcher.prototype, "Dispatcher", "dispatch", ALL],
  [Dispatcher.prototype, "Dispatcher", "finished", ALL],
  [RequestBody.prototype, "RequestBody", "data", ALL],
  [RequestBody.prototype, "RequestBody", "sweep", ALL],
  [UpstreamConnection.prototype, "UpstreamConnection", "connected", ALL],
  [UpstreamConnection.prototype, "UpstreamConnection", "received", ALL],
  [UpstreamConnection.prototype, "UpstreamConnection", "sweep", ALL],
  [UpstreamConnection.prototype, "UpstreamConnection", "closed", ALL],
  [UpstreamPool.prototype, "UpstreamPool", "sweep", ALL],
  [RequestWriter.prototype, "RequestWriter", "writeBatched", ALL],
  [RequestWriter.prototype, "RequestWriter", "body", ALL],
  [RequestWriter.prototype, "RequestWriter", "end", ALL],
];

describe.each(STEPS)("%#", (prototype, owner, step, protocols) => {
  test.each(protocols)(
    `an exception in ${owner}.${step} ends no more than one exchange of %s`,
    async (protocol) => {
      for (const peer of upstream.connections.splice(0)) peer.socket.destroy();
      await sleep(20);
      const before = front.serving.faults.count;
      const marker = `injected into ${owner}.${step}`;
      bodyAfterMs = step === "sweep" ? 350 : 20;
      jest.spyOn(prototype as never, step as never).mockImplementationOnce((() => {
        throw new Error(marker);
      }) as never);
      const asked = PROTOCOLS[protocol]!();
      await Promise.race([asked, sleep(1_500)]);
      if (step === "closed") for (const peer of upstream.connections) peer.socket.destroy();
      // What only a sweep or the end of a connection calls.
      await eventually(() => front.serving.faults.count > before, "for the fault");
      jest.restoreAllMocks();
      bodyAfterMs = 20;
      for (const ask of Object.values(PROTOCOLS)) expect(await ask()).toBe("200");
      expect(uncaught).toEqual([]);
      const log = await front.errorLog();
      expect(log).toMatch(new RegExp(`\\[crit\\].*internal fault \\d+ of this worker: Error: ${marker}`));
      expect(log).not.toMatch(new RegExp(`client sent.*${marker}`));
    },
  );
});

test.each([false, true])(
  "an exception on an idle connection (TLS: %s) is one fault, and closes it",
  async (secure) => {
    const client = await connectTo(secure ? front.securePort : front.plainPort, secure);
    client.send(POST + BODY);
    await client.until((peer) => peer.received.endsWith("ok"));
    const before = front.serving.faults.count;
    const { sweep } = Http1Connection.prototype;
    // A connection whose closing threw above is swept as well, for as long as the front end runs.
    jest.spyOn(Http1Connection.prototype, "sweep").mockImplementation(function (this: Http1Connection, now) {
      const { port } = (this as unknown as { client: { port: number } }).client;
      if (port === client.socket.localPort) throw new Error("injected into a sweep");
      sweep.call(this, now);
    });
    await client.until((peer) => peer.closed || peer.ended);
    client.socket.destroy();
    await eventually(() => front.serving.faults.count > before, "for the fault");
    expect(front.serving.faults.count).toBe(before + 1);
    expect(uncaught).toEqual([]);
  },
);

test("an exception in a stream of HTTP/2 ends its request to the upstream", async () => {
  for (const peer of upstream.connections.splice(0)) peer.socket.destroy();
  const session = connectHttp2(`https://127.0.0.1:${front.securePort}`, { rejectUnauthorized: false });
  const stream = session.request({ ":path": "/x" });
  await eventually(
    () => upstream.connections[0]?.received.startsWith("GET /x ") === true,
    "for the upstream to have it",
  );
  jest.spyOn(Http2Exchange.prototype, "sweep").mockImplementationOnce(() => {
    throw new Error("injected into a sweep");
  });
  const [headers] = (await nextEvent(stream, "response")) as [Record<string, unknown>];
  expect(headers[":status"]).toBe(500);
  await eventually(
    () => upstream.connections[0]!.closed || upstream.connections[0]!.ended,
    "for the connection to the upstream to close",
  );
  session.destroy();
});
