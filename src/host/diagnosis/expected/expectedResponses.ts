import { isIPv6 } from "node:net";
import { certificateSources } from "../../../model/config/certificates.js";
import { type CauseConfig, type ExpectedRow, rowsOfRoute } from "../../../model/host/expect.js";
import { isDomainName } from "../../../model/net/serverName.js";
import {
  responseFieldRules,
  CATCH_ALL,
  clientPort,
  directoriesOf,
  hasSeveral,
  type ListenerConfig,
  normalisePath,
  parseHost,
  type Problem,
  type ProxyConfig,
  reachableAt,
  redirectGoalOf,
  redirectLocation,
  redirectPort,
  type RouteConfig,
  Router,
  sampleName,
  sampleNames,
  siteOf,
  unbracketed,
  upstreamsOf,
  type UpstreamConfig,
  urlAuthority,
  type VirtualServerConfig,
  AccessGuards,
  NO_RESPONSE,
  refusalStatus,
} from "../../../model/index.js";
import {
  fromUpstream,
  certificateFor,
  type Expectation,
  field,
  fieldAbsent,
  http2,
  location,
  mediaType,
  member,
  serverField,
  serves,
  servesFile,
  status,
  statusOf,
  writtenField,
} from "./expectation.js";
import { noImage, type NotProbed } from "./imageFile.js";

/** A row of the table of expected responses, ready to be asked. */
export interface ExpectedProbe {
  readonly name: string;
  readonly request: ProbeRequest;
  /** Name of the virtual server, if the row is about that server itself. */
  readonly server?: string;
  /** Site of the virtual server that responds. */
  readonly site?: string;
  readonly expected: readonly Expectation[];
  readonly causes: readonly CauseConfig[];
  /** Whether a `Server` with a version means that another virtual server responded. */
  readonly unversioned: boolean;
  /** Whether it is about the certificate only. */
  readonly certificate?: true;
  /** The row's route, and the route's upstream, for the cause of another response. */
  readonly route?: RouteConfig;
  readonly upstream?: UpstreamConfig;
  /** Why the request cannot be made, if it cannot; the row then fails. */
  readonly notProbed?: NotProbed;
}

/** A request and where to send it. */
export interface ProbeRequest {
  readonly scheme: "http" | "https";
  /** A method that changes nothing; default: `HEAD`. */
  readonly method?: "HEAD" | "GET" | "OPTIONS";
  /** The address to connect to. */
  readonly address: string;
  readonly port: number;
  /** Addresses from which the connection has to begin with a PROXY protocol header. */
  readonly headerFrom?: readonly string[];
  /** Host to request, as it is written in `Host`: in brackets if IPv6, with the port if it is not the scheme's own. */
  readonly host: string;
  readonly path: string;
  /** How long the proxy may hold the request while its upstream refuses connections. */
  readonly holdMs?: number;
}

export interface ExpectedResponsesOptions {
  /** Rows of the deployment; without them, those that the config's actions promise. */
  readonly expect?: readonly ExpectedRow[];
  /** Server name to request in place of the main one. */
  readonly host?: string;
  /** The address to connect to; by default loopback for a wildcard listener, else the listener's address. */
  readonly connect?: string;
  /** Whether that is where clients connect, by ports that something in front of the host may map (`publishedPort`). */
  readonly asClients?: boolean;
  /** Path of an image below the path of rows that ask for one; without one they are not probed. */
  readonly imagePath?: string;
  /** Why it is unknown whether there is one. */
  readonly imageUnseen?: Problem;
}

/** A name that no virtual server can have (RFC 6761, 6.4), so that the default server responds. */
export const UNKNOWN_HOST = "default-server.invalid";

/**
 * How a running proxy should respond: the rows of its deployment or, without one, a row for each route, and one for each
 * further name that has a certificate of its own.
 */
export function expectedResponses(
  config: ProxyConfig,
  options: ExpectedResponsesOptions = {},
): ExpectedProbe[] {
  return new ExpectedSite(config, options).rows();
}

/** A row for each route, in the order of the config. */
export function promisedRows({ virtualServers }: Pick<ProxyConfig, "virtualServers">): ExpectedRow[] {
  return virtualServers.flatMap(({ name, routes }) =>
    routes.flatMap((route) => rowsOfRoute(name, { ...route, path: encodeURI(route.path) })),
  );
}

/** The main server name of a config: its first one. */
export function mainName({ virtualServers }: Pick<ProxyConfig, "virtualServers">): string | undefined {
  return virtualServers.flatMap(namesOf)[0] ?? virtualServers.flatMap(forwardedNames)[0];
}

/** The first name that rows ask for. */
export function namedHost(rows: readonly ExpectedRow[]): string | undefined {
  const hosts = rows.map(({ request }) => request.host);
  return hosts.find((host) => host !== undefined && host !== "unknown");
}

const namesOf = ({ serverNames }: VirtualServerConfig): string[] =>
  sampleNames(serverNames.filter((name) => name !== CATCH_ALL));

const forwardedNames = ({ routes }: VirtualServerConfig): string[] =>
  routes.flatMap(({ action }) => (action.type === "proxy" ? (action.forwarded.host ?? []) : []));

class ExpectedSite {
  private readonly router: Router;
  private readonly written: readonly ExpectedRow[];
  /** The name that most rows ask for. */
  private readonly main: string | undefined;

  constructor(
    private readonly config: ProxyConfig,
    private readonly options: ExpectedResponsesOptions,
  ) {
    this.router = new Router(config);
    this.written = options.expect ?? promisedRows(config);
    this.main = namedHost(this.written) ?? mainName(config);
  }

  rows(): ExpectedProbe[] {
    const written = this.written.flatMap((row) => this.asked(row));
    return [...withRefusals(this.config, written), ...this.certificates()];
  }

  private asked(row: ExpectedRow): ExpectedProbe[] {
    const server = this.config.virtualServers.find(({ name }) => name === row.request.server);
    if (server === undefined) return [lost(row)];
    const all = this.listenersOf(server);
    const secure = all.filter(({ protocol }) => protocol === "https");
    const entries = secure.length > 0 ? secure : all;
    return (row.request.listeners === "each" ? entries : entries.slice(0, 1)).map((listener) =>
      this.askedOn(row, server, listener),
    );
  }

  private askedOn(row: ExpectedRow, server: VirtualServerConfig, listener: ListenerConfig): ExpectedProbe {
    // A response to HEAD has no body.
    const { path, listeners, file, method = row.members && "GET" } = row.request;
    const route = this.routeOf(server, path);
    const upstream = route && this.upstreamOf(route);
    const host = this.hostOf(row, server, listener);
    const image = this.options.imagePath?.replace(/^\/+/, "") ?? "<image>";
    const request = {
      ...this.request(listener, file === undefined ? path : path + image, host),
      method,
      ...(upstream === undefined || hasSeveral(upstream) ? {} : { holdMs: upstream.holdMs }),
    };
    const directory = route && directoriesOf(route.action)[0]?.value;
    const version = row.fields?.find((one) => one.version !== undefined)?.version;
    return {
      name: listeners === "each" ? `${row.name}${family(listener)}` : row.name,
      request,
      server: server.name,
      site: siteOf(server),
      expected: this.configured(request, listener, this.expectations(row, server, route, listener, request)),
      causes: row.causes ?? [],
      unversioned: !(version ?? server.versionTokens),
      route,
      upstream,
      ...(file === undefined || this.options.imagePath !== undefined
        ? {}
        : { notProbed: noImage(directory, this.options.imageUnseen) }),
    };
  }

  private expectations(
    row: ExpectedRow,
    server: VirtualServerConfig,
    route: RouteConfig | undefined,
    listener: ListenerConfig,
    request: ProbeRequest,
  ): Expectation[] {
    const { status: wanted, from, location: target, fields, members } = row;
    const stated = wanted ?? from ?? target ?? fields ?? members;
    return [
      ...(row.http2 === true && listener.protocol === "https" && listener.http2 ? [http2()] : []),
      ...(stated === undefined ? promised(server, route, request) : []),
      ...(wanted === undefined ? [] : [typeof wanted === "number" ? status(wanted) : statusOf(wanted)]),
      ...(from === undefined ? [] : [fromUpstream()]),
      ...(target === undefined ? [] : [location(...this.leadsTo(target, route, request))]),
      ...(fields ?? []).map(writtenField),
      ...(members ?? []).map(member),
    ];
  }

  /** Uses the port of the route's redirect, which a preview changes. */
  private leadsTo(
    target: NonNullable<ExpectedRow["location"]>,
    route: RouteConfig | undefined,
    request: ProbeRequest,
  ): string[] {
    if (typeof target === "string" || !("scheme" in target))
      return [target].flat().map((one) => new URL(one, urlOf(request)).href);
    const { scheme, path } = target;
    const goal = route && redirectGoalOf(route.action);
    const port = redirectPort(goal?.scheme === scheme ? goal : { scheme });
    return [`${scheme}://${urlAuthority(scheme, hostIn(request), port)}${path}`];
  }

  /** Each name gets the certificate that is for it, not that of another (docs/certificates.md). */
  private certificates(): ExpectedProbe[] {
    return this.listenersWith(this.config.listeners).flatMap((listener) =>
      this.certifiedNames(listener).map((name) => {
        const asked = sampleName(name);
        const request = this.request(listener, "/", asked);
        const server = this.router.virtualServer(listener.name, asked);
        return {
          ...(server && { site: siteOf(server) }),
          name: `certificate for ${name}${family(listener)}`,
          certificate: true as const,
          request,
          expected: this.configured(request, listener, [certificateFor(asked)]),
          causes: [{ evidence: {}, message: CERTIFICATE }],
          unversioned: false,
        };
      }),
    );
  }

  /**
   * Names besides the main one that a listener has a certificate for, as far as the config says so: those that
   * authorities issue for, and those of virtual servers where there are several certificates.
   */
  private certifiedNames({ name: listener, tls }: ListenerConfig): string[] {
    if (tls === undefined) return [];
    const issued = certificateSources(tls).flatMap(({ source }) =>
      source.type === "acme" ? source.acme.names : [],
    );
    const here = this.config.virtualServers.filter(({ listeners }) => listeners.includes(listener));
    const served = tls.certificates.length === 0 ? [] : here.flatMap(({ serverNames }) => serverNames);
    // Addresses do not choose a certificate (RFC 6066, 3), and no client asks for the catch-all.
    const names = [...issued, ...served].filter(
      (name) => isDomainName(sampleName(name)) && name !== CATCH_ALL,
    );
    return [...new Set(names)].filter((name) => name !== (this.options.host ?? this.main));
  }

  private routeOf(server: VirtualServerConfig, path: string): RouteConfig | undefined {
    const normalised = normalisePath(path);
    return normalised === undefined ? undefined : this.router.route(server, normalised);
  }

  private upstreamOf({ action }: RouteConfig): UpstreamConfig | undefined {
    const [named] = upstreamsOf(action);
    return this.config.upstreams.find(({ name }) => name === named?.value);
  }

  /** A name by which the listener selects the server; a catch-all server has no name. */
  private hostOf(row: ExpectedRow, server: VirtualServerConfig, listener: ListenerConfig): string {
    const { host } = row.request;
    if (host === "unknown") return UNKNOWN_HOST;
    const address = this.addressOf(listener);
    const named = host ?? namesOf(server)[0] ?? this.nameLeadingTo(server, listener) ?? address;
    return named === this.main || (this.main === undefined && named === address)
      ? (this.options.host ?? named)
      : named;
  }

  private nameLeadingTo(server: VirtualServerConfig, listener: ListenerConfig): string | undefined {
    const { virtualServers } = this.config;
    const names = [...forwardedNames(server), ...virtualServers.flatMap(namesOf)];
    const leads = (name: string): boolean => this.router.virtualServer(listener.name, name) === server;
    return [...names, this.addressOf(listener), UNKNOWN_HOST].find(leads);
  }

  private listenersOf(server: VirtualServerConfig): ListenerConfig[] {
    return this.listenersWith(this.config.listeners.filter((l) => server.listeners.includes(l.name)));
  }

  /** IPv4 first. If an address to connect to is given, only the listeners of its family. */
  private listenersWith(all: readonly ListenerConfig[]): ListenerConfig[] {
    const { connect } = this.options;
    const same = all.filter((l) => connect === undefined || isIPv6(l.address) === isIPv6(connect));
    const own = [...(same.length > 0 ? same : all)];
    return own.sort((a, b) => Number(isIPv6(a.address)) - Number(isIPv6(b.address)));
  }

  private request(listener: ListenerConfig, path: string, host: string): ProbeRequest {
    const { protocol: scheme, port, proxyProtocol } = listener;
    const published = clientPort(listener);
    return {
      scheme,
      address: this.addressOf(listener),
      port: this.options.asClients === true ? published : port,
      headerFrom: proxyProtocol?.from,
      host: urlAuthority(scheme, unbracketed(host), published),
      path,
    };
  }

  /** Fields are as the config sets them, and missing if it removes them, whatever responds. */
  private configured(
    request: ProbeRequest,
    listener: ListenerConfig,
    expected: readonly Expectation[],
  ): Expectation[] {
    const server = this.router.virtualServer(listener.name, parseHost(request.host)?.serverName ?? "");
    const rules = responseFieldRules(server, this.routeOf(server, request.path), listener.protocol);
    return expected.map((one) => {
      const name = one.field?.toLowerCase();
      if (name === undefined || !rules.has(name)) return one;
      const set = rules.get(name);
      return set === undefined ? fieldAbsent(one.field!) : field(set.name, set.value);
    });
  }

  private addressOf(listener: ListenerConfig): string {
    return this.options.connect ?? reachableAt(listener.address);
  }
}

/** The properties that an action guarantees for a response, whatever the application is. */
function promised(
  server: VirtualServerConfig,
  route: RouteConfig | undefined,
  request: ProbeRequest,
): Expectation[] {
  if (route === undefined) return [status(404)];
  const { action } = route;
  switch (action.type) {
    case "proxy":
      return [fromUpstream(), serverField(server.versionTokens)];
    case "staticFiles":
      return [action.index.length > 0 ? servesFile() : serves()];
    case "respond":
      return [status(action.status)];
    case "status":
      // The address of this check may not be allowed to see the status.
      return [serves()];
    case "redirect": {
      const { path } = request;
      const to = redirectLocation(action, hostIn(request), path, route.path, normalisePath(path)!);
      return [status(action.status), location(to), mediaType("text/html")];
    }
  }
}

/** The config has no such virtual server any more, or not yet. */
function lost({ name, request, causes = [] }: ExpectedRow): ExpectedProbe {
  const { server, path } = request;
  return {
    name,
    request: { scheme: "http", address: "127.0.0.1", port: 80, host: UNKNOWN_HOST, path },
    expected: [],
    causes,
    unversioned: false,
    notProbed: {
      reason: `the config has no virtual server \`${server}\``,
      fix: "deploy config and expected responses together",
      isUnclear: true,
    },
  };
}

const CERTIFICATE =
  "no certificate of the listener covers this name, or the certificate that covers it is not in use: see `portico certificates`";

const urlOf = ({ scheme, host, path }: ProbeRequest): string => `${scheme}://${host}${path}`;

const hostIn = (request: ProbeRequest): string => unbracketed(new URL(urlOf(request)).hostname);

const family = ({ address }: ListenerConfig): string => (isIPv6(address) ? " on IPv6" : "");

/** A row of expected responses, as far as it matters here. */
interface ProbeRow {
  readonly request: { readonly address: string; readonly path: string };
  readonly route?: RouteConfig;
  readonly expected: readonly Expectation[];
}

/**
 * Probes come from the host itself, have no certificate, and name no user. Where an access policy does not let them in, the refusal is the expected
 * response; a connection that is closed is none, so that nothing is asked there. What a portal responds to a stranger is its
 * own, but it has to respond.
 */
function withRefusals<R extends ProbeRow>(config: ProxyConfig, rows: readonly R[]): R[] {
  const guards = new AccessGuards(config);
  return rows.flatMap((row) => {
    const { route, request } = row;
    const path = normalisePath(request.path);
    if (route === undefined || path === undefined) return [row];
    const server = config.virtualServers.find(({ routes }) => routes.includes(route));
    if (server?.clientCertificate?.required === true) return [{ ...row, expected: [status(403)] }];
    // A connection to an own address comes from that address.
    const guard = guards.of(route);
    const refusal = guard?.refusalOfUnknown(request.address, request.path, path);
    if (refusal === undefined)
      return [guard?.asking(request.path, path).length ? { ...row, expected: [serves()] } : row];
    const expected = refusalStatus(refusal);
    return expected === NO_RESPONSE ? [] : [{ ...row, expected: [status(expected)] }];
  });
}
