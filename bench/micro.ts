import {
  ForwardingRules,
  normalisePath,
  parseConfig,
  type ProxyConfig,
  type ProxyConfigInput,
  type RouteConfig,
  type VirtualServerConfig,
  Router,
  serverConfigsOf,
} from "../src/model/index.js";
import type { LoggedExchange } from "../src/runtime/exchange/exchange.js";
import { WorkerCounts } from "../src/runtime/counting/workerCounts.js";
import { isRegistered } from "../src/runtime/dispatch/reasonPhrases.js";
import { ChunkDecoder } from "../src/runtime/codec/http1/chunkDecoder.js";
import type { MessageHead } from "../src/runtime/codec/http1/fields.js";
import { HeadReader } from "../src/runtime/codec/http1/headReader.js";
import { parseRequestHead } from "../src/runtime/codec/http1/requestHead.js";
import { parseResponseHead } from "../src/runtime/codec/http1/responseHead.js";
import { HpackDecoder } from "../src/runtime/codec/http2/hpackDecoder.js";
import { HpackEncoder } from "../src/runtime/codec/http2/hpackEncoder.js";
import { Outbox } from "../src/runtime/server/outbox.js";
import { parseRequestHead as parseHttp2Head } from "../src/runtime/codec/http2/requestFields.js";
import { combinedLine, jsonLine } from "../src/runtime/logs/logFormat.js";
import { median } from "./lib/statistics.js";

/**
 * `npm run bench -- --micro`: what the functions cost that every request goes through, in CPU time, so that other
 * work on the machine disturbs little. `lib/runMicro.ts` bundles this file as Portico itself is bundled.
 */
interface Case {
  readonly name: string;
  /** Does the work once; what it returns is used, so that it cannot be optimised away. */
  readonly run: (i: number) => number;
}

const BATCHES = 25;
const BATCH_MS = 20;

/** As wrk sends it. */
const SMALL_HEAD = "GET /sync/small HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";
/** As a browser sends it. */
const BROWSER_HEAD =
  "GET /sync/library/4f7c/Some%20Folder/?sort=name&page=2 HTTP/1.1\r\n" +
  "Host: sync.example\r\n" +
  "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n" +
  "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n" +
  "Accept-Language: en-US,en;q=0.5\r\n" +
  "Accept-Encoding: gzip, deflate, br\r\n" +
  "Referer: https://sync.example/sync/\r\n" +
  "Connection: keep-alive\r\n" +
  "Cookie: sessionid=0123456789abcdef0123456789abcdef; csrftoken=0123456789abcdef0123456789abcdef\r\n" +
  "Upgrade-Insecure-Requests: 1\r\n" +
  "Sec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Site: same-origin\r\n\r\n";
const RESPONSE_HEAD =
  "HTTP/1.1 200 OK\r\nServer: gunicorn\r\nDate: Sat, 21 Nov 2026 10:00:00 GMT\r\nConnection: keep-alive\r\n" +
  "Content-Type: text/html; charset=utf-8\r\nVary: Accept-Language, Cookie\r\nContent-Language: en\r\n" +
  "X-Frame-Options: SAMEORIGIN\r\nContent-Length: 90\r\n\r\n";

const LIMITS = { requestLineBytesMax: 8_192, headerCountMax: 200 };

const smallBytes = Buffer.from(SMALL_HEAD, "latin1");
const browserBytes = Buffer.from(BROWSER_HEAD, "latin1");
const responseBytes = Buffer.from(RESPONSE_HEAD, "latin1");
const chunks16k = chunked(64, 16_384);
const chunks100 = chunked(64, 100);
const scratch = Buffer.alloc(16_384);

/** What is concatenated costs its price when it is written, as the runtime does. */
const written = (text: string): number => scratch.write(text, 0, "latin1");

const nowhere = {
  bytes: 0,
  onBytes: (_: Buffer, from: number, to: number): void => void (nowhere.bytes += to - from),
};

function chunked(count: number, size: number): Buffer {
  const chunk = `${size.toString(16)}\r\n${"x".repeat(size)}\r\n`;
  return Buffer.from(`${chunk.repeat(count)}0\r\n\r\n`, "latin1");
}

function decode(body: Buffer): number {
  return new ChunkDecoder().decode(body, 0, nowhere);
}

/** The application's virtual server with some more routes and servers beside it. */
function config(extra: number): ProxyConfig {
  const proxied = { type: "proxy", upstream: "web", forwarded: { host: "sync.example" } } as const;
  const input: ProxyConfigInput = {
    version: 1,
    logs: { access: { path: "/var/log/portico/access.log" }, error: { path: "/var/log/portico/error.log" } },
    listeners: [{ name: "http", address: "127.0.0.1", port: 8080, protocol: "http" }],
    upstreams: [{ name: "web", url: "http://127.0.0.1:8000" }],
    virtualServers: [
      {
        name: "application",
        serverNames: ["sync.example"],
        default: true,
        listeners: ["http"],
        routes: [
          { name: "web", path: "/sync", match: "prefix", action: proxied },
          { name: "webdav", path: "/syncdav", match: "prefix", action: proxied },
          { name: "fileServer", path: "/synchttp", action: { ...proxied, strip: "raw" } },
          {
            name: "media",
            path: "/syncmedia",
            action: { type: "staticFiles", directory: "/srv/sync/media" },
          },
          ...names(extra).map((n) => ({ name: n, path: `/${n}`, action: proxied })),
        ],
      },
      ...names(extra).map((n) => ({
        name: n,
        serverNames: [`${n}.example`],
        listeners: ["http"],
        routes: [],
      })),
    ],
  };
  const parsed = parseConfig(input);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.value;
}

const names = (count: number): string[] => Array.from({ length: count }, (_, i) => `extra-${i}`);

const PATHS = ["/sync/small", "/sync/library/4f7c/Some Folder/", "/synchttp/files/1", "/nowhere/at/all"];
const HOSTS = ["sync.example", "127.0.0.1", "extra-3.example", "unknown.example"];

function routing(extra: number): Case["run"] {
  const router = new Router(config(extra));
  return (i) => {
    const server = router.virtualServer("http", HOSTS[i & 3]!);
    return router.route(server, PATHS[i & 3]! as Parameters<Router["route"]>[1]) === undefined ? 0 : 1;
  };
}

const client = { address: "127.0.0.1", scheme: "https" as const, trusted: false };

const headOf = (text: string): MessageHead => ({ text, bytes: Buffer.from(text, "latin1"), at: 0 });

function requestFacts(head: string) {
  const { method, target, path, headers, fields, host, serverName } = parseRequestHead(
    headOf(head),
    LIMITS,
    0,
  );
  return { method, target, path, headers, plainLines: fields?.plainLines, host, serverName };
}

function forwarding(): { request: (head: string) => Case["run"]; response: Case["run"] } {
  const { virtualServers, upstreams } = config(0);
  const route = virtualServers[0]!.routes[0]! as ConstructorParameters<typeof ForwardingRules>[0];
  const rules = new ForwardingRules(route, serverConfigsOf(upstreams[0]!)[0]!);
  const facts = (head: string) => ({
    ...requestFacts(head),
    scheme: client.scheme,
    clientAddress: client.address,
    trusted: client.trusted,
  });
  const headers = parseResponseHead(headOf(RESPONSE_HEAD), "GET", 200, false).fields.list;
  const browser = facts(BROWSER_HEAD);
  return {
    request: (head) => {
      const request = facts(head);
      return () => written(rules.requestHead(request, ""));
    },
    response: () => rules.responseHeaders(headers, browser).length,
  };
}

/** HTTP/2 fields of the browser's request: written out, and as indices into the table when they come again. */
function fieldBlocks(): { first: Buffer; again: Buffer } {
  const text = (value: string): number[] => [value.length, ...Buffer.from(value, "latin1")];
  const { headers, target, host } = parseRequestHead(headOf(BROWSER_HEAD), LIMITS, 0);
  const fields = [":authority", host, ":path", target];
  for (let i = 0; i < headers.length; i += 2)
    if (!/^(?:host|connection)$/i.test(headers[i]!)) fields.push(headers[i]!.toLowerCase(), headers[i + 1]!);
  const literals: number[] = [];
  for (let i = 0; i < fields.length; i += 2)
    literals.push(0x40, ...text(fields[i]!), ...text(fields[i + 1]!));
  const indices = Array.from({ length: fields.length / 2 }, (_, i) => 0x80 + 61 + fields.length / 2 - i);
  // `:method: GET` and `:scheme: https` stand in the static table.
  return { first: Buffer.from([0x82, 0x87, ...literals]), again: Buffer.from([0x82, 0x87, ...indices]) };
}

function http2Cases(): Case[] {
  const limits = { ...LIMITS, headBytesMax: 32_768 };
  const { first, again } = fieldBlocks();
  const decoder = new HpackDecoder(limits.headBytesMax);
  decoder.decode(first, 0, first.length);
  const parse = (): number => parseHttp2Head(decoder.fields, true, limits, 0).request.headers.length;
  if (parse() === 0) throw new Error("the HTTP/2 head was refused");
  const encoder = new HpackEncoder();
  const outbox = new Outbox(
    { write: () => true } as never,
    () => undefined,
    () => undefined,
  );
  const headers = parseResponseHead(headOf(RESPONSE_HEAD), "GET", 200, false).fields.list;
  const encode = (date: string): number => {
    outbox.at = 0;
    const head = { status: 200, server: "portico", date, headers, length: 90 };
    if (encoder.check(head) === undefined) encoder.encode(head, outbox);
    return outbox.at;
  };
  return [
    {
      name: "HpackDecoder + parseRequestHead, browser again",
      run: () => (decoder.decode(again, 0, again.length) ? parse() : 0),
    },
    {
      name: "HpackDecoder, browser's first, literal",
      run: () => (new HpackDecoder(32_768).decode(first, 0, first.length) ? 1 : 0),
    },
    { name: "HpackEncoder, response that recurs", run: () => encode("Sat, 21 Nov 2026 10:00:00 GMT") },
    { name: "HpackEncoder, date that differs", run: (i) => encode(`Sat, 21 Nov 2026 10:00:0${i % 10} GMT`) },
  ];
}

function logged(head: string): LoggedExchange {
  const request = parseRequestHead(headOf(head), LIMITS, Date.now());
  const server = config(0).virtualServers[0]!;
  const route = { config: server.routes[0]!, server };
  const trace = {
    headMs: 2,
    upstreamServer: "http://127.0.0.1:8000",
    upstreamBegunMs: 0,
    upstreamConnectMs: -1,
  };
  const exchange = { client, request, server, route, status: 200, bodyBytesSent: 90, ...trace };
  return exchange as unknown as LoggedExchange;
}

function cases(): Case[] {
  const rules = forwarding();
  const reader = new HeadReader(32_768, 8_192);
  const [small, browser] = [logged(SMALL_HEAD), logged(BROWSER_HEAD)];
  const parse = (bytes: Buffer): number =>
    reader.read(bytes, 0) ? parseRequestHead(reader, LIMITS, 0).method.length : 0;
  return [
    { name: "HeadReader.read + parseRequestHead, small", run: () => parse(smallBytes) },
    { name: "HeadReader.read + parseRequestHead, browser", run: () => parse(browserBytes) },
    {
      name: "HeadReader.read + parseResponseHead",
      run: () => (reader.read(responseBytes, 0) ? parseResponseHead(reader, "GET", 200, false).status : 0),
    },
    { name: "ChunkDecoder, 64 chunks of 16 KiB", run: () => decode(chunks16k) },
    // Small chunks are moved together where they are.
    { name: "ChunkDecoder, 64 chunks of 100 bytes", run: () => decode(Buffer.from(chunks100)) },
    { name: "normalisePath, plain", run: () => normalisePath("/sync/small")!.length },
    { name: "normalisePath, escapes and dots", run: () => normalisePath("/sync/a%20b/../c//d?x=1")!.length },
    { name: "Router, 4 routes", run: routing(0) },
    { name: "Router, 1,000 routes and servers", run: routing(1_000) },
    { name: "ForwardingRules.requestHead, small", run: rules.request(SMALL_HEAD) },
    { name: "ForwardingRules.requestHead, browser", run: rules.request(BROWSER_HEAD) },
    { name: "ForwardingRules.responseHeaders", run: rules.response },
    ...http2Cases(),
    { name: "combinedLine, small", run: () => written(combinedLine(small)) },
    { name: "combinedLine, browser", run: () => written(combinedLine(browser)) },
    { name: "jsonLine, browser", run: () => written(jsonLine(browser)) },
    { name: "RequestCounts.over", run: counting(small) },
  ];
}

/** What a request costs more because it is counted. */
function counting(exchange: LoggedExchange): Case["run"] {
  const counts = new WorkerCounts(isRegistered);
  const server = { name: "site" } as VirtualServerConfig;
  const requests = counts.requestsOf(server, { name: "files", path: "/sync" } as RouteConfig);
  const over = { ...exchange, headMs: 1, countedSent: 0, countedReceived: 0, bodyBytesReceived: 0 };
  return (i) => {
    over.bodyBytesSent = i;
    over.countedSent = 0;
    requests.over(over, Date.now());
    return over.countedSent;
  };
}

let used = 0;

/** CPU nanoseconds of one run, from a batch. */
function batch({ run }: Case, runs: number): number {
  const before = process.cpuUsage();
  let sum = 0;
  for (let i = 0; i < runs; i++) sum += run(i);
  const { user, system } = process.cpuUsage(before);
  used += sum;
  return ((user + system) * 1000) / runs;
}

function main(): void {
  const all = cases().map((one) => {
    batch(one, 20_000);
    // A batch is long enough for a clock of microseconds.
    const runs = Math.max(10, Math.round((BATCH_MS * 1e6) / Math.max(1, batch(one, 20_000))));
    return { one, runs, ns: [] as number[] };
  });
  for (let i = 0; i < BATCHES; i++) for (const { one, runs, ns } of all) ns.push(batch(one, runs));
  const results = all.map(({ one, ns }) => ({ name: one.name, median: median(ns), lowest: Math.min(...ns) }));
  console.log(JSON.stringify({ results, used }));
}

main();
