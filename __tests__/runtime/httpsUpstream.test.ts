import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type * as net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { TlsOptions, TLSSocket } from "node:tls";
import type { UpstreamInput } from "../../src/model/index.js";
import { pass } from "../../testkit/clock.js";
import { type CertificateOptions, issue, type Issued } from "../../testkit/certificates.js";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { type Accepted, connectTo, exchange, RawUpstream, responding } from "../../testkit/peers.js";
import { type Message, parseMessage } from "../../testkit/messages.js";
import { ask, connectHttp2 } from "../../testkit/http2Session.js";
import { openFolder, Portico } from "../../testkit/portico.js";
import { freePort } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";
import { randomText } from "../../testkit/random.js";

/** Upstreams that speak HTTP over TLS. */

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const GET = "GET /web HTTP/1.1\r\nHost: a\r\n\r\n";
const ROUTES = [{ name: "web", path: "/web", action: { type: "proxy", upstream: "web" } }] as const;

let folder: string;
let authority: Issued;
let other: Issued;
let own: Issued;
let upstream: RawUpstream | undefined;
let front: EveryProtocol | undefined;

const certify = (names: readonly string[], more: CertificateOptions = {}): Promise<Issued> =>
  issue({ type: "ec", names, issuer: authority, ...more });
/** A file for what an upstream's `tls` names. */
function file(name: string, text: string): string {
  writeFileSync(join(folder, name), text, { mode: 0o600 });
  return join(folder, name);
}
const bodyOf = (text: string): string => text.slice(text.indexOf("\r\n\r\n") + 4);
const trusting = (): { caFile: string } => ({ caFile: file("ca.pem", authority.cert) });

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "portico-https-"));
  authority = await issue({ type: "ec", name: "Authority", ca: true });
  other = await issue({ type: "ec", name: "Other authority", ca: true });
  own = await certify(["127.0.0.1"]);
});
afterEach(async () => {
  const faults = front?.serving.faults.count ?? 0;
  await front?.close();
  await upstream?.close();
  front = upstream = undefined;
  expect(faults).toBe(0);
});
afterAll(() => rmSync(folder, { recursive: true }));

type Script = (peer: Accepted, index: number) => void;

async function start(
  script: Script = responding(OK),
  { secure = {}, ...more }: Partial<UpstreamInput> & { readonly secure?: TlsOptions } = {},
): Promise<number> {
  upstream = await new RawUpstream(script, { key: own.key, cert: own.cert, ...secure }).listen();
  return serve({ url: `https://127.0.0.1:${upstream.port}`, tls: trusting(), ...more });
}

async function serve(more: Omit<UpstreamInput, "name">): Promise<number> {
  front = await startEveryProtocol({ routes: ROUTES, upstreams: [{ name: "web", ...more }] });
  return front.plainPort;
}

const socketOf = (index: number): TLSSocket => upstream!.connections[index]!.socket as TLSSocket;

type Case = [
  what: string,
  given: () => Promise<{ tls?: UpstreamInput["tls"] | "not named"; secure?: TlsOptions }>,
  log: string | undefined,
];

test.each<Case>([
  ["is trusted by its own roots", async () => ({}), undefined],
  [
    "has another name, which is asked for",
    async () => ({
      tls: { ...trusting(), serverName: "app.example" },
      secure: await certify(["app.example"]),
    }),
    undefined,
  ],
  [
    "has another name",
    async () => ({ secure: await certify(["app.example"]) }),
    '(ERR_TLS_CERT_ALTNAME_INVALID): its certificate is not for "127.0.0.1"; set `tls.serverName` to a name of the certificate',
  ],
  [
    "has expired",
    async () => ({ secure: await certify(["127.0.0.1"], { from: -9, to: -1 }) }),
    "(CERT_HAS_EXPIRED): its certificate has expired; renew it at the upstream",
  ],
  [
    "is not valid yet",
    async () => ({ secure: await certify(["127.0.0.1"], { from: 1, to: 9 }) }),
    "(CERT_NOT_YET_VALID): its certificate is not valid yet; set the clocks of both hosts",
  ],
  [
    "is from an authority that nobody knows, where nothing is said of TLS",
    async () => ({ tls: "not named" }),
    "its certificate is from an unknown authority; set `tls.caFile` to the authority's root certificate",
  ],
  [
    "is from an authority that nobody knows",
    async () => ({ tls: {} }),
    "its certificate is from an unknown authority; set `tls.caFile` to the authority's root certificate",
  ],
  [
    "is from another authority than the one named",
    async () => ({ secure: await certify(["127.0.0.1"], { issuer: other }) }),
    "its certificate is from an unknown authority",
  ],
  [
    "need not prove anything",
    async () => ({ tls: { verify: false }, secure: await certify(["x"], { issuer: other }) }),
    undefined,
  ],
  [
    "demands a certificate, and gets none",
    async () => ({ secure: { requestCert: true, ca: other.cert } }),
    "it refuses the handshake, possibly because it requires a client certificate",
  ],
  [
    "demands a certificate, in TLS 1.2",
    async () => ({ secure: { requestCert: true, ca: other.cert, maxVersion: "TLSv1.2" } }),
    "TLS to upstream failed (",
  ],
  [
    "demands a certificate, and gets it",
    async () => {
      const { key, cert } = await issue({ type: "ec", name: "proxy", issuer: other });
      const files = { certificateFile: file("client.pem", cert), privateKeyFile: file("client.key", key) };
      return { tls: { ...trusting(), ...files }, secure: { requestCert: true, ca: other.cert } };
    },
    undefined,
  ],
  ["speaks TLS 1.2 only", async () => ({ secure: { maxVersion: "TLSv1.2" } }), undefined],
  [
    "speaks nothing newer than TLS 1.1",
    async () => ({ secure: { minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "ALL@SECLEVEL=0" } }),
    "it speaks neither TLS 1.2 nor TLS 1.3",
  ],
])("an upstream that %s", async (_what, given, log) => {
  const { tls: named = trusting(), secure = {} }: Awaited<ReturnType<typeof given>> = await given();
  const tls = named === "not named" ? undefined : named;
  const port = await start(responding(OK), { tls, secure });
  const { status, body } = await exchange(port, GET);
  expect(status).toBe(log === undefined ? 200 : 502);
  if (log === undefined) {
    expect(socketOf(0).servername).toBe(tls?.serverName ?? false);
    expect(socketOf(0).authorized).toBe(tls?.certificateFile !== undefined);
    return expect(await front!.errorLog()).toBe("");
  }
  expect(upstream!.received).toBe("");
  expect(body).not.toMatch(/TLS|certificate/i);
  const text = await front!.errorLog();
  expect(text).toContain(log);
  expect(text.match(/TLS to upstream failed/g)).toHaveLength(1);
});

test("an upstream without TLS on that port", async () => {
  upstream = await new RawUpstream((peer) => peer.send("HTTP/1.1 400 Bad Request\r\n\r\n")).listen();
  const port = await serve({ url: `https://127.0.0.1:${upstream.port}`, tls: trusting() });
  expect((await exchange(port, GET)).status).toBe(502);
  expect(await front!.errorLog()).toContain("it does not speak TLS on this port; use another port");
});

test.each([
  [
    "never responds to the first message",
    () => undefined,
    504,
    "upstream timed out while TLS handshaking with upstream",
  ],
  [
    "ends during the handshake",
    (peer: Accepted) => peer.socket.end(),
    502,
    "closed connection while TLS handshaking with",
  ],
  [
    "resets during the handshake",
    (peer: Accepted) => peer.socket.resetAndDestroy(),
    502,
    "(104: ECONNRESET) while TLS handshaking with upstream",
  ],
])("an upstream that %s", async (_what, script, status, log) => {
  upstream = await new RawUpstream((peer) => peer.socket.once("data", () => script(peer))).listen();
  const port = await serve({ url: `https://127.0.0.1:${upstream.port}`, tls: trusting() });
  const response = exchange(port, GET);
  await (await upstream.connection()).until(({ received }) => received !== "");
  if (status === 504) await pass(6_000);
  expect((await response).status).toBe(status);
  expect(await front!.errorLog()).toContain(log);
});

test("a connection is used again, and the next one resumes the session", async () => {
  const resumed: boolean[] = [];
  const port = await start((peer) => {
    resumed.push((peer.socket as TLSSocket).isSessionReused());
    responding(OK)(peer);
  });
  const client = await connectTo(port);
  for (let i = 1; i <= 3; i++) {
    client.send(GET);
    await client.until(({ received }) => received.split("ok").length > i);
  }
  expect(upstream!.connections).toHaveLength(1);
  upstream!.connections[0]!.socket.destroy();
  await eventually(() => front!.serving.holdings().upstreamConnections === 0);
  client.send(GET);
  await client.until(({ received }) => received.split("ok").length > 4);
  expect(resumed).toEqual([false, true]);
  client.socket.destroy();
});

const UNTIL_CLOSE = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
const tcpOf = (peer: Accepted): net.Socket => (peer.socket as unknown as { _parent: net.Socket })._parent;

test.each<[what: string, end: (peer: Accepted) => void, whole: boolean]>([
  ["with TLS", (peer) => peer.socket.end(), true],
  ["without an end of TLS", (peer) => tcpOf(peer).end(), false],
  ["by a reset", (peer) => tcpOf(peer).resetAndDestroy(), false],
])("a response without a length that ends %s", async (_what, end, whole) => {
  const body = randomText(300_000);
  const port = await start((peer) =>
    peer.socket.once("data", () =>
      peer.socket.write(UNTIL_CLOSE + body, () => setTimeout(() => end(peer), 50)),
    ),
  );
  const client = await connectTo(port);
  client.send(GET);
  await client.until(({ received }) => received.length > body.length);
  if (whole) await client.receives("\r\n0\r\n\r\n");
  else await client.until(({ closed, ended }) => closed || ended);
  expect(client.received.endsWith("\r\n0\r\n\r\n")).toBe(whole);
  const response = { type: "response", method: "GET", ended: true } as const;
  expect(parseMessage(Buffer.from(client.received, "latin1"), 0, response)!.body.toString()).toBe(body);
  expect(await front!.errorLog()).toContain(whole ? "" : "upstream");
  client.socket.destroy();
});

test("a large upload comes back whole to a client that reads late", async () => {
  const body = randomBytes(24 << 20);
  const head = `Content-Length: ${body.length}\r\n\r\n`;
  const port = await start(async (peer) => {
    await peer.until(
      ({ received }) => received.length > body.length && bodyOf(received).length === body.length,
    );
    peer.send(`HTTP/1.1 200 OK\r\n${head}${bodyOf(peer.received)}`);
  });
  const client = await connectTo(port);
  client.send(`PUT /web HTTP/1.1\r\nHost: a\r\n${head}`).send(body);
  client.socket.pause();
  await sleep(1_000);
  client.socket.resume();
  await client.until(
    ({ received }) => received.length > body.length && bodyOf(received).length === body.length,
  );
  expect(Buffer.from(bodyOf(client.received), "latin1").equals(body)).toBe(true);
  client.socket.destroy();
});

const hashOf = (body: Buffer): string => `${body.length} ${createHash("sha256").update(body).digest("hex")}`;

/** The response to GET over HTTP/1.1 in TLS. */
async function overTls(port: number): Promise<Message> {
  const client = await connectTo(port, true);
  client.send(GET.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"));
  await client.until(({ ended, closed }) => ended || closed);
  client.socket.destroy();
  const kind = { type: "response", method: "GET", ended: true } as const;
  return parseMessage(Buffer.from(client.received, "latin1"), 0, kind)!;
}

/** With the framing of the body, and the end of the connection if that ends the response. */
const FRAMINGS: readonly [string, (body: Buffer) => readonly [head: string, body: Buffer, ends: boolean]][] =
  [
    ["of a known length", (body) => [`Content-Length: ${body.length}\r\n`, body, false]],
    ["in chunks", (body) => ["Transfer-Encoding: chunked\r\n", chunksOf(body), false]],
    ["to the end of the connection", (body) => ["Connection: close\r\n", body, true]],
  ];

function chunksOf(body: Buffer): Buffer {
  const chunks = [];
  for (let at = 0; at < body.length; at += 40_000) {
    const chunk = body.subarray(at, at + 40_000);
    chunks.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from("\r\n"));
  }
  return Buffer.concat([...chunks, Buffer.from("0\r\n\r\n")]);
}

// Each record of TLS that was read with others arrives, although the client's socket has not taken the ones before.
test.each(
  FRAMINGS.flatMap(([framing, framed]) =>
    [50_000, 100_000, 2_000_000].map((n) => [framing, n, framed] as const),
  ),
)(
  "over TLS on both sides every byte of a response is right: %s, %d bytes",
  async (_framing, bytes, framed) => {
    const body = randomBytes(bytes);
    const [head, framedBody, ends] = framed(body);
    await start((peer) =>
      peer.socket.on("data", () => {
        peer.socket.write(`HTTP/1.1 200 OK\r\n${head}\r\n`);
        peer.socket.write(framedBody);
        if (ends) peer.socket.end();
      }),
    );
    const session = connectHttp2(front!.securePort);
    for (let i = 0; i < 5; i++) {
      const [overHttp2, overHttp1] = await Promise.all([
        ask(session, { ":path": "/web" }),
        overTls(front!.securePort),
      ]);
      expect([overHttp2.status, overHttp2.code, overHttp1.complete]).toEqual([200, 0, true]);
      const hashes = [Buffer.from(overHttp2.body, "latin1"), overHttp1.body].map(hashOf);
      expect(hashes).toEqual([hashOf(body), hashOf(body)]);
    }
    session.destroy();
    expect(await front!.errorLog()).toBe("");
  },
);

test("a WebSocket goes both ways", async () => {
  const port = await start((peer) =>
    peer.socket.on("data", () =>
      peer.send(
        peer.received.endsWith("ping")
          ? "pong"
          : "HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
      ),
    ),
  );
  const client = await connectTo(port);
  const key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n";
  client.send(`GET /web HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${key}\r\n`);
  await client.receives("\r\n\r\n");
  client.send("ping");
  await client.receives("pong");
  client.socket.end();
  await upstream!.connections[0]!.until(({ ended, closed }) => ended || closed);
  client.socket.destroy();
});

test("a reload takes renewed roots, and refuses damaged ones", async () => {
  upstream = await new RawUpstream(responding(OK), { key: own.key, cert: own.cert }).listen();
  const port = await freePort();
  const credentials = openFolder();
  // As systemd hands it over: the file itself need not be readable.
  const roots = (text: string): void => writeFileSync(join(credentials, "roots.pem"), text);
  roots(other.cert);
  const portico = await Portico.start(
    {
      version: 1,
      logs: { access: "off", error: "off" },
      listeners: [{ name: "http", address: "127.0.0.1", port, protocol: "http" }],
      upstreams: [
        { name: "web", url: `https://127.0.0.1:${upstream.port}`, tls: { caFile: "/root/tls/roots.pem" } },
      ],
      virtualServers: [
        { name: "site", serverNames: ["_"], listeners: ["http"], default: true, routes: ROUTES },
      ],
    },
    { env: { CREDENTIALS_DIRECTORY: credentials } },
  );
  const status = async (): Promise<number> => (await exchange(port, GET)).status;
  expect(await status()).toBe(502);
  roots(authority.cert);
  portico.signal("SIGHUP");
  await eventually(async () => (await status()) === 200, "for the new roots");
  roots("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
  portico.signal("SIGHUP");
  const refused = "upstreams[0].tls.caFile";
  await eventually(() => portico.errors.includes(refused), "for the refusal", { seen: () => portico.errors });
  expect(await status()).toBe(200);
  portico.signal("SIGTERM");
  await portico.gone;
});
