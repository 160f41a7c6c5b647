import {
  type ActionConfig,
  type ListenerConfig,
  listenerLedTo,
  loopbackOf,
  parseConfig,
  type Problem,
  problem,
  type ProxyConfig,
  redirectGoalOf,
  type Result,
  withRedirectPort,
} from "../model/index.js";

/** The changes of `portico preview`. */
export interface PreviewOptions {
  /** Added to every listener's port (80 → 10080). */
  readonly portOffset: number;
  /** Other addresses for upstreams, by the upstream's name. */
  readonly upstreams?: Readonly<Record<string, string>>;
  /** Port on loopback for the status page; default: none. */
  readonly statusPort?: number | undefined;
}

/**
 * The same config moved to loopback and unprivileged ports, so that anyone can look at it on any machine: same
 * routes, same TLS, same responses. Redirects follow the listeners they point at. Log files are left out; the preview
 * logs to standard error.
 *
 * The result is checked like any config, since moved ports may leave the range and an upstream may now be a listener.
 */
export function previewConfig(config: ProxyConfig, options: PreviewOptions): Result<ProxyConfig> {
  const { statusPort } = options;
  const unknown = unknownUpstreams(config, options.upstreams ?? {});
  if (unknown.length > 0) return { ok: false, problems: unknown };
  const listeners = moveListeners(config.listeners, options.portOffset);
  const result = parseConfig({
    ...config,
    logs: {},
    // A secret of the hosts that share it.
    ticketKeys: undefined,
    healthListener: undefined,
    // A preview must not send notifications.
    notifications: undefined,
    ...(config.accessPolicies === undefined ? {} : { accessPolicies: withoutUsers(config.accessPolicies) }),
    metricsListener: statusPort === undefined ? undefined : { address: "127.0.0.1", port: statusPort },
    listeners,
    upstreams: config.upstreams.map((u) => {
      const url = options.upstreams?.[u.name];
      if (url === undefined) return u;
      return { ...u, url, servers: undefined, sticky: undefined, health: undefined, tls: undefined };
    }),
    virtualServers: config.virtualServers.map((server) => ({
      ...server,
      // It would outlast the preview in the browser, for a name such as localhost.
      hsts: undefined,
      routes: server.routes.map((route) => ({
        ...route,
        accessLog: undefined,
        errorLog: undefined,
        action: withoutSecrets(moveRedirect(route.action, config, listeners)),
      })),
    })),
  });
  return result.ok ? result : { ok: false, problems: explainMoves(result.problems) };
}

function unknownUpstreams(config: ProxyConfig, overrides: Readonly<Record<string, string>>): Problem[] {
  const known = config.upstreams.map((u) => u.name);
  return Object.keys(overrides)
    .filter((name) => !known.includes(name))
    .map((name) =>
      problem("config.unknown-reference", "--upstream", "is not the name of an upstream in the config", {
        received: name,
        allowed: known.length === 0 ? "no upstream is defined" : known.join(", "),
      }),
    );
}

/** Listeners of different addresses may collide on loopback: the later one takes the next free port. */
function moveListeners(listeners: readonly ListenerConfig[], offset: number): ListenerConfig[] {
  const taken = new Set<string>();
  return listeners.map((listener) => {
    const address = loopbackOf(listener.address);
    let port = listener.port + offset;
    while (taken.has(`${address} ${port}`)) port++;
    taken.add(`${address} ${port}`);
    // Browsers connect to it themselves.
    return { ...listener, address, port, publishedPort: undefined, proxyProtocol: undefined };
  });
}

/** Files of users are secrets of the host, and a portal knows the host by its name only. A policy needs a rule, and a preview is on loopback. */
const withoutUsers = (policies: NonNullable<ProxyConfig["accessPolicies"]>): typeof policies =>
  Object.fromEntries(
    Object.entries(policies).map(([name, { basic, forwardAuth, ...policy }]) => [
      name,
      (basic === undefined && forwardAuth === undefined) || policy.allow !== undefined
        ? policy
        : { ...policy, allow: ["127.0.0.0/8", "::1"] },
    ]),
  );

/** Fields that a file of the host has are left out. */
const withoutSecrets = (action: ActionConfig): ActionConfig =>
  action.type === "proxy" ? { ...action, setHeadersFromCredential: {} } : action;

/** A redirect to one of our own listeners follows that listener; one to another host stays. */
function moveRedirect(
  action: ActionConfig,
  config: ProxyConfig,
  moved: readonly ListenerConfig[],
): ActionConfig {
  const goal = redirectGoalOf(action);
  const listener = goal && listenerLedTo(goal, config);
  if (listener === undefined) return action;
  return withRedirectPort(action, moved[config.listeners.indexOf(listener)]!.port);
}

/**
 * A problem that the document itself does not have comes from an option of the preview. Consequences of a port out of
 * range, such as a redirect to it, are not reported again.
 */
function explainMoves(problems: readonly Problem[]): Problem[] {
  const ports = problems.filter((p) => p.path.startsWith("listeners["));
  if (ports.length > 0) return ports.map((p) => ({ ...p, fix: "Give another --port-offset." }));
  return problems.map((p) =>
    p.path.startsWith("upstreams[") ? { ...p, fix: `Give another address with --upstream. ${p.fix}` } : p,
  );
}
