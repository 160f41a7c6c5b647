import { normalisePath, parseHost } from "../../src/model/index.js";
import type { CaseOf, Difference, Pair } from "./case.js";
import { HOST, RESPONSE_HEADERS } from "../wire/site.js";

/** Something that Portico does otherwise than nginx. */
export interface Rule {
  /** The decision that allows it: an item of docs/decisions.md. */
  readonly allowedBy: string;
  readonly why: string;
  /** It shows in most cases, so that these need not list it. */
  readonly everywhere?: true;
  /** Whether it accounts for a difference. As narrow as can be: it looks at both sides. */
  explains(difference: Difference, pair: Pair): boolean;
}

/** Fact of a request that reached an upstream, without the number of the request: `field host`. */
export function upstreamFact({ fact }: Difference): string | undefined {
  return /^upstream(?:#\d+)? (.+)$/.exec(fact)?.[1];
}

/** Method and target of a case's first request, as the client writes them. */
function asked({ send }: CaseOf<string>): { method: string; target: string; host: string } {
  if ("target" in send) return { method: send.method ?? "GET", target: send.target, host: send.host ?? HOST };
  const [method = "", target = ""] = String(send.find((step) => typeof step === "string")).split(" ");
  return { method, target, host: HOST };
}

/** A URL with its path normalised, as nginx makes it: without a query that is empty, and a fragment. */
function normalised(url: string): string {
  const [path = "", ...query] = url.replace(/#.*$/, "").split("?");
  return `${normalisePath(path)} ${query.join("?")}`;
}

const CLAIMS = /^field (?:x-forwarded-.*|x-real-ip|forwarded|true-client-ip)$/;
const HOP_BY_HOP =
  /^field (?:proxy-authorization|proxy-connection|proxy-authenticate|trailer|upgrade|http2-settings)$/;

/** Portico refused the request, and let nothing of it through as if it were complete. */
function isRefused({ portico }: Pair): boolean {
  const refused = ["400", "417", "501", "505"].includes(portico["status"] ?? "");
  return refused && portico["connection"] !== "open" && portico["upstream complete"] !== "true";
}

/** A field that both configs set. */
const isSetField = (fact: string): boolean =>
  Object.keys(RESPONSE_HEADERS.set).some((name) => fact === `field ${name.toLowerCase()}`);

/** Every deviation that may be. */
export const RULES = {
  upstreamReuse: {
    allowedBy: "decisions 4.5",
    why: "upstream connections are reused",
    everywhere: true,
    explains: (d) =>
      upstreamFact(d) === "field connection" && d.nginx === "Connection: close" && d.portico === undefined,
  },
  publicForwardedHost: {
    allowedBy: "decisions 2.3",
    why: "X-Forwarded-Host is the public name, never `_`",
    everywhere: true,
    explains: (d) =>
      upstreamFact(d) === "field x-forwarded-host" &&
      d.nginx === "X-Forwarded-Host: _" &&
      d.portico === `X-Forwarded-Host: ${HOST}`,
  },
  hostNeverCatchAll: {
    allowedBy: "decisions 2.2",
    why: "a client that names no host is taken to mean the public name, never `_`",
    explains: (d) =>
      upstreamFact(d) === "field host" && d.nginx === "Host: _" && d.portico === `Host: ${HOST}`,
  },
  hostAsAsked: {
    allowedBy: "decisions 2.2",
    why: "Host goes on as the client wrote it, port included; nginx normalises it",
    explains: (d) => {
      const host = parseHost((d.portico ?? "").slice("Host: ".length).replace(/\{\w+\}/, "1"));
      const name = host?.serverName.includes(":") === true ? `[${host.serverName}]` : host?.serverName;
      return upstreamFact(d) === "field host" && name !== undefined && d.nginx === `Host: ${name}`;
    },
  },
  oneLabel: {
    allowedBy: "decisions 1.8",
    why: "`*` of a server name is one label, as in certificates; in nginx it is one or more",
    explains: (_, { nginx, portico }) => nginx["status"] === "204" && portico["status"] === "404",
  },
  segmentBoundary: {
    allowedBy: "decisions 1.4",
    why: "/synchttp and /syncmedia end at a segment boundary; what only begins so belongs to /sync",
    explains: (_, { portico, row }) => {
      const { method, target } = asked(row);
      return (
        portico["upstream name"] === "web" && portico["upstream line"] === `${method} ${target} HTTP/1.1`
      );
    },
  },
  rawStrip: {
    allowedBy: "decisions 2.1",
    why: "the prefix is cut from the raw target and the rest stays byte for byte; nginx decodes and encodes again",
    explains: (d, { row }) => {
      const { method, target } = asked(row);
      const rest = target.slice("/synchttp".length);
      return upstreamFact(d) === "line" && d.portico === `${method} ${rest} HTTP/1.1`;
    },
  },
  emptyRest: {
    allowedBy: "decisions 2.1",
    why: "an empty rest is `/`; nginx fails with 500",
    explains: (_, { nginx, portico }) =>
      nginx["status"] === "500" && / \/(?:[?#]\S*)? HTTP\/1\.1$/.test(portico["upstream line"] ?? ""),
  },
  claimsDropped: {
    allowedBy: "decisions 2.3",
    why: "forwarding fields of clients that are not trusted proxies are dropped",
    explains: (d) => CLAIMS.test(upstreamFact(d) ?? "") && d.portico === undefined,
  },
  namedByConnection: {
    allowedBy: "decisions 2.4",
    why: "fields that Connection names are removed, in both directions",
    explains: (d) => /^(?:upstream )?field x-foo$/.test(d.fact) && d.portico === undefined,
  },
  hopByHop: {
    allowedBy: "decisions 2.4",
    why: "hop-by-hop fields never cross, in either direction",
    explains: (d) => HOP_BY_HOP.test(upstreamFact(d) ?? d.fact) && d.portico === undefined,
  },
  accelDropped: {
    allowedBy: "decisions 2.4",
    why: "X-Accel fields of an upstream are dropped, never obeyed",
    explains: (_, { portico }) => portico["status"] === "200" && portico["body"] === "ok",
  },
  strictRequest: {
    allowedBy: "decisions 3.1",
    why: "a message that can be read in two ways is refused",
    explains: (_, pair) => isRefused(pair),
  },
  strictResponse: {
    allowedBy: "decisions 3.2",
    why: "a response that can be read in two ways is 502",
    explains: (d, { portico }) => portico["status"] === "502" && upstreamFact(d) === undefined,
  },
  anyToken: {
    allowedBy: "decisions 2.7",
    why: "any method that is a token passes, in lower case too",
    explains: (_, { nginx, portico }) => nginx["status"] === "400" && portico["status"] !== "0",
  },
  streamedBody: {
    allowedBy: "decisions 4.1",
    why: "request bodies stream; nginx collects them, and then knows their length",
    explains: (d, { nginx, portico }) => {
      const whole = portico["upstream complete"] === "true";
      if (!whole) return nginx["upstream"] === undefined && portico["upstream given up"] === "true";
      if (upstreamFact(d) === "field content-length") return d.portico === undefined;
      return upstreamFact(d) === "field transfer-encoding" && d.portico === "Transfer-Encoding: chunked";
    },
  },
  flushedAtOnce: {
    allowedBy: "decisions 4.1",
    why: "what came of a broken response was passed on at once; nginx holds some back, and drops it",
    explains: ({ fact, nginx = "", portico = "" }, pair) =>
      fact === "body" &&
      pair.portico["complete"] === "false" &&
      // Over HTTP/2 the reset of a broken response drops what is still queued, in either proxy.
      (portico.startsWith(nginx) || nginx.startsWith(portico)),
  },
  informationalDropped: {
    allowedBy: "decisions 4.3",
    why: "1xx responses of an upstream never end the exchange; nginx takes them for the final response",
    explains: (_, { nginx, portico }) => nginx["connection"] === "silent" && portico["status"] === "200",
  },
  halfClosedClient: {
    allowedBy: "decisions 4.4",
    why: "a client that closes its sending direction after the request still gets a response",
    explains: (_, { nginx, portico }) => nginx["status"] === "0" && portico["body"] === "web",
  },
  publicOrigin: {
    allowedBy: "decisions 5.1",
    why: "URLs at the upstream's own address become public ones: host and port as asked, the prefix put back",
    explains: ({ fact, nginx = "", portico = "" }, { channel, row, ...pair }) => {
      const origin = `${channel === "http" ? "http" : "https"}://${asked(row).host}`;
      const prefix = pair.portico["upstream name"] === "files" ? "/synchttp" : "";
      // Fields of one name are one fact.
      const theirs = nginx.split(" | ");
      const expected = theirs.map((value) => {
        const [, before, path] = /^((?:\d+; ?url=)?)(?:https?:\/\/[^/]+)?(.*)$/i.exec(value)!;
        return `${before}${origin}${prefix}${path!.startsWith("/") ? "" : "/"}${path}`;
      });
      const ours = portico.split(" | ");
      // One of several fields may be at the upstream's address, and another one be securedUrl's.
      const unmapped = channel === "http" ? theirs : theirs.map((value) => withTls(value, asked(row).host));
      return (
        /^field (?:location|content-location|refresh)$/.test(fact) &&
        ours.length === expected.length &&
        // Of several fields nginx changes the order.
        ours.every((value) => expected.includes(value) || theirs.includes(value) || unmapped.includes(value))
      );
    },
  },
  securedUrl: {
    allowedBy: "decisions 5.1",
    why: "over TLS, a URL of the requested host with http gets https",
    explains: ({ fact, nginx = "", portico = "" }, { channel, row }) =>
      channel !== "http" &&
      /^field (?:location|content-location|refresh)$/.test(fact) &&
      sameValues(portico, withTls(nginx, asked(row).host)),
  },
  cookiePath: {
    allowedBy: "decisions 5.1",
    why: "the path of a cookie gets the prefix that is cut from the request, as URLs do",
    explains: ({ fact, nginx = "", portico = "" }) =>
      fact === "field set-cookie" && sameValues(portico, nginx.replaceAll("Path=/", "Path=/synchttp")),
  },
  destinationPath: {
    allowedBy: "decisions 2.5",
    why: "a WebDAV Destination that points here becomes what the upstream expects: its path",
    explains: (d, { row }) => {
      const here = parseHost(asked(row).host)?.serverName;
      const theirs = (d.nginx ?? "").split(/destination: /i);
      const ours = (d.portico ?? "").split(/destination: /i);
      const led = (value: string): string => {
        const [, authority = "", path] = /^https?:\/\/([^/ ]+)(\/.*)$/.exec(value) ?? [];
        return path !== undefined && parseHost(authority)?.serverName === here ? path : value;
      };
      return (
        upstreamFact(d) === "field destination" &&
        ours.length === theirs.length &&
        ours.every((value, i) => value === theirs[i] || value === led(theirs[i]!))
      );
    },
  },
  readOnlyFiles: {
    allowedBy: "decisions 6.1",
    why: "static files know GET and HEAD only: anything else is 405, whatever its body, and Allow says so",
    explains: ({ fact }, { nginx, portico }) =>
      portico["status"] === "405" &&
      portico["field allow"] === "GET, HEAD" &&
      (fact === "field allow" || ["301", "403", "404", "413"].includes(nginx["status"]!)),
  },
  dateConditions: {
    allowedBy: "decisions 6.4",
    why: "RFC 9110: If-Modified-Since with a later date is 304; nginx wants the exact date",
    explains: (_, { nginx, portico }) => nginx["status"] === "200" && portico["status"] === "304",
  },
  headHasNoRanges: {
    allowedBy: "decisions 6.5",
    why: "RFC 9110, 14.2: only GET has ranges; nginx obeys them for HEAD as well",
    explains: (_, { nginx, portico, row }) =>
      (row.send as { method?: string }).method === "HEAD" &&
      ["206", "416"].includes(nginx["status"]!) &&
      portico["status"] === "200",
  },
  preconditionKeepsConnection: {
    allowedBy: "decisions 4.8",
    why: "RFC 9110: 412 is a response like any other; nginx closes the connection behind it",
    explains: ({ fact }, { portico }) => fact === "connection" && portico["status"] === "412",
  },
  linksInside: {
    allowedBy: "decisions 6.2",
    why: "symbolic links cannot leave the directory",
    explains: (_, { portico }) => portico["status"] === "403",
  },
  noListing: {
    allowedBy: "decisions 6.3",
    why: "a directory is 403; nginx looks for an index file outside the location, and says 404",
    explains: (_, { nginx, portico }) => nginx["status"] === "404" && portico["status"] === "403",
  },
  directoryRedirect: {
    allowedBy: "decisions 6.3",
    why: "nginx leads to the internal path /media, which is a dead link",
    explains: ({ fact, nginx = "", portico = "" }) =>
      fact === "field location" &&
      normalised(portico) === normalised(nginx.replace(/^https?:\/\/[^/]+\/media/, "/syncmedia")),
  },
  setFieldsOnce: {
    allowedBy: "decisions 5.5",
    why: "nginx has the fields of add_header twice in a 416",
    everywhere: true,
    explains: ({ fact, nginx, portico }, pair) =>
      isSetField(fact) && pair.nginx["status"] === "416" && nginx === `${portico} | ${portico}`,
  },
  unroutedServer: {
    allowedBy: "decisions 1.6",
    why: "a head that cannot be parsed is refused by the default server, before its host is known",
    explains: ({ fact, portico }, pair) =>
      (fact === "server" ? portico === "with version" : isSetField(fact) && portico === undefined) &&
      isRefused(pair) &&
      pair.nginx["status"] === pair.portico["status"],
  },
  redirectOnlySync: {
    allowedBy: "decisions 1.5",
    why: "on port 80 in TLS mode other paths than /sync are 404, also where nginx's package has a page",
    explains: (_, { channel, portico }) => channel === "redirect" && portico["status"] === "404",
  },
  webSocket: {
    allowedBy: "decisions 2.6",
    why: "WebSocket passes",
    explains: (d) =>
      (upstreamFact(d) === "field connection" && d.portico === "Connection: Upgrade") ||
      (upstreamFact(d) === "field upgrade" && d.portico === "Upgrade: websocket"),
  },
  http09Refused: {
    allowedBy: "decisions 3.4",
    why: "HTTP/0.9 is refused",
    explains: (_, { nginx, portico }) => nginx["version"] === undefined && portico["status"] === "400",
  },
  noLengthOf204: {
    allowedBy: "decisions 5.2 (RFC 9110, 8.6)",
    why: "Content-Length: 0 of a 204 does not pass; RFC 9110, 8.6 forbids it, nginx passes it",
    explains: ({ fact }, { portico }) => fact === "field content-length" && portico["status"] === "204",
  },
  redirectTakesAnyBody: {
    allowedBy: "decisions 1.5",
    why: "a body above 1 MiB for the redirect is 413 in nginx",
    explains: (_, { nginx, portico }) => nginx["status"] === "413" && portico["status"] === "301",
  },
  mediaTypes: {
    allowedBy: "decisions 6.6",
    why: "types of files are those registered now (RFC 9239: text/javascript)",
    explains: ({ fact }) => fact === "field content-type",
  },
  pagePadding: {
    allowedBy: "decisions 5.3",
    why: "nginx pads error pages for browsers with comments",
    explains: ({ fact, nginx = "" }) =>
      fact === "field content-length" || nginx.includes("a padding to disable MSIE"),
  },
  longFieldLine: {
    allowedBy: "decisions 3.3",
    why: "a field line above 8 KiB is 400 in nginx; Portico limits the whole head to 32 KiB",
    explains: (_, { nginx, portico }) => nginx["status"] === "400" && portico["status"] === "200",
  },
  manyFields: {
    allowedBy: "decisions 3.3",
    why: "more than 200 fields are 400; nginx counts only bytes",
    explains: (_, { nginx, portico }) => nginx["status"] === "200" && portico["status"] === "400",
  },
  foldedField: {
    allowedBy: "decisions 3.2",
    why: "a field of a response that continues on the next line is joined by a blank; 502 in nginx",
    explains: (_, { nginx, portico }) => nginx["status"] === "502" && portico["status"] === "200",
  },
  longResponseHead: {
    allowedBy: "decisions 3.3",
    why: "a response head above 4 KiB is 502 in nginx; Portico takes 64 KiB",
    explains: (_, { nginx, portico }) => nginx["status"] === "502" && portico["status"] === "200",
  },
} as const satisfies Record<string, Rule>;

/** Values of fields with one name, in any order. */
const sameValues = (one: string, other: string): boolean =>
  one.split(" | ").sort().join(" | ") === other.split(" | ").sort().join(" | ");

export type RuleName = keyof typeof RULES;

/** A case with the deviations that it shows. */
export type Case = CaseOf<RuleName>;

/** URLs of a host with `https` in place of `http`; a host is the same in either case (RFC 9110, 4.2.3). */
function withTls(value: string, host: string): string {
  const same = host.replaceAll(/[^\w-]/g, String.raw`\$&`);
  return value.replaceAll(new RegExp(`http(?=://${same}/)`, "gi"), "https");
}
