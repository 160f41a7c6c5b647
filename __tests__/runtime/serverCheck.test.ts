import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as tls from "node:tls";
import { issue } from "../../testkit/certificates.js";
import { stall } from "../../testkit/waiting.js";
import { parseConfig, serverConfigsOf, type UpstreamInput } from "../../src/model/index.js";
import { ServerCheck } from "../../src/runtime/supervisor/served/serverChecks.js";

/** What a check of a server makes of its response, over each kind of connection. */

let server: Server | undefined;
const sockets = new Set<Socket>();

afterEach(() => {
  for (const socket of sockets) socket.destroy();
  server?.close();
});

type Talk = (socket: Socket, received: string) => void;

async function listen(talk: Talk, at?: string, secured?: tls.TlsOptions): Promise<string> {
  const accept = (socket: Socket): void => {
    let received = "";
    sockets.add(socket.on("error", () => undefined));
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
      if (received.endsWith("\r\n\r\n")) talk(socket, received);
    });
  };
  server = secured === undefined ? createServer(accept) : tls.createServer(secured, accept);
  server.listen(at ?? { port: 0, host: "127.0.0.1" });
  await once(server, "listening");
  const port = at === undefined ? (server.address() as { port: number }).port : 0;
  return at === undefined ? `${secured === undefined ? "http" : "https"}://127.0.0.1:${port}` : `unix:${at}`;
}

/** A busy machine takes its time; nobody waits for all of it but who asks a server that says nothing. */
const MANY_MS = 20_000;

async function check(
  url: string,
  health: UpstreamInput["health"] = {},
  roots?: string,
  timeoutMs: number = MANY_MS,
) {
  const parsed = parseConfig({
    version: 1,
    listeners: [{ name: "http", address: "127.0.0.1", port: 80, protocol: "http" }],
    upstreams: [{ name: "web", servers: [{ url }, { url: "http://127.0.0.1:2" }], health }],
    virtualServers: [{ name: "a", serverNames: ["_"], default: true, listeners: ["http"], routes: [] }],
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  const upstream = parsed.value.upstreams[0]!;
  const one = new ServerCheck(serverConfigsOf(upstream)[0]!, upstream.health!, roots ? { roots } : undefined);
  return one.run(timeoutMs, new AbortController().signal);
}

const says =
  (text: string): Talk =>
  (socket) =>
    void socket.write(text);

test.each<[string, Talk, UpstreamInput["health"], string | undefined]>([
  ["the status", says("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"), {}, undefined],
  ["a status without an end", says("HTTP/1.1 500 No\r\n\r\n"), {}, "status 500"],
  ["another one that is wanted", says("HTTP/1.1 204 No\r\n\r\n"), { expect: [200, 204] }, undefined],
  ["progress first", says("HTTP/1.1 103 A\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"), {}, undefined],
  ["progress alone", says("HTTP/1.1 103 A\r\n\r\n".repeat(20)), {}, "status 103"],
  ["no HTTP", says("SSH-2.0-OpenSSH_9.2\r\n\r\n"), {}, "an invalid response: malformed status line"],
  [
    "a head without end",
    says("x".repeat(300_000)),
    {},
    expect.stringContaining("an invalid response") as never,
  ],
  ["an end", (socket) => void socket.end(), {}, "it closed the connection without a response"],
  ["a reset", (socket) => void socket.resetAndDestroy(), {}, "ECONNRESET"],
  ["nothing, and nobody asked", () => undefined, { tcp: true }, undefined],
])("%s", async (_, talk, health, why) => {
  expect(await check(await listen(talk), health)).toEqual(why);
});

test("nothing, for as long as it may take", async () => {
  expect(await check(await listen(() => undefined), {}, undefined, 500)).toBe("no response within 500 ms");
});

test("a response that came in time, and is read after a stall", async () => {
  const url = await listen((socket) => {
    socket.write("HTTP/1.1 200 OK\r\n\r\n");
    stall(1_000);
  });
  expect(await check(url, {}, undefined, 500)).toBeUndefined();
});

test("it asks for the path at the port, and finds nobody", async () => {
  const asked: string[] = [];
  const url = await listen((socket, text) => {
    asked.push(text);
    socket.end("HTTP/1.1 200 OK\r\n\r\n");
  });
  const port = Number(url.split(":")[2]);
  expect(await check("http://127.0.0.1:1", { path: "/api2/ping/?a", port })).toBeUndefined();
  expect(asked).toEqual([
    expect.stringMatching(new RegExp(`^GET /api2/ping/\\?a HTTP/1\\.1\r\nHost: 127\\.0\\.0\\.1:${port}\r\n`)),
  ]);
  expect(await check("http://127.0.0.1:1", { tcp: true })).toBe("ECONNREFUSED");
});

test("a Unix socket", async () => {
  const folder = mkdtempSync(join(tmpdir(), "portico-check-"));
  expect(await check(await listen(says("HTTP/1.1 200 OK\r\n\r\n"), join(folder, "s")))).toBeUndefined();
  rmSync(folder, { recursive: true });
});

test("TLS, with the trust that requests have", async () => {
  const { key, cert } = await issue({ type: "ec", names: ["127.0.0.1"] });
  const url = await listen(says("HTTP/1.1 200 OK\r\n\r\n"), undefined, { key, cert });
  expect(await check(url, {}, cert)).toBeUndefined();
  expect(await check(url, { tcp: true }, cert)).toBeUndefined();
  for (const health of [{}, { tcp: true }])
    expect(await check(url, health)).toMatch(
      /^TLS to upstream failed .*its certificate is from an unknown authority/,
    );
});

test.each<[string, Talk]>([
  ["ends", (socket) => void socket.end()],
  ["is cut", (socket) => void socket.destroy()],
])("a connection over TLS that %s", async (_, end) => {
  const { key, cert } = await issue({ type: "ec", names: ["127.0.0.1"] });
  const url = await listen(end, undefined, { key, cert });
  expect(await check(url, {}, cert)).toBe("it closed the connection without a response");
});
