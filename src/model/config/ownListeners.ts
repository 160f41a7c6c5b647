import { canonicalAddress, ipv4Scope, ipv6Scope, isIpv6, isWildcard } from "../net/address.js";
import { type Problem, problem } from "../text/problem.js";
import type { ProxyConfig } from "./config.js";

/** Listeners on which the proxy itself responds, to probes and monitoring. They need no password, so clients are near. */
export function ownListenerProblems(config: ProxyConfig): Problem[] {
  const { healthListener: health, metricsListener: metrics } = config;
  const tcp = metrics !== undefined && "port" in metrics ? metrics : undefined;
  return [
    ...(health === undefined
      ? []
      : [
          ...(isNear(health) ? [] : [publicHealth(health.address)]),
          ...clashes(config, health, "healthListener"),
        ]),
    ...(tcp === undefined
      ? []
      : [
          ...(isNear(tcp) || tcp.allow.length > 0 ? [] : [publicMetrics(tcp.address)]),
          ...clashes(config, tcp, "metricsListener"),
          ...(health !== undefined && clash(health, tcp)
            ? [taken("metricsListener.port", tcp.port, "healthListener")]
            : []),
        ]),
  ];
}

interface AddressAndPort {
  readonly address: string;
  readonly port: number;
}

function isNear({ address, anyAddress }: AddressAndPort & { readonly anyAddress: boolean }): boolean {
  if (isWildcard(address)) return anyAddress;
  const scope = ipv4Scope(address) ?? ipv6Scope(address);
  return ["private", "loopback", "linkLocal"].some((one) => one === scope);
}

function clashes({ listeners }: ProxyConfig, own: AddressAndPort, path: string): Problem[] {
  const at = listeners.findIndex((one) => clash(one, own));
  return at === -1 ? [] : [taken(`${path}.port`, own.port, `listeners[${at}]`)];
}

const clash = (a: AddressAndPort, b: AddressAndPort): boolean =>
  a.port === b.port && isIpv6(a.address) === isIpv6(b.address) && share(a.address, b.address);

const share = (a: string, b: string): boolean =>
  isWildcard(a) || isWildcard(b) || canonicalAddress(a) === canonicalAddress(b);

const taken = (path: string, received: number, of: string): Problem =>
  problem("config.port-conflict", path, `is already the port of ${of}`, {
    received,
    fix: "Choose another port.",
  });

const publicHealth = (received: string): Problem =>
  problem("config.public-health-listener", "healthListener.address", "is not a private address", {
    received,
    allowed: "a loopback, private or link-local address; 0.0.0.0 or :: with `anyAddress: true`",
  });

const publicMetrics = (received: string): Problem =>
  problem(
    "config.public-metrics-listener",
    "metricsListener.address",
    "is not a private address, and `allow` is empty",
    {
      received,
      allowed:
        "a loopback, private or link-local address; any other with `allow`; 0.0.0.0 or :: with `anyAddress: true`",
    },
  );
