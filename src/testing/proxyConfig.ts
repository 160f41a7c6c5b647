import type { IConstruct } from "constructs";
import { ReverseProxyBase } from "../constructs/index.js";
import { checkAroundTokens } from "../constructs/props/tokens.js";
import { parseConfig, problem, ProblemError, type ProxyConfig } from "../model/index.js";
import { constructGiven } from "./targets.js";

/**
 * The config of a proxy as the host reads it: parsed, with all defaults.
 *
 * Placeholders such as `portico-token-0x` replace values that Terraform knows only at apply, so that all other values
 * can be tested.
 *
 * @param target a ReverseProxy, a ContainerProxy, or any construct (a stack, a FrontEnd) with exactly one
 * below it
 * @throws ProblemError with every problem, if the host would refuse the config
 */
export function renderProxyConfig(target: IConstruct): ProxyConfig {
  const { problems, placeholder } = checkAroundTokens(
    proxyIn(constructGiven("renderProxyConfig", target)).config,
    (config) => {
      const result = parseConfig(config);
      return result.ok ? [] : result.problems;
    },
  );
  // The JSON has no undefined fields, like the file.
  const result = parseConfig(JSON.parse(JSON.stringify(placeholder)));
  if (problems.length > 0) throw new ProblemError(problems);
  // Only a value that no placeholder fits can cause a problem here.
  if (!result.ok) throw new ProblemError(result.problems);
  return result.value;
}

export function proxyIn(target: IConstruct): ReverseProxyBase {
  const proxies = target.node.findAll().filter((construct) => construct instanceof ReverseProxyBase);
  if (proxies.length === 1) return proxies[0]!;
  const received = proxies.length === 0 ? "no proxy" : proxies.map((proxy) => proxy.node.path).join(", ");
  const allowed = "a construct that contains exactly one proxy";
  const fix = "Pass the front end or the proxy itself.";
  const more = { received, allowed, fix };
  throw new ProblemError([
    problem(
      "config.unknown-reference",
      target.node.path || "the app",
      "does not contain exactly one proxy",
      more,
    ),
  ]);
}
