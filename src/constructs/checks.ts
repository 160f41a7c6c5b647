import type { IConstruct } from "constructs";
import { parseConfig, type Problem, ProblemError, type ProxyConfigInput } from "../model/index.js";
import { checkAroundTokens } from "./tokens.js";

/** Throws if there are problems: constructors refuse bad input at once, where it was given. */
export function refuse(problems: readonly Problem[]): void {
  if (problems.length > 0) throw new ProblemError(problems);
}

/** Every problem of a config, as the host would report it; values that are not known yet are left out. */
export function configProblems(config: ProxyConfigInput): readonly Problem[] {
  return checkAroundTokens(config, problemsOf).problems;
}

function problemsOf(config: ProxyConfigInput): readonly Problem[] {
  const result = parseConfig(config);
  return result.ok ? [] : result.problems;
}

type Listener = ProxyConfigInput["listeners"][number];
type Upstream = NonNullable<ProxyConfigInput["upstreams"]>[number];
type VirtualServer = ProxyConfigInput["virtualServers"][number];
type Route = VirtualServer["routes"][number];

const SERVER: VirtualServer = { name: "s", serverNames: ["_"], listeners: ["l"], default: true, routes: [] };
/** At an address that is nobody's (RFC 5737), or an upstream could be taken for it. */
const LISTENER: Listener = { name: "l", address: "192.0.2.1", port: 1, protocol: "http" };

/** Refuses a listener by the same rules that the host applies to it. */
export function refuseListener(construct: IConstruct, part: Listener): void {
  const config = {
    version: 1,
    listeners: [part],
    virtualServers: [{ ...SERVER, listeners: [part.name] }],
  } as const;
  refusePart(construct, config, "listeners[0]");
}

export function refuseUpstream(construct: IConstruct, part: Upstream): void {
  refusePart(
    construct,
    { version: 1, listeners: [LISTENER], upstreams: [part], virtualServers: [SERVER] },
    "upstreams[0]",
  );
}

export function refuseVirtualServer(construct: IConstruct, part: VirtualServer): void {
  const listeners = part.listeners.map((name, i) => ({ ...LISTENER, name, port: i + 1 }));
  refusePart(construct, { version: 1, listeners, virtualServers: [part] }, "virtualServers[0]");
}

export function refuseRoute(construct: IConstruct, part: Route): void {
  // A route alone cannot be judged by what it names.
  const { action } = part;
  const upstreams = action.type === "proxy" ? [{ name: action.upstream, url: "http://localhost:2" }] : [];
  const virtualServers = [{ ...SERVER, routes: [part] }];
  refusePart(
    construct,
    { version: 1, listeners: [LISTENER], upstreams, virtualServers },
    "virtualServers[0].routes[0]",
  );
}

/** Problems below one path of a config, told by the construct's path. */
function refusePart(construct: IConstruct, config: ProxyConfigInput, at: string): void {
  const here = configProblems(config).filter((p) => `${p.path}.`.startsWith(`${at}.`));
  refuse(here.map((p) => ({ ...p, path: construct.node.path + p.path.slice(at.length) })));
}
