import type { ProxyConfig } from "../../../model/serving.js";
import { type EdgeOf, type GraphNode, routesGraph } from "../../../model/review/routesGraph.js";
import {
  mayRespond,
  type OverviewUpstream,
  type Topology,
  type TopologyNode,
} from "../../status/overview.js";
import { type Rates, routeKey, serverKey } from "./trafficHistory.js";

/** The topology with its current traffic. */
export function topologyOf(
  config: ProxyConfig,
  rates: Rates,
  upstreams: readonly OverviewUpstream[],
): Topology {
  const { columns, edges } = routesGraph(config);
  return {
    columns: columns.map(({ title, nodes }) => ({
      title,
      nodes: nodes.map((node) => nodeOf(node, upstreams)),
    })),
    edges: edges.map(({ from, to, of }) => ({ from, to, requests: rateOf(config, of, rates) })),
  };
}

/** An upstream without a server that is up is marked, and each server that is not. */
function nodeOf({ id, kind, lines }: GraphNode, upstreams: readonly OverviewUpstream[]): TopologyNode {
  const node = { id, kind, lines };
  if (kind !== "upstream") return node;
  const named = upstreams.find(({ name }) => name === lines[0]);
  const servers =
    named?.servers ?? upstreams.flatMap((one) => one.servers).filter(({ url }) => url === lines[0]);
  return servers.length > 0 && !servers.some(mayRespond) ? { ...node, trouble: true } : node;
}

function rateOf(config: ProxyConfig, { listener, server, route }: EdgeOf, rates: Rates): number {
  if (server !== undefined && route !== undefined) return rates.at(routeKey(server, route));
  // Requests are counted by route: which of several servers they went to is not.
  if (listener === undefined || server === undefined) return 0;
  // Requests are counted by virtual server: which of its listeners they came through is not.
  const listeners = config.virtualServers.find(({ name }) => name === server)?.listeners ?? [];
  return listeners.length === 1 ? rates.at(serverKey(server)) : 0;
}
