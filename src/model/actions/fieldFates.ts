import { HOP_BY_HOP, NOT_FORWARDED } from "../net/hopByHop.js";
import { onePiece } from "../text/onePiece.js";

/**
 * How the proxy handles a field, by its name: the only list of fields in which applications read a client's address,
 * its identity or another URL than the requested one (decisions 2.3).
 */

export const enum FieldFate {
  /** Passed on as it is. */
  Pass,
  /** Ends here. */
  Drop,
  /** Names the client's address, or how it connected: passes from a trusted proxy only. */
  Claim,
  /** A chain of addresses that our own field continues, from any client. Without our own field: as a claim. */
  Chain,
  /** Names the user, the certificate or the original URL: passes only from a trusted proxy, if a route names it. */
  Named,
  /** Another spelling of a field that applications may take for that field: passes only if a route keeps it. */
  OddName,
  Destination,
  Location,
  Cookie,
  /** Passed on once. */
  Type,
}

/** Fields that say where the client is, and by which scheme, host and port it connected. */
const CLAIMS = [
  ...["x-forwarded", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-protocol", "x-forwarded-scheme"],
  ...["x-forwarded-ssl", "x-forwarded-port", "x-forwarded-server", "x-forwarded-by", "x-forwarded-prefix"],
  // Schemes that gunicorn, wsgidav, WordPress and Rack frameworks believe.
  ...["front-end-https", "x-url-scheme", "x-scheme", "x-arr-ssl", "cf-visitor", "cloudfront-forwarded-proto"],
  // Addresses that request-ip, django-ipware, Rails and PHP frameworks look for.
  ...["forwarded", "forwarded-for", "x-real-ip", "client-ip", "x-client-ip", "true-client-ip"],
  ...["x-cluster-client-ip", "cf-connecting-ip", "cf-connecting-ipv6", "cf-pseudo-ipv4", "fastly-client-ip"],
  ...["x-appengine-user-ip", "x-azure-clientip", "x-azure-socketip", "x-envoy-external-address"],
  ...["x-originating-ip", "proxy-client-ip", "wl-proxy-client-ip", "cloudfront-viewer-address"],
];

/** Fields that name the user, the client certificate or the original URL. */
const NAMED = [
  ...["client-cert", "client-cert-chain"], // RFC 9440, 4: to be dropped from clients
  ...["x-arr-clientcert", "x-client-verify", "x-client-dn"],
  ...["x-proxy-user", "x-vouch-user", "cf-access-authenticated-user-email"],
  ...["x-script-name", "x-override-url", "x-http-host-override", "x-sendfile-type"],
];

/** Prefixes of further names that are `Named`. */
export const REQUEST_FAMILIES: readonly string[] = [
  ...["x-forwarded", "remote-", "x-remote-", "x-auth-request-", "x-authenticated-", "x-webauth-"],
  ...["x-authentik-", "x-consumer-", "x-pomerium-claim-", "x-goog-authenticated-user-", "x-amzn-oidc-"],
  ...["x-ms-client-principal", "x-ms-token-", "tailscale-user-", "oidc-claim-", "shib-"],
  ...["ssl-", "x-ssl-", "x-client-cert", "x-tls-client-", "x-amzn-mtls-"],
  ...["x-original-", "x-rewrite-", "x-accel-"],
];

const REQUEST_FATES = new Map<string, FieldFate>([
  ...NOT_FORWARDED.map((n) => [n, FieldFate.Drop] as const),
  ...CLAIMS.map((n) => [n, FieldFate.Claim] as const),
  ...NAMED.map((n) => [n, FieldFate.Named] as const),
  ["x-forwarded-for", FieldFate.Chain],
  ["destination", FieldFate.Destination],
]);
const RESPONSE_FATES = new Map<string, FieldFate>([
  ...[...HOP_BY_HOP, "server", "date", "proxy-authenticate", "proxy-authentication-info", "x-pad"].map(
    (n) => [n, FieldFate.Drop] as const,
  ),
  ["location", FieldFate.Location],
  ["content-location", FieldFate.Location],
  ["refresh", FieldFate.Location],
  ["set-cookie", FieldFate.Cookie],
  ["content-type", FieldFate.Type],
]);
/** Prefixes of further names that are dropped: instructions of an upstream to nginx. */
export const RESPONSE_FAMILIES: readonly string[] = ["x-accel-"];

/** Lower-case names with their own fate. */
export const NAMED_FIELDS: readonly string[] = [
  ...new Set([...REQUEST_FATES.keys(), ...RESPONSE_FATES.keys()]),
];

const isOf = (families: readonly string[], name: string): boolean =>
  families.some((begins) => name.startsWith(begins));

/**
 * The lower-case name that applications may take a field for. Any other byte becomes the same `_` as `-` in the
 * environment variables of one application or another (RFC 3875, 4.1.18), so that the name may be another spelling of a
 * dropped one. nginx drops these names too.
 */
export const usualSpelling = (name: string): string => name.toLowerCase().replace(/[^0-9a-z-]/g, "-");

function fateOfRequestField(name: string): FieldFate {
  const lower = name.toLowerCase();
  if (usualSpelling(lower) !== lower) return FieldFate.OddName;
  return REQUEST_FATES.get(lower) ?? (isOf(REQUEST_FAMILIES, lower) ? FieldFate.Named : FieldFate.Pass);
}

function fateOfResponseField(name: string): FieldFate {
  const lower = name.toLowerCase();
  return RESPONSE_FATES.get(lower) ?? (isOf(RESPONSE_FAMILIES, lower) ? FieldFate.Drop : FieldFate.Pass);
}

export const requestFieldFate = remembered(fateOfRequestField);
export const responseFieldFate = remembered(fateOfResponseField);

/** Field names repeat endlessly, so their fate is looked up by the name as written; bounded against hostile names. */
function remembered(fateOf: (name: string) => FieldFate): (name: string) => FieldFate {
  const fates = new Map<string, FieldFate>();
  return (name) => {
    const known = fates.get(name);
    if (known !== undefined) return known;
    const fate = fateOf(name);
    // Copied, because a slice of a head would keep the whole head in memory.
    if (fates.size < 1024 && name.length <= 64) fates.set(onePiece(name), fate);
    return fate;
  };
}
