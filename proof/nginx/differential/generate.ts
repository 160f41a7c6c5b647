import fc from "fast-check";
import type { Channel, Request } from "../case.js";
import type { Field } from "../messages.js";
import { HOST } from "../site.js";

/** A request as it was generated; it shrinks towards a plain GET of the web application. */
export interface GeneratedCase {
  readonly channel: Channel;
  readonly method: string;
  readonly target: string;
  readonly host: string | undefined;
  readonly fields: readonly Field[];
  readonly body: Body | undefined;
  readonly version: string;
  readonly answer: GeneratedAnswer;
}

interface Body {
  readonly pieces: readonly string[];
  readonly framing: "length" | "chunked";
}

/** What the upstream says, if the request gets there. */
export interface GeneratedAnswer {
  readonly status: string;
  readonly fields: readonly Field[];
  readonly body: string;
  readonly framing: "length" | "chunked" | "close";
}

/** The words of the request in the table of `proof/nginx`. */
export function requestOf({ method, target, host, fields, body, version }: GeneratedCase): Request {
  return { method, target, host, fields, body: body?.pieces, framing: body?.framing, version };
}

/** The answer on the wire; without its body where there is none. */
export function answerText({ method, answer }: GeneratedCase): string {
  const { status, fields, body, framing } = answer;
  const bodiless = method === "HEAD" || /^(?:204|304)/.test(status);
  const sent = bodiless ? "" : body;
  const lines = [`HTTP/1.1 ${status}`, ...fields.map(([name, value]) => `${name}: ${value}`)];
  if (framing === "length" && !status.startsWith("204")) lines.push(`Content-Length: ${body.length}`);
  if (framing === "chunked" && !bodiless) lines.push("Transfer-Encoding: chunked");
  const head = `${lines.join("\r\n")}\r\n\r\n`;
  if (framing !== "chunked" || bodiless) return head + sent;
  return `${head}${sent === "" ? "" : `${sent.length.toString(16)}\r\n${sent}\r\n`}0\r\n\r\n`;
}

/** A choice shrinks into its first, which is the usual one; by itself it would only shrink within what was chosen. */
const TO_FIRST = { withCrossShrink: true };

const pick = <T>(...values: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...values);
const often = <T>(weight: number, usual: T, ...others: readonly T[]): fc.Arbitrary<T> =>
  fc.oneof(TO_FIRST, { weight, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: pick(...others) });

const CHANNEL = fc.oneof(
  TO_FIRST,
  { weight: 4, arbitrary: fc.constant<Channel>("http") },
  { weight: 3, arbitrary: fc.constant<Channel>("https") },
  { weight: 3, arbitrary: fc.constant<Channel>("h2") },
  { weight: 1, arbitrary: fc.constant<Channel>("redirect") },
);

const METHOD = fc.oneof(
  TO_FIRST,
  { weight: 8, arbitrary: pick("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS") },
  { weight: 3, arbitrary: pick("PROPFIND", "PROPPATCH", "MKCOL", "MOVE", "COPY", "LOCK", "UNLOCK", "PATCH") },
  { weight: 1, arbitrary: pick("FOO", "REPORT", "SEARCH", "VERSION-CONTROL", "get", "pOST", "X_Y", "TRACE") },
);

/** Where targets lead: by name, in disguise, and past everything. */
const PREFIX = fc.oneof(
  TO_FIRST,
  { weight: 6, arbitrary: pick("/sync", "/synchttp", "/syncdav", "/syncmedia") },
  {
    weight: 2,
    arbitrary: pick(
      "/",
      "/Sync",
      "/syncfoo",
      "/synchttpfoo",
      "/syncmedia-old",
      "/syncmediax",
      "/syncdavx",
      "//sync",
      "/./sync",
      "/x/../sync",
      "/%73ync",
      "/%73ynchttp",
      "/sync%68ttp",
      "//synchttp",
      "/sync/../synchttp",
      "/synchttp/../sync",
      "/synchttp/../synchttp",
      "/syncmedia/../syncdav",
      "/sync%2f..%2fsyncdav",
      "/..",
      "/nowhere",
    ),
  },
);

const SEGMENT = fc.oneof(
  TO_FIRST,
  { weight: 4, arbitrary: pick("a", "img", "a.png", "file.txt", "large.bin", "b%20c", "x") },
  {
    weight: 3,
    arbitrary: pick(
      "",
      ".",
      "..",
      "%2e",
      "%2E%2e",
      ".%2e",
      "...",
      "%2F",
      "a%2fb",
      "..%2F..",
      "%5c",
      "%3F",
      "%23",
      "%25",
      "%2525",
      "%C3%A4",
      "%e4",
      "%7e",
      "%41",
      "%0a",
      "%0D%0A",
      "%20",
      "%7f",
      "%22",
      "%3c%3E",
      "%",
      "%2",
      "%zz",
      "%00",
      "a;b=c",
      "a+b",
      "~a",
      "!$&'()*,:@",
      "a=b",
      "[b]",
      "|",
      "{a}",
      "^`",
      '"',
      "<a>",
      "\\",
      "\xe4",
      "\xc3\xa4",
      ".hidden",
      "UPPER.PNG",
      "a%20b.png",
      "empty.txt",
      "types",
      "a.css",
      "a.js",
      "locked.txt",
      "closed",
      "inside.txt",
      "link-inside.png",
      "link-outside.txt",
      "withindex",
      "a.png%00.txt",
      "index.html",
    ),
  },
);

const QUERY = fc.oneof(
  TO_FIRST,
  { weight: 4, arbitrary: fc.constant("") },
  {
    weight: 2,
    arbitrary: pick(
      "?a=b",
      "?",
      "?a=b&c=%20d",
      "?/../x",
      "?%zz",
      "?%00",
      "?a?b",
      "??",
      "?a#b",
      "#frag",
      "#",
      "?\xe4|<>",
      "?a=http://other.example/",
    ),
  },
);

/** Files that are there, as they are asked for. */
const MEDIA = pick(
  "/syncmedia/img/a.png",
  "/syncmedia/large.bin",
  "/syncmedia/empty.txt",
  "/syncmedia/types/a.css",
  "/syncmedia/img/",
  "/syncmedia/img",
);

const PATH = fc
  .tuple(PREFIX, fc.array(SEGMENT, { maxLength: 4 }), fc.boolean())
  .map(([prefix, segments, slash]) => [prefix, ...segments].join("/") + (slash ? "/" : ""));

const TARGET = fc
  .tuple(fc.oneof(TO_FIRST, { weight: 5, arbitrary: PATH }, { weight: 1, arbitrary: MEDIA }), QUERY)
  .map(([path, query]) => path + query);

const HOSTS = fc.oneof(
  TO_FIRST,
  { weight: 8, arbitrary: fc.constant<string | undefined>(HOST) },
  {
    weight: 2,
    arbitrary: pick<string | undefined>(
      `${HOST}:{http}`,
      `${HOST}:8443`,
      `${HOST}:`,
      "SYNC.Example",
      `${HOST}.`,
      `${HOST}.:80`,
      "other.example",
      "127.0.0.1",
      "127.0.0.1:{http}",
      "[::1]:80",
      "localhost",
      "a_b.example",
      "xn--bcher-kva.example",
      undefined,
      "",
      "a..b",
      "a/b",
      "a b",
      "me@sync.example",
      "sync.example:x",
      "sync.example..",
      "*.example",
      "sync.example,other",
      "-sync.example",
      "%73ync.example",
      "[::1",
    ),
  },
);

const DATES = [
  "Tue, 02 Jan 2024 03:04:05 GMT",
  "Wed, 03 Jan 2024 03:04:05 GMT",
  "Mon, 01 Jan 2024 03:04:05 GMT",
  "Tuesday, 02-Jan-24 03:04:05 GMT",
  "Tue Jan  2 03:04:05 2024",
  "Tue, 02 Jan 2024 03:04:05 +0000",
  "yesterday",
  "0",
];
const TAGS = ["{etag}", "W/{etag}", '"x"', "*", '"x", {etag}', "65937d25-2d", '"x",'];
const RANGES = [
  "bytes=0-3",
  "bytes=5-",
  "bytes=-4",
  "bytes=0-",
  "bytes=0-0",
  "bytes=44-44",
  "bytes=45-",
  "bytes=40-999",
  "bytes=100-",
  "bytes=-0",
  "bytes=-999",
  "bytes=3-1",
  "bytes=a-b",
  "bytes=",
  "bytes=0-1,4-5",
  "bytes=0-1,100-200",
  "bytes=0-1, 1-5,-2",
  "bytes=0-,0-",
  "bytes=0-1,",
  "bytes=,0-1",
  "bytes= 0-3",
  "bytes=0 - 3",
  "bytes =0-3",
  "BYTES=0-3",
  "lines=0-3",
  "0-3",
  "bytes=0-99999999999999999999",
  "bytes=99999999999999999999-",
  "bytes=-99999999999999999999",
  "bytes=0x0-3",
  "bytes=+1-3",
  "bytes=1--3",
];

const field = (name: string, ...values: readonly string[]): fc.Arbitrary<Field[]> =>
  pick(...values).map((value): Field[] => [[name, value]]);

/** Fields that come alone or in company. */
const FIELDS = fc
  .array(
    fc.oneof(
      TO_FIRST,
      field("User-Agent", "curl/8", "a\xe4b", ""),
      field("Accept", "*/*", "text/html;q=0.9, */*"),
      field("Cookie", "a=b", "a=b; c=d", 'sessionid="x y"'),
      field("Authorization", "Basic dTpw"),
      field("Content-Type", "text/plain", "multipart/form-data; boundary=x"),
      field("Accept-Encoding", "gzip, br", "identity"),
      field("Range", ...RANGES),
      field("If-Range", ...TAGS, ...DATES),
      field("If-None-Match", ...TAGS),
      field("If-Match", ...TAGS),
      field("If-Modified-Since", ...DATES),
      field("If-Unmodified-Since", ...DATES),
      field("X-Forwarded-For", "1.2.3.4", "1.2.3.4, 5.6.7.8", "unknown", ""),
      field("x-forwarded-for", "9.9.9.9"),
      field("X-Forwarded-Proto", "https", "spoof"),
      field("X-Forwarded-Host", "evil.example"),
      field("X-Forwarded-Port", "1"),
      field("X-Real-IP", "1.2.3.4"),
      field("Forwarded", "for=1.2.3.4;proto=https"),
      field("X-Forwarded-Prefix", "/x"),
      field("True-Client-IP", "1.2.3.4"),
      field("X-Foo", "bar", "", "a, b", "a:b", "\xe4\xff", "tab\there", '"quoted"'),
      field("x-foo", "lower"),
      field("X-Under_Score", "1"),
      field("Content_Length", "500"),
      field("Referer", "http://sync.example/sync/"),
      field("Origin", "https://sync.example"),
      field(
        "Destination",
        "http://sync.example/syncdav/b",
        "https://sync.example/syncdav/b%20c",
        "/syncdav/b",
      ),
      field(
        "Destination",
        "http://other.example/syncdav/b",
        "http://sync.example/sync/b",
        "b",
        "http://sync.example:1/syncdav/b",
      ),
      field("Depth", "0", "1", "infinity"),
      field("Overwrite", "F"),
      field("If", "(<opaquelocktoken:x>)"),
      field("Via", "1.1 proxy"),
      field("Max-Forwards", "0"),
      field("Pragma", "no-cache"),
      field("Accept-Charset", "utf-8"),
      field("Early-Data", "1"),
    ),
    { maxLength: 4 },
  )
  .map((lists) => lists.flat());

/** Fields about the connection, which HTTP/2 does not know. */
const CONNECTION_FIELDS = fc
  .array(
    fc.oneof(
      TO_FIRST,
      field(
        "Connection",
        "close",
        "keep-alive",
        "Keep-Alive, foo",
        "X-Foo",
        "x-foo, close",
        "Upgrade",
        "TE",
        "",
      ),
      field("Keep-Alive", "timeout=5"),
      field("TE", "trailers", "gzip"),
      field("Upgrade", "foo", "h2c", "websocket"),
      field("Proxy-Connection", "keep-alive"),
      field("Proxy-Authorization", "Basic dTpw"),
      field("Trailer", "X-T"),
    ),
    { maxLength: 2 },
  )
  .map((lists) => lists.flat());

const BODY = fc.option(
  fc.record<Body>({
    pieces: fc.array(
      pick(
        "a",
        "hello",
        "0\r\n\r\n",
        "GET /sync/ HTTP/1.1\r\n\r\n",
        "\0\xff",
        "x".repeat(5_000),
        "x".repeat(40_000),
      ),
      {
        maxLength: 3,
      },
    ),
    framing: often<Body["framing"]>(2, "length", "chunked"),
  }),
  { nil: undefined, freq: 3 },
);

const LOCATIONS = [
  "/sync/y",
  "y?z",
  "",
  "http://127.0.0.1:{web}/sync/y",
  "http://127.0.0.1:{files}/y?z",
  "http://127.0.0.1:{dav}/syncdav/y",
  "http://127.0.0.1:1/y",
  "http://127.0.0.1/y",
  "https://sync.example/sync/y",
  "http://sync.example/sync/y",
  "//other.example/y",
  "http://127.0.0.1:{web}",
  "http://127.0.0.1:{web}.evil.example/",
];

const ANSWER_FIELDS = fc
  .array(
    fc.oneof(
      TO_FIRST,
      field("Location", ...LOCATIONS),
      field("Content-Location", ...LOCATIONS),
      field("Refresh", "5; url=http://127.0.0.1:{web}/sync/y", "0", "0;url=/y"),
      field("Content-Type", "text/html; charset=utf-8", "application/json", ""),
      field("Set-Cookie", "a=b; Path=/", "c=d; HttpOnly; Secure"),
      field("set-cookie", "e=f"),
      field("Cache-Control", "no-store", "public, max-age=5"),
      field("Vary", "Accept-Language, Cookie"),
      field("ETag", '"x"', 'W/"x"'),
      field("Last-Modified", DATES[0]!),
      field("Server", "upstream/1.0"),
      field("Date", "Mon, 01 Jan 2024 00:00:00 GMT"),
      field("Expires", "0"),
      field("X-Accel-Buffering", "no"),
      field("X-Accel-Charset", "utf-8"),
      field("X-Foo", "bar", "", "\xe4"),
      field("X_Under", "1"),
      field("Connection", "close", "keep-alive", "X-Foo", "close, X-Foo"),
      field("Keep-Alive", "timeout=5"),
      field("Proxy-Authenticate", "Basic"),
      field("WWW-Authenticate", 'Basic realm="x"'),
      field("Upgrade", "h2c"),
      field("Trailer", "X-T"),
      field("Content-Encoding", "gzip"),
      field("Content-Language", "en"),
      field("Accept-Ranges", "bytes", "none"),
      field("DAV", "1, 2"),
      field("Link", "</a>; rel=preload"),
      field("Strict-Transport-Security", "max-age=5"),
    ),
    { maxLength: 3 },
  )
  .map((lists) => lists.flat());

const ANSWER: fc.Arbitrary<GeneratedAnswer> = fc.record({
  status: often(
    3,
    "200 OK",
    "201 Created",
    "204 No Content",
    "206 Partial Content",
    "207 Multi-Status",
    "301 Moved Permanently",
    "302 Found",
    "304 Not Modified",
    "400 Bad Request",
    "401 Unauthorized",
    "403 Forbidden",
    "404 Not Found",
    "405 Method Not Allowed",
    "409 Conflict",
    "412 Precondition Failed",
    "413 Too Large",
    "416 Range Not Satisfiable",
    "423 Locked",
    "429 Too Many Requests",
    "500 Internal Server Error",
    "502 Bad Gateway",
    "503 Service Unavailable",
    "507 Insufficient Storage",
    "299 What",
    "599 Odd",
    "200",
    "200 ",
  ),
  fields: ANSWER_FIELDS,
  body: often(2, "answer", "", "x".repeat(3_000), "x".repeat(70_000), "\0\xff\r\n0\r\n\r\n"),
  framing: often<GeneratedAnswer["framing"]>(3, "length", "chunked", "close"),
});

/** Everything that is asked of both proxies. */
export const CASE: fc.Arbitrary<GeneratedCase> = fc
  .record({
    channel: CHANNEL,
    method: METHOD,
    target: TARGET,
    host: HOSTS,
    fields: FIELDS,
    connectionFields: CONNECTION_FIELDS,
    body: BODY,
    version: often(12, "HTTP/1.1", "HTTP/1.0", "HTTP/1.2"),
    answer: ANSWER,
  })
  .map(({ connectionFields, ...rest }) =>
    rest.channel === "h2"
      ? { ...rest, fields: once(rest.fields) }
      : { ...rest, fields: [...rest.fields, ...connectionFields] },
  );

/** The client library of HTTP/2 refuses to repeat many fields. */
function once(fields: readonly Field[]): Field[] {
  const seen = new Set<string>();
  return fields.filter(([name]) => {
    const lower = name.toLowerCase();
    return !seen.has(lower) && seen.add(lower);
  });
}
