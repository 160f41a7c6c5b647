import { RULES, type Rule, type RuleName, upstreamFact } from "../deviations.js";
import { HOST } from "../../wire/site.js";
import { normalisePath, parseHost } from "../../../src/model/index.js";
import type { GeneratedCase } from "./generate.js";

/** A deviation that generated requests may show. */
export interface GeneratedRule extends Rule {
  /** Requests that it can be about at all: a rule explains nothing elsewhere. */
  about(generated: GeneratedCase): boolean;
}

const always = (): boolean => true;

const names = (generated: GeneratedCase): string[] => generated.fields.map(([name]) => name.toLowerCase());
const responseNames = ({ response }: GeneratedCase): string[] =>
  response.fields.map(([name]) => name.toLowerCase());
const has = (pattern: RegExp) => (generated: GeneratedCase) =>
  names(generated).some((name) => pattern.test(name));
const responds = (pattern: RegExp) => (generated: GeneratedCase) =>
  responseNames(generated).some((name) => pattern.test(name));
const pathOf = ({ target }: GeneratedCase): string => normalisePath(target) ?? "";
const below = (path: string, prefix: string): boolean => path === prefix || path.startsWith(`${prefix}/`);
const isMedia = (generated: GeneratedCase): boolean => below(pathOf(generated), "/syncmedia");
const isFileServer = (generated: GeneratedCase): boolean => below(pathOf(generated), "/synchttp");
const isRead = ({ method }: GeneratedCase): boolean => method === "GET" || method === "HEAD";

type About = GeneratedRule["about"];

/** Deviations of the table that generated requests show as well, and which. */
const SHOWN = {
  upstreamReuse: always,
  setFieldsOnce: (generated) => isMedia(generated) || pathOf(generated) === "/",
  publicForwardedHost: always,
  hostNeverCatchAll: ({ host }) => host === undefined,
  hostAsAsked: ({ host }) => host !== HOST,
  segmentBoundary: (generated) =>
    /^\/(?:synchttp|syncmedia)[^/]/.test(pathOf(generated)) &&
    !isMedia(generated) &&
    !isFileServer(generated),
  rawStrip: ({ target }) => target.startsWith("/synchttp"),
  emptyRest: (generated) => pathOf(generated) === "/synchttp",
  claimsDropped: has(/^(?:x-forwarded-.*|x-real-ip|forwarded|true-client-ip)$/),
  namedByConnection: (generated) => has(/^connection$/)(generated) || responds(/^connection$/)(generated),
  hopByHop: always,
  streamedBody: ({ body }) => body?.framing === "chunked",
  readOnlyFiles: (generated) => !isRead(generated),
  dateConditions: has(/^if-modified-since$/),
  preconditionKeepsConnection: has(/^if-(?:unmodified|match)/),
  linksInside: ({ target }) => target.includes("link-"),
  noListing: isMedia,
  directoryRedirect: isMedia,
  mediaTypes: ({ target }) => /\.js\b/.test(target),
  noLengthOf204: ({ response }) => response.status.startsWith("204"),
  anyToken: ({ method }) => /[a-z]/.test(method),
  headHasNoRanges: has(/^range$/),
  publicOrigin: responds(/^(?:location|content-location|refresh)$/),
  securedUrl: responds(/^(?:location|content-location|refresh)$/),
  cookiePath: (generated) => isFileServer(generated) && responds(/^set-cookie$/)(generated),
  destinationPath: has(/^destination$/),
  redirectOnlySync: ({ channel }) => channel === "redirect",
  webSocket: has(/^upgrade$/),
  unroutedServer: always,
  strictRequest: ({ host }) => host !== undefined && parseHost(host) === undefined,
} as const satisfies Partial<Record<RuleName, About>>;

/** Those that no row of the table shows. */
const ONLY_GENERATED = {
  typeOf204: {
    allowedBy: "decisions 5.2",
    why: "Content-Type of a 204 passes, as over HTTP/1.1; over HTTP/2 nginx drops it",
    about: ({ channel, response }) => channel === "h2" && response.status.startsWith("204"),
    explains: ({ fact, nginx }) => fact === "field content-type" && nginx === undefined,
  },
  malformedAuthority: {
    allowedBy: "decisions 3.1",
    why: "over HTTP/2 a request without a host, or with a blank in it, is a stream error; nginx responds with 400",
    about: ({ channel, host = "" }) => channel === "h2" && (host === "" || host.includes(" ")),
    explains: (_, { nginx, portico }) => nginx["status"] === "400" && portico["status"] === "0",
  },
  rewriteEndsAtLine: {
    allowedBy: "decisions 2.1",
    why: "a line feed is a byte of the path like any other; nginx's rewrite ends there, or does not match",
    about: (generated) => pathOf(generated).includes("\n"),
    explains: (d, { nginx, portico }) =>
      upstreamFact(d) === "line"
        ? portico["upstream line"]!.includes("%0")
        : portico["status"] === "404" && ["301", "403", "404"].includes(nginx["status"]!),
  },
  invalidDate: {
    allowedBy: "decisions 6.4",
    why: "RFC 9110, 13.1.4: a date that is none is ignored; nginx takes it for an early one",
    about: has(/^if-(?:un)?modified-since$/),
    explains: (_, { nginx, portico }) =>
      ["304", "412"].includes(nginx["status"]!) && ["200", "206", "304", "416"].includes(portico["status"]!),
  },
  emptyQuery: {
    allowedBy: "decisions 2.1",
    why: "the query goes on as it came, also when it is empty; nginx drops it where it rebuilds the target",
    about: ({ target }) => target.includes("?"),
    explains: (d) => upstreamFact(d) === "line" && d.portico === d.nginx?.replace(/(?= HTTP\/)/, "?"),
  },
  rangesAsStandard: {
    allowedBy: "decisions 6.5",
    why: "RFC 9110, 5.6.1 and 14.1.2: empty members of a list are ignored, positions may be beyond the file, however far",
    about: ({ fields }) =>
      fields.some(([name, value]) => name === "Range" && /\d{19,}|=\s*,|,\s*(?:,|$)/.test(value)),
    explains: (_, { nginx, portico }) =>
      nginx["status"] === "416" && ["200", "206", "304", "412"].includes(portico["status"]!),
  },
  twoRanges: {
    allowedBy: "decisions 6.5",
    why: "Range is not a list: two of them are none that can be satisfied; nginx reads the first",
    about: (generated) => names(generated).filter((name) => name === "range").length > 1,
    explains: (_, { portico }) => portico["status"] === "416",
  },
  rangeOfNothing: {
    allowedBy: "decisions 6.5",
    why: "RFC 9110, 14.2: a range that is none is ignored; nginx refuses it also for an empty file",
    about: ({ target }) => target.includes("empty.txt"),
    explains: (_, { nginx, portico }) =>
      nginx["status"] === "416" && ["200", "304", "412"].includes(portico["status"]!),
  },
  fragment: {
    allowedBy: "decisions 1.3 (RFC 9112, 3.2)",
    why: "a target has no fragment; nginx drops it, or passes it on",
    about: ({ target }) => target.includes("#"),
    explains: (_, { portico }) => portico["status"] === "400" && portico["upstream complete"] !== "true",
  },
  emptyChain: {
    allowedBy: "decisions 2.3",
    why: "an empty X-Forwarded-For adds nothing to the chain; nginx keeps an empty first member",
    about: has(/^x-forwarded-for$/),
    explains: (d) =>
      upstreamFact(d) === "field x-forwarded-for" && d.portico === d.nginx?.replaceAll(/(?<=: |, ), /g, ""),
  },
  closeWins: {
    allowedBy: "decisions 2.4 (RFC 9112, 9.6)",
    why: "close among the Connection options closes, whatever else is there; in nginx the last field counts",
    about: ({ fields }) => fields.filter(([name]) => name.toLowerCase() === "connection").length > 1,
    explains: ({ fact, portico }, { row }) =>
      fact === "connection" &&
      portico === "closed" &&
      (row.send as GeneratedCase).fields.some(
        ([name, value]) => name === "Connection" && /\bclose\b/.test(value),
      ),
  },
  traceFirst: {
    allowedBy: "decisions 2.7",
    why: "TRACE is refused as such, whatever else is wrong with it",
    about: ({ method }) => method === "TRACE",
    explains: (_, { nginx, portico }) => nginx["status"] === "400" && portico["status"] === "405",
  },
  oneContentType: {
    allowedBy: "decisions 3.2",
    why: "of several Content-Types the last passes as it is; nginx adds the charset of another",
    about: (generated) => responseNames(generated).filter((name) => name === "content-type").length > 1,
    explains: ({ fact, nginx = "", portico = "" }) =>
      fact === "field content-type" && nginx === `${portico}; charset=utf-8`,
  },
  unroutedMethod: {
    allowedBy: "decisions 1.5",
    why: "a path of no route is 404, whatever the method; nginx has a folder of its own there, with 405",
    about: (generated) => !isRead(generated) && !pathOf(generated).startsWith("/sync"),
    explains: (_, { nginx, portico }) => nginx["status"] === "405" && portico["status"] === "404",
  },
  unroutedFile: {
    allowedBy: "decisions 1.5",
    why: "a path of no route is 404; nginx serves files of a folder of its own there, after it has merged slashes",
    about: (generated) => isRead(generated) && !pathOf(generated).startsWith("/sync"),
    explains: (_, { nginx, portico }) =>
      ["200", "206", "304", "412", "416"].includes(nginx["status"]!) && portico["status"] === "404",
  },
  upgradeInHttp2: {
    allowedBy: "decisions 2.4",
    why: "hop-by-hop fields of a response do not pass; nginx sends Upgrade over HTTP/2, and the client refuses it",
    about: (generated) => generated.channel === "h2" && responds(/^upgrade$/)(generated),
    explains: (_, { nginx, portico }) => nginx["status"] === "0" && portico["complete"] === "true",
  },
  undrainedBody: {
    allowedBy: "decisions 4.3",
    why: "an unread body that is long, or of unknown length, is not waited for: the connection closes",
    about: ({ body }) =>
      body !== undefined && (body.framing === "chunked" || body.pieces.join("").length > 65_536),
    explains: ({ fact }, { portico }) =>
      fact === "connection" && portico["connection"] === "closed" && portico["upstream"] === undefined,
  },
  destinationElsewhere: {
    allowedBy: "decisions 2.5",
    why: "RFC 4918, 9.8.5: a Destination on this host that the stripped upstream cannot name is 502; nginx passes it",
    about: (generated) => has(/^destination$/)(generated) && isFileServer(generated),
    explains: (_, { portico }) => portico["status"] === "502" && portico["upstream"] === undefined,
  },
} as const satisfies Record<string, GeneratedRule>;

export type GeneratedRuleName = keyof typeof SHOWN | keyof typeof ONLY_GENERATED;

/** Every deviation that generated requests may show. */
export const GENERATED_RULES: Readonly<Record<GeneratedRuleName, GeneratedRule>> = {
  ...(Object.fromEntries(
    Object.entries(SHOWN).map(([name, about]) => [name, { ...RULES[name as keyof typeof SHOWN], about }]),
  ) as Record<keyof typeof SHOWN, GeneratedRule>),
  ...ONLY_GENERATED,
};

/** Rules that a request may be about, with their names. */
export function rulesFor(generated: GeneratedCase): [GeneratedRuleName, GeneratedRule][] {
  const all = Object.entries(GENERATED_RULES) as [GeneratedRuleName, GeneratedRule][];
  return all.filter(([, rule]) => rule.about(generated));
}
