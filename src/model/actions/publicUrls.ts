import { encodePath } from "../net/target.js";
import { parseHost } from "../net/serverName.js";
import type { ForwardedRequest, ProxiedRoute } from "./forwardedRequest.js";

/** Makes public URLs, and paths and hosts of cookies, of those that an upstream names in a response (decisions 5.1). */
export class PublicUrls {
  /** The route's path as clients write it, without a slash at its end. */
  private readonly own: string;
  /** What goes upstream in place of it. */
  private readonly base: string | undefined;
  private readonly upstreamHost: string | undefined;

  /**
   * @param origin scheme and authority of the upstream
   * @param into path that goes upstream in place of the route's; undefined if the path is not changed
   */
  constructor(
    private readonly origin: string,
    private readonly route: ProxiedRoute,
    into: string | undefined,
  ) {
    this.base = into?.replace(/\/$/, "");
    this.own = encodePath(route.path.replace(/\/$/, ""));
    this.upstreamHost = parseHost(origin.slice(origin.indexOf("://") + 3))?.serverName;
  }

  /** The value of `Location`, `Content-Location` or `Refresh`. */
  location(name: string, value: string, request: ForwardedRequest): string {
    if (request.host === "") return value;
    const at = value.indexOf(this.origin);
    if (at === -1) return secured(name, value, request);
    if (at > 0 && !isRefreshTo(value.slice(0, at))) return value;
    const rest = value.slice(at + this.origin.length);
    if (rest !== "" && !/^[/?#"']/.test(rest)) return value;
    const path = this.path(rest.startsWith("/") ? rest : `/${rest}`);
    return `${value.slice(0, at)}${request.scheme}://${request.host}${path}`;
  }

  /** The value of one `Set-Cookie`. */
  cookie(value: string, request: ForwardedRequest): string {
    // Clients take a cookie of this name only with `Path=/` and without `Domain` (RFC 6265bis, 4.1.3.2).
    if (!this.route.action.mapCookies || !value.includes(";") || /^__host-/i.test(value)) return value;
    const [pair, ...attributes] = value.split(";") as [string, ...string[]];
    let mapped = pair;
    for (const attribute of attributes) {
      const equals = attribute.indexOf("=") + 1;
      const name = attribute
        .slice(0, Math.max(0, equals - 1))
        .trim()
        .toLowerCase();
      const named = attribute.slice(equals).trim();
      if (name === "path") mapped += `;${attribute.slice(0, equals)}${this.cookiePath(named)}`;
      else if (name !== "domain" || !this.isUpstreamOnly(named, request)) mapped += `;${attribute}`;
    }
    return mapped;
  }

  /** A path without a slash at its end covers the path itself as well (RFC 6265, 5.1.4). */
  private cookiePath(path: string): string {
    // `;` ends an attribute, so a cookie cannot name such a path.
    if (!path.startsWith("/") || this.own.includes(";") || this.isPublic(path)) return path;
    const mapped = this.path(path);
    return path === "/" && mapped === `${this.own}/` && this.own !== "" ? this.own : mapped;
  }

  /**
   * Whether a path is below the route already: the application knows its prefix, and so names a path alone in `Location`,
   * which passes as it is. If the upstream's path begins with the route's, the application may mean either, and does not
   * know the route's where it names its own.
   */
  private isPublic(path: string): boolean {
    const { base = "", own } = this;
    return own !== "" && isBelow(path, own) && !(isBelow(base, own) && isBelow(path, base));
  }

  /** Whether a client would refuse a cookie of this domain, because only this proxy knows the host by that name. */
  private isUpstreamOnly(domain: string, request: ForwardedRequest): boolean {
    const host = domain.replace(/^\./, "").toLowerCase();
    return host === this.upstreamHost && host !== request.serverName;
  }

  /** A path that is not below {@link base} is not reached through this route. */
  private path(path: string): string {
    const { base } = this;
    if (base === undefined || !path.startsWith(base)) return path;
    const rest = path.slice(base.length);
    if (rest === "") return this.own || "/";
    return /^[/?#"']/.test(rest) ? this.own + rest : path;
  }
}

/**
 * An upstream behind TLS that does not know of it names its own host with `http`: clients would leave TLS, and WebDAV
 * clients give up. A redirect from a URL to the same URL without TLS stays, because it would lead to itself.
 */
function secured(name: string, value: string, { scheme, host, target }: ForwardedRequest): string {
  if (scheme !== "https") return value;
  const at = value.toLowerCase().indexOf(PLAIN);
  if (at === -1 || (at > 0 && !isRefreshTo(value.slice(0, at)))) return value;
  const from = at + PLAIN.length;
  const length = value.slice(from).search(/[/?#"']/);
  const to = length === -1 ? value.length : from + length;
  if (bare(value.slice(from, to)) !== bare(host)) return value;
  if (name.length === LOCATION && value.slice(to) === target) return value;
  return `${value.slice(0, at)}https://${value.slice(from)}`;
}

const isBelow = (path: string, above: string): boolean => path === above || path.startsWith(`${above}/`);

/** `Refresh: 5; url=…` has its URL after other text; the other fields begin with it. */
const isRefreshTo = (before: string): boolean => /url=["']?$/i.test(before);
const PLAIN = "http://";
const LOCATION = "Location".length;
const bare = (authority: string): string => authority.toLowerCase().replace(/:443$/, "");
