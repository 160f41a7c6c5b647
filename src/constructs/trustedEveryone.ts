import type { IConstruct } from "constructs";
import { plainRange } from "../model/address.js";
import { type Problem, problem, type ProxyConfigInput } from "../model/index.js";
import { isKnown } from "./props/tokens.js";

/** Lists of trusted addresses with everyone in them: whatever a client says about itself is believed then. */
export function trustedEveryoneProblems(
  proxy: IConstruct & { readonly config: ProxyConfigInput; readonly listeners: readonly IConstruct[] },
): Problem[] {
  const { trustedProxies, listeners } = proxy.config;
  return [
    ...everyoneProblems(`${proxy.node.path}.trustedProxies`, trustedProxies),
    ...listeners.flatMap(({ proxyProtocol }, i) =>
      everyoneProblems(`${proxy.listeners[i]!.node.path}.proxyProtocol.from`, proxyProtocol?.from),
    ),
  ];
}

/** The same of one list, at the path of its prop; what is no list of texts, the config's own rules refuse. */
export function everyoneProblems(path: string, ranges: readonly string[] = []): Problem[] {
  const texts = Array.isArray(ranges) ? ranges.filter((range) => typeof range === "string") : [];
  const everyone = texts.filter((range) => isKnown(range) && Number(plainRange(range).split("/")[1]) === 0);
  if (everyone.length === 0) return [];
  const message =
    "matches every IPv4 or IPv6 address: the proxy would believe what every client says about itself";
  const more = { received: everyone, allowed: "addresses and ranges of the proxies in front of this one" };
  return [problem("config.everyone-trusted", path, message, more)];
}
