import { isIPv6 } from "node:net";
import { certificateSources } from "../model/config/certificates.js";
import { isDomainName } from "../model/serverName.js";
import {
  answerFieldRules,
  CATCH_ALL,
  clientPort,
  directoriesOf,
  type ListenerConfig,
  normalisePath,
  parseHost,
  type ProxyConfig,
  reachableAt,
  redirectPort,
  type RouteConfig,
  Router,
  unbracketed,
  upstreamsOf,
  urlAuthority,
  type VirtualServerConfig,
} from "../model/index.js";
import {
  answeredByUpstream,
  certificateFor,
  type Expectation,
  field,
  fieldAbsent,
  fieldPresent,
  fieldWith,
  http2,
  location,
  mediaType,
  serverField,
  status,
} from "./expectation.js";

/** One row of the table of expected responses (service 5.1). */
export interface ExpectedResponse {
  readonly name: string;
  /** What the row is about; decides which causes (service 6) are possible. */
  readonly subject: "default" | "media" | "web" | "redirect" | "fileServer" | "webdav" | "certificate";
  readonly request: ProbeRequest;
  readonly expected: readonly Expectation[];
  /** Address of the route's daemon, for the advice when it does not answer. */
  readonly upstream?: string;
  /** Why the request cannot be made, if it cannot; the row then fails. */
  readonly notProbed?: { readonly reason: string; readonly fix: string };
}

/** A HEAD request and where to send it. */
export interface ProbeRequest {
  readonly scheme: "http" | "https";
  /** Where to connect. */
  readonly address: string;
  readonly port: number;
  /** Addresses from which the connection has to begin with a PROXY protocol header. */
  readonly headerFrom?: readonly string[];
  /** Host to request, as it is written in `Host`: in brackets if IPv6, with the port if it is not the scheme's own. */
  readonly host: string;
  readonly path: string;
}

export interface ExpectedResponsesOptions {
  /** Server name to request; by default the first real one of the config. */
  readonly host?: string;
  /** Where to connect; by default loopback for a wildcard listener, else the listener's address. */
  readonly connect?: string;
  /** Whether that is where clients connect, by ports that something in front of the host may map (`publishedPort`). */
  readonly asClients?: boolean;
  /**
   * Where the redirect of port 80 has to lead, such as `https://files.example.org`; by default where the config sends
   * it.
   */
  readonly origin?: string;
  /** Path of a media file below the media route; without one the media row is not probed. */
  readonly mediaPath?: string;
}

/** A name that no virtual server can have (RFC 6761, 6.4), so that the default server answers. */
export const UNKNOWN_HOST = "default-server.invalid";

/**
 * What a running front end should answer, derived only from its config: the rows of service 5.1 for its mode, one row
 * for each further daemon, and one for each further name that has a certificate of its own. Parts are found by the names that a file-sync front end gives them; a missing part has
 * no row. Empty if there is no virtual server `application`.
 */
export function expectedResponses(
  config: ProxyConfig,
  options: ExpectedResponsesOptions = {},
): ExpectedResponse[] {
  const application = config.virtualServers.find((v) => v.name === "application");
  if (application === undefined) return [];
  const site = new Site(config, application, options);
  return [
    ...site.defaultServer(),
    ...site.media(),
    ...site.redirects(),
    ...site.roots(),
    ...site.login(),
    ...site.serverHeader(),
    ...site.daemon("fileServer"),
    ...site.daemon("webdav"),
    ...site.certificates(),
  ];
}

/** The server name that requests for the application should carry. */
export function applicationHost(config: ProxyConfig): string | undefined {
  const real = (server: VirtualServerConfig | undefined): string | undefined =>
    server?.serverNames.find((name) => name !== CATCH_ALL);
  const application = config.virtualServers.find((v) => v.name === "application");
  const forwarded = application?.routes.map((r) =>
    r.action.type === "proxy" ? r.action.forwarded.host : undefined,
  );
  return (
    real(application) ??
    forwarded?.find((name) => name !== undefined) ??
    real(config.virtualServers.find((v) => v.name === "redirect"))
  );
}

type RedirectAction = Extract<RouteConfig["action"], { type: "redirect" }>;

class Site {
  private readonly router: Router;
  private readonly host: string;
  /** Listeners through which clients reach the application: the TLS ones if there are any. */
  private readonly entries: readonly ListenerConfig[];

  constructor(
    private readonly config: ProxyConfig,
    private readonly application: VirtualServerConfig,
    private readonly options: ExpectedResponsesOptions,
  ) {
    this.router = new Router(config);
    const all = this.listenersOf(application);
    const secure = all.filter((l) => l.protocol === "https");
    this.entries = secure.length > 0 ? secure : all;
    this.host = options.host ?? applicationHost(config) ?? this.addressOf(this.entries[0]!);
  }

  defaultServer(): ExpectedResponse[] {
    const server = this.config.virtualServers.find((v) => v.name === "default");
    const listener = server === undefined ? undefined : this.listenersOf(server)[0];
    if (listener === undefined) return [];
    const expected = [status(200), mediaType("text/html"), serverField(true)];
    return [
      {
        name: "default server",
        subject: "default",
        ...this.asked(this.request(listener, "/", UNKNOWN_HOST), listener, expected),
      },
    ];
  }

  media(): ExpectedResponse[] {
    const route = this.route("media");
    if (route === undefined) return [];
    const { mediaPath } = this.options;
    const file = mediaPath?.replace(/^\/+/, "") ?? "<media_path>";
    const directory = directoriesOf(route.action)[0]?.value ?? "the media directory";
    const entry = this.entries[0]!;
    const row: ExpectedResponse = {
      name: "media file",
      subject: "media",
      ...this.asked(this.request(entry, directoryPath(route) + file), entry, [
        status(200),
        mediaType("image/*"),
        fieldPresent("Content-Length"),
        fieldPresent("Last-Modified"),
        fieldPresent("ETag"),
        field("Accept-Ranges", "bytes"),
      ]),
    };
    const reason = `no image file was found in ${directory}`;
    const fix = "name one with --media-path, or give --root if the files are below a folder";
    return [mediaPath === undefined ? { ...row, notProbed: { reason, fix } } : row];
  }

  /** TLS mode: port 80 sends the application's path to https (service 4.3). */
  redirects(): ExpectedResponse[] {
    const route = this.route("web");
    const server = this.config.virtualServers.find((v) => v.name === "redirect");
    if (route === undefined || server === undefined) return [];
    return this.leading(server, directoryPath(route), (_, { scheme }) => `redirect to ${scheme}`);
  }

  /** `/` of the application's names, where it leads to the application (`rootRedirect`). */
  roots(): ExpectedResponse[] {
    const redirect = this.config.virtualServers.find((v) => v.name === "redirect");
    return [this.application, ...(redirect === undefined ? [] : [redirect])].flatMap((server) =>
      this.leading(server, "/", ({ protocol }) => `/ over ${protocol}`),
    );
  }

  /** One row for each listener of a server that redirects the path; none if it does something else. */
  private leading(
    server: VirtualServerConfig,
    path: string,
    nameOf: (listener: ListenerConfig, action: RedirectAction) => string,
  ): ExpectedResponse[] {
    const action = this.router.route(server, path)?.action;
    if (action?.type !== "redirect") return [];
    const { scheme } = action;
    const origin =
      this.options.origin ??
      `${scheme}://${urlAuthority(scheme, unbracketed(action.host ?? this.host), redirectPort(action))}`;
    return this.listenersOf(server).map((listener) => ({
      name: `${nameOf(listener, action)}${family(listener)}`,
      subject: "redirect",
      ...this.asked(this.request(listener, path), listener, [
        status(action.status),
        location(origin + (action.path ?? path)),
        mediaType("text/html"),
      ]),
    }));
  }

  /**
   * The application redirects a client without a session to its login page, with the URL that the client used (service
   * 5.4).
   */
  login(): ExpectedResponse[] {
    const route = this.route("web");
    if (route === undefined) return [];
    const path = directoryPath(route);
    return this.entries.map((listener) => {
      const secure = listener.protocol === "https";
      const request = this.request(listener, path);
      const target = `${request.scheme}://${request.host}${path}accounts/login/?next=${path}`;
      return {
        name: `application over ${listener.protocol}${family(listener)}`,
        subject: "web",
        ...this.asked(request, listener, [
          ...(secure && listener.http2 ? [http2()] : []),
          status(302),
          location(target),
          ...(secure ? [] : LOGIN_FIELDS),
        ]),
        ...this.upstreamOf(route),
      };
    });
  }

  serverHeader(): ExpectedResponse[] {
    const route = this.route("web");
    const entry = this.entries[0]!;
    if (route === undefined) return [];
    return [
      {
        name: "application's Server field",
        subject: "web",
        ...this.asked(this.request(entry, directoryPath(route)), entry, [serverField(false)]),
        ...this.upstreamOf(route),
      },
    ];
  }

  daemon(name: "fileServer" | "webdav"): ExpectedResponse[] {
    const route = this.route(name);
    const entry = this.entries[0]!;
    if (route === undefined) return [];
    return [
      {
        name: name === "webdav" ? "WebDAV daemon" : "file server daemon",
        subject: name,
        ...this.asked(this.request(entry, directoryPath(route)), entry, [
          answeredByUpstream(),
          serverField(false),
        ]),
        ...this.upstreamOf(route),
      },
    ];
  }

  /** Each name gets the certificate that is for it, not that of another (docs/certificates.md). */
  certificates(): ExpectedResponse[] {
    return this.listenersWith(this.config.listeners).flatMap((listener) =>
      this.certifiedNames(listener).map((name) => ({
        name: `certificate for ${name}${family(listener)}`,
        subject: "certificate",
        ...this.asked(this.request(listener, "/", name), listener, [certificateFor(name)]),
      })),
    );
  }

  /**
   * Names besides the application's own one that a listener has a certificate for, as far as the config says so: those
   * that authorities issue for, and those of virtual servers that were added where there are several certificates.
   */
  private certifiedNames({ name: listener, tls }: ListenerConfig): string[] {
    if (tls === undefined) return [];
    const issued = certificateSources(tls).flatMap(({ source }) =>
      source.type === "acme" ? source.acme.names : [],
    );
    const added = this.config.virtualServers.filter(
      (server) => server !== this.application && server.listeners.includes(listener),
    );
    const served = tls.certificates.length === 0 ? [] : added.flatMap(({ serverNames }) => serverNames);
    // Addresses do not choose a certificate (RFC 6066, 3), and no client asks for the catch-all.
    const names = [...issued, ...served].filter((name) => isDomainName(name) && name !== CATCH_ALL);
    return [...new Set(names)].filter((name) => name !== this.host);
  }

  private route(name: string): RouteConfig | undefined {
    return this.application.routes.find((r) => r.name === name);
  }

  private upstreamOf(route: RouteConfig): { upstream?: string } {
    const { action } = route;
    const [named] = upstreamsOf(action);
    const upstream = this.config.upstreams.find(({ name }) => name === named?.value);
    return upstream === undefined ? {} : { upstream: upstream.url };
  }

  private listenersOf(server: VirtualServerConfig): ListenerConfig[] {
    return this.listenersWith(this.config.listeners.filter((l) => server.listeners.includes(l.name)));
  }

  /** IPv4 first. If an address to connect to is given, only the listeners of its family. */
  private listenersWith(all: readonly ListenerConfig[]): ListenerConfig[] {
    const { connect } = this.options;
    const family = all.filter((l) => connect === undefined || isIPv6(l.address) === isIPv6(connect));
    const own = [...(family.length > 0 ? family : all)];
    return own.sort((a, b) => Number(isIPv6(a.address)) - Number(isIPv6(b.address)));
  }

  private request(listener: ListenerConfig, path: string, host = this.host): ProbeRequest {
    const { protocol: scheme, port, proxyProtocol } = listener;
    const published = clientPort(listener);
    return {
      scheme,
      address: this.addressOf(listener),
      port: this.options.asClients === true ? published : port,
      ...(proxyProtocol === undefined ? {} : { headerFrom: proxyProtocol.from }),
      host: urlAuthority(scheme, unbracketed(host), published),
      path,
    };
  }

  /** A request and its answer: fields are as the config sets them, and missing if it removes them, whatever answers. */
  private asked(
    request: ProbeRequest,
    listener: ListenerConfig,
    expected: readonly Expectation[],
  ): Pick<ExpectedResponse, "request" | "expected"> {
    const server = this.router.virtualServer(listener.name, parseHost(request.host)?.serverName ?? "");
    const path = normalisePath(request.path);
    const route = path === undefined ? undefined : this.router.route(server, path);
    const rules = answerFieldRules(server, route, listener.protocol);
    const configured = (one: Expectation): Expectation => {
      const name = one.field?.toLowerCase();
      if (name === undefined || !rules.has(name)) return one;
      const set = rules.get(name);
      return set === undefined ? fieldAbsent(one.field!) : field(set.name, set.value);
    };
    return { request, expected: expected.map(configured) };
  }

  private addressOf(listener: ListenerConfig): string {
    if (this.options.connect !== undefined) return this.options.connect;
    return reachableAt(listener.address);
  }
}

// Service 5.1 lists these for plain mode only.
const LOGIN_FIELDS: readonly Expectation[] = [
  field("Content-Type", "text/html; charset=utf-8", true),
  fieldWith("Vary", "Accept-Language", "Cookie"),
  fieldPresent("Content-Language"),
];

function directoryPath(route: RouteConfig): string {
  return route.path.endsWith("/") ? route.path : `${route.path}/`;
}

function family(listener: ListenerConfig): string {
  return isIPv6(listener.address) ? " on IPv6" : "";
}
