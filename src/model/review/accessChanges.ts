import type { AccessPolicyConfig } from "../config/accessJudge.js";
import type { ClientCertificateConfig } from "../config/clientIdentity.js";
import { ipv4Bits, ipv6Groups, plainRange } from "../net/address.js";
import type { ProxyConfig } from "../index.js";
import type { ReviewChange } from "./findings.js";
import type { WayIn } from "./ways.js";

/** Whether clients that a policy refused may come in now. What files contain is not known here. */
export function accessChanges(
  was: WayIn,
  is: WayIn,
  before: ProxyConfig,
  after: ProxyConfig,
): readonly ReviewChange[] {
  const [from, to] = [policyOf(before, was), policyOf(after, is)];
  const place = `${is.place}.access`;
  return [
    ...certificateChanges(was, is),
    ...admissionChanges(from, to, place),
    ...handedOnChanges(from, to, place),
  ];
}

function certificateChanges(was: WayIn, is: WayIn): readonly ReviewChange[] {
  const [from, to] = [was.server.clientCertificate, is.server.clientCertificate];
  const change = certificateChange(from, to);
  if (change === undefined) return [];
  const place = `${is.place.replace(/\.routes.*/, "")}.clientCertificate`;
  return [{ ...change, place, old: saidOf(from), new: saidOf(to) }];
}

type Policy = AccessPolicyConfig | undefined;

/** What the application gets of a client's credentials, and which fields name the user. */
function handedOnChanges(from: Policy, to: Policy, place: string): readonly ReviewChange[] {
  const [old, now] = [handedOn(from), handedOn(to)];
  const more = now.some((one) => !old.includes(one));
  if (!more && old.every((one) => now.includes(one))) return [];
  const text = (all: readonly string[]): string => (all.length === 0 ? "nothing" : all.join(" and "));
  return [
    { id: "access.handed-on", place, ...(more ? {} : { level: "note" }), old: text(old), new: text(now) },
  ];
}

const handedOn = (policy: Policy): readonly string[] => [
  ...(policy?.basic?.passOn === true ? ["the password"] : []),
  ...(policy?.basic?.userField === undefined ? [] : [`the user in ${policy.basic.userField}`]),
  ...(policy?.forwardAuth?.copyFields ?? []).map((field) => `${field} of the portal`),
];

function admissionChanges(from: Policy, to: Policy, place: string): readonly ReviewChange[] {
  const change = { place, old: said(from), new: said(to) };
  if (without(admitted(to), admitted(from)).length > 0) return [{ id: "access.opened", ...change }];
  if (from?.basic !== undefined && to?.basic === undefined) return [{ id: "access.opened", ...change }];
  if (from?.forwardAuth !== undefined && to?.forwardAuth === undefined)
    return [{ id: "access.opened", ...change }];
  const portal = from?.forwardAuth;
  // A portal that is told of requests in another way may judge them otherwise.
  const isOtherPortal =
    portal !== undefined &&
    (to?.forwardAuth?.url !== portal.url || to.forwardAuth.convention !== portal.convention);
  const bypasses =
    portal !== undefined && to!.forwardAuth!.bypass.some((one) => !portal.bypass.includes(one));
  if (bypasses) return [{ id: "access.opened", ...change }];
  if (isOtherPortal) return [{ id: "access.opened", ...change, level: "warning" }];
  const users = from?.basic?.usersFile;
  const isOther = users !== undefined && to?.basic?.usersFile !== users;
  if (isOther) return [{ id: "access.opened", ...change, level: "warning" }];
  const file = from?.denyFile;
  if (file !== undefined && to?.denyFile !== file)
    return [{ id: "access.opened", ...change, ...(to?.denyFile === undefined ? {} : { level: "warning" }) }];
  return without(admitted(from), admitted(to)).length > 0 ||
    to?.denyFile !== file ||
    to?.basic?.usersFile !== users ||
    asksMore(portal, to?.forwardAuth)
    ? [{ id: "access.closed", ...change }]
    : [];
}

/** Whether clients come in with other certificates, or without one. What files contain is not known here. */
function certificateChange(
  from: ClientCertificateConfig | undefined,
  to: ClientCertificateConfig | undefined,
): Pick<ReviewChange, "id" | "level"> | undefined {
  const isClosed = (rules: typeof from): boolean => rules?.required === true;
  const admitsMore =
    to?.names === undefined || to.names.some((name) => from?.names?.includes(name) === false);
  if (isClosed(from) && !isClosed(to)) return { id: "access.opened" };
  if (isClosed(from) && from!.names !== undefined && admitsMore) return { id: "access.opened" };
  if (isClosed(from) && from!.crl !== undefined && to!.crl === undefined) return { id: "access.opened" };
  if (isClosed(from) && (from!.ca !== to!.ca || from!.crl !== to!.crl))
    return { id: "access.opened", level: "warning" };
  return JSON.stringify(from) === JSON.stringify(to) ? undefined : { id: "access.closed" };
}

const saidOf = (rules: ClientCertificateConfig | undefined): string =>
  rules === undefined
    ? "everyone, without a certificate"
    : `${rules.required ? "only" : "everyone, and"} ${certificatesOf(rules)}`;

/** The certificates that come in: `certificates of /etc/portico/ca.pem for alice, but not those in /etc/portico/crl.pem`. */
export const certificatesOf = ({ ca, crl, names }: ClientCertificateConfig): string =>
  `certificates of ${ca}` +
  (names === undefined ? "" : ` for ${names.join(" and ")}`) +
  (crl === undefined ? "" : `, but not those in ${crl}`);

/** Whether a portal is asked now, or for more. */
const asksMore = (from: AccessPolicyConfig["forwardAuth"], to: AccessPolicyConfig["forwardAuth"]): boolean =>
  to !== undefined && (from === undefined || from.bypass.some((one) => !to.bypass.includes(one)));

/** The access policy of the route that a way leads to. */
export const policyOf = ({ accessPolicies = {} }: ProxyConfig, { route }: WayIn): Policy =>
  route.access === undefined ? undefined : accessPolicies[route.access];

const said = (policy: Partial<AccessPolicyConfig> = {}): string =>
  [policy.allow?.join(" and ") ?? "everyone", ...conditionsOf(policy)].join(", ");

/** The conditions of a policy besides `allow`: `but not 192.0.2.0/24`, `with a password of /etc/portico/users`. */
export function conditionsOf({
  deny = [],
  denyFile,
  basic,
  forwardAuth,
}: Partial<AccessPolicyConfig>): string[] {
  const others = [...deny, ...(denyFile === undefined ? [] : [`those in ${denyFile}`])];
  const bypass = forwardAuth?.bypass ?? [];
  const but = bypass.length === 0 ? "" : ` (but not for ${bypass.join(" and ")})`;
  const by = forwardAuth?.convention === "nginx" ? " by the convention of nginx" : "";
  return [
    ...(others.length === 0 ? [] : [`but not ${others.join(" and ")}`]),
    ...(basic === undefined ? [] : [`with a password of ${basic.usersFile}`]),
    ...(forwardAuth === undefined ? [] : [`signed on at ${forwardAuth.url}${by}${but}`]),
  ];
}

/** First and last address, as numbers of 128 bits: addresses of IPv4 are the mapped ones. */
type Span = readonly [first: bigint, last: bigint];

const ALL: readonly Span[] = [[0n, 2n ** 128n - 1n]];
const IPV4: Span = [0xffff_0000_0000n, 0xffff_ffff_ffffn];

function admitted({ allow, deny = [] }: Partial<AccessPolicyConfig> = {}): readonly Span[] {
  return without(allow === undefined ? ALL : allow.flatMap(spansOf), deny.flatMap(spansOf));
}

function spansOf(range: string): readonly Span[] {
  const [address, length] = plainRange(range).split("/") as [string, string?];
  const bits = ipv4Bits(address);
  const isIpv4 = bits !== undefined;
  const number = isIpv4
    ? IPV4[0] + BigInt(bits)
    : ipv6Groups(address)!.reduce((all, group) => all * 65_536n + BigInt(group), 0n);
  const behind = BigInt((isIpv4 ? 32 : 128) - Number(length ?? (isIpv4 ? 32 : 128)));
  const first = (number >> behind) << behind;
  const span: Span = [first, first + (1n << behind) - 1n];
  // No client of IPv4 is in a range of IPv6.
  return isIpv4 ? [span] : without([span], [IPV4]);
}

/** The spans without others. */
function without(spans: readonly Span[], others: readonly Span[]): readonly Span[] {
  return others.reduce<readonly Span[]>(
    (left, [first, last]) =>
      left.flatMap(([from, to]): readonly Span[] =>
        last < from || first > to
          ? [[from, to]]
          : [
              ...(from < first ? [[from, first - 1n] as const] : []),
              ...(last < to ? [[last + 1n, to] as const] : []),
            ],
      ),
    spans,
  );
}
