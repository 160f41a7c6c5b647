import { upstreamTargetOf } from "../actions/forwarding.js";
import type { ProxyConfig, RouteConfig, VirtualServerConfig } from "./config.js";
import { RouteTable } from "./router.js";
import { type NormalisedPath, normalisePath } from "../net/target.js";
import { AddressSet } from "../access/addressSet.js";
import { type AccessLists, type AccessRefusal, PolicyJudge } from "./accessJudge.js";
import { isPlain, otherReadings } from "../access/readings.js";

/** Judges the requests of each route of a config. */
export class AccessGuards {
  private readonly judges: ReadonlyMap<string, PolicyJudge>;
  private readonly guards = new Map<RouteConfig, RouteGuard>();

  constructor(
    { accessPolicies = {}, virtualServers }: Pick<ProxyConfig, "accessPolicies" | "virtualServers">,
    lists: AccessLists = {},
  ) {
    this.judges = new Map(
      Object.entries(accessPolicies).map(([name, policy]) => [name, new PolicyJudge(name, policy)]),
    );
    this.setLists(lists);
    if (this.judges.size === 0) return;
    for (const server of virtualServers)
      for (const [route, guard] of guardsOf(server, (name) => this.judges.get(name)!))
        this.guards.set(route, guard);
  }

  /** From now on the files have these contents; others stay as they are. */
  setLists(lists: AccessLists): void {
    const sets = new Map(Object.entries(lists).map(([file, packed]) => [file, AddressSet.unpacked(packed)]));
    for (const judge of this.judges.values()) {
      const set = sets.get(judge.policy.denyFile ?? "");
      if (set !== undefined) judge.setList(set);
    }
  }

  /** Undefined for a route that everyone may use, whatever its requests look like. */
  of(route: RouteConfig): RouteGuard | undefined {
    return this.guards.get(route);
  }
}

/** Judges the requests of one route: by its own policy, and by those of routes that a server may take the path for. */
export class RouteGuard {
  /** Whether a policy that may apply needs more than an address. */
  readonly asksForUser: boolean;

  /** @param others undefined if all routes of the virtual server have the same policy */
  constructor(
    private readonly route: RouteConfig,
    private readonly judge: PolicyJudge | undefined,
    private readonly others: OtherRoutes | undefined,
  ) {
    this.asksForUser = (others?.every ?? [judge]).some((one) => one?.asks === true);
  }

  /**
   * Why a request is refused; undefined if it is not.
   *
   * @param target origin-form, as the client sent it
   */
  refusal(address: string, target: string, path: NormalisedPath): AccessRefusal | undefined {
    const own = this.judge?.refusal(address);
    if (own !== undefined || this.others === undefined) return own;
    for (const judge of this.others.judges(this.route, target, path)) {
      const refusal = judge === this.judge ? undefined : judge.refusal(address);
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  }

  /** The policies that ask for a user, the route's own first; a request has to pass each. */
  asking(target: string, path: NormalisedPath): readonly PolicyJudge[] {
    if (!this.asksForUser) return [];
    const others = this.others?.judges(this.route, target, path) ?? [];
    return [...new Set([this.judge, ...others])].filter(
      (one) => one?.asksFor(target, path) === true,
    ) as PolicyJudge[];
  }

  /** The same as {@link refusal}, for a client that names no user. */
  refusalOfUnknown(address: string, target: string, path: NormalisedPath): AccessRefusal | undefined {
    return (
      this.refusal(address, target, path) ?? this.asking(target, path).find(asksForPassword)?.unknownUser
    );
  }
}

const asksForPassword = (judge: PolicyJudge): boolean => judge.unknownUser !== undefined;

interface GuardedRoute {
  readonly path: string;
  readonly match: RouteConfig["match"];
  /** Those of routes whose paths differ in case only are all asked. */
  readonly judges: PolicyJudge[];
}

/** The policies of a virtual server's routes, by other readings of paths. */
class OtherRoutes {
  private readonly all: RouteTable<GuardedRoute>;
  /** Routes whose paths reach an upstream as they are, by upstream. */
  private readonly byUpstream: ReadonlyMap<string, RouteTable<GuardedRoute>>;
  readonly every: readonly PolicyJudge[];

  constructor(judged: ReadonlyMap<RouteConfig, PolicyJudge | undefined>) {
    this.every = [...new Set(judged.values())].filter((one) => one !== undefined);
    this.all = tableOf([...judged]);
    const untouched = [...judged].filter(([{ action }]) => action.type === "proxy" && !isChanged(action));
    const upstreams = new Set(untouched.map(([{ action }]) => upstreamOf(action)));
    this.byUpstream = new Map(
      [...upstreams].map((name) => [
        name,
        tableOf(untouched.filter(([{ action }]) => upstreamOf(action) === name)),
      ]),
    );
  }

  /** Policies that a request has to pass besides that of its route. */
  judges(route: RouteConfig, target: string, path: NormalisedPath): readonly PolicyJudge[] {
    const found = this.ofPath(this.all, target, path);
    const { action } = route;
    if (action.type === "proxy" && isChanged(action)) {
      const table = this.byUpstream.get(action.upstream);
      if (table === undefined) return found;
      const sent = upstreamTargetOf({ path: route.path, action }, target, path);
      return [...found, ...this.ofPath(table, sent, normalisePath(sent) ?? "")];
    }
    if (action.type !== "staticFiles" || !path.endsWith("/")) return found;
    // The file that is sent has a path of its own.
    return [...found, ...action.index.flatMap((name) => judgesIn(this.all, path + name))];
  }

  private ofPath(
    table: RouteTable<GuardedRoute>,
    target: string,
    path: NormalisedPath,
  ): readonly PolicyJudge[] {
    if (isPlain(target, path)) return judgesIn(table, path);
    const readings = otherReadings(target);
    if (readings === undefined) return this.every;
    return [path, ...readings].flatMap((one) => judgesIn(table, one));
  }
}

const judgesIn = (table: RouteTable<GuardedRoute>, path: string): readonly PolicyJudge[] =>
  table.find(path.toLowerCase())?.judges ?? [];

type GuardedAction = RouteConfig["action"];

/** Whether the upstream gets another path than the client asked for. */
const isChanged = (action: GuardedAction & { readonly type: "proxy" }): boolean =>
  action.strip !== "none" || action.rewrite !== undefined;

const upstreamOf = (action: GuardedAction): string => (action.type === "proxy" ? action.upstream : "");

function tableOf(
  judged: readonly (readonly [RouteConfig, PolicyJudge | undefined])[],
): RouteTable<GuardedRoute> {
  const byPath = new Map<string, GuardedRoute>();
  for (const [{ path, match }, judge] of judged) {
    const folded = path.toLowerCase();
    const key = `${match} ${folded}`;
    const entry = byPath.get(key) ?? { path: folded, match, judges: [] };
    byPath.set(key, entry);
    if (judge !== undefined) entry.judges.push(judge);
  }
  return new RouteTable([...byPath.values()]);
}

function guardsOf(
  { routes }: VirtualServerConfig,
  judgeOf: (name: string) => PolicyJudge,
): readonly (readonly [RouteConfig, RouteGuard])[] {
  const judged = new Map(
    routes.map((route) => [route, route.access === undefined ? undefined : judgeOf(route.access)]),
  );
  const different = new Set(judged.values());
  if (different.size === 1 && different.has(undefined)) return [];
  const others = different.size > 1 ? new OtherRoutes(judged) : undefined;
  return [...judged].map(([route, judge]) => [route, new RouteGuard(route, judge, others)]);
}
