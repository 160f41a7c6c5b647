import { type Problem, problem } from "../text/problem.js";
import type { ProxyConfig, RouteConfig } from "./config.js";

export type RateLimitConfig = NonNullable<RouteConfig["rateLimit"]>;

/** Length of the prefix of an IPv6 network that counts as one client on a route. */
export const clientPrefix = ({ rateLimit: rate }: Pick<RouteConfig, "rateLimit">): number =>
  rate?.ipv6Prefix ?? 64;

export const burstOf = ({ requests, burst }: RateLimitConfig): number => burst ?? requests;

/** A rate as people say it. */
export const rateText = (rate: RateLimitConfig | undefined): string =>
  rate === undefined
    ? "no limit"
    : `${rate.requests} requests in ${rate.perMs} ms, ${burstOf(rate)} at once, IPv6 by /${rate.ipv6Prefix}`;

/** Whether a client may ask for more than before. */
export function allowsMore(was: RateLimitConfig | undefined, is: RateLimitConfig | undefined): boolean {
  if (was === undefined || is === undefined) return is !== was && was !== undefined;
  return (
    is.requests * was.perMs > was.requests * is.perMs ||
    burstOf(is) > burstOf(was) ||
    is.ipv6Prefix > was.ipv6Prefix
  );
}

/** The limits of a route as people say them; undefined if the route has none. */
export function limitText(route: Pick<RouteConfig, "rateLimit" | "concurrencyMax">): string | undefined {
  const { rateLimit: rate, concurrencyMax: most } = route;
  const parts = [
    ...(rate === undefined ? [] : [rateText(rate)]),
    ...(most === undefined ? [] : [`${most} in progress`]),
  ];
  return parts.length === 0 ? undefined : `one client may have ${parts.join("; ")}; more get 429`;
}

/** Rules about limits that span fields. */
export function rateProblems({ virtualServers }: ProxyConfig): Problem[] {
  return virtualServers.flatMap(({ routes }, s) =>
    routes.flatMap((route, r) => limitProblems(`virtualServers[${s}].routes[${r}]`, route)),
  );
}

function limitProblems(path: string, route: RouteConfig): Problem[] {
  const { rateLimit: rate, concurrencyMax: most, action } = route;
  const given = [
    ...(rate === undefined ? [] : ["rateLimit"]),
    ...(most === undefined ? [] : ["concurrencyMax"]),
  ];
  if (action.type === "redirect" || action.type === "respond")
    return given.map((field) =>
      problem("config.useless-limit", `${path}.${field}`, "limits responses that cost no more than a 429", {
        received: `a route with the action ${action.type}`,
        allowed: "a route that needs an upstream or files",
      }),
    );
  if (!takesUploads(route)) return [];
  return [
    ...(rate === undefined ? [] : rateOfUploads(`${path}.rateLimit`, rate)),
    ...(most === undefined || most >= UPLOADS_AT_ONCE
      ? []
      : [tooLow(`${path}.concurrencyMax`, `${most}`, `${UPLOADS_AT_ONCE} or more`)]),
  ];
}

function rateOfUploads(path: string, rate: RateLimitConfig): Problem[] {
  const { requests, perMs } = rate;
  if (requests * 1_000 >= UPLOADS_PER_SECOND * perMs && burstOf(rate) >= UPLOADS_BURST) return [];
  return [
    tooLow(
      path,
      rateText(rate),
      `at least ${UPLOADS_PER_SECOND} requests a second, and a \`burst\` of ${UPLOADS_BURST}`,
    ),
  ];
}

const tooLow = (path: string, received: string, allowed: string): Problem =>
  problem("config.limit-stops-uploads", path, "is too low for a route that takes uploads", {
    received,
    allowed,
  });

/** Whether a client may send files there, in chunks or many small ones: applications mark such routes by no limit. */
const takesUploads = ({ action, requestBodyBytesMax: max, writes }: RouteConfig): boolean =>
  action.type === "proxy" && writes !== "never" && (max === 0 || max > FORM_BYTES);

/** Forms and requests of programs are shorter; the chunks of uploads are longer. */
const FORM_BYTES = 1_048_576;
/** A sync client sends small files, and chunks of large ones, at this pace; it lists folders first. */
const UPLOADS_PER_SECOND = 10;
const UPLOADS_BURST = 100;
/** Over HTTP/2, sync clients have up to 20 requests in progress, and an office behind one address has some clients. */
const UPLOADS_AT_ONCE = 32;
