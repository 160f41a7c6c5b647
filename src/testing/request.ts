import { Construct, type IConstruct } from "constructs";
import type { ProxyConfig } from "../model/index.js";
import { type Resolution, resolution, type TestRequest } from "../model/resolution.js";
import { renderProxyConfig } from "./proxyConfig.js";
import { configGiven, requestGiven } from "./targets.js";

/**
 * What happens to a request, by the rules of the runtime: which virtual server and route take it, what goes
 * upstream, which file is read, where a redirect leads. Nothing is sent and no file is touched, so a static
 * file is named whether it exists or not.
 *
 * @param target a config, or a construct with one proxy
 */
export function resolve(target: ProxyConfig | IConstruct, request: TestRequest | string): Resolution {
  const config = Construct.isConstruct(target) ? renderProxyConfig(target) : configGiven("resolve", target);
  return resolution(config, requestGiven("resolve", request));
}

/**
 * The same for a request that is known to be answered in one way, typed as that: `resolveAs("proxy", stack, url).headers`
 * needs no check of `kind`.
 *
 * @param kind the kind of response: `proxy`, `staticFile`, `redirect`, `respond` or `error`
 * @throws Error that says what answers instead, if it is of another kind
 */
export function resolveAs<K extends Resolution["kind"]>(
  kind: K,
  target: ProxyConfig | IConstruct,
  request: TestRequest | string,
): Extract<Resolution, { readonly kind: K }> {
  const found = resolve(target, request);
  if (found.kind === kind) return found as Extract<Resolution, { readonly kind: K }>;
  const asked = typeof request === "string" ? request : request.url;
  throw new Error(`${asked} is not answered by ${kind}, but so: ${JSON.stringify(found, undefined, 2)}`);
}
