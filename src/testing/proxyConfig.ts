import type { IConstruct } from "constructs";
import { ReverseProxyBase } from "../constructs/index.js";
import { checkAroundTokens } from "../constructs/props/tokens.js";
import { parseConfig, ProblemError, type ProxyConfig } from "../model/index.js";
import { constructGiven } from "./targets.js";

/**
 * The config that a proxy writes, as the host reads it: parsed, with every default filled in.
 *
 * Values that Terraform knows only at apply are replaced by placeholders such as `portico-token-0x`, so that everything
 * else can be tested.
 *
 * @param target a ReverseProxy, a ContainerProxy, or any construct (a stack, a FileSyncFrontEnd) with exactly one below it
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
  // As in the file, undefined fields are left out.
  const result = parseConfig(JSON.parse(JSON.stringify(placeholder)));
  if (problems.length > 0) throw new ProblemError(problems);
  // Only a value that no placeholder fits can cause a problem here.
  if (!result.ok) throw new ProblemError(result.problems);
  return result.value;
}

function proxyIn(target: IConstruct): ReverseProxyBase {
  const proxies = target.node.findAll().filter((construct) => construct instanceof ReverseProxyBase);
  if (proxies.length === 1) return proxies[0]!;
  const found = proxies.length === 0 ? "none" : proxies.map((proxy) => proxy.node.path).join(", ");
  throw new Error(
    `Give a construct with one proxy: below ${target.node.path || "the app"} there is ${found}.`,
  );
}
