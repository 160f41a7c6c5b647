import dns from "node:dns";
import { readFileSync } from "node:fs";
import type * as net from "node:net";
import { join } from "node:path";
import { ERROR_TOKENS, type ErrorToken } from "../../src/model/net/errorTokens.js";
import type { RouteInput, UpstreamInput } from "../../src/model/index.js";
import { NO_PAUSES } from "../../src/runtime/dispatch/pauses.js";
import { RespondAction } from "../../src/runtime/actions/fixedResponses.js";
import { socketFailed } from "../../src/runtime/upstream/failures.js";
import type { TlsToUpstream } from "../../src/runtime/upstream/upstreamTls.js";
import { issue } from "../../testkit/certificates.js";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { ask, connectHttp2 } from "../../testkit/http2Server.js";
import { type Accepted, connectTo, exchange, RawUpstream, responding } from "../../testkit/peers.js";
import { freePort } from "../../testkit/ports.js";
import { randomText, seeded } from "../../testkit/random.js";
import { eventually } from "../../testkit/waiting.js";
import { logEntries } from "../../testkit/logEntries.js";

/** Each way to fail, made to happen on the wire, and what the JSON log calls it. */

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const SHORT_MS = 400;

interface Cause {
  /** What the upstream does with a connection; without it, there is an upstream that responds. */
  readonly does?: (peer: Accepted) => void;
  readonly upstream?: Partial<UpstreamInput> & { readonly url?: string };
  readonly route?: Partial<RouteInput>;
  /** Makes it fail, and undoes that after the request. */
  readonly around?: (front: EveryProtocol, port: number) => () => unknown;
  readonly body?: string;
  readonly only?: "http1" | "http2";
  /** The request, if it is not an ordinary one. */
  readonly asks?: (front: EveryProtocol, target: string) => Promise<unknown>;
  /** Path, if no route is to match it. */
  readonly path?: string;
  readonly status: number;
}

const sends =
  (bytes: string, then: (socket: net.Socket) => void = () => undefined) =>
  (peer: Accepted): void =>
    void peer.socket.once("data", () => {
      peer.send(bytes);
      then(peer.socket);
    });
const ends = (socket: net.Socket): unknown => socket.end();
const nothing = (): void => undefined;

async function leaves(front: EveryProtocol, target: string): Promise<void> {
  const client = await connectTo(front.plainPort);
  client.send(`GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`);
  setTimeout(() => client.socket.destroy(), 50);
  await client.until(({ closed }) => closed);
}

async function resetsStream(front: EveryProtocol, target: string): Promise<void> {
  const session = connectHttp2(front.securePort);
  const stream = session.request({ ":path": target }).on("error", nothing);
  setTimeout(() => stream.close(8), 100);
  await new Promise((resolve) => stream.once("close", resolve));
  session.destroy();
}

async function upgrades(front: EveryProtocol, target: string): Promise<void> {
  const session = connectHttp2(front.securePort);
  await new Promise((resolve) => session.once("remoteSettings", resolve));
  await ask(session, { ":method": "CONNECT", ":protocol": "websocket", ":path": target });
  session.destroy();
}

let refusing = 0;
/** The connection to the upstream that may have one. */
let taken: Accepted | undefined;
let certified: { readonly key: string; readonly cert: string };

/** Of each token one cause, but for those that a test cannot have on the wire. */
const CAUSES: Readonly<Record<Exclude<ErrorToken, "proxy_configuration_error">, Cause>> = {
  dns_timeout: {
    upstream: { url: "http://slow.test:80", connectTimeoutMs: SHORT_MS },
    status: 504,
  },
  dns_error: { upstream: { url: "http://nobody.test:80" }, status: 502 },
  destination_not_found: { path: "/nowhere", status: 404 },
  destination_unavailable: {
    upstream: {
      url: undefined as never,
      servers: [{ url: "http://127.0.0.1:1" }, { url: "http://127.0.0.1:2" }],
    },
    around: ({ serving }) => {
      const drained = { drained: true, down: false };
      serving.orderServers({
        destination_unavailable: { "http://127.0.0.1:1": drained, "http://127.0.0.1:2": drained },
      });
      return () => serving.orderServers({});
    },
    status: 503,
  },
  destination_ip_unroutable: { upstream: { url: "http://224.0.0.1:80" }, status: 502 },
  connection_refused: { upstream: { holdMs: 0, url: "REFUSING" }, status: 502 },
  connection_terminated: { does: sends("", ends), status: 502 },
  connection_timeout: { does: nothing, upstream: { url: "TLS", connectTimeoutMs: SHORT_MS }, status: 504 },
  connection_read_timeout: {
    does: sends("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"),
    upstream: { readTimeoutMs: SHORT_MS },
    status: 200,
  },
  connection_write_timeout: {
    does: ({ socket }) => void socket.pause(),
    upstream: { sendTimeoutMs: SHORT_MS },
    body: randomText(16_000_000),
    only: "http1",
    status: 504,
  },
  connection_limit_reached: {
    does: (peer) => (taken = peer),
    upstream: { connectionsMax: 1, queuedRequestsMax: 0 },
    asks: async (front, target) => {
      taken = undefined;
      const first = await connectTo(front.plainPort);
      first.send(`GET ${target.replace("?", "/first?")} HTTP/1.1\r\nHost: a\r\n\r\n`);
      await eventually(() => taken !== undefined);
      await exchange(front.plainPort, `GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`);
      first.socket.destroy();
      await taken!.until(({ ended, closed }) => ended || closed);
    },
    only: "http1",
    status: 503,
  },
  tls_protocol_error: { does: ({ socket }) => void socket.end(OK), upstream: { url: "TLS" }, status: 502 },
  tls_certificate_error: { upstream: { url: "CERTIFIED" }, status: 502 },
  tls_alert_received: { upstream: { url: "DEMANDING", tls: { verify: false } }, status: 502 },
  http_request_error: { route: { requestBodyBytesMax: 4 }, body: "12345", status: 413 },
  http_request_denied: {
    around: ({ serving: { dispatcher } }) => {
      dispatcher.pauses.set({ maintenance: [{ closesTunnels: false }] });
      return () => dispatcher.pauses.set(NO_PAUSES);
    },
    status: 503,
  },
  http_response_incomplete: {
    does: sends("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", ends),
    status: 200,
  },
  http_response_header_section_size: {
    does: sends(`HTTP/1.1 200 OK\r\nX: ${"x".repeat(2_000)}\r\n\r\n`),
    upstream: { headBytesMax: 1_024 },
    status: 502,
  },
  http_response_transfer_coding: {
    does: sends("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n"),
    status: 200,
  },
  http_response_timeout: { does: nothing, upstream: { readTimeoutMs: SHORT_MS }, status: 504 },
  http_upgrade_failed: { does: sends(OK), asks: upgrades, only: "http2", status: 502 },
  http_protocol_error: { does: sends("hello\r\n\r\n"), status: 502 },
  proxy_internal_error: {
    route: { action: { type: "respond", status: 200, body: "ok" } },
    around: () => {
      const spy = jest.spyOn(RespondAction.prototype, "handle").mockImplementation(() => {
        throw new Error("a fault for this test");
      });
      return () => spy.mockRestore();
    },
    status: 500,
  },
  client_gone: { does: nothing, status: 499 },
};

type Caused = keyof typeof CAUSES;
const TOKENS = Object.keys(CAUSES) as Caused[];

let front: EveryProtocol;
const upstreams: RawUpstream[] = [];
let asked = 0;

beforeAll(async () => {
  const lookup = dns.lookup;
  jest.spyOn(dns, "lookup").mockImplementation(((name: string, ...rest: never[]) => {
    // One name server never responds; the others are asked.
    if (name !== "slow.test") (lookup as (...all: unknown[]) => void)(name, ...rest);
  }) as unknown as typeof dns.lookup);
  refusing = await freePort();
  certified = await issue({ type: "ec", names: ["127.0.0.1"] });
  const listed: UpstreamInput[] = [];
  for (const token of TOKENS) listed.push(await upstreamFor(token));
  front = await startEveryProtocol({
    format: "json",
    routes: TOKENS.map((token) => ({
      name: token,
      path: `/${token}`,
      action: { type: "proxy", upstream: token },
      ...CAUSES[token].route,
    })),
    upstreams: listed,
  });
});

async function upstreamFor(token: Caused): Promise<UpstreamInput> {
  const { does = responding(OK), upstream: { url = "", ...more } = {} } = CAUSES[token];
  if (more.servers !== undefined) return { name: token, ...more } as UpstreamInput;
  if (url === "REFUSING") return { name: token, url: `http://127.0.0.1:${refusing}`, ...more };
  if (url.includes("://")) return { name: token, url, ...more };
  const demands = { requestCert: true, rejectUnauthorized: true, maxVersion: "TLSv1.2" } as const;
  const secure = { CERTIFIED: certified, DEMANDING: { ...certified, ...demands } }[url];
  const made = await new RawUpstream(does, secure).listen();
  upstreams.push(made);
  return { name: token, url: `${url === "" ? "http" : "https"}://127.0.0.1:${made.port}`, ...more };
}

afterAll(async () => {
  await front.close();
  await Promise.all(upstreams.map((one) => one.close()));
  jest.restoreAllMocks();
});

async function cause(token: Caused, protocol: "http1" | "http2"): Promise<void> {
  const { path = `/${token}`, status, body = "", asks, around } = CAUSES[token];
  const target = `${path}?${asked++}`;
  const undo = around?.(front, 0);
  if (token === "client_gone") await (protocol === "http1" ? leaves : resetsStream)(front, target);
  else if (asks !== undefined) await asks(front, target);
  else await request(protocol, target, body);
  let found: Record<string, unknown> | undefined = undefined as Record<string, unknown> | undefined;
  await eventually(async () => {
    found = logEntries(await front.accessLog()).find((entry) => entry["target"] === target);
    return found !== undefined;
  }, `for the line of ${target} over ${protocol}`);
  undo?.();
  expect([target, protocol, found!["status"], found!["error"]]).toEqual([target, protocol, status, token]);
}

async function request(protocol: "http1" | "http2", target: string, body: string): Promise<void> {
  if (protocol === "http1") {
    const client = await connectTo(front.plainPort);
    const length = body === "" ? "" : `Content-Length: ${body.length}\r\n`;
    client.send(
      `${body === "" ? "GET" : "POST"} ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${length}\r\n${body}`,
    );
    await client.until(({ ended, closed }) => ended || closed);
    client.socket.destroy();
    return;
  }
  const session = connectHttp2(front.securePort);
  await ask(session, { ":path": target, ":method": body === "" ? "GET" : "POST" }, body).catch(nothing);
  session.destroy();
}

test(
  "each failure has the token of its cause, in any order and over both versions of HTTP",
  seeded(async (random) => {
    const order = (["http1", "http2"] as const).flatMap((protocol) =>
      TOKENS.map((token) => [token, CAUSES[token].only ?? protocol] as const),
    );
    for (let i = order.length - 1; i > 0; i--) {
      const at = random.upTo(i);
      [order[i], order[at]] = [order[at]!, order[i]!];
    }
    for (const [token, protocol] of order) await cause(token, protocol);
  }),
  120_000,
);

test("a request that goes well has none, and says where its time went", async () => {
  const made = await new RawUpstream((peer) =>
    peer.socket.on("data", () => setTimeout(() => peer.send(OK), 60)),
  ).listen();
  const own = await startEveryProtocol({
    format: "json",
    routes: [{ name: "web", path: "/", action: { type: "proxy", upstream: "web" } }],
    upstreams: [{ name: "web", url: `http://127.0.0.1:${made.port}` }],
  });
  try {
    for (let i = 0; i < 2; i++) await exchange(own.plainPort, `GET /${i} HTTP/1.1\r\nHost: a\r\n\r\n`);
    const [first, second] = logEntries(await own.accessLog());
    const url = `http://127.0.0.1:${made.port}`;
    expect(first).toMatchObject({
      error: null,
      upstream_server: url,
      upstream_connect_ms: expect.any(Number),
    });
    expect(second).toMatchObject({ error: null, upstream_server: url, upstream_connect_ms: null });
    for (const line of [first!, second!]) {
      expect(line["upstream_wait_ms"]).toBeGreaterThanOrEqual(50);
      expect(line["time_to_first_byte_ms"]).toBeGreaterThanOrEqual(line["upstream_wait_ms"] as number);
      expect(line["request_time_ms"]).toBeGreaterThanOrEqual(line["time_to_first_byte_ms"] as number);
    }
  } finally {
    await own.close();
    await made.close();
  }
});

const failed = (code: string, syscall: string, tls = false) =>
  socketFailed(
    Object.assign(new Error(code), { code, syscall, errno: -1 }),
    `${syscall}ing to upstream`,
    // Only its name is asked for.
    { opening: true, responded: false, tls: tls ? ({ name: "web.example" } as TlsToUpstream) : undefined },
  );

test.each<[token: ErrorToken, codes: string]>([
  ["connection_refused", "ECONNREFUSED ENOENT"],
  ["connection_terminated", "ECONNRESET EPIPE EINVAL"],
  ["connection_timeout", "ETIMEDOUT"],
  ["destination_ip_unroutable", "EHOSTUNREACH EHOSTDOWN ENETUNREACH"],
  ["proxy_configuration_error", "EACCES EPERM"],
  ["proxy_internal_error", "EMFILE ENFILE EADDRNOTAVAIL ENOBUFS ENOMEM"],
])("a connect is %s after one of %s", (token, codes) => {
  for (const code of codes.split(" ")) {
    const message = `connect() failed (1: ${code}) while connecting to upstream`;
    expect(failed(code, "connect")).toEqual({ status: 502, message, token });
    // With TLS, what is none of the system's is of TLS.
    if (code !== "EINVAL") expect(failed(code, "connect", true).token).toBe(token);
  }
  expect(failed("ENOTFOUND", "getaddrinfo").token).toBe("dns_error");
});

const CERTIFICATE = "tls_certificate_error";
const PROTOCOL = "tls_protocol_error";
const ALERT = "tls_alert_received";
test.each<[codes: string, token: ErrorToken, message: string]>([
  ["CERT_HAS_EXPIRED", CERTIFICATE, "its certificate has expired; renew it at the upstream"],
  ["CERT_NOT_YET_VALID", CERTIFICATE, "its certificate is not valid yet; set the clocks of both hosts"],
  [
    "ERR_TLS_CERT_ALTNAME_INVALID",
    CERTIFICATE,
    'its certificate is not for "web.example"; set `tls.serverName` to a name of the certificate',
  ],
  [
    "SELF_SIGNED_CERT_IN_CHAIN DEPTH_ZERO_SELF_SIGNED_CERT UNABLE_TO_GET_ISSUER_CERT UNABLE_TO_VERIFY_LEAF_SIGNATURE",
    CERTIFICATE,
    "its certificate is from an unknown authority; set `tls.caFile` to the authority's root certificate, and let the " +
      "upstream send the intermediate certificates",
  ],
  ["CERT_REVOKED", CERTIFICATE, ""],
  [
    "ERR_SSL_WRONG_VERSION_NUMBER ERR_SSL_PACKET_LENGTH_TOO_LONG ERR_SSL_HTTP_REQUEST ERR_SSL_DATA_LENGTH_TOO_LONG",
    PROTOCOL,
    "it does not speak TLS on this port; use another port, or an `http` URL",
  ],
  ["ERR_SSL_UNSUPPORTED_PROTOCOL", PROTOCOL, "it speaks neither TLS 1.2 nor TLS 1.3; upgrade the upstream"],
  [
    "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION",
    ALERT,
    "it speaks neither TLS 1.2 nor TLS 1.3; upgrade the upstream",
  ],
  [
    "ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE",
    ALERT,
    "it refuses the handshake, possibly because it requires a client certificate; set `tls.certificateFile` and " +
      "`tls.privateKeyFile`",
  ],
  [
    ["UNKNOWN_CA", "ACCESS_DENIED", "CERTIFICATE_EXPIRED", "BAD_CERTIFICATE", "UNSUPPORTED_CERTIFICATE"]
      .map((alert) => `ERR_SSL_SSLV3_ALERT_${alert}`)
      .join(" "),
    ALERT,
    "it refuses the client certificate; let the upstream trust the authority of `tls.certificateFile`",
  ],
  [
    "ERR_SSL_TLSV1_UNRECOGNIZED_NAME",
    ALERT,
    'it does not know the name "web.example"; set `tls.serverName` to a name that the upstream knows',
  ],
  ["ERR_SSL_NO_CIPHER_MATCH ERR_SSL_RECORD_TOO_SMALL ERR_TLS_HANDSHAKE_TIMEOUT EPROTO", PROTOCOL, ""],
])("TLS that fails by %s is %s: %s", (codes, token, reason) => {
  for (const code of codes.split(" ")) {
    const { message, ...failure } = failed(code, "connect", true);
    expect([code, failure]).toEqual([code, { status: 502, token }]);
    if (code === "CERT_REVOKED")
      expect(message).toBe(`connect() failed (1: ${code}) while connecting to upstream`);
    else expect(message).toBe(`TLS to upstream failed (${code})${reason && `: ${reason}`}`);
  }
});

/** Without the spaces that fill the columns of its table. */
const PAGE = readFileSync(join(__dirname, "../../docs/logs.md"), "utf8").replace(/ {2,}/g, " ");

test("every token says what happened and what to do, in one line each", () => {
  for (const [token, { message, fix }] of Object.entries(ERROR_TOKENS)) {
    expect(token).toMatch(/^[a-z]+(?:_[a-z]+)+$/);
    expect(PAGE).toContain(`| \`${token}\` | ${message} | ${fix} |`);
    for (const text of [message, fix]) expect(text).toMatch(/^[^\n]{10,160}[^.\n]$/);
  }
});
