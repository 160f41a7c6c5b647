import { overlap } from "../access/addressSet.js";
import { isIpv6, plainRange } from "../net/address.js";
import { type ListenerConfig, type NamedTlsPolicySettings, tlsPolicySettings } from "../index.js";
import type { ReviewChange } from "./findings.js";

/** Connections that a listener accepts and the old listener at the same place did not. */
export function listenerChanges(
  was: ListenerConfig,
  is: ListenerConfig,
  place: string,
): readonly ReviewChange[] {
  const both = { old: was.protocol, new: is.protocol };
  if (was.protocol !== is.protocol)
    return [
      ...(is.protocol === "http"
        ? [{ id: "listener.unencrypted", place: `${place}.protocol`, ...both } as const]
        : [{ id: "listener.encrypted", place: `${place}.protocol`, ...both } as const]),
      ...announced(was, is, place),
    ];
  return [
    ...(is.protocol === "https" && is.http2 && !was.http2
      ? [{ id: "listener.http2", place: `${place}.http2`, old: "false", new: "true" } as const]
      : []),
    ...policyChanges(was, is, place),
    ...announced(was, is, place),
  ];
}

const announced = (was: ListenerConfig, is: ListenerConfig, place: string): readonly ReviewChange[] =>
  widened(
    "trust.proxy-protocol",
    was.proxyProtocol?.from ?? [],
    is.proxyProtocol?.from ?? [],
    `${place}.proxyProtocol.from`,
  );

/** A change for each range with addresses that none of the former ranges has. */
export function widened(
  id: ReviewChange["id"],
  was: readonly string[],
  is: readonly string[],
  place: string,
): readonly ReviewChange[] {
  return is.flatMap((range, i) => {
    if (was.some((former) => overlap(former, range) && lengthOf(former) <= lengthOf(range))) return [];
    return [{ id, place: `${place}[${i}]`, old: was.length === 0 ? "none" : was.join(", "), new: range }];
  });
}

function lengthOf(range: string): number {
  const [address, length] = plainRange(range).split("/") as [string, string?];
  return Number(length ?? (isIpv6(address) ? 128 : 32));
}

function policyChanges(was: ListenerConfig, is: ListenerConfig, place: string): readonly ReviewChange[] {
  if (was.tls === undefined || is.tls === undefined) return [];
  const [from, to] = [tlsPolicySettings(was.tls.policy), tlsPolicySettings(is.tls.policy)];
  const [old, now] = [said(was.tls.policy), said(is.tls.policy)];
  if (JSON.stringify(from) === JSON.stringify(to)) return [];
  const id = isWeaker(from, to) ? "tls.policy-weaker" : "tls.policy-changed";
  return [{ id, place: `${place}.tls.policy`, old, new: now }];
}

const said = (policy: unknown): string => (typeof policy === "string" ? policy : JSON.stringify(policy));

/** Whether the texts show a weaker policy: which suites the words of a cipher string stand for only OpenSSL knows. */
function isWeaker(from: NamedTlsPolicySettings, to: NamedTlsPolicySettings): boolean {
  const [had, has] = [from, to].map(({ ciphers }) => ciphers.split(/[:, ]/));
  const isExclusion = (word: string): boolean => /^[!-]/.test(word);
  return (
    to.minVersion < from.minVersion ||
    to.maxVersion < from.maxVersion ||
    has!.some((word) => !isExclusion(word) && !had!.includes(word)) ||
    had!.some((word) => isExclusion(word) && !has!.includes(word)) ||
    groups(to).some((group) => !groups(from).includes(group)) ||
    (from.curvesIfKnown ?? []).some((group) => !groups(to).includes(group))
  );
}

const groups = ({ curvesIfKnown = [], curves }: NamedTlsPolicySettings): readonly string[] => [
  ...curvesIfKnown,
  ...curves,
];
