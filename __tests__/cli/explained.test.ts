import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { openFolder } from "../../testkit/portico.js";
import { run } from "../../src/cli/program.js";

/** What `portico resolve` and `portico why` say of a request, in whole words: of each action, and of each time. */

const tls = { certificate: "/unused.pem", key: "/unused.pem" };
const TWO = ["http://10.0.0.8:80", "http://10.0.0.9:80"];
const ROUTES = [
  {
    name: "media",
    path: "/media",
    action: { type: "staticFiles", directory: "/srv", precompressed: ["br", "gzip"] },
  },
  { name: "web", path: "/", requestBodyBytesMax: 1_000, action: { type: "proxy", upstream: "web" } },
  { name: "dav", path: "/dav", action: { type: "proxy", upstream: "dav" } },
  { name: "old", path: "/old", match: "exact", action: { type: "redirect", path: "/new" } },
  { name: "fixed", path: "/fixed", action: { type: "respond", status: 200, body: "one\ntwo\n" } },
  { name: "state", path: "/state", action: { type: "status", allow: ["192.0.2.7", "10.0.0.0/8"] } },
];
const CONFIG = {
  version: 1,
  listeners: [{ name: "https", address: "192.0.2.1", port: 443, protocol: "https", tls }],
  upstreams: [
    { name: "dav", url: "http://127.0.0.1:8080" },
    { name: "web", servers: TWO.map((url) => ({ url })) },
  ],
  virtualServers: [
    {
      name: "files",
      serverNames: ["files.example.org", "*.example.net"],
      default: true,
      listeners: ["https"],
      responseHeaders: { set: { "X-A": "1", "X-B": "2" }, remove: ["X-C", "X-D"] },
      errorPages: [
        { statuses: [403], html: "<p>" },
        { statuses: [405], file: "/etc/405.html" },
      ],
      routes: ROUTES,
    },
  ],
};

const OTHER = "the default server of https, because no virtual server there is named";

async function said(...args: string[]): Promise<string> {
  const file = join(openFolder(), "portico.json");
  writeFileSync(file, JSON.stringify(CONFIG));
  let out = "";
  const add = (text: string): void => void (out += text);
  expect(await run([...args, "--config", file], { out: add, err: add })).toBe(0);
  return out;
}

test("a request that is proxied: the response, and every rule that decides", async () => {
  expect(await said("why", "https://x.example.net/web", "--method", "POST")).toMatchInlineSnapshot(`
"POST https://x.example.net/web
  listener        https
  virtual server  files
  route           web
  client          198.51.100.7, an example: --client gives another
  response        proxied to a server of web
                    http://10.0.0.8:80: gets 1 of 2 requests, in turns
                    http://10.0.0.9:80: gets 1 of 2 requests, in turns
                    the request writes: \`portico quiesce\` refuses it while its command runs
                    POST /web HTTP/1.1
                    host: x.example.net
                    x-real-ip: 198.51.100.7
                    x-forwarded-for: 198.51.100.7
                    x-forwarded-proto: https
  fields set      x-a: 1
                  x-b: 2
  fields removed  x-c
                  x-d
decided by
  listener          https (https, 192.0.2.1 port 443)
  virtual server    files: *.example.net covers x.example.net
  path              /web
  route web         segment /: matches, and handles the request
  other routes      5 do not match
  body              up to 1000 bytes are allowed
  action            proxied to upstream web, as /web
"
`);
});

test.each<[url: string, ...rules: string[]]>([
  ["x.example.net/dav", "*.example.net covers x.example.net", "proxied to upstream dav, as /dav"],
  [
    "files.example.org/media/a --method PUT",
    "its name files.example.org matches",
    "405 from Portico, by the rules of the action staticFiles",
  ],
  ["files.example.org/old", "its name files.example.org matches", "301 to https://files.example.org/new"],
  ["a.files.example.org/fixed", `${OTHER} a.files.example.org`, "200, a fixed response"],
  [
    "example.net/state",
    `${OTHER} example.net`,
    "the status page, for 192.0.2.7 and 10.0.0.0/8; 403 for all others",
  ],
  [
    "files.example.org/media/%2E%2E/none",
    "its name files.example.org matches",
    "proxied to upstream web, as /media/%2E%2E/none",
  ],
])("%s: the virtual server and the action", async (url, server, action) => {
  const text = await said("why", ...`https://${url}`.split(" "));
  const rule = (name: string) => new RegExp(`decided by\n[^]*^ {2}${name} {2,}(.*)$`, "m").exec(text)![1];
  expect([rule("virtual server"), rule("action")]).toEqual([`files: ${server}`, action]);
});

test.each<[path: string, options: string[], ...response: string[]]>([
  [
    "/media/a",
    ["--header", "Accept-Encoding: gzip, br"],
    ...["the file /srv/a", "or /srv/a.br, if that file exists", "or /srv/a.gz, if that file exists"],
  ],
  [
    "/media/a",
    ["--header", "Accept-Encoding: gzip"],
    ...["the file /srv/a", "or /srv/a.gz, if that file exists"],
  ],
  ["/state", [], "403, an error page"],
  ["/state", ["--header", "Accept: text/html"], "403, an error page of the config"],
  ["/media/a", ["--method", "PUT", "--header", "Accept: text/html"], "405, the error page /etc/405.html"],
  ["/state", ["--client", "10.1.2.3"], "the status page"],
  ["/fixed", [], "200, a fixed response", "one", "two"],
])("%s with %j: %s", async (path, options, ...response) => {
  const text = await said("resolve", `https://files.example.org${path}`, ...options);
  const [, found] = /^ {2}response {8}([^]*?)\n {2}fields set {6}x-a: 1\n/m.exec(text)!;
  expect(found!.split(/\n +/)).toEqual(response);
});

const TIMES = ["request_time_ms", "time_to_first_byte_ms", "upstream_connect_ms", "upstream_wait_ms"];
const [AT_HAND, MADE, RESPONSE] = [
  "before the request got a connection to the upstream",
  "to open this connection",
  "to get the upstream's response, or the failure",
];
const [HEAD, BODY, ALL] = [
  "until the proxy sent the head of the response",
  "to send the body of the response",
  "in total",
];

/** What a log says of a request whose id is `abc`. */
function logged(fields: object): string {
  const log = join(openFolder(), "access.log");
  const request = {
    method: "GET",
    target: "/dav/a",
    scheme: "https",
    host: "files.example.org",
    status: 200,
  };
  const line = { time: "2026-11-21T10:01:22.000Z", remote_addr: "192.0.2.7", ...request, request_id: "abc" };
  writeFileSync(log, `${JSON.stringify({ ...line, ...fields })}\n`);
  return log;
}

test.each<[logged: (number | null)[], times: [what: string, ms: number][]]>([
  [
    [100, 80, 10, 50],
    [
      [AT_HAND, 30],
      [MADE, 10],
      [RESPONSE, 40],
      [HEAD, 80],
      [BODY, 20],
      [ALL, 100],
    ],
  ],
  [
    [100, null, 10, 50],
    [
      [AT_HAND, 50],
      [MADE, 10],
      [RESPONSE, 40],
      [ALL, 100],
    ],
  ],
  [
    [100, 80, null, 50],
    [
      [AT_HAND, 30],
      [RESPONSE, 50],
      [HEAD, 80],
      [BODY, 20],
      [ALL, 100],
    ],
  ],
  [
    [100, 80, null, null],
    [
      [HEAD, 80],
      [BODY, 20],
      [ALL, 100],
    ],
  ],
  [
    [30, 40, 60, 50],
    [
      [AT_HAND, 0],
      [MADE, 60],
      [RESPONSE, 0],
      [HEAD, 40],
      [BODY, 0],
      [ALL, 30],
    ],
  ],
])("times of a request that are logged as %j", async (values, times) => {
  const fields = Object.fromEntries(TIMES.map((name, i) => [name, values[i]]));
  const text = await said("why", "abc", "--log", logged(fields));
  const rows = [...text.matchAll(/^ *(\d+) ms {2}(.*)$/gm)].map(([, ms, what]) => [what, Number(ms)]);
  expect(rows).toEqual(times);
});

test.each([
  ["connection_refused", "nothing listens at the upstream's address"],
  ["a_new_one", "unknown to this version\n    fix: Look at the error log."],
  ["constructor", "unknown to this version"],
])("a failure that is logged as %s", async (error, message) => {
  const text = await said("why", "abc", "--log", logged({ error }));
  expect(text).toContain(`\nfailed: ${error}\n  ${message}\n`);
});

test.each([
  [null, [], null],
  [undefined, [], null],
  ["https://a.example/b", [], "https://a.example/b"],
  ["https://a.example/b?token=SECRET", [], "https://a.example/b?..."],
  ["https://a.example/b?token=SECRET", ["--show-secrets"], "https://a.example/b?token=SECRET"],
])("a referer that is logged as %j, with %j: %j", async (referer, options, shown) => {
  const text = await said("why", "abc", "--json", ...options, "--log", logged({ referer }));
  expect(JSON.parse(text)).toMatchObject({ request: { referer: shown } });
});
