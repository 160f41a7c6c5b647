import { clientPort, endpoint, hasSeveral, type ProxyConfig, serversOf } from "../index.js";
import { Reach, type WayIn, writesOf } from "./ways.js";

/** The data for a picture of reachable paths: listeners, virtual servers, routes, and where these lead. */
export interface RoutesGraph {
  /** From left to right; each column in the order of the config. */
  readonly columns: readonly { readonly title: string; readonly nodes: readonly GraphNode[] }[];
  readonly edges: readonly GraphEdge[];
}

export interface GraphNode {
  readonly id: string;
  readonly kind: "listener" | "server" | "route" | "upstream" | "response";
  /** The name first, then further facts. */
  readonly lines: readonly string[];
}

export interface GraphEdge {
  readonly from: string;
  readonly to: string;
  /** The common parts of the requests that take it: names of the config. */
  readonly of: EdgeOf;
}

export interface EdgeOf {
  readonly listener?: string;
  readonly server?: string;
  readonly route?: string;
  readonly upstream?: string;
  /** URL of a server of the upstream. */
  readonly url?: string;
}

export function routesGraph(config: ProxyConfig): RoutesGraph {
  const { listeners, virtualServers, upstreams } = config;
  const served = virtualServers.flatMap((server) =>
    server.listeners.map((listener) => ({ listener, server })),
  );
  const reached = new Reach(config).ways;
  // A route is drawn once, whichever listeners lead to it.
  const ways = [...new Map(reached.map((way) => [way.place, way])).values()].sort(byConfig(reached));
  const goals = new Map(ways.map((way) => [goalOf(way), goalLines(way, config)]));
  const goalIds = new Map([...goals.keys()].map((goal, i) => [goal, `g${i}`]));
  const several = upstreams.filter((one) => hasSeveral(one) && goals.has(`upstream ${one.name}`));
  const urls = [...new Set(several.flatMap((one) => serversOf(one).map(({ url }) => url)))];
  return {
    columns: [
      { title: "Listeners", nodes: listeners.map((one, i) => listenerNode(one, `l${i}`)) },
      { title: "Virtual servers", nodes: virtualServers.map((one, i) => serverNode(one, reached, `v${i}`)) },
      { title: "Routes", nodes: ways.map((way, i) => routeNode(way, `r${i}`)) },
      { title: "Lead to", nodes: [...goals].map(([goal, lines], i) => goalNode(goal, lines, `g${i}`)) },
      ...(urls.length === 0
        ? []
        : [
            {
              title: "Servers",
              nodes: urls.map((url, i) => ({ id: `s${i}`, kind: "upstream", lines: [url] }) as const),
            },
          ]),
    ],
    edges: [
      ...served.map(({ listener, server }) => ({
        from: `l${listeners.findIndex(({ name }) => name === listener)}`,
        to: `v${virtualServers.indexOf(server)}`,
        of: { listener, server: server.name },
      })),
      ...ways.map(({ server, route }, i) => ({
        from: `v${virtualServers.indexOf(server)}`,
        to: `r${i}`,
        of: { server: server.name, route: route.name },
      })),
      ...ways.map((way, i) => ({
        from: `r${i}`,
        to: goalIds.get(goalOf(way))!,
        of: { server: way.server.name, route: way.route.name },
      })),
      ...several.flatMap((one) =>
        serversOf(one).map(({ url }) => ({
          from: goalIds.get(`upstream ${one.name}`)!,
          to: `s${urls.indexOf(url)}`,
          of: { upstream: one.name, url },
        })),
      ),
    ],
  };
}

/** Routes of one virtual server beside each other. */
function byConfig(reached: readonly WayIn[]): (a: WayIn, b: WayIn) => number {
  const order = [...new Set(reached.map(({ server }) => server))];
  return (a, b) => order.indexOf(a.server) - order.indexOf(b.server);
}

function listenerNode(listener: ProxyConfig["listeners"][number], id: string): GraphNode {
  const { protocol, address, port } = listener;
  const asked = clientPort(listener);
  const mapped = asked === port ? [] : [`clients use port ${asked}`];
  return { id, kind: "listener", lines: [`${protocol} ${endpoint({ host: address, port })}`, ...mapped] };
}

function serverNode(
  server: ProxyConfig["virtualServers"][number],
  reached: readonly WayIn[],
  id: string,
): GraphNode {
  const names = reached.find((way) => way.server === server)?.names ?? server.serverNames;
  return { id, kind: "server", lines: names };
}

const MATCHES = { prefix: "and paths that begin with it", segment: "and below", exact: "exactly" };

function routeNode({ route }: WayIn, id: string): GraphNode {
  const words = [MATCHES[route.match], ...(writesOf(route) === "nothing" ? [] : ["writes"])];
  return { id, kind: "route", lines: [route.path, words.join(", ")] };
}

/** Routes with one goal lead to one node. */
function goalOf({ route, lead }: WayIn): string {
  return route.action.type === "proxy" ? `upstream ${route.action.upstream}` : lead.text;
}

function goalLines({ route: { action }, lead }: WayIn, { upstreams }: ProxyConfig): readonly string[] {
  if (action.type === "respond") return [`responds with ${action.status}`];
  if (action.type !== "proxy") return [lead.text];
  const upstream = upstreams.find(({ name }) => name === action.upstream)!;
  const servers = serversOf(upstream);
  return [action.upstream, hasSeveral(upstream) ? upstream.balance : servers[0]!.url];
}

function goalNode(goal: string, lines: readonly string[], id: string): GraphNode {
  return { id, kind: goal.startsWith("upstream ") ? "upstream" : "response", lines };
}
