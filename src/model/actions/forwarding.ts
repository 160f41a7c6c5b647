import { defaultPort, type Scheme, upstreamScheme } from "../net/authority.js";
import { onePiece } from "../text/onePiece.js";
import { FirstOfName } from "../text/firstOfName.js";
import { parseHost } from "../net/serverName.js";
import { type NormalisedPath, normalisePath, type Strip, upstreamTarget } from "../net/target.js";
import { responseFieldFate, FieldFate, requestFieldFate, usualSpelling } from "./fieldFates.js";
import type { ForwardedRequest, HeaderList, ProxiedRoute, VerifiedUser } from "./forwardedRequest.js";
import { PublicUrls } from "./publicUrls.js";
import type { ActionOf } from "./table.js";

/**
 * Transforms a proxied request for the upstream, and the response for the client (decisions 2.1 to 2.6, 5.1 and 5.2).
 * Pure: the runtime and, in unit tests, `resolve()` both use it.
 */

export type { ForwardedRequest, HeaderList, ProxiedRoute, VerifiedUser };

/** The same action with the contents of its files as values of the fields that it sets. */
export function withFileValues(
  action: ActionOf<"proxy">,
  valueOf: (file: string) => string,
): ActionOf<"proxy"> {
  const fields = Object.entries(action.setHeadersFromCredential).map(([name, file]) => [name, valueOf(file)]);
  const values = Object.fromEntries(fields) as Record<string, string>;
  return { ...action, setHeaders: { ...action.setHeaders, ...values } };
}

/** The header rules of one proxied route, compiled once. */
export class ForwardingRules {
  /** Host and port of the upstream as they are written in a `Host` field; a Unix socket is `localhost`, as in nginx. */
  readonly upstreamAuthority: string;
  private readonly upstreamScheme: Scheme;
  private readonly action: ActionOf<"proxy">;
  private readonly strip: Strip;
  /** Path that goes upstream in place of the route's, if that is cut. */
  private readonly into: string;
  private readonly fixed: string;
  private readonly publicUrls: PublicUrls;
  /** The last result of {@link usual}, because clients send many requests in a row. */
  private last: Usual = { host: "", address: "", by: undefined, scheme: "", text: "", again: false };
  /** Lower-case names of fields that are set here, so the client's are dropped. */
  private readonly replaced: ReadonlySet<string>;
  /** Lower-case names of fields that only a trusted proxy may send. */
  private readonly trustedFields: ReadonlySet<string>;
  /** Lower-case names that pass although they have other bytes than letters, digits and `-`. */
  private readonly keepFields: ReadonlySet<string>;
  private readonly dropped = new FirstOfName();
  /** Field with the request's id, and the lines in its place that a client sent; no field name has a special character. */
  private readonly idField: string | undefined;
  private readonly idLines: RegExp | undefined;
  /** Whether a field may be concerned that {@link requestFieldFate} lets pass. */
  private readonly examines: boolean;

  constructor(
    private readonly route: ProxiedRoute,
    upstream: { readonly url: string },
  ) {
    this.action = route.action;
    const [, authority = "localhost"] = /^https?:\/\/([^/]*)/.exec(upstream.url) ?? [];
    this.upstreamAuthority = authority;
    this.upstreamScheme = upstreamScheme(upstream.url);
    ({ strip: this.strip, into: this.into } = cutOf(this.action));
    const origin = `${this.upstreamScheme}://${authority}`;
    this.publicUrls = new PublicUrls(origin, route, this.strip === "none" ? undefined : this.into);
    const set = Object.entries(this.action.setHeaders);
    const { host } = this.action.forwarded;
    this.fixed =
      (host === undefined ? "" : `X-Forwarded-Host: ${host}\r\n`) +
      set.map(([name, value]) => (value === "" ? "" : `${name}: ${value}\r\n`)).join("");
    const replaced = new Set(set.map(([name]) => name.toLowerCase()));
    this.replaced = replaced;
    this.trustedFields = new Set(this.action.trustedFields.map((name) => name.toLowerCase()));
    this.keepFields = new Set(this.action.keepFields.map((name) => name.toLowerCase()));
    this.examines =
      this.replaced.size > 0 ||
      [...this.trustedFields].some((name) => requestFieldFate(name) === FieldFate.Pass);
    const { requestIdField: id } = route;
    // A field that the route sets has priority.
    if (id === undefined || replaced.has(id.toLowerCase())) return;
    this.idField = id;
    this.idLines = new RegExp(`^${id}:[^\\n]*\\n`, "gim");
    replaced.add(id.toLowerCase());
  }

  /** Why a request must not be forwarded; undefined for nearly all. To be asked before {@link requestHead}. */
  refusal(request: ForwardedRequest): ForwardingRefusal | undefined {
    if (request.plainLines !== undefined) return undefined;
    const { headers } = request;
    for (let i = 0; i < headers.length; i += 2) {
      const name = headers[i]!;
      if (name.length !== 11 || requestFieldFate(name) !== FieldFate.Destination) continue;
      const destination = this.destination(headers[i + 1]!, request, "");
      if (typeof destination !== "string") return destination;
    }
    return undefined;
  }

  /**
   * The request head that goes upstream, blank line included: the fields this proxy sets first, as nginx does, then
   * the client's in their own order and case.
   *
   * @param framing the framing field as a whole line (`Content-Length: 5\r\n`), or nothing
   */
  requestHead(request: ForwardedRequest, framing: string): string {
    const { forwarded, hostHeader } = this.action;
    const host =
      hostHeader === "client"
        ? request.host || forwarded.host || this.upstreamAuthority
        : this.upstreamAuthority;
    const target = this.target(request.target, request.path);
    const begin = `${request.method} ${target}`;
    const { requestId, upgrade, user } = request;
    const id =
      this.idField === undefined || requestId === undefined ? "" : `${this.idField}: ${requestId}\r\n`;
    const isUsual = !this.examines && upgrade === undefined && user === undefined;
    if (request.plainLines !== undefined && isUsual) {
      const lines = id === "" ? request.plainLines : request.plainLines.replace(this.idLines!, "");
      return `${begin}${this.usual(request, host)}${id}${framing}${lines}`;
    }
    const rest = this.clientFields(request, host);
    const own = rest.claimed ? this.afterTarget(request, host, rest) : this.usual(request, host);
    const who = user === undefined ? "" : this.userLines(user);
    const head = `${begin}${own}${id}${who}${framing}${rest.lines}`;
    return upgrade === undefined
      ? `${head}\r\n`
      : `${head}Connection: Upgrade\r\nUpgrade: ${upgrade}\r\n\r\n`;
  }

  /** A field that the route sets has priority. */
  private userLines({ fields }: VerifiedUser): string {
    const own = fields.filter(([name]) => !this.replaced.has(name.toLowerCase()));
    return own.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  }

  /** The rest of the request line, and the fields this proxy sets. */
  private afterTarget(request: ForwardedRequest, host: string, sent: Claims): string {
    const { forwarded } = this.action;
    const { clientAddress, forwardedBy: by } = request;
    // A client that another field names is in the chain all the same.
    const named = by === undefined ? "" : `${clientAddress}, `;
    let lines = ` HTTP/1.1\r\nHost: ${host}\r\n`;
    if (forwarded.realIp && !sent.realIp) lines += `X-Real-IP: ${clientAddress}\r\n`;
    if (forwarded.for) lines += `X-Forwarded-For: ${sent.chain || named}${by ?? clientAddress}\r\n`;
    if (forwarded.proto && !sent.proto) lines += `X-Forwarded-Proto: ${request.scheme}\r\n`;
    return lines + this.fixed;
  }

  /** The same for a client that sent no forwarding fields: then it depends on host, addresses and scheme only. */
  private usual(request: ForwardedRequest, host: string): string {
    const { clientAddress: address, forwardedBy: by, scheme } = request;
    const { last } = this;
    if (host !== last.host || address !== last.address || by !== last.by || scheme !== last.scheme) {
      const text = this.afterTarget(request, host, NO_CLAIMS);
      this.last = { host, address, by, scheme, text, again: false };
      return text;
    }
    // Only from the second request in a row: if clients alternate, it would be wasted.
    if (!last.again) {
      last.text = onePiece(last.text);
      last.again = true;
    }
    return last.text;
  }

  /** The client's fields that pass, as lines, and the forwarding chain it sent. */
  private clientFields(request: ForwardedRequest, host: string): ClientFields {
    const { headers, user } = request;
    const named = connectionOptions(headers);
    const sent = {
      claimed: false,
      realIp: false,
      proto: false,
      chain: "",
      lines: "",
    };
    let lines = "";
    for (let i = 0; i < headers.length; i += 2) {
      const name = headers[i]!;
      let value = headers[i + 1]!;
      const fate = requestFieldFate(name);
      if (fate === FieldFate.Drop || (fate === FieldFate.OddName && !this.keeps(name, request))) continue;
      if (user?.dropped.has(usualSpelling(name)) === true) continue;
      // Before claims are judged: a claim that is dropped must not replace our own field.
      if (named !== undefined && named.has(name.toLowerCase())) continue;
      if (!this.mayBeFrom(name, fate, request.trusted)) continue;
      if (fate !== FieldFate.Pass && fate !== FieldFate.Named && fate !== FieldFate.OddName) {
        if (fate === FieldFate.Destination) {
          const destination = this.destination(value, request, host);
          if (typeof destination !== "string") continue;
          value = destination;
        } else {
          sent.claimed = true;
          if (!this.passesClaim(name.toLowerCase(), request, sent)) {
            if (fate === FieldFate.Chain && value !== "") sent.chain += `${value}, `;
            continue;
          }
        }
      }
      if (this.replaced.size > 0 && this.replaced.has(name.toLowerCase())) continue;
      lines += `${name}: ${value}\r\n`;
    }
    sent.lines = lines;
    return sent;
  }

  private keeps(name: string, request: ForwardedRequest): boolean {
    const keeps = this.keepFields.has(name.toLowerCase());
    if (!keeps && this.dropped.isFirst(name)) request.dropped?.(name);
    return keeps;
  }

  /** Whether a client may send the field at all, as far as `trustedFields` decides about it. */
  private mayBeFrom(name: string, fate: FieldFate, trusted: boolean): boolean {
    // Most routes name none, and most fields may be anyone's.
    if (fate !== FieldFate.Named && (trusted || this.trustedFields.size === 0)) return true;
    return this.trustedFields.has(name.toLowerCase()) ? trusted : fate !== FieldFate.Named;
  }

  /**
   * Whether a forwarding field of the client passes as it is: only from a trusted proxy, and never together with our
   * own.
   */
  private passesClaim(
    name: string,
    request: ForwardedRequest,
    sent: { realIp: boolean; proto: boolean },
  ): boolean {
    const { forwarded } = this.action;
    if (!request.trusted) return false;
    if (name === "x-forwarded-for") return !forwarded.for;
    if (name === "x-forwarded-host") return forwarded.host === undefined;
    if (name === "x-real-ip") {
      // Balancers that set the chain pass on this field of clients unchecked.
      if (request.forwardedBy !== undefined && forwarded.realIp) return false;
      sent.realIp = true;
    }
    if (name === "x-forwarded-proto") sent.proto = true;
    return true;
  }

  /**
   * A `Destination` that names this front end, as the upstream expects it (RFC 4918, 10.3). WebDAV servers compare
   * its scheme and host with what they believe their own to be; behind a proxy they guess, and refuse with 502.
   *
   * A `Destination` that is not below the route's path passes only where nothing is stripped, so that upstream and
   * clients see the same paths. With a stripped prefix, the upstream would read it as one of its own paths, although it
   * is in another namespace, which is 502 (RFC 4918, 9.8.5).
   */
  private destination(value: string, request: ForwardedRequest, host: string): string | ForwardingRefusal {
    if (this.action.destination === "unchanged") return value;
    const target = value.charCodeAt(0) === 0x2f ? value : ownTarget(value, request);
    if (target === undefined) return value;
    const path = normalisePath(target);
    if (path === undefined) return refusal(400, value, "is malformed, or climbs above the root");
    if (!this.covers(path)) {
      if (this.strip === "none") return value;
      return refusal(502, value, `names this front end, but nothing below "${this.route.path}"`);
    }
    if (this.action.destination === "clientPath") return target;
    const stripped = this.target(target, path);
    return this.action.destination === "path" ? stripped : `${this.upstreamScheme}://${host}${stripped}`;
  }

  private target(target: string, path: NormalisedPath): string {
    return upstreamTarget(this.strip, this.route.path, target, path, this.into);
  }

  private covers(path: string): boolean {
    const { match, path: own } = this.route;
    if (match === "exact" || !path.startsWith(own)) return path === own;
    return match === "prefix" || path.length === own.length || own.endsWith("/") || path[own.length] === "/";
  }

  /**
   * The fields of a response that pass to the client. Framing, `Server` and `Date` are left to the client's protocol.
   *
   * @param headers fields as the upstream sent them
   */
  responseHeaders(headers: HeaderList, request: ForwardedRequest): HeaderList {
    const named = connectionOptions(headers);
    const out: HeaderList = [];
    let typeAt = -1;
    for (let i = 0; i < headers.length; i += 2) {
      const name = headers[i]!;
      const fate = responseFieldFate(name);
      if (fate === FieldFate.Drop || (named !== undefined && named.has(name.toLowerCase()))) continue;
      if (fate === FieldFate.Type) {
        // The last of several types counts, as in nginx: browsers differ in which one they believe.
        if (typeAt !== -1) out.splice(typeAt, 2);
        typeAt = out.length;
      }
      let value = headers[i + 1]!;
      if (fate === FieldFate.Location) value = this.publicUrls.location(name, value, request);
      else if (fate === FieldFate.Cookie) value = this.publicUrls.cookie(value, request);
      out.push(name, value);
    }
    return out;
  }
}

/** How the route's path is cut, and the path that goes upstream in its place. */
function cutOf({ strip, rewrite }: ActionOf<"proxy">): { readonly strip: Strip; readonly into: string } {
  return { strip: strip === "none" && rewrite !== undefined ? "raw" : strip, into: rewrite ?? "/" };
}

/** The target of a request upstream, for callers that need nothing else from {@link ForwardingRules}. */
export function upstreamTargetOf(
  route: Pick<ProxiedRoute, "path" | "action">,
  target: string,
  path: NormalisedPath,
): string {
  const { strip, into } = cutOf(route.action);
  return upstreamTarget(strip, route.path, target, path, into);
}

/** Why a request is not forwarded. */
export interface ForwardingRefusal {
  readonly status: 400 | 502;
  /** The text for the error log. */
  readonly message: string;
}

const refusal = (status: 400 | 502, destination: string, why: string): ForwardingRefusal => ({
  status,
  message: `Destination "${destination}" ${why}`,
});

/** The values of a client's forwarding fields that change ours. */
interface Claims {
  /** A trusted proxy's own field passes in place of ours. */
  readonly realIp: boolean;
  readonly proto: boolean;
  /** The forwarding chain it sent, each address followed by `, `. */
  readonly chain: string;
}

/** The last usual request that {@link ForwardingRules} stores. */
interface Usual {
  readonly host: string;
  readonly address: string;
  readonly by: string | undefined;
  readonly scheme: string;
  text: string;
  again: boolean;
}

const NO_CLAIMS: Claims = { realIp: false, proto: false, chain: "" };

/** The remaining fields of a client's request. */
interface ClientFields extends Claims {
  /** It sent forwarding fields, trusted or not. */
  readonly claimed: boolean;
  /** Fields that pass, as lines. */
  readonly lines: string;
}

/** Target of an absolute URI that points at this front end by the name and port the client used; else undefined. */
function ownTarget(uri: string, request: ForwardedRequest): string | undefined {
  const match = /^(https?):\/\/([^/?#]*)(.*)/i.exec(uri);
  if (match === null) return undefined;
  const [, scheme, authority, rest] = match as unknown as [string, string, string, string];
  const named = parseHost(authority);
  const asked = parseHost(request.host);
  if (named === undefined || asked === undefined || named.serverName !== asked.serverName) return undefined;
  const port = named.port || String(defaultPort(scheme.toLowerCase() as Scheme));
  // Behind a TLS-terminating balancer, or after a redirect, a client may write the other scheme's default port.
  const own = asked.port === "" ? ["80", "443"] : [asked.port];
  return own.includes(port) ? (rest.charCodeAt(0) === 0x2f ? rest : `/${rest}`) : undefined;
}

/** Lower-case names that the message's own Connection fields declare hop-by-hop (RFC 9110, 7.6.1). */
export function connectionOptions(headers: HeaderList): ReadonlySet<string> | undefined {
  let options: Set<string> | undefined;
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!;
    if (name.length !== 10 || name.toLowerCase() !== "connection") continue;
    const value = headers[i + 1]!.toLowerCase();
    if (value === "keep-alive" || value === "close") continue;
    options ??= new Set();
    for (const option of value.split(",")) {
      const trimmed = option.trim();
      if (trimmed !== "") options.add(trimmed);
    }
  }
  return options;
}
