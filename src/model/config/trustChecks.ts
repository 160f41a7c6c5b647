import { FieldFate, requestFieldFate } from "../actions/fieldFates.js";
import { overlap } from "../access/addressSet.js";
import { everyoneIn, rangeMeant } from "../net/address.js";
import { type Problem, problem } from "../text/problem.js";
import type { ProxyConfig } from "./config.js";

/** Rules about trust in statements about clients. */
export function trustProblems(config: ProxyConfig): Problem[] {
  return [
    ...unsentFields(config),
    ...idFieldProblems(config),
    ...announcedAndTrusted(config),
    ...everyoneAllowed(config),
    ...unclearRanges(config),
  ];
}

/** Fields that only a trusted proxy may send, where there is none. */
function unsentFields({ trustedProxies, clientAddressField, virtualServers }: ProxyConfig): Problem[] {
  if (trustedProxies.length > 0) return [];
  const nobody = (path: string, received: unknown): Problem =>
    problem("config.no-trusted-proxies", path, "has no effect: `trustedProxies` is empty", { received });
  return [
    ...(clientAddressField.toLowerCase() === "x-forwarded-for"
      ? []
      : [nobody("clientAddressField", clientAddressField)]),
    ...virtualServers.flatMap(({ routes }, s) =>
      routes.flatMap(({ action }, r) =>
        action.type === "proxy" && action.trustedFields.length > 0
          ? [nobody(`virtualServers[${s}].routes[${r}].action.trustedFields`, action.trustedFields)]
          : [],
      ),
    ),
  ];
}

/** A field that ends here for most clients, or is rewritten, cannot have the id as well. */
function idFieldProblems({ requestId }: ProxyConfig): Problem[] {
  if (requestId === undefined || requestFieldFate(requestId.field) === FieldFate.Pass) return [];
  return [
    problem("config.bad-header", "requestId.field", "is a field that the proxy drops or rewrites", {
      received: requestId.field,
      allowed: "a field that the proxy forwards unchanged, such as X-Request-Id",
    }),
  ];
}

/**
 * A balancer of TCP that is trusted as a proxy of HTTP as well: its clients would be believed whatever they claim,
 * wherever a header names none of them. Where it speaks HTTP to another listener, both are needed.
 */
function announcedAndTrusted({ trustedProxies, listeners }: ProxyConfig): Problem[] {
  return trustedProxies.flatMap((trusted, i) => {
    const announced = listeners.map(({ proxyProtocol }) =>
      proxyProtocol?.from.findIndex((range) => overlap(range, trusted)),
    );
    if (announced.some((at) => at === undefined || at === -1)) return [];
    const message = `overlaps with listeners[0].proxyProtocol.from[${announced[0]}]`;
    return [
      problem("config.announced-and-trusted", `trustedProxies[${i}]`, message, {
        received: trusted,
        allowed: "addresses that connect to at least one listener without a PROXY protocol header",
      }),
    ];
  });
}

/** A maintenance with everyone allowed refuses nothing. */
function everyoneAllowed({ maintenance }: ProxyConfig): Problem[] {
  return maintenance.allow.flatMap((received, i) => {
    const reach = everyoneIn(received);
    if (reach === undefined) return [];
    const message = `${reach}: a maintenance would keep no client out`;
    const more = { received, allowed: "addresses and ranges of administrators" };
    return [problem("config.everyone-allowed", `maintenance.allow[${i}]`, message, more)];
  });
}

/** Whether one address or its network is meant decides who is let in, or believed. */
function unclearRanges(config: ProxyConfig): Problem[] {
  const { trustedProxies, maintenance, metricsListener, listeners, virtualServers } = config;
  const policies = Object.entries(config.accessPolicies ?? {});
  const lists: readonly (readonly [at: string, ranges: readonly string[]])[] = [
    ["trustedProxies", trustedProxies],
    ["maintenance.allow", maintenance.allow],
    ...policies.flatMap(([name, policy]) =>
      (["allow", "deny"] as const).map(
        (field) => [`accessPolicies.${name}.${field}`, policy[field] ?? []] as const,
      ),
    ),
    ["metricsListener.allow", metricsListener && "allow" in metricsListener ? metricsListener.allow : []],
    ...listeners.map(
      ({ proxyProtocol }, i) => [`listeners[${i}].proxyProtocol.from`, proxyProtocol?.from ?? []] as const,
    ),
    ...virtualServers.flatMap(({ routes }, s) =>
      routes.map(
        ({ action }, r) =>
          [
            `virtualServers[${s}].routes[${r}].action.allow`,
            action.type === "status" ? action.allow : [],
          ] as const,
      ),
    ),
  ];
  return lists.flatMap(([at, ranges]) =>
    ranges.flatMap((received, i) =>
      everyoneIn(received) === undefined ? unclearRange(`${at}[${i}]`, received) : [],
    ),
  );
}

/** A range, written with an address that is not its first one. */
export function unclearRange(path: string, received: string): Problem[] {
  const range = rangeMeant(received);
  if (range === undefined) return [];
  const [address] = received.split("/");
  const message = "is a range whose address has bits behind its prefix";
  const allowed = `${range} for the range, ${address} for the address`;
  const fix = "Use the one that is meant.";
  return [problem("config.bad-address", path, message, { received, allowed, fix })];
}
