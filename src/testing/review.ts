import { Construct, type IConstruct } from "constructs";
import { Firewall, ReverseProxy } from "../constructs/index.js";
import { hasTokens } from "../constructs/props/tokens.js";
import type { ProxyConfig } from "../model/index.js";
import { routesGraph } from "../model/review/routesGraph.js";
import { routesMermaid } from "../render/routesMermaid.js";
import { type Openings, routesTable } from "../render/routesTable.js";
import { proxyIn, renderProxyConfig } from "./proxyConfig.js";
import { configGiven, constructGiven } from "./targets.js";

/**
 * A text table of all reachable paths, with their clients and targets, as a snapshot for reviews. The table is sorted
 * and contains no names of listeners, virtual servers, routes and upstreams, so the table changes only when something
 * changes for clients.
 *
 * `WHO` shows who comes in: by the listener's address, by the `Firewall` of the proxy's host if the app has one, and by
 * `access` of the route and `clientCertificate` of the site. What files contain is not known here. `WRITES` shows whether requests can change something in the application: by their method, always, or not at
 * all (`-`). Values that Terraform knows only at apply are placeholders, as in `renderProxyConfig`.
 *
 * @param target a config, or a construct with one proxy
 * @throws ProblemError with every problem, if the host would refuse the config
 */
export function renderRoutes(target: ProxyConfig | IConstruct): string {
  const { config, openings } = reviewed("renderRoutes", target);
  return routesTable(config, openings);
}

/**
 * A picture of the listeners, virtual servers and routes, and of the upstreams, directories and redirects of the
 * routes: a Mermaid flowchart, which code hosts draw from a `mermaid` block. The same config always results in the same
 * text, byte for byte.
 *
 * @param target a config, or a construct with one proxy
 * @throws ProblemError with every problem, if the host would refuse the config
 */
export function renderGraph(target: ProxyConfig | IConstruct): string {
  return routesMermaid(routesGraph(reviewed("renderGraph", target).config));
}

interface Reviewed {
  readonly config: ProxyConfig;
  readonly openings: Openings | undefined;
}

function reviewed(helper: string, target: ProxyConfig | IConstruct): Reviewed {
  if (!Construct.isConstruct(target)) return { config: configGiven(helper, target), openings: undefined };
  const proxy = proxyIn(constructGiven(helper, target));
  const config = renderProxyConfig(proxy);
  return { config, openings: proxy instanceof ReverseProxy ? openingsOf(proxy) : undefined };
}

/**
 * The openings of the firewall of the proxy's host; undefined if there is none, or its ports are known at apply only.
 */
function openingsOf({ host, node }: ReverseProxy): Openings | undefined {
  const firewalls = node.root.node.findAll().filter((one) => one instanceof Firewall);
  const input = firewalls.map(({ opened }) => opened()).find((one) => one.host === host)?.input;
  return input === undefined || hasTokens([input.ports, input.from, input.allowed]) ? undefined : input;
}
