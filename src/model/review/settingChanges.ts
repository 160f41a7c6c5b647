import { canonicalAddress, isWildcard } from "../net/address.js";
import { endpoint, isLoopback, type ProxyConfig } from "../index.js";
import type { ReviewChange } from "./findings.js";
import { widened } from "./listenerChanges.js";

/** Settings of the whole config that trust or allow more than the old config. */
export function settingChanges(old: ProxyConfig, now: ProxyConfig): readonly ReviewChange[] {
  const trusts = now.trustedProxies.length > 0;
  return [
    ...widened("trust.proxies", old.trustedProxies, now.trustedProxies, "trustedProxies"),
    ...(trusts && old.clientAddressField.toLowerCase() !== now.clientAddressField.toLowerCase()
      ? [
          {
            id: "trust.client-field",
            place: "clientAddressField",
            old: old.clientAddressField,
            new: now.clientAddressField,
          } as const,
        ]
      : []),
    ...widened("maintenance.allowed", old.maintenance.allow, now.maintenance.allow, "maintenance.allow"),
    ...raised(old.limits, now.limits, "limits", Object.keys(now.limits) as (keyof ProxyConfig["limits"])[]),
    ...raised(old.timeouts, now.timeouts, "timeouts", ["requestHeadMs", "keepAliveMs", "tlsHandshakeMs"]),
    ...healthChanges(old, now),
    ...metricsChanges(old, now),
  ];
}

/** A change for each number that is higher than before. @param unlimited fields in which 0 means no limit */
export function raised<K extends string>(
  was: Readonly<Record<K, number>>,
  is: Readonly<Record<K, number>>,
  place: string,
  fields: readonly K[],
  unlimited: readonly K[] = [],
): readonly ReviewChange[] {
  return fields.flatMap((field) => {
    const value = (number: number): number => (number === 0 && unlimited.includes(field) ? Infinity : number);
    if (value(is[field]) <= value(was[field])) return [];
    const said = (number: number): string => (value(number) === Infinity ? "no limit" : String(number));
    return [
      {
        id: "limit.raised",
        place: `${place}.${field}`,
        old: said(was[field]),
        new: said(is[field]),
      } as const,
    ];
  });
}

function healthChanges(
  { healthListener: was }: ProxyConfig,
  { healthListener: is }: ProxyConfig,
): readonly ReviewChange[] {
  if (is === undefined) return [];
  const at = ({ address, port }: typeof is): string => endpoint({ host: canonicalAddress(address), port });
  const sameOrLess =
    was !== undefined && was.port === is.port && (at(was) === at(is) || isWildcard(was.address));
  if (sameOrLess) return [];
  const level = isLoopback(is.address) ? ("note" as const) : undefined;
  const old = was === undefined ? "none" : at(was);
  return [
    {
      id: "health.opened",
      place: "healthListener",
      level,
      old,
      new: at(is),
    },
  ];
}

function metricsChanges(
  { metricsListener: was }: ProxyConfig,
  { metricsListener: is }: ProxyConfig,
): readonly ReviewChange[] {
  if (is === undefined || !("port" in is)) return [];
  const before = was !== undefined && "port" in was ? was : undefined;
  const at = ({ address, port }: typeof is): string => endpoint({ host: canonicalAddress(address), port });
  const samePlace =
    before !== undefined && before.port === is.port && (at(before) === at(is) || isWildcard(before.address));
  const who = ({ allow }: typeof is): string => (allow.length === 0 ? "everyone" : allow.join(", "));
  const more =
    before?.allow.length !== 0 &&
    (is.allow.length === 0 || is.allow.some((one) => !before?.allow.includes(one)));
  if (samePlace && !more) return [];
  const said = (one: typeof is): string => `${at(one)}, ${who(one)}`;
  return [
    {
      id: "metrics.opened",
      place: "metricsListener",
      ...(isLoopback(is.address) ? { level: "note" as const } : {}),
      old: before === undefined ? "none" : said(before),
      new: said(is),
    },
  ];
}
