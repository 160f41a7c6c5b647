import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseConfig } from "../../src/model/index.js";
import { NOT_SUPPORTED } from "../../src/model/text/notSupported.js";

/** What other proxies do and this one does not: the message for such a field or value says what to do instead. */

test("README lists each of them, with the same words as the errors", () => {
  const readme = readFileSync(join(__dirname, "../../README.md"), "utf8");
  const section = readme.split(/^## /m).find((text) => text.startsWith("What it does not do\n"))!;
  const items = [...section.matchAll(/^\| (.+?) +\| (.+?) +\|$/gm)]
    .slice(2)
    .map(([, what, instead]) => `${what}. ${instead}`);
  const plain = (text: string): string => text.replace(/\s+/g, " ").trim().toLowerCase();
  expect(items.map(plain)).toEqual(NOT_SUPPORTED.map(({ what, instead }) => plain(`${what}. ${instead}`)));
});

/** A config with these fields more at each place, or with others in their place. */
function config(more: Partial<Record<Place, object>>): object {
  const action = { type: "proxy", upstream: "app", ...more.action };
  const route = { name: "all", path: "/", action, ...more.route };
  const listener = { name: "http", address: "127.0.0.1", port: 80, protocol: "http", ...more.listener };
  return {
    version: 1,
    listeners: [listener],
    upstreams: [{ name: "app", url: "http://127.0.0.1:8000", ...more.upstream }],
    virtualServers: [
      {
        name: "site",
        serverNames: ["_"],
        default: true,
        listeners: ["http"],
        routes: [route],
        ...more.server,
      },
    ],
  };
}

const EVERYWHERE = ["listener", "server", "route", "action", "upstream"] as const;
type Place = (typeof EVERYWHERE)[number];

const fixesOf = (document: object): string[] => {
  const parsed = parseConfig(document);
  return parsed.ok ? [] : parsed.problems.map(({ fix }) => fix);
};

/**
 * What users of other proxies type, and the begin of the messages: directives of nginx and Caddy, keys of Traefik,
 * Envoy and HAProxy, options of the servers that come with web frameworks. A table of its own: one that came from the source
 * would be wrong where the source is.
 */
const TYPED: readonly [what: string, typed: string, places?: readonly Place[]][] = [
  [
    "passive health checks",
    "health_check healthCheck health_checks max_fails fail_timeout fail_duration outlier_detection",
    ["upstream"],
  ],
  ["upgrades other than WebSocket", "upgrade upgrade_configs upgradeConfigs"],
  [
    "FastCGI, uWSGI, SCGI, gRPC or HTTP/2",
    "fastcgi_pass fastcgi php_fastcgi uwsgi_pass uwsgi scgi_pass grpc_pass grpc h2c proxy_http_version",
  ],
  [
    "rewriting of paths by a pattern, or of bodies",
    "sub_filter handle_path replacePath replacePathRegex stripPrefix addPrefix pathRewrite",
  ],
  ["a pattern as the path", "PathRegexp path_regexp path-regex regexp regex pattern matcher"],
  ["access by an address or a password", "satisfy satisfy_any"],
  ["access by country", "geo geoip"],
  ["limits of bytes per second", "limit_rate limitRate throttle bandwidth"],
  [
    "replacement of an upstream's error pages",
    "proxy_intercept_errors intercept_errors handle_errors errorfile errors",
  ],
  ["a pattern as a server name", "HostRegexp server_name_regex wildcard"],
  ["a fallback to one page", "try_files fallback historyApiFallback single-page spa not_found"],
  ["directory listings", "autoindex browse directory-listing dir-listing dirlisting listing"],
  ["compression", "gzip gzip_types gzip_static brotli zstd encode precompressed compress compression"],
  [
    "a cache of responses, or buffers on disk",
    "proxy_cache proxy_buffering proxy_request_buffering expires buffering cache",
  ],
  ["HTTP/3", "http3 h3 quic alt-svc Alt-Svc"],
  [
    "connections of other protocols",
    "streams tcpRouters udp passthrough ssl-passthrough sniPassthrough layer4",
  ],
  [
    "routes by methods, query or request fields",
    "method methods query QueryRegexp header_regexp HeadersRegexp cookieMatch hdr acl acls use_backend rule rules priority",
    ["server", "route"],
  ],
  [
    "cross-origin rules",
    "cors corsPolicy allow_origin allow_origins Access-Control-Allow-Origin accessControlAllowOriginList " +
      "Access-Control-Allow-Methods allowedOrigins",
  ],
  ["access logs with a format of your own", "logFields filters accessLogFields", ["server", "route"]],
];

const plain = (name: string): string => name.toLowerCase().replace(/[-_]/g, "");

test.each(TYPED)("%s is what is not supported of %s", (what, typed, places = EVERYWHERE) => {
  const [one, ...others] = NOT_SUPPORTED.filter((each) => each.what.startsWith(what));
  expect(others).toEqual([]);
  const fix = `Not supported: ${one!.what}. ${one!.instead}`;
  for (const name of typed.split(" "))
    for (const place of places)
      expect([name, place, fixesOf(config({ [place]: { [name]: "x" } }))]).toEqual([name, place, [fix]]);
});

test("each name of the table is one that users type, in its row", () => {
  const typedFor = (what: string): string[] =>
    TYPED.filter(([begin]) => what.startsWith(begin)).flatMap(([, typed]) => typed.split(" ").map(plain));
  const unknown = NOT_SUPPORTED.flatMap(({ what, names }) =>
    names.filter((name) => !typedFor(what).includes(plain(name))),
  );
  expect(unknown).toEqual([]);
});

/** Values that other proxies take in the same places. */
test.each<[what: string, values: string[], more: (value: string) => Parameters<typeof config>[0]]>([
  [
    "FastCGI",
    ["fastcgi", "uwsgi", "scgi", "grpc", "grpcs", "h2", "h2c", "FastCGI"].map((s) => `${s}://127.0.0.1:9000`),
    (url) => ({ upstream: { url } }),
  ],
  [
    "rewriting of paths",
    ["http://app:8000/base", "https://app/base/", "http://app:8000/$1"],
    (url) => ({ upstream: { url } }),
  ],
  [
    "a pattern as the path",
    ["~ \\.php$", "^/a", "@app", "*.php", "php$", "\\.php", "(a", "a)", "a|b"],
    (path) => ({ route: { path } }),
  ],
  [
    "a pattern as a server",
    ["www.*", "*", "~^www", ".example.org"],
    (name) => ({ server: { serverNames: [name] } }),
  ],
])("the message for %s says what there is instead, for %j", (what, values, more) => {
  const begin = expect.stringMatching(`^Not supported: ${what}`);
  for (const value of values) expect([value, fixesOf(config(more(value)))]).toEqual([value, [begin]]);
});

test.each([
  [
    "a name of elsewhere that means something else there",
    { server: { servers: [] } },
    /^The field belongs to an upstream/,
  ],
  ["a check of servers where there are none", { route: { health_check: "x" } }, /^Remove the field/],
  ["a typing error", { upstream: { urll: "x" } }, /Did you mean `url`/],
  ["a bad port", { upstream: { url: "http://app:99999" } }, /^Use `http:\/\/HOST:PORT`/],
  [
    "a bad port of a URL that ends in /",
    { upstream: { url: "http://app:99999/" } },
    /^Use `http:\/\/HOST:PORT`/,
  ],
])("%s is not", (_, more, fix) => {
  expect(fixesOf(config(more))).toEqual([expect.stringMatching(fix)]);
});
