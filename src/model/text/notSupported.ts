import type { ProblemCode } from "./problem.js";

/** Something that other proxies do and this one does not; README, "What it does not do", has the same words. */
export interface NotSupported {
  readonly what: string;
  /** Way out. */
  readonly instead: string;
  /** Names under which other proxies have it. Case, `-` and `_` make no difference. */
  readonly names: readonly string[];
  /** The names have this meaning only where one of these fields is known; default: everywhere. */
  readonly beside?: readonly string[];
  /** Values that ask for it, by the code of their problem. */
  readonly values?: { readonly [code in ProblemCode]?: RegExp };
}

const UPSTREAM = ["connectTimeoutMs"];

export const NOT_SUPPORTED: readonly NotSupported[] = [
  {
    what: "passive health checks by the status of responses",
    instead:
      "`health` checks each of several `servers` at intervals, and the proxy leaves out a server whose checks fail or that " +
      "does not respond; a single server gets every request.",
    names: ["healthCheck", "healthChecks", "maxFails", "failTimeout", "failDuration", "outlierDetection"],
    beside: UPSTREAM,
  },
  {
    what: "FastCGI, uWSGI, SCGI, gRPC or HTTP/2 to an upstream",
    instead:
      "Let the application speak HTTP/1.1: gunicorn and uvicorn do, and gRPC-Web needs no more; for PHP, run a web server " +
      "beside the application.",
    names: [
      ...["fastcgi", "fastcgiPass", "uwsgi", "uwsgiPass", "scgiPass", "grpc", "grpcPass", "phpFastcgi"],
      ...["h2c", "proxyHttpVersion"],
    ],
    values: { "config.bad-url": /^(?:fastcgi|uwsgi|scgi|grpcs?|h2c?):/i },
  },
  {
    what: "rewriting of paths by a pattern, or of bodies",
    instead:
      "`rewrite` of `Action.proxy` replaces the route's path with another path, `strip` removes the route's path; let the " +
      "application change anything else.",
    names: [
      ...["pathRewrite", "replacePath", "replacePathRegex", "stripPrefix", "addPrefix"],
      ...["handlePath", "subFilter"],
    ],
    values: { "config.bad-url": /^https?:\/\/(?!unix:)[^/?#@]+\/./i },
  },
  {
    what: "a pattern as the path of a route",
    instead: "Add a route for each path; `match` is `prefix`, `segment` or `exact`.",
    names: ["regex", "pathRegex", "pathRegexp", "regexp", "pattern", "matcher"],
    values: { "config.bad-route-path": /^[~^@]|[*$\\()|]/ },
  },
  {
    what: "access by an address or a password, whichever fits (`satisfy any`)",
    instead:
      "Each condition of a policy has to hold. Give the clients at known addresses a site of their own, with another name " +
      "and `allow`.",
    names: ["satisfy", "satisfyAny"],
  },
  {
    what: "access by country",
    instead: "Download the ranges of the countries, and name the file in `denyFile` of `access`.",
    names: ["geo", "geoip"],
  },
  {
    what: "limits of bytes per second",
    instead:
      "`rateLimit` and `concurrencyMax` of a route bound the requests of a client, and `clientSharePercent` bounds its " +
      "share of an upstream; limit bytes in the application.",
    names: ["limitRate", "throttle", "bandwidth"],
  },
  {
    what: "replacement of an upstream's error pages",
    instead:
      "The proxy passes an upstream's error responses on. `errorPages` of a virtual server replace the proxy's own responses, " +
      "such as 404, 413, 502 and 503.",
    names: ["handleErrors", "errorFile", "errors", "proxyInterceptErrors", "interceptErrors"],
  },
  {
    what: "a pattern as a server name",
    instead:
      "`*.example.org` matches every name with one more label. Otherwise list each name, or use `_` on the default server " +
      "for all names that no other server has.",
    names: ["hostRegexp", "serverNameRegex", "wildcard"],
    values: { "config.bad-server-name": /^[~.]|\*/ },
  },
  {
    what: "a fallback to one page for paths without a file",
    instead:
      "Proxy to a server that has such a fallback, such as `npx serve --single`, or let the single-page application keep its paths " +
      "after `#`.",
    names: ["tryFiles", "fallback", "spa", "singlePage", "historyApiFallback", "notFound"],
  },
  {
    what: "directory listings",
    instead: "Write an `index.html`, or proxy to the application that manages the files.",
    names: ["autoindex", "browse", "listing", "directoryListing", "dirlisting"],
  },
  {
    what: "compression",
    instead:
      "Let the application compress responses that contain no secret: the proxy passes them on unchanged. `precompressed` of " +
      "`Action.staticFiles` sends files that a build has compressed.",
    names: [
      "gzip",
      "gzipTypes",
      "gzipStatic",
      "brotli",
      "zstd",
      "compress",
      "compression",
      "encode",
      "precompressed",
    ],
  },
  {
    what: "a cache of responses, or buffers on disk",
    instead:
      "Put a cache, such as Varnish or a content delivery network, in front of the proxy; `cacheControl` tells " +
      "clients how long to keep files.",
    names: ["cache", "proxyCache", "proxyBuffering", "buffering", "expires", "proxyRequestBuffering"],
  },
  {
    what: "upgrades other than WebSocket, unless a route names them",
    instead:
      '`upgrades: ["websocket", "proxmox-backup-protocol-v1"]` of `Action.proxy` forwards them. The error log names those ' +
      "that the proxy drops. `h2c` and `TLS/…` are never forwarded.",
    names: ["upgrade", "upgradeConfigs"],
  },
  {
    what: "HTTP/3",
    instead:
      "Browsers use HTTP/2. A load balancer or content delivery network in front of the proxy can add HTTP/3.",
    names: ["http3", "quic", "h3", "altSvc"],
  },
  {
    what: "connections of other protocols than HTTP (TCP, UDP)",
    instead:
      "Use HAProxy, or forward the port with the packet filter, beside this proxy and on another port.",
    names: ["streams", "tcpRouters", "udp", "passthrough", "sslPassthrough", "sniPassthrough", "layer4"],
  },
  {
    what: "routes by methods, query or request fields",
    instead:
      "Routes have paths only. Give each case a name of its own, or its own path, or let the application decide; " +
      "`writes` says which requests change something.",
    names: [
      ...["method", "methods", "query", "queryRegexp", "headerRegexp", "headersRegexp", "cookieMatch"],
      ...["hdr", "acl", "acls", "useBackend", "rule", "rules", "priority"],
    ],
    beside: ["match", "serverNames", "virtualServers"],
  },
  {
    what: "cross-origin rules (CORS)",
    instead:
      'Let the application send the fields, because it knows who asks; fixed ones are `responseHeaders: { set: { "Access-Control-Allow-Origin": "https://app.example.org" } }` ' +
      "of the route, and a preflight (`OPTIONS`) still goes to the application.",
    names: [
      ...["cors", "corsPolicy", "allowOrigin", "allowOrigins", "accessControlAllowOrigin"],
      ...["accessControlAllowOriginList", "accessControlAllowMethods", "allowedOrigins"],
    ],
  },
  {
    what: "access logs with a format of your own",
    instead:
      "the format `json` has every value under a name, for the program that reads the log. `logs.clientAddress` shortens " +
      'addresses or leaves them out, `logQuery` of a route does so with queries, and `accessLog: "off"` keeps nothing.',
    names: ["logFields", "filters", "accessLogFields"],
    beside: ["match", "serverNames", "virtualServers", "format", "access", "logs"],
  },
];

/** The fix for a value that requests an unsupported feature, or is a name in another script. */
export function badValueFix(code: ProblemCode, value: unknown): { readonly fix?: string } {
  const absent = NOT_SUPPORTED.find(
    ({ values }) => typeof value === "string" && values?.[code]?.test(value) === true,
  );
  if (absent !== undefined) return { fix: said(absent) };
  const ascii = NAME_CODES.includes(code) && typeof value === "string" ? asciiName(value) : undefined;
  return ascii === undefined ? {} : { fix: `Use the name in the form that the DNS has: \`${ascii}\`.` };
}

const NAME_CODES: readonly ProblemCode[] = ["acme.bad-name", "config.bad-server-name", "host.bad-name"];

/** The name as it is sent (RFC 5891), or undefined for a name that is in ASCII already, and for no name. */
function asciiName(name: string): string | undefined {
  if (/^[ -~]*$/.test(name) || /[ -,/:-@[-^`{-~]/.test(name)) return undefined;
  const url = `http://${name}`;
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}

/** A name without what spellings differ in. */
export const plainName = (name: string): string => name.toLowerCase().replace(/[-_]/g, "");

export const said = ({ what, instead }: NotSupported): string => `Not supported: ${what}. ${instead}`;
