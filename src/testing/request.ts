import { Construct, type IConstruct } from "constructs";
import type { ProxyConfig } from "../model/index.js";
import { type Resolution, resolution, type TestRequest } from "../model/resolution.js";
import { renderProxyConfig } from "./proxyConfig.js";
import { configGiven, requestGiven } from "./targets.js";

/**
 * Determines the handling of a request by the rules of the runtime: the virtual server and route, the request to the
 * upstream, the file, or the target of a redirect. Nothing is sent and no file is read: the result names a static
 * file even if the file does not exist.
 *
 * @param target a config, or a construct with one proxy
 */
export function resolve(target: ProxyConfig | IConstruct, request: TestRequest | string): Resolution {
  const config = Construct.isConstruct(target) ? renderProxyConfig(target) : configGiven("resolve", target);
  return resolution(config, requestGiven("resolve", request));
}

/**
 * Like {@link resolve}, for a known kind of response, with the type of that kind: `resolveAs("proxy", stack,
 * url).headers` needs no check of `kind`.
 *
 * @param kind the kind of response: `proxy`, `staticFile`, `redirect`, `respond` or `error`
 * @throws Error with the actual response, if the kind is another one
 */
export function resolveAs<K extends Resolution["kind"]>(
  kind: K,
  target: ProxyConfig | IConstruct,
  request: TestRequest | string,
): Extract<Resolution, { readonly kind: K }> {
  const found = resolve(target, request);
  if (found.kind === kind) return found as Extract<Resolution, { readonly kind: K }>;
  const asked = typeof request === "string" ? request : request.url;
  throw new Error(
    `the response to ${asked} is not of the kind ${kind}, but: ${JSON.stringify(found, undefined, 2)}`,
  );
}
