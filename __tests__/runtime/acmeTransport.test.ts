import { getEventListeners, once } from "node:events";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { createServer as createTlsServer, type TLSSocket } from "node:tls";
import v8 from "node:v8";
import vm from "node:vm";
import { issue } from "../../testkit/certificates.js";
import type { AcmeError } from "../../src/runtime/acme/acmeError.js";
import { sendWithoutEnd, type TlsRecords, tlsRecordServer } from "../../testkit/tlsRecords.js";
import { eventually } from "../../testkit/waiting.js";
import { Transport } from "../../src/runtime/acme/transport.js";

v8.setFlagsFromString("--expose-gc");
const collect = vm.runInNewContext("gc") as () => void;

/** Requests to an authority, and what they leave behind. */

let server: Server;
let roots: string;
let connections = 0;
const url = (): string => `https://127.0.0.1:${(server.address() as AddressInfo).port}/x`;

beforeAll(async () => {
  const { key, cert } = await issue({ type: "ec", names: ["127.0.0.1"] });
  roots = cert;
  server = createServer({ key, cert }, (request, response) => {
    if (request.method === "POST") request.socket.destroy();
    else response.end(request.method);
  });
  server.on("secureConnection", () => void connections++);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

test("share a connection, and what stops them remembers none that is over", async () => {
  const stopping = new AbortController();
  const transport = new Transport({ roots, signal: stopping.signal });
  for (let i = 0; i < 3; i++)
    expect(await transport.send("GET", url())).toMatchObject({ status: 200, body: "GET" });
  expect(connections).toBe(1);
  await expect(transport.send("POST", url(), "{}")).rejects.toMatchObject({ code: "unreachable" });
  await eventually(() => getEventListeners(stopping.signal, "abort").length === 0);
  stopping.abort();
  await expect(transport.send("GET", url())).rejects.toBe(stopping.signal.reason);
  expect(connections).toBe(1);
});

test("trust only the roots, whatever the environment says", async () => {
  const before = process.env.NODE_TLS_REJECT_UNAUTHORIZED;
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
  try {
    const transport = new Transport({ signal: new AbortController().signal });
    await expect(transport.send("GET", url())).rejects.toMatchObject({ code: "untrusted" });
  } finally {
    if (before === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    else process.env.NODE_TLS_REJECT_UNAUTHORIZED = before;
  }
});

describe("a server that sends what it likes:", () => {
  /** What becomes of requests that get such a response. */
  async function asked(
    respond: (socket: TLSSocket, number: number) => void,
    times = 1,
    makesNothing = true,
  ): Promise<unknown[]> {
    const { key, cert } = await issue({ type: "ec", names: ["127.0.0.1"] });
    let requests = 0;
    const sockets = new Set<TLSSocket>();
    const raw = createTlsServer({ key, cert }, (socket) => {
      sockets.add(socket);
      socket.on("error", () => undefined).on("data", () => respond(socket, ++requests));
    });
    await once(raw.listen(0, "127.0.0.1"), "listening");
    const transport = new Transport({ roots: cert, signal: new AbortController().signal });
    const at = `https://127.0.0.1:${(raw.address() as AddressInfo).port}/x`;
    const outcomes: unknown[] = [];
    for (let i = 0; i < times; i++)
      outcomes.push(
        await transport.send("POST", at, "{}", makesNothing).then(
          ({ status, body }) => `${status} ${body.length}`,
          (error: AcmeError) => `${error.code} ${error.detail.replace(/^[\d.:]+: /, "")}`,
        ),
      );
    raw.close();
    for (const socket of sockets) socket.destroy();
    return outcomes;
  }
  const OK = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
  const CHUNKED = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

  test.each([
    [
      "another protocol",
      "HTTP/1.1 101 x\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
      /^unreachable it closed/,
    ],
    ["a word in advance, and no more", "HTTP/1.1 103 x\r\n\r\n", /^unreachable the connection was closed/],
    ["no HTTP", "\0\0\0\0", /^unreachable Parse Error/],
    ["a head without end", `HTTP/1.1 200 OK\r\nx: ${"x".repeat(70_000)}`, /^unreachable Parse Error/],
    ["half a body", `${CHUNKED}5\r\nx`, /^unreachable/],
    [
      "two lengths",
      OK.replace("\r\n\r\n", "\r\nTransfer-Encoding: chunked\r\n\r\n"),
      /^unreachable Parse Error/,
    ],
    ["a body until the end", "HTTP/1.1 200 OK\r\n\r\nabc", /^200 3$/],
    ["two responses", OK + OK, /^200 0$/],
    ["what looks compressed", OK.replace("\r\n", "\r\nContent-Encoding: gzip\r\n"), /^200 0$/],
    ["as much as may be", `${CHUNKED}100000\r\n${"x".repeat(1_048_576)}\r\n0\r\n\r\n`, /^200 1048576$/],
    [
      "more",
      `${CHUNKED}100001\r\n${"x".repeat(1_048_577)}\r\n0\r\n\r\n`,
      /^badResponse .* longer than a megabyte$/,
    ],
  ])("%s", async (_, text, outcome) => {
    const [found] = await asked((socket) => void socket.end(text));
    expect(found).toMatch(outcome);
  });

  test("words in advance without end", async () => {
    let sent = 0;
    const [found] = await asked((socket) => {
      const more = (): void => {
        while (!socket.destroyed && socket.write("HTTP/1.1 103 x\r\n\r\n".repeat(100))) sent++;
        if (!socket.destroyed) socket.once("drain", more);
      };
      more();
    });
    expect(found).toMatch(/^unreachable it sent too many interim responses$/);
    expect(sent).toBeLessThan(10_000);
  });

  test.each([
    ["KeyUpdates", (records: TlsRecords) => records.keyUpdates(100, 128)],
    ["session tickets", (records: TlsRecords) => records.tickets(100)],
  ])("a flood of %s", async (_, many) => {
    const identity = await issue({ type: "ec", names: ["127.0.0.1"] });
    const raw = tlsRecordServer(identity, (tcp, records) => sendWithoutEnd(tcp, () => many(records)));
    await once(raw.listen(0, "127.0.0.1"), "listening");
    const transport = new Transport({ roots: identity.cert, signal: new AbortController().signal });
    const at = `https://127.0.0.1:${(raw.address() as AddressInfo).port}/x`;
    await expect(transport.send("GET", at)).rejects.toMatchObject({
      code: "unreachable",
      detail: expect.stringMatching(/: it sends too many TLS messages without data$/),
    });
    raw.close();
  });

  test("of a body in pieces of one byte no piece is kept", async () => {
    const kept = (): number => {
      collect();
      return process.memoryUsage().heapUsed;
    };
    const before = kept();
    let most = 0;
    const look = setInterval(() => (most = Math.max(most, kept())), 50);
    const pieces = 100_000;
    expect(
      await asked((socket) => void socket.end(`${CHUNKED}${"1\r\nx\r\n".repeat(pieces)}0\r\n\r\n`)),
    ).toEqual([`200 ${pieces}`]);
    clearInterval(look);
    expect((most - before) / pieces).toBeLessThan(20);
  });

  test("a connection that it closes as it is used again is replaced, one that is new is not", async () => {
    const respond = (socket: TLSSocket, number: number): void =>
      void (number === 2 ? socket.destroy() : socket.write(OK));
    expect(await asked(respond, 3)).toEqual(["200 0", "200 0", "200 0"]);
    const closed = "unreachable the connection was closed before the response";
    expect(await asked((socket) => void socket.destroy(), 2)).toEqual([closed, closed]);
    // What makes something must not be made twice.
    expect(await asked(respond, 3, false)).toEqual(["200 0", closed, "200 0"]);
  });
});
