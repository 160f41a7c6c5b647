import { accessProblems } from "./accessChecks.js";
import { portalUrls } from "./forwardAuth.js";
import { guardProblems } from "./guardChecks.js";
import { actionProblems, redirectGoalOf, upstreamsOf } from "../actions/table.js";
import { canonicalAddress, isIpv6, isWildcard, ipv4Scope, ipv6Scope } from "../net/address.js";
import { endpoint, isLoopback, upstreamAddress } from "../net/authority.js";
import { urlsOf } from "./upstreamServers.js";
import { certificateProblems } from "./certificateChecks.js";
import { clientCertificateProblems } from "./clientCertificateChecks.js";
import type { ListenerConfig, ProxyConfig, RouteConfig, VirtualServerConfig } from "./config.js";
import { responseFieldProblems } from "./responseFieldChecks.js";
import { meaningProblems } from "./meaningChecks.js";
import { errorPageProblems } from "./errorPageChecks.js";
import { type Problem, problem } from "../text/problem.js";
import { rateProblems } from "./rateChecks.js";
import { listenerLedTo, ownNames, Router } from "./router.js";
import { CATCH_ALL } from "../net/serverName.js";
import { normalisePath } from "../net/target.js";
import { tlsPolicySettings } from "../net/tlsPolicy.js";
import { trustProblems } from "./trustChecks.js";
import { upstreamProblems } from "./upstreamChecks.js";

/**
 * Placeholders of other proxies. Values are sent as they are written, so a client or an upstream would get the
 * placeholder itself. Only names that these proxies fill in are listed: a price and an OData path (`/$metadata`) are
 * values.
 */
const PLACEHOLDERS: readonly RegExp[] = [
  // nginx
  new RegExp(
    String.raw`\$\{?(?:host|hostname|scheme|uri|args|query_string|is_args|request_(?:uri|id|method|body)|server_(?:name|port|addr)` +
      String.raw`|remote_(?:addr|port|user)|binary_remote_addr|document_root|(?:http|arg|cookie|ssl|proxy|upstream)_[a-z_]+)(?![A-Za-z0-9_])\}?`,
  ),
  // A group of a pattern, as the whole of a path's segment.
  /(?<=\/)\$[1-9](?=$|[/?])/,
  // HAProxy
  /%\[[a-z][^\]]*\]/,
  // Apache
  /%\{[A-Z][A-Z_:]*[A-Z]\}|%\{[A-Za-z-]+\}[es](?![A-Za-z])/,
  // Caddy
  /\{\$[A-Z][A-Z0-9_]*\}|\{[<>][A-Za-z][A-Za-z0-9-]*\}/,
  // Shells and Compose
  /\$\{[A-Z][A-Z0-9_]*(?::?[-?][^$}]*)?\}/,
  // Traefik and other templates of Go
  /\{\{-? ?\.[A-Za-z][^{}]*\}\}/,
  /\{(?:host|hostport|scheme|uri|remote|remote_host|remote_port|client_ip|upstream_hostport|(?:http|header|env|vars|query|re)\.[A-Za-z0-9_.-]+)\}/,
];

/** Texts for people, which may name placeholders. */
const PROSE: readonly string[] = ["body", "html", "page"];

/** Placeholders in values of any field. */
function placeholderProblems(config: ProxyConfig): Problem[] {
  return placeholdersIn(config, "");
}

function placeholdersIn(value: unknown, path: string): Problem[] {
  if (typeof value === "string") {
    const [found] = PLACEHOLDERS.flatMap((pattern) => pattern.exec(value)?.[0] ?? []);
    if (found === undefined) return [];
    const message = `contains \`${found}\`, which the proxy does not replace`;
    return [problem("config.placeholder", path, message, { received: value })];
  }
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    if (PROSE.includes(name)) return [];
    const at = Array.isArray(value) ? `${path}[${name}]` : `${path}${path === "" ? "" : "."}${name}`;
    return placeholdersIn(inner, at);
  });
}

/** Rules that span fields. Each field alone is valid when this runs. */
export function crossCheck(config: ProxyConfig): Problem[] {
  const structural = [
    ...duplicateNames(config),
    ...unknownReferences(config),
    ...listenerProblems(config),
    ...ownListenerProblems(config),
    ...certificateProblems(config),
    ...serverNameProblems(config),
    ...config.virtualServers.flatMap((server, i) => routeProblems(server, `virtualServers[${i}]`)),
    ...config.virtualServers.flatMap((server, s) =>
      server.routes.flatMap(({ action }, r) =>
        actionProblems(action, `virtualServers[${s}].routes[${r}].action`),
      ),
    ),
    ...responseFieldProblems(config),
    ...errorPageProblems(config),
    ...trustProblems(config),
    ...accessProblems(config),
    ...clientCertificateProblems(config),
    ...rateProblems(config),
    ...guardProblems(config),
    ...upstreamProblems(config),
    ...notificationProblems(config),
    ...placeholderProblems(config),
    ...meaningProblems(config),
    ...proxyLoops(config),
  ];
  // Following redirects needs a config that can be routed.
  return structural.length > 0 ? structural : redirectLoops(config);
}

function duplicateNames(config: ProxyConfig): Problem[] {
  return (["certificateAuthorities", "listeners", "upstreams", "virtualServers"] as const).flatMap((kind) =>
    duplicates(config[kind].map((item) => item.name)).map(([i, first]) =>
      problem("config.duplicate-name", `${kind}[${i}].name`, `is already the name of ${kind}[${first}]`, {
        received: config[kind][i]!.name,
      }),
    ),
  );
}

/** Pairs [index, index of its first occurrence] of every repeated key. */
function duplicates(keys: readonly string[]): [number, number][] {
  const seen = new Map<string, number>();
  return keys.flatMap((key, i): [number, number][] => {
    const first = seen.get(key);
    if (first !== undefined) return [[i, first]];
    seen.set(key, i);
    return [];
  });
}

function unknownReferences(config: ProxyConfig): Problem[] {
  const listeners = config.listeners.map((l) => l.name);
  const upstreams = config.upstreams.map((u) => u.name);
  const unknown = (path: string, kind: string, received: string, known: readonly string[]): Problem[] =>
    known.includes(received)
      ? []
      : [
          problem(
            "config.unknown-reference",
            path,
            `is not the name of ${kind === "upstream" ? "an" : "a"} ${kind}`,
            {
              received,
              allowed: known.length === 0 ? `no ${kind} is defined` : known.join(", "),
            },
          ),
        ];
  return config.virtualServers.flatMap((server, s) => [
    ...server.listeners.flatMap((name, i) =>
      unknown(`virtualServers[${s}].listeners[${i}]`, "listener", name, listeners),
    ),
    ...server.routes.flatMap((route, r) =>
      upstreamsOf(route.action).flatMap(({ field, value }) =>
        unknown(`virtualServers[${s}].routes[${r}].action.${field}`, "upstream", value, upstreams),
      ),
    ),
  ]);
}

function listenerProblems(config: ProxyConfig): Problem[] {
  const { listeners } = config;
  const problems = listeners.flatMap((l, i) => tlsProblems(l, `listeners[${i}]`));
  listeners.forEach((a, i) => {
    listeners.slice(0, i).forEach((b, j) => {
      if (a.port !== b.port || isIpv6(a.address) !== isIpv6(b.address)) return;
      if (canonicalAddress(a.address) === canonicalAddress(b.address)) {
        const message = `listens on the same address and port as listeners[${j}]`;
        problems.push(
          problem("config.duplicate-listener", `listeners[${i}]`, message, { received: endpointOf(a) }),
        );
      } else if (isWildcard(a.address) || isWildcard(b.address)) {
        const message = `cannot share port ${a.port} with ${endpointOf(b)} of listeners[${j}]`;
        problems.push(
          problem("config.port-conflict", `listeners[${i}]`, message, { received: endpointOf(a) }),
        );
      }
    });
  });
  if (listeners.every((l) => isIpv6(l.address))) {
    problems.push(
      problem("config.ipv6-only", "listeners", "have only IPv6 addresses", {
        received: listeners.map((l) => l.address),
        allowed: "at least one listener on an IPv4 address",
      }),
    );
  }
  return problems;
}

function tlsProblems(listener: ListenerConfig, path: string): Problem[] {
  if (listener.protocol === "http") {
    return listener.tls === undefined
      ? []
      : [problem("config.tls-unexpected", `${path}.tls`, "is not allowed on an http listener")];
  }
  if (listener.tls === undefined) {
    return [
      problem("config.tls-missing", `${path}.tls`, "is missing on an https listener", {
        allowed: "an object with certificate and key, or with acme",
      }),
    ];
  }
  const { minVersion, maxVersion } = tlsPolicySettings(listener.tls.policy);
  return minVersion <= maxVersion
    ? []
    : [
        problem("config.out-of-range", `${path}.tls.policy.minVersion`, "is above maxVersion", {
          received: minVersion,
          allowed: `at most ${maxVersion}`,
        }),
      ];
}

const endpointOf = ({ address, port }: ListenerConfig): string => endpoint({ host: address, port });

function serverNameProblems(config: ProxyConfig): Problem[] {
  return config.listeners.flatMap((listener, l) => {
    const here = config.virtualServers
      .map((server, index) => ({ server, path: `virtualServers[${index}]` }))
      .filter(({ server }) => server.listeners.includes(listener.name));
    const names = here.flatMap(({ server, path }) =>
      server.serverNames.map((name, i) => ({ name, path: `${path}.serverNames[${i}]` })),
    );
    const repeated = duplicates(names.map((n) => n.name)).filter(([i]) => names[i]!.name !== CATCH_ALL);
    const defaults = here.filter(({ server }) => server.default);
    return [
      ...repeated.map(([i, first]) =>
        problem("config.duplicate-server-name", names[i]!.path, `is also at ${names[first]!.path}`, {
          received: names[i]!.name,
          allowed: `each server name once on listener ${listener.name}`,
        }),
      ),
      ...defaults.slice(1).map(({ path }) =>
        problem(
          "config.duplicate-default-server",
          `${path}.default`,
          `is a second default server of listener ${listener.name}`,
          {
            received: true,
            allowed: `one default server of each listener, which is ${defaults[0]!.path} here`,
          },
        ),
      ),
      ...(defaults.length === 0
        ? [
            problem(
              "config.no-default-server",
              `listeners[${l}]`,
              `has no default server (listener ${listener.name})`,
              {
                allowed: "one virtual server with `default: true` on each listener",
              },
            ),
          ]
        : []),
    ];
  });
}

function routeProblems(server: VirtualServerConfig, path: string): Problem[] {
  const named = duplicates(server.routes.map((r) => r.name)).map(([i, first]) =>
    problem("config.duplicate-name", `${path}.routes[${i}].name`, `is already the name of routes[${first}]`, {
      received: server.routes[i]!.name,
    }),
  );
  const same = duplicates(server.routes.map((r) => `${r.match} ${r.path}`)).map(([i, first]) =>
    problem(
      "config.duplicate-route",
      `${path}.routes[${i}].path`,
      `has the same path and match as routes[${first}]`,
      {
        received: server.routes[i]!.path,
      },
    ),
  );
  const shadowed = server.routes.flatMap((route, i) => {
    const by = shadowedBy(route, server.routes);
    return by === undefined
      ? []
      : [
          problem(
            "config.shadowed-route",
            `${path}.routes[${i}].path`,
            `never matches: route ${by.name} takes all requests for this path`,
            {
              received: `${route.match} ${route.path}`,
            },
          ),
        ];
  });
  return [...named, ...same, ...shadowed];
}

/**
 * A route can lose every request it could match only to a route of the same length: a `prefix` route with the same path
 * as a `segment` route keeps the paths without a `/` next, but for a directory-like path (`/a/`) nothing is left.
 */
function shadowedBy(route: RouteConfig, routes: readonly RouteConfig[]): RouteConfig | undefined {
  if (route.match !== "prefix" || !route.path.endsWith("/")) return undefined;
  return routes.find((other) => other.match === "segment" && other.path === route.path);
}

/**
 * Upstreams that are listeners of the proxy itself: by an address they listen on, or, for listeners of all addresses,
 * by loopback or any name of a virtual server.
 *
 * @param ownAddresses further addresses and names that lead to the host
 */
export function proxyLoops(config: ProxyConfig, ownAddresses: readonly string[] = []): Problem[] {
  const names = ownNames(config);
  names.add(ownAddresses.map(canonicalAddress), true);
  const urls = [
    ...config.upstreams.flatMap((upstream, i) =>
      urlsOf(upstream).map(({ url, at }) => ({ url, path: `upstreams[${i}].${at}` })),
    ),
    ...portalUrls(config),
  ];
  return urls.flatMap(({ url, path }) => {
    const leads = upstreamAddress(url);
    if ("path" in leads) return [];
    const { port } = leads;
    const host = canonicalAddress(leads.host);
    const leadsTo = ({ address }: Pick<ListenerConfig, "address">): boolean =>
      canonicalAddress(address) === host ||
      (isWildcard(address) && (isLoopback(host) || names.find(host) !== undefined));
    const listener = config.listeners.find((l) => l.port === port && leadsTo(l));
    const own = (["healthListener", "metricsListener"] as const).find((name) => {
      const other = config[name];
      return other !== undefined && "port" in other && other.port === port && leadsTo(other);
    });
    if (listener === undefined && own === undefined) return [];
    const message = `leads to ${listener === undefined ? `\`${own}\`` : `listener ${listener.name}`} of this proxy`;
    return [problem("config.proxy-loop", path, message, { received: url })];
  });
}

function redirectLoops(config: ProxyConfig): Problem[] {
  const router = new Router(config);
  return config.virtualServers.flatMap((server, s) =>
    server.routes.flatMap((route, r) => {
      const looping = server.serverNames.some((host) => loops(config, router, host, route));
      return looping
        ? [
            problem(
              "config.redirect-loop",
              `virtualServers[${s}].routes[${r}].action`,
              "redirects back to itself",
              {
                received: route.action,
              },
            ),
          ]
        : [];
    }),
  );
}

/** Follows a request for the route's own path from redirect to redirect until it gets a response, leaves or returns. */
function loops(config: ProxyConfig, router: Router, host: string, start: RouteConfig): boolean {
  const seen = new Set<string>();
  let name = host;
  let { path } = start;
  for (let goal = redirectGoalOf(start.action); goal !== undefined;) {
    const next = listenerLedTo(goal, config);
    if (next === undefined) return false;
    name = goal.host ?? name;
    // A path that is refused leads nowhere.
    const led = goal.path === undefined ? path : normalisePath(goal.path);
    if (led === undefined) return false;
    path = led;
    const place = `${next.name} ${name} ${path}`;
    if (seen.has(place)) return true;
    seen.add(place);
    const route = router.route(router.virtualServer(next.name, name), path);
    goal = route && redirectGoalOf(route.action);
  }
  return false;
}

/** Rules of notifications that span fields. */
function notificationProblems({ notifications }: ProxyConfig): Problem[] {
  const { targets = [] } = notifications ?? {};
  const names = targets.map(({ name }) => name);
  return targets.flatMap(({ type, name, url, urlFile }, i) => {
    const at = `notifications.targets[${i}]`;
    const first = names.indexOf(name);
    const twice =
      first === i
        ? []
        : [
            problem("config.duplicate-name", `${at}.name`, `is already the name of targets[${first}]`, {
              received: name,
            }),
          ];
    if ((url === undefined) !== (urlFile === undefined)) return [...twice, ...pathProblems(type, url, at)];
    const message = url === undefined ? "has no URL" : "has two URLs";
    return [
      ...twice,
      problem("config.notification-url", at, message, { allowed: "either `url` or `urlFile`" }),
    ];
  });
}

/** A server of ntfy has a topic in each URL; Portico adds the path of Gotify's messages itself. */
function pathProblems(type: string, url: string | undefined, at: string): Problem[] {
  const path = url === undefined ? "" : new URL(url).pathname.replace(/\/$/, "");
  const wrong = (message: string, allowed: string): Problem[] => [
    problem("config.notification-url", `${at}.url`, message, { received: url, allowed }),
  ];
  if (type === "ntfy" && url !== undefined && path === "")
    return wrong("has no topic", "the URL of the topic: https://ntfy.sh/TOPIC");
  if (type === "gotify" && path.endsWith("/message"))
    return wrong("is the URL of messages, and not of the server", "the URL of the server, without /message");
  return [];
}

/** Listeners on which the proxy itself responds, to probes and monitoring. They need no password, so clients are near. */
function ownListenerProblems(config: ProxyConfig): Problem[] {
  const { healthListener: health, metricsListener: metrics } = config;
  const tcp = metrics !== undefined && "port" in metrics ? metrics : undefined;
  return [
    ...(health === undefined
      ? []
      : [
          ...(isNear(health) ? [] : [publicHealth(health.address)]),
          ...clashes(config, health, "healthListener"),
        ]),
    ...(tcp === undefined
      ? []
      : [
          ...(isNear(tcp) || tcp.allow.length > 0 ? [] : [publicMetrics(tcp.address)]),
          ...clashes(config, tcp, "metricsListener"),
          ...(health !== undefined && clash(health, tcp)
            ? [taken("metricsListener.port", tcp.port, "healthListener")]
            : []),
        ]),
  ];
}

interface AddressAndPort {
  readonly address: string;
  readonly port: number;
}

function isNear({ address, anyAddress }: AddressAndPort & { readonly anyAddress: boolean }): boolean {
  if (isWildcard(address)) return anyAddress;
  const scope = ipv4Scope(address) ?? ipv6Scope(address);
  return ["private", "loopback", "linkLocal"].some((one) => one === scope);
}

function clashes({ listeners }: ProxyConfig, own: AddressAndPort, path: string): Problem[] {
  const at = listeners.findIndex((one) => clash(one, own));
  return at === -1 ? [] : [taken(`${path}.port`, own.port, `listeners[${at}]`)];
}

const clash = (a: AddressAndPort, b: AddressAndPort): boolean =>
  a.port === b.port && isIpv6(a.address) === isIpv6(b.address) && share(a.address, b.address);

const share = (a: string, b: string): boolean =>
  isWildcard(a) || isWildcard(b) || canonicalAddress(a) === canonicalAddress(b);

const taken = (path: string, received: number, of: string): Problem =>
  problem("config.port-conflict", path, `is already the port of ${of}`, {
    received,
    fix: "Choose another port.",
  });

const publicHealth = (received: string): Problem =>
  problem("config.public-health-listener", "healthListener.address", "is not a private address", {
    received,
    allowed: "a loopback, private or link-local address; 0.0.0.0 or :: with `anyAddress: true`",
  });

const publicMetrics = (received: string): Problem =>
  problem(
    "config.public-metrics-listener",
    "metricsListener.address",
    "is not a private address, and `allow` is empty",
    {
      received,
      allowed:
        "a loopback, private or link-local address; any other with `allow`; 0.0.0.0 or :: with `anyAddress: true`",
    },
  );
