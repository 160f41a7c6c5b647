import type { IConstruct } from "constructs";
import type { ProxyConfig } from "../model/index.js";
import { type Resolution, resolution, type TestRequest } from "../model/resolution.js";
import { renderProxyConfig } from "./proxyConfig.js";

/**
 * What happens to a request, by the rules of the runtime: which virtual server and route take it, what goes
 * upstream, which file is read, where a redirect leads. Nothing is sent and no file is touched, so a static
 * file is named whether it exists or not.
 *
 * @param target a config, or a construct with one proxy
 */
export function resolve(target: ProxyConfig | IConstruct, request: TestRequest | string): Resolution {
  return resolution("node" in target ? renderProxyConfig(target) : target, request);
}
