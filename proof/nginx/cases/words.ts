import { HOST } from "../../wire/site.js";
import { randomText } from "../../../testkit/random.js";

// What generated requests and responses are made of. The first of a list is what failures are shrunk to.

/** A field name and the values that it may have. */
export type FieldWords = readonly [name: string, ...values: string[]];

/** Methods: usual ones, those of WebDAV, and odd ones. */
export const METHODS = { usual: ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"],
  webdav: ["PROPFIND", "PROPPATCH", "MKCOL", "MOVE", "COPY", "LOCK", "UNLOCK", "PATCH"],
  odd: ["FOO", "REPORT", "SEARCH", "VERSION-CONTROL", "get", "pOST", "X_Y", "TRACE"] };
/** Where targets lead: by name, in disguise, and past everything. */
export const PREFIXES = ["/sync", "/synchttp", "/syncdav", "/syncmedia"];
export const STRANGE_PREFIXES = [
  "/", "/Sync", "/syncfoo", "/synchttpfoo", "/syncmedia-old", "/syncmediax", "/syncdavx", "//sync", "/./sync",
  "/x/../sync", "/%73ync", "/%73ynchttp", "/sync%68ttp", "//synchttp", "/sync/../synchttp", "/synchttp/../sync",
  "/synchttp/../synchttp", "/syncmedia/../syncdav", "/sync%2f..%2fsyncdav", "/..", "/nowhere",
];
export const SEGMENTS = ["a", "img", "a.png", "file.txt", "large.bin", "b%20c", "x"];
export const STRANGE_SEGMENTS = [
  "", ".", "..", "%2e", "%2E%2e", ".%2e", "...", "%2F", "a%2fb", "..%2F..", "%5c", "%3F", "%23", "%25", "%2525",
  "%C3%A4", "%e4", "%7e", "%41", "%0a", "%0D%0A", "%20", "%7f", "%22", "%3c%3E", "%", "%2", "%zz", "%00", "a;b=c",
  "a+b", "~a", "!$&'()*,:@", "a=b", "[b]", "|", "{a}", "^`", '"', "<a>", "\\", "\xe4", "\xc3\xa4", ".hidden",
  "UPPER.PNG", "a%20b.png", "empty.txt", "types", "a.css", "a.js", "locked.txt", "closed", "inside.txt",
  "link-inside.png", "link-outside.txt", "withindex", "a.png%00.txt", "index.html",
];
export const QUERIES = [
  "?a=b", "?", "?a=b&c=%20d", "?/../x", "?%zz", "?%00", "?a?b", "??", "?a#b", "#frag", "#", "?\xe4|<>",
  "?a=http://other.example/",
];
/** Files that are there, as they are asked for. */
export const MEDIA = [
  "/syncmedia/img/a.png", "/syncmedia/large.bin", "/syncmedia/empty.txt", "/syncmedia/types/a.css", "/syncmedia/img/",
  "/syncmedia/img",
];
export const STRANGE_HOSTS: readonly (string | undefined)[] = [
  `${HOST}:{http}`, `${HOST}:8443`, `${HOST}:`, "SYNC.Example", `${HOST}.`, `${HOST}.:80`, "other.example",
  "127.0.0.1", "127.0.0.1:{http}", "[::1]:80", "localhost", "a_b.example", "xn--bcher-kva.example", undefined, "",
  "a..b", "a/b", "a b", "me@sync.example", "sync.example:x", "sync.example..", "*.example", "sync.example,other",
  "-sync.example", "%73ync.example", "[::1",
];
const DATES = [
  "Tue, 02 Jan 2024 03:04:05 GMT", "Wed, 03 Jan 2024 03:04:05 GMT", "Mon, 01 Jan 2024 03:04:05 GMT",
  "Tuesday, 02-Jan-24 03:04:05 GMT", "Tue Jan  2 03:04:05 2024", "Tue, 02 Jan 2024 03:04:05 +0000", "yesterday", "0",
];
const TAGS = ["{etag}", "W/{etag}", '"x"', "*", '"x", {etag}', "65937d25-2d", '"x",'];
const RANGES = [
  "bytes=0-3", "bytes=5-", "bytes=-4", "bytes=0-", "bytes=0-0", "bytes=44-44", "bytes=45-", "bytes=40-999",
  "bytes=100-", "bytes=-0", "bytes=-999", "bytes=3-1", "bytes=a-b", "bytes=", "bytes=0-1,4-5", "bytes=0-1,100-200",
  "bytes=0-1, 1-5,-2", "bytes=0-,0-", "bytes=0-1,", "bytes=,0-1", "bytes= 0-3", "bytes=0 - 3", "bytes =0-3",
  "BYTES=0-3", "lines=0-3", "0-3", "bytes=0-99999999999999999999", "bytes=99999999999999999999-",
  "bytes=-99999999999999999999", "bytes=0x0-3", "bytes=+1-3", "bytes=1--3",
];

/** Fields that come alone or in company. */
export const FIELDS: readonly FieldWords[] = [
  ["User-Agent", "curl/8", "a\xe4b", ""], ["Accept", "*/*", "text/html;q=0.9, */*"],
  ["Cookie", "a=b", "a=b; c=d", 'sessionid="x y"'], ["Authorization", "Basic dTpw"],
  ["Content-Type", "text/plain", "multipart/form-data; boundary=x"], ["Accept-Encoding", "gzip, br", "identity"],
  ["Range", ...RANGES], ["If-Range", ...TAGS, ...DATES], ["If-None-Match", ...TAGS], ["If-Match", ...TAGS],
  ["If-Modified-Since", ...DATES], ["If-Unmodified-Since", ...DATES],
  ["X-Forwarded-For", "1.2.3.4", "1.2.3.4, 5.6.7.8", "unknown", ""], ["x-forwarded-for", "9.9.9.9"],
  ["X-Forwarded-Proto", "https", "spoof"], ["X-Forwarded-Host", "evil.example"], ["X-Forwarded-Port", "1"],
  ["X-Real-IP", "1.2.3.4"], ["Forwarded", "for=1.2.3.4;proto=https"], ["X-Forwarded-Prefix", "/x"],
  ["True-Client-IP", "1.2.3.4"], ["X-Foo", "bar", "", "a, b", "a:b", "\xe4\xff", "tab\there", '"quoted"'],
  ["x-foo", "lower"], ["X-Under_Score", "1"], ["Content_Length", "500"], ["Referer", "http://sync.example/sync/"],
  ["Origin", "https://sync.example"],
  ["Destination", "http://sync.example/syncdav/b", "https://sync.example/syncdav/b%20c", "/syncdav/b"],
  ["Destination", "http://other.example/syncdav/b", "http://sync.example/sync/b", "b",
    "http://sync.example:1/syncdav/b"],
  ["Depth", "0", "1", "infinity"], ["Overwrite", "F"], ["If", "(<opaquelocktoken:x>)"], ["Via", "1.1 proxy"],
  ["Max-Forwards", "0"], ["Pragma", "no-cache"], ["Accept-Charset", "utf-8"], ["Early-Data", "1"],
];
/** Fields about the connection, which HTTP/2 does not know. */
export const CONNECTION_FIELDS: readonly FieldWords[] = [
  ["Connection", "close", "keep-alive", "Keep-Alive, foo", "X-Foo", "x-foo, close", "Upgrade", "TE", ""],
  ["Keep-Alive", "timeout=5"], ["TE", "trailers", "gzip"], ["Upgrade", "foo", "h2c", "websocket"],
  ["Proxy-Connection", "keep-alive"], ["Proxy-Authorization", "Basic dTpw"], ["Trailer", "X-T"],
];
export const BODY_PIECES = [
  "a", "hello", "0\r\n\r\n", "GET /sync/ HTTP/1.1\r\n\r\n", "\0\xff", randomText(5_000), randomText(40_000),
];
const LOCATIONS = [
  "/sync/y", "y?z", "", "http://127.0.0.1:{web}/sync/y", "http://127.0.0.1:{files}/y?z",
  "http://127.0.0.1:{dav}/syncdav/y", "http://127.0.0.1:1/y", "http://127.0.0.1/y", "https://sync.example/sync/y",
  "http://sync.example/sync/y", "//other.example/y", "http://127.0.0.1:{web}", "http://127.0.0.1:{web}.evil.example/",
];

export const RESPONSE_FIELDS: readonly FieldWords[] = [
  ["Location", ...LOCATIONS], ["Content-Location", ...LOCATIONS],
  ["Refresh", "5; url=http://127.0.0.1:{web}/sync/y", "0", "0;url=/y"],
  ["Content-Type", "text/html; charset=utf-8", "application/json", ""],
  ["Set-Cookie", "a=b; Path=/", "c=d; HttpOnly; Secure"], ["set-cookie", "e=f"],
  ["Cache-Control", "no-store", "public, max-age=5"], ["Vary", "Accept-Language, Cookie"], ["ETag", '"x"', 'W/"x"'],
  ["Last-Modified", DATES[0]!], ["Server", "upstream/1.0"], ["Date", "Mon, 01 Jan 2024 00:00:00 GMT"],
  ["Expires", "0"], ["X-Accel-Buffering", "no"], ["X-Accel-Charset", "utf-8"], ["X-Foo", "bar", "", "\xe4"],
  ["X_Under", "1"], ["Connection", "close", "keep-alive", "X-Foo", "close, X-Foo"], ["Keep-Alive", "timeout=5"],
  ["Proxy-Authenticate", "Basic"], ["WWW-Authenticate", 'Basic realm="x"'], ["Upgrade", "h2c"], ["Trailer", "X-T"],
  ["Content-Encoding", "gzip"], ["Content-Language", "en"], ["Accept-Ranges", "bytes", "none"], ["DAV", "1, 2"],
  ["Link", "</a>; rel=preload"], ["Strict-Transport-Security", "max-age=5"],
];
export const STATUSES: readonly [string, ...string[]] = [
  "200 OK", "201 Created", "204 No Content", "206 Partial Content", "207 Multi-Status", "301 Moved Permanently",
  "302 Found", "304 Not Modified", "400 Bad Request", "401 Unauthorized", "403 Forbidden", "404 Not Found",
  "405 Method Not Allowed", "409 Conflict", "412 Precondition Failed", "413 Too Large", "416 Range Not Satisfiable",
  "423 Locked", "429 Too Many Requests", "500 Internal Server Error", "502 Bad Gateway", "503 Service Unavailable",
  "507 Insufficient Storage", "299 What", "599 Odd", "200", "200 ",
];
