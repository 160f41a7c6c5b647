import {
  hasSeveral,
  type ListenerConfig,
  type ProxyConfig,
  type Scheme,
  serversOf,
  splitAbsolute,
} from "../../../model/index.js";
import { decide, type Decision, type RouteMatch, RequestMatcher } from "../../../model/decision.js";

/** How a config handles a request of a log, as far as this is known without an upstream or a disk. */
export interface ReplayOutcome {
  /** `none`: it has no listener for the request. */
  readonly action: Decision["kind"] | "none";
  readonly virtualServer?: string | undefined;
  readonly route?: string | undefined;
  readonly upstream?: string | undefined;
  /** The addresses of the upstream's servers. */
  readonly servers?: string | undefined;
  /** Path upstream, file or Location. */
  readonly to?: string | undefined;
  /** Undefined if an upstream or a file decides. */
  readonly status?: number | undefined;
  /** The body of a fixed response. */
  readonly body?: string | undefined;
  /** `requestBodyBytesMax` of the route. */
  readonly bodyBytesMax?: number | undefined;
}

/** A request as {@link outcomeIn} looks it up. */
export interface AskedOfSide {
  readonly method: string;
  readonly target: string;
  readonly bodyBytes: number;
  readonly scheme: Scheme;
  readonly host: string;
  readonly listener: string | undefined;
  readonly userAgent: string | undefined;
  readonly client: string | undefined;
}

/** A config that many requests are looked up in. */
export class Side {
  readonly matcher: RequestMatcher;
  readonly limitsBodies: boolean;
  /** Whether some routes do not let every client in. */
  readonly judgesClients: boolean;
  private readonly servers: ReadonlyMap<string, string>;
  private readonly protocols: ReadonlyMap<string, Scheme>;
  private readonly listeners = new Map<string, ListenerConfig | undefined>();

  constructor(config: ProxyConfig) {
    this.matcher = new RequestMatcher(config);
    const routes = config.virtualServers.flatMap((server) => server.routes);
    this.limitsBodies = routes.some(({ requestBodyBytesMax }) => requestBodyBytesMax !== 0);
    this.judgesClients = routes.some(({ access }) => access !== undefined);
    this.protocols = new Map(config.listeners.map(({ name, protocol }) => [name, protocol]));
    this.servers = new Map(
      config.upstreams.map((upstream) => {
        const servers = serversOf(upstream).map(({ url }) => url);
        return [upstream.name, hasSeveral(upstream) ? servers.join(", ") : servers[0]!];
      }),
    );
  }

  /** The listener that a line names, if it has that scheme here as well; else the one for scheme and host. */
  listener(scheme: Scheme, host: string, name: string | undefined): ListenerConfig | undefined {
    const key = `${scheme} ${name ?? ""} ${host}`;
    if (this.listeners.has(key)) return this.listeners.get(key);
    const known = name !== undefined && this.protocols.get(name) === scheme ? name : undefined;
    const found = this.matcher.listener(scheme, host, known);
    // Clients can send any number of hosts.
    if (this.listeners.size >= HOSTS_MAX) this.listeners.clear();
    if (key.length <= HOST_CHARACTERS_MAX) this.listeners.set(key, found);
    return found;
  }

  serversOf(upstream: string): string | undefined {
    return this.servers.get(upstream);
  }
}

const HOSTS_MAX = 10_000;
/** No name in the DNS is longer than 255 characters. */
const HOST_CHARACTERS_MAX = 512;

export function outcomeIn(side: Side, asked: AskedOfSide): ReplayOutcome {
  // The authority of an absolute-form target replaces the host (RFC 9112, 3.2.2).
  const absolute = asked.target.startsWith("/") ? undefined : splitAbsolute(asked.target);
  const { authority: host, target } = absolute ?? { authority: asked.host, target: asked.target };
  const listener = side.listener(asked.scheme, host, asked.listener);
  if (listener === undefined) return { action: "none" };
  const match = side.matcher.match(listener, host, target);
  if (match === undefined) {
    const { name } = side.matcher.defaultServer(listener);
    return { action: "error", virtualServer: name, status: 400 };
  }
  const { method, bodyBytes, userAgent, client } = asked;
  const headers = userAgent === undefined ? [] : ["User-Agent", userAgent];
  const decision = decide(match, { method, target, bodyBytes, headers, client });
  return {
    action: decision.kind,
    virtualServer: match.server.name,
    ...(REFUSED.has(asked.method) ? {} : routeOf(match)),
    ...parts(side, decision),
  };
}

/** They are refused before a route is looked for. */
const REFUSED: ReadonlySet<string> = new Set(["CONNECT", "TRACE"]);

const routeOf = ({ route }: RouteMatch): Partial<ReplayOutcome> => ({
  route: route?.name,
  bodyBytesMax: route?.requestBodyBytesMax,
});

function parts(side: Side, decision: Decision): Partial<ReplayOutcome> {
  switch (decision.kind) {
    case "proxy": {
      const { upstream, target } = decision;
      return { upstream, servers: side.serversOf(upstream), to: target };
    }
    case "staticFile":
      return { to: decision.file };
    case "redirect":
      return { to: decision.location, status: decision.status };
    case "respond":
      return { status: decision.status, body: decision.body };
    case "status":
      return { to: decision.allow.join(" ") };
    case "error":
      return { status: decision.status };
  }
}
