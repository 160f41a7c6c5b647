import { FieldFate, requestFieldFate, usualSpelling } from "../actions/fieldFates.js";
import type { ForwardedRequest, HeaderList, VerifiedUser } from "../actions/forwardedRequest.js";
import { connectionOptions } from "../actions/forwarding.js";
import { isPlain, otherReadings } from "../access/readings.js";
import type { ProxyConfig, UpstreamConfig } from "./config.js";
import type { NormalisedPath } from "../net/target.js";

/** Asking a portal whether a request may come in: `forwardAuth` of an access policy. Pure, as far as it is here. */

export type ForwardAuthConfig = NonNullable<
  NonNullable<ProxyConfig["accessPolicies"]>[string]["forwardAuth"]
>;

/** Whether the portal is not asked: the path is one of those in `bypass`, whichever server reads it. */
export function isBypassed({ bypass }: ForwardAuthConfig, target: string, path: NormalisedPath): boolean {
  const isBelow = (one: string): boolean =>
    bypass.some((open) => one === open || one.startsWith(open.endsWith("/") ? open : `${open}/`));
  if (!isBelow(path)) return false;
  return isPlain(target, path) || otherReadings(target)?.every(isBelow) === true;
}

/** The data of a request that a portal is told of. */
export interface PortalQuestion extends Pick<
  ForwardedRequest,
  "method" | "target" | "headers" | "host" | "scheme" | "clientAddress"
> {
  /** Names of fields that the portal does not get either: those of a password that the proxy verified itself. */
  readonly withheld?: ReadonlySet<string> | undefined;
}

/** The head of the request to the portal, blank line included. It has no body. */
export function portalHead({ url, convention }: ForwardAuthConfig, request: PortalQuestion): string {
  const { origin, target } = partsOf(url);
  const { headers, host, scheme, clientAddress, withheld } = request;
  // A tunnel over HTTP/2 begins with CONNECT (RFC 8441), and with GET over HTTP/1.1, which portals know.
  const method = request.method === "CONNECT" ? "GET" : request.method;
  const own =
    convention === "nginx"
      ? `X-Original-URL: ${scheme}://${host}${request.target}\r\nX-Original-Method: ${method}\r\n`
      : `X-Forwarded-Method: ${method}\r\nX-Forwarded-Proto: ${scheme}\r\n` +
        `X-Forwarded-Host: ${host}\r\nX-Forwarded-Uri: ${request.target}\r\n`;
  const named = connectionOptions(headers);
  let lines = "";
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!;
    const lower = name.toLowerCase();
    // Whatever names a client, a user or a URL is the proxy's to say here, in every spelling.
    if (requestFieldFate(name) !== FieldFate.Pass || NOT_ASKED.test(lower)) continue;
    if (named?.has(lower) === true || withheld?.has(lower) === true) continue;
    lines += `${name}: ${headers[i + 1]!}\r\n`;
  }
  return (
    `GET ${target} HTTP/1.1\r\nHost: ${origin.slice(origin.indexOf("//") + 2)}\r\n` +
    `${own}X-Forwarded-For: ${clientAddress}\r\n${lines}\r\n`
  );
}

/** Fields of the client's body and of the resource that it asks for, which is not the portal's. */
const NOT_ASKED =
  /^(?:content-.*|expect|if-.*|(?:accept-)?ranges?|accept-encoding|x-http-method.*|x-method-override)$/;

/** What a portal's response of 2xx changes in the request to the upstream; undefined for nothing. */
export function portalUser(
  { copyFields }: ForwardAuthConfig,
  response: HeaderList,
): VerifiedUser | undefined {
  if (copyFields.length === 0) return undefined;
  const fields = copyFields.flatMap((name) => {
    const values = response.filter((_, i) => i % 2 === 1 && sameName(response[i - 1]!, name));
    const value = values.join(", ");
    return value === "" ? [] : [[name, value] as const];
  });
  return { dropped: new Set(copyFields.map(usualSpelling)), fields };
}

/** The fields of such a response that the client gets, with whatever responds then: a portal renews its session so. */
export function portalCookies(response: HeaderList): HeaderList {
  const cookies = fieldsNamed(response, ["Set-Cookie"]);
  // A cache that others share must not keep the session of one (RFC 9111, 7.3).
  return cookies.length === 0 ? [] : [...cookies, "Cache-Control", "private"];
}

/** The fields of another response of the portal that the client gets. */
export function portalRefusal(response: HeaderList): HeaderList {
  // Once signed on, a client must not find the refusal in its cache.
  return [...fieldsNamed(response, REFUSAL_FIELDS), "Cache-Control", "no-store"];
}

const REFUSAL_FIELDS = ["Location", "Set-Cookie", "WWW-Authenticate", "Content-Type"];

const fieldsNamed = (list: HeaderList, names: readonly string[]): HeaderList =>
  list.flatMap((name, i) =>
    i % 2 === 0 && names.some((one) => sameName(name, one)) ? [name, list[i + 1]!] : [],
  );

const sameName = (a: string, b: string): boolean =>
  a.length === b.length && a.toLowerCase() === b.toLowerCase();

/** What two policies change in one request. */
export function bothUsers(
  a: VerifiedUser | undefined,
  b: VerifiedUser | undefined,
): VerifiedUser | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  const names = new Set(a.fields.map(([name]) => name.toLowerCase()));
  const further = b.fields.filter(([name]) => !names.has(name.toLowerCase()));
  return { dropped: new Set([...a.dropped, ...b.dropped]), fields: [...a.fields, ...further] };
}

/** Origin and origin-form target of a portal's URL. */
export function partsOf(url: string): { readonly origin: string; readonly target: string } {
  const at = url.indexOf("/", url.indexOf("//") + 2);
  return at === -1 ? { origin: url, target: "/" } : { origin: url.slice(0, at), target: url.slice(at) };
}

/** A pool of its own, and no queue that outlasts the question: many requests wait behind each answer. */
export function portalUpstream(policy: string, config: ForwardAuthConfig): UpstreamConfig & { url: string } {
  const { url, connectTimeoutMs, timeoutMs } = config;
  return {
    name: `forwardAuth of ${policy}`,
    url: partsOf(url).origin,
    balance: "roundRobin",
    spread: false,
    slowStartMs: 0,
    connectTimeoutMs,
    holdMs: 0,
    sendTimeoutMs: timeoutMs,
    readTimeoutMs: timeoutMs,
    connectionsMax: 256,
    queuedRequestsMax: 1_024,
    clientSharePercent: 50,
    queueTimeoutMs: timeoutMs,
    idleConnectionsMax: 64,
    idleTimeoutMs: 1_500,
    headBytesMax: 65_536,
    bareLineFeeds: false,
  };
}

/** URLs of the portals of a config, each with its field. */
export const portalUrls = ({
  accessPolicies = {},
}: Pick<ProxyConfig, "accessPolicies">): readonly { readonly url: string; readonly path: string }[] =>
  Object.entries(accessPolicies).flatMap(([name, { forwardAuth: one }]) =>
    one === undefined
      ? []
      : [{ url: partsOf(one.url).origin, path: `accessPolicies.${name}.forwardAuth.url` }],
  );
