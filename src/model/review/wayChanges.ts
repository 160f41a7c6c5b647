import {
  isLoopback,
  type RouteConfig,
  serversOf,
  type UpstreamConfig,
  upstreamAddress,
  upstreamScheme,
  type ResponseFieldRules,
  responseFieldRules,
} from "../index.js";
import { allowsMore, rateText } from "../config/rateChecks.js";
import { printableValue } from "../text/printable.js";
import type { ReviewChange } from "./findings.js";
import { accessChanges } from "./accessChanges.js";
import { widened } from "./listenerChanges.js";
import { raised } from "./settingChanges.js";
import { leadsInside, type Reach, type WayIn, writesOf } from "./ways.js";

type KnownWay = WayIn | undefined;

/** The changes for requests that took one way and now take another; either may be none. Each pair is compared once. */
export function wayChanges(
  before: Reach,
  after: Reach,
): (was: KnownWay, is: KnownWay) => readonly ReviewChange[] {
  const known = new Map<KnownWay, Map<KnownWay, readonly ReviewChange[]>>();
  return (was, is) => {
    const row = known.get(was) ?? new Map<KnownWay, readonly ReviewChange[]>();
    known.set(was, row);
    const changes = row.get(is) ?? compared(was, is, before, after);
    row.set(is, changes);
    return changes;
  };
}

function compared(was: KnownWay, is: KnownWay, before: Reach, after: Reach): readonly ReviewChange[] {
  if (is === undefined)
    return was === undefined
      ? []
      : [{ id: "way.closed", place: was.place, document: "old", old: said(was), new: "404" }];
  const place = is.place;
  const id = leadsInside(is)
    ? was === undefined || !leadsInside(was)
      ? "way.opened"
      : "way.elsewhere"
    : "way.own-response";
  if (was === undefined) return [{ id, place, old: "404", new: said(is) }, ...statusChanges(was, is)];
  const sameText = was.lead.kind === is.lead.kind && was.lead.text === is.lead.text;
  return [
    ...(sameText && was.lead.detail === is.lead.detail
      ? []
      : [{ id, place, old: said(was, sameText), new: said(is, sameText) } as const]),
    ...writable(was, is),
    ...(leadsInside(was) && leadsInside(is)
      ? [
          ...raised(was.route, is.route, place, LIMITS, ["requestBodyBytesMax"]),
          ...clientLimits(was.route, is.route, place),
        ]
      : []),
    ...(leadsInside(was) || leadsInside(is) ? responseFieldChanges(was, is) : []),
    ...symlinks(was, is),
    ...statusChanges(was, is),
    ...accessChanges(was, is, before.config, after.config),
    ...proxied(was, is),
    ...upstreamChanges(before.upstream(was)?.upstream, after.upstream(is)),
  ];
}

const LIMITS = ["requestBodyBytesMax", "requestBodyTimeoutMs", "sendTimeoutMs"] as const;

/** How much more one client may ask. */
function clientLimits(was: RouteConfig, is: RouteConfig, place: string): readonly ReviewChange[] {
  const [old, now] = [was, is].map(({ concurrencyMax = 0 }) => ({ concurrencyMax })) as [AtOnce, AtOnce];
  const atOnce = raised(old, now, place, ["concurrencyMax"], ["concurrencyMax"]);
  if (!allowsMore(was.rateLimit, is.rateLimit)) return atOnce;
  const [from, to] = [rateText(was.rateLimit), rateText(is.rateLimit)];
  return [...atOnce, { id: "limit.raised", place: `${place}.rateLimit`, old: from, new: to }];
}

interface AtOnce {
  readonly concurrencyMax: number;
}

const WRITES = { nothing: "", byMethod: ", writes by method", always: ", writes always" };
const said = ({ lead, route }: WayIn, detailed = false): string =>
  lead.text + (detailed ? `, ${printableValue(lead.detail)}` : "") + WRITES[writesOf(route)];

function writable(was: WayIn, is: WayIn): readonly ReviewChange[] {
  const order = ["nothing", "byMethod", "always"] as const;
  const [from, to] = [writesOf(was.route), writesOf(is.route)];
  // The goal already shows a path that was opened.
  if (!leadsInside(was) || order.indexOf(to) <= order.indexOf(from)) return [];
  return [{ id: "way.writable", place: `${is.place}.writes`, old: from, new: to }];
}

const LINKS = ["never", "inside", "anywhere"] as const;

function symlinks(
  { route: { action: was } }: WayIn,
  { route: { action: is }, place }: WayIn,
): readonly ReviewChange[] {
  if (was.type !== "staticFiles" || is.type !== "staticFiles") return [];
  if (LINKS.indexOf(is.symlinks) <= LINKS.indexOf(was.symlinks)) return [];
  return [{ id: "files.symlinks", place: `${place}.action.symlinks`, old: was.symlinks, new: is.symlinks }];
}

/**
 * Changes of who may see the status, and how much of clients it shows. A status route leads to nothing behind the
 * proxy, and is not a fixed response either.
 */
function statusChanges(was: KnownWay, { route: { action: is }, place }: WayIn): readonly ReviewChange[] {
  if (is.type !== "status") return [];
  const before = was?.route.action.type === "status" ? was.route.action : undefined;
  const at = `${place}.action`;
  return [
    ...widened("status.opened", before?.allow ?? [], is.allow, `${at}.allow`),
    ...(before?.addresses === "shortened" && is.addresses === "whole"
      ? [{ id: "status.opened", place: `${at}.addresses`, old: "shortened", new: "whole" } as const]
      : []),
    ...(before?.fileNames === false && is.fileNames
      ? [{ id: "status.opened", place: `${at}.fileNames`, old: "false", new: "true" } as const]
      : []),
  ];
}

/** Changes of the client's data that reach the application. */
function proxied(
  { route: { action: was } }: WayIn,
  { route: { action: is }, place }: WayIn,
): readonly ReviewChange[] {
  if (was.type !== "proxy" || is.type !== "proxy") return [];
  const at = `${place}.action`;
  const trusted = missing(is.trustedFields, was.trustedFields);
  const kept = missing(is.keepFields, was.keepFields);
  const upgrades = missing(is.upgrades, was.upgrades);
  // A field that the proxy no longer sets, or removes by an empty value, is the client's own.
  const own = missing(fieldsOf(was), fieldsOf(is));
  return [
    ...upgrades.map(
      (name) => ({ id: "way.upgrade", place: `${at}.upgrades`, old: "dropped", new: name }) as const,
    ),
    ...trusted.map(
      (field) =>
        ({
          id: "trust.request-fields",
          place: `${at}.trustedFields`,
          old: "dropped",
          new: `${field} of trusted proxies`,
        }) as const,
    ),
    ...kept.map(
      (field) =>
        ({
          id: "trust.request-fields",
          place: `${at}.keepFields`,
          old: "dropped",
          new: `${field} of the client`,
        }) as const,
    ),
    ...own.map(
      (field) =>
        ({
          id: "trust.request-fields",
          place: `${at}.setHeaders`,
          old: `${field} of the proxy`,
          new: `${field} of the client`,
        }) as const,
    ),
  ];
}

const fieldsOf = (action: {
  readonly setHeaders: object;
  readonly setHeadersFromCredential: object;
}): string[] => [...Object.keys(action.setHeaders), ...Object.keys(action.setHeadersFromCredential)];

/** The names that the other list lacks; field names are compared without case (RFC 9110, 5.1). */
function missing(names: readonly string[], others: readonly string[]): readonly string[] {
  const lower = others.map((name) => name.toLowerCase());
  return names.filter((name) => !lower.includes(name.toLowerCase()));
}

function upstreamChanges(
  was: UpstreamConfig | undefined,
  now: ReturnType<Reach["upstream"]>,
): readonly ReviewChange[] {
  if (was === undefined || now === undefined) return [];
  const { upstream: is, place } = now;
  const [plainBefore, plainNow] = [was, is].map(plainServers);
  const verified = (one: UpstreamConfig): boolean => hasTls(one) && one.tls?.verify !== false;
  const trust = [was, is].map(
    ({ tls }) => `${tls?.caFile ?? "the roots of Node"}, ${tls?.serverName ?? "the host of the URL"}`,
  );
  return [
    ...(plainBefore!.length === 0 && plainNow!.length > 0
      ? [{ id: "upstream.unencrypted", place, old: urls(was), new: urls(is) } as const]
      : []),
    ...(verified(was) && hasTls(is) && !verified(is)
      ? [{ id: "upstream.unverified", place: `${place}.tls.verify`, old: "true", new: "false" } as const]
      : []),
    ...(verified(was) && verified(is) && trust[0] !== trust[1]
      ? [{ id: "upstream.trust", place: `${place}.tls`, old: trust[0], new: trust[1] } as const]
      : []),
    ...raised(was, is, place, ["connectionsMax", "queuedRequestsMax", "clientSharePercent", "headBytesMax"]),
  ];
}

const urls = (upstream: UpstreamConfig): string =>
  serversOf(upstream)
    .map(({ url }) => url)
    .join(" or ");

const hasTls = (upstream: UpstreamConfig): boolean =>
  serversOf(upstream).some(({ url }) => upstreamScheme(url) === "https");

/** Servers to which requests go over a network as plain text. */
function plainServers(upstream: UpstreamConfig): readonly string[] {
  return serversOf(upstream)
    .map(({ url }) => url)
    .filter((url) => {
      const to = upstreamAddress(url);
      return "host" in to && upstreamScheme(url) === "http" && !isLoopback(to.host);
    });
}

/** Fields by which a response restricts browsers. */
const PROTECTIVE = [
  "strict-transport-security",
  "content-security-policy",
  "x-frame-options",
  "x-content-type-options",
  "referrer-policy",
  "permissions-policy",
  "cross-origin-opener-policy",
  "cross-origin-embedder-policy",
  "cross-origin-resource-policy",
];

/** Fields by which a response lets pages of other sites read it (Fetch standard, 3.2). */
const OPENING = ["access-control-allow-origin", "access-control-allow-credentials"];

/** Fields of responses that are gone, or allow more than before. */
function responseFieldChanges(was: WayIn, is: WayIn): readonly ReviewChange[] {
  const [from, to] = [was, is].map(({ server, route, listener }) =>
    responseFieldRules(server, route, listener.protocol),
  ) as [ResponseFieldRules, ResponseFieldRules];
  const isTls = was.listener.protocol === "https" && is.listener.protocol === "https";
  const protective = PROTECTIVE.flatMap((name): ReviewChange[] => {
    // Browsers heed it over TLS only (RFC 6797, 8.1), and over http it is never sent.
    if (name === HSTS && !isTls) return [];
    const [old, now] = [saidOf(from, name), saidOf(to, name)];
    if (old === now || old === REMOVED) return [];
    if (now === REMOVED || now === PASSED)
      return [{ id: "field.removed", place: placeOf(is, name), ...both(name, old, now) }];
    if (old === PASSED || isStricter(name, from.get(name)!.value, to.get(name)!.value)) return [];
    return [{ id: "field.changed", place: placeOf(is, name), ...both(name, old, now) }];
  });
  const opening = OPENING.flatMap((name): ReviewChange[] => {
    const [old, now] = [saidOf(from, name), saidOf(to, name)];
    if (old === now || now === REMOVED || (now === PASSED && old !== REMOVED)) return [];
    return [{ id: "field.cross-origin", place: placeOf(is, name), ...both(name, old, now) }];
  });
  return [...protective, ...opening];
}

const HSTS = "strict-transport-security";
const [REMOVED, PASSED] = ["removed", "as the application sends it"];

const both = (name: string, old: string, now: string): Pick<ReviewChange, "old" | "new"> => ({
  old: `${name}: ${old}`,
  new: `${name}: ${now}`,
});

function saidOf(rules: ResponseFieldRules, name: string): string {
  return rules.has(name) ? (rules.get(name)?.value ?? REMOVED) : PASSED;
}

/** Whether the new value allows less; for most fields no text tells. */
function isStricter(name: string, old: string, now: string): boolean {
  if (name === "x-frame-options") return now.toUpperCase() === "DENY";
  if (name !== HSTS) return false;
  const age = (value: string): number => Number(/max-age=(\d{1,12})/.exec(value)?.[1] ?? 0);
  return age(now) >= age(old) && (!old.includes("includeSubDomains") || now.includes("includeSubDomains"));
}

/** The rule of the route, or else of its virtual server. */
function placeOf({ place, server, route }: WayIn, name: string): string {
  const ofServer = place.slice(0, place.indexOf(".routes["));
  const { set, remove } = route.responseHeaders;
  if ([...Object.keys(set), ...remove].some((one) => one.toLowerCase() === name))
    return `${place}.responseHeaders`;
  return `${ofServer}.${name === HSTS && server.hsts !== undefined ? "hsts" : "responseHeaders"}`;
}
