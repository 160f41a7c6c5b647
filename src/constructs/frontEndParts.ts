import { Construct } from "constructs";
import { isLoopback, isWildcard, type Problem } from "../model/index.js";
import type { virtualServerOptions } from "../model/config/config.js";
import type { InputOf } from "../model/inferred.js";
import { exposedPorts, loopbackPorts, type PortForward, portForwards } from "../model/host.js";
import type { Activation } from "./activation.js";
import type { PauseResponse } from "../applications/index.js";
import type { ErrorPage } from "./errorPage.js";
import type { AllowedPort, HostPaths } from "../render/index.js";
import { Firewall, firewallPropProblems, type FirewallProps } from "./firewall.js";
import { type IHost, hostPropProblems, type HostProps } from "./host.js";
import type { Listener, ListenerProps } from "./listener.js";
import type { Mode } from "./mode.js";
import { upstreamProblems } from "./props/checks.js";
import { hasTokens } from "./props/tokens.js";
import { type ProxyService, type ProxyServiceProps, serviceProblems } from "./proxyService.js";
import type { ResponseHeaders } from "./responseHeaders.js";
import type { ReverseProxy, ReverseProxyProps } from "./reverseProxy.js";
import { type ProxySettings, settingsProblems } from "./proxySettings.js";
import { TlsMaterial } from "./tlsMaterial.js";
import { type UpstreamProps, withChanges } from "./upstream.js";
import type { VirtualServer } from "./virtualServer.js";

/** The common parts of front ends on a host, whatever the application is. */

/** Listeners of a front end. */
export interface FrontEndListeners {
  /** The HTTP port on IPv4: on all addresses, or on the mode's address; undefined with `httpPort: false`. */
  readonly http?: Listener;
  /** The HTTP port on IPv6; undefined for a host without an IPv6 address, and with `httpPort: false`. */
  readonly http6?: Listener;
  /** The HTTPS port on IPv4; undefined in plain mode. */
  readonly https?: Listener;
  /** The HTTPS port on IPv6; undefined in plain mode and for a host without an IPv6 address. */
  readonly https6?: Listener;
}

/** Virtual servers of a front end. */
export interface FrontEndServers {
  /** The application's virtual server: on the HTTP port in plain mode, on the HTTPS port in TLS mode. */
  readonly application: VirtualServer;
  /** Redirects from HTTP to HTTPS; undefined in plain mode, and with `httpPort: false`. */
  readonly redirect?: VirtualServer;
}

/** A front end on a host, for any application. */
export interface IFrontEnd extends FrontEndServers {
  /** The host of the front end. */
  readonly host: IHost;
  /** Plain HTTP or TLS. */
  readonly mode: Mode;
  /** The proxy. You can add listeners, virtual servers and upstreams to the proxy. */
  readonly proxy: ReverseProxy;
  /** The listeners. */
  readonly listeners: FrontEndListeners;
  /** Runtime and units. */
  readonly service: ProxyService;
  /** Packet filter of the host; undefined without `firewall`. */
  readonly firewall?: Firewall;
  /** The activation on the host; undefined for a local delivery without `activation`. */
  readonly activation?: Activation;
  /** Public names, the main one first. */
  readonly serverNames: readonly [string, ...string[]];
  /** Public URL of the application. */
  readonly url: string;
}

/** Options of a front end on a host, for any application. */
export interface FrontEndProps extends Pick<
  InputOf<typeof virtualServerOptions>,
  "responseHeaders" | "errorPages" | "pauseResponse"
> {
  /** The host: a `Host`, a construct of your own that is one (`IHost`), or props to make one. */
  // An `IHost` has what its props need. Of a union of both, editors show no text for what both have.
  readonly host: HostProps;
  /** Plain HTTP or TLS. */
  readonly mode: Mode;
  /**
   * Further names of the application, in lower case. `*.example.org` is every name with one label before
   * `.example.org`; a certificate for such a name needs a challenge by DNS.
   * @default - none
   */
  readonly additionalServerNames?: readonly string[];
  readonly responseHeaders?: ResponseHeaders;
  readonly errorPages?: readonly ErrorPage[];
  readonly pauseResponse?: PauseResponse;
  /**
   * Settings of the proxy as a whole: workers, trusted proxies, main logs, limits, timeouts. If a main log is a
   * stream, the routes of a `FileSyncFrontEnd` have no separate log files.
   * @default - see ReverseProxy
   */
  readonly proxy?: Omit<ReverseProxyProps, "host" | "paths">;
  /**
   * Options of the proxy's service: Node, runtime, stop timeout, open files.
   * @default - see ProxyService
   */
  readonly service?: Omit<ProxyServiceProps, "proxy">;
  /**
   * Paths of the proxy's files that differ from the defaults.
   * @default DEFAULT_HOST_PATHS
   */
  readonly paths?: Partial<HostPaths>;
  /**
   * Adds a packet filter to the host: the exposed ports are open, all other ports are closed; `{}` is enough.
   * @default - no filter
   */
  readonly firewall?: FrontEndFirewallProps;
}

/** Props of a `Firewall` that the front end does not set. */
export interface FrontEndFirewallProps extends Omit<
  FirewallProps,
  "acceptLockOut" | "host" | "ports" | "loopbackPorts" | "unitDirectory"
> {
  /**
   * Addresses and ranges that may reach the ports of the listeners, such as those of a load balancer or a VPN. The SSH
   * server's port stays open to everyone.
   * @default - everyone
   */
  readonly from?: readonly string[];
  /**
   * Further ports to open. An entry for a port of a listener, or of the SSH server, says in place of the front end who
   * may reach this port: `{ port: 443, from: ["10.0.0.0/8"] }`.
   * @default - none
   */
  readonly allowed?: readonly AllowedPort[];
}

/** @internal The given ones of two families or protocols. */
export const listenersIn = (...listeners: readonly (Listener | undefined)[]): Listener[] =>
  listeners.filter((one) => one !== undefined);

/** @internal One listener for each port of the mode, and an IPv6 one as well if the host has an IPv6 address. */
export function addListeners(
  proxy: ReverseProxy,
  mode: Mode,
  serverNames: readonly string[],
): FrontEndListeners {
  const ipv6 = proxy.host.ipv6Address !== undefined;
  const { address, ipv6Address, publicPort, proxyProtocol } = mode;
  const add = (id: "http" | "https", props: Omit<ListenerProps, "address">): [Listener, Listener?] => {
    const { port } = props;
    // In TLS mode the port of the redirect may be mapped as well, but no option says to which.
    const published = id !== mode.scheme || publicPort === port ? {} : { publishedPort: publicPort };
    const all = { ...props, ...published, proxyProtocol };
    const first = proxy.addListener(id, { address, ...all });
    return ipv6 ? [first, proxy.addListener(`${id}6`, { address: ipv6Address, ...all })] : [first];
  };
  const [http, http6] = mode.httpPort === undefined ? [] : add("http", { port: mode.httpPort });
  if (mode.https === undefined) return { http, http6 };
  const { material = TlsMaterial.selfSigned(), policy, http2, httpsPort: port } = mode.https;
  const [https, https6] = add("https", { port, http2, tls: { material, policy, serverNames } });
  return { http, http6, https, https6 };
}

/** The input of a front end's parts. */
interface GivenParts {
  readonly host?: HostProps;
  readonly proxy?: ProxySettings;
  readonly service?: Partial<ProxyServiceProps>;
  readonly firewall?: FrontEndFirewallProps;
  readonly upstreams?: Readonly<Record<string, Partial<UpstreamProps> | undefined>>;
}

/** @internal Problems of parts that are not made yet, so that those of all parts are reported at once. */
export function givenPartProblems({ node: { path } }: Construct, given: GivenParts): Problem[] {
  const { host, proxy = {}, service = {}, firewall = {}, upstreams = {} } = given;
  const isProps = host !== undefined && !Construct.isConstruct(host);
  return [
    ...(isProps ? hostPropProblems(`${path}/Host`, host as HostProps) : []),
    ...settingsProblems(`${path}/Proxy`, proxy),
    ...Object.entries(upstreams).flatMap(([name, upstream]) =>
      upstreamProblems(`${path}/Proxy/Upstreams/${name}`, {
        ...withChanges({ url: "http://127.0.0.1:1" }, upstream),
        name: upstream?.name ?? name,
      }),
    ),
    ...serviceProblems(`${path}/Service`, service),
    ...firewallPropProblems(`${path}/Firewall`, firewall),
  ];
}

/** What the ports of a front end follow from. */
type FrontEnd = Pick<IFrontEnd, "host" | "mode" | "proxy" | "listeners">;

/** @internal TCP ports that the network reaches, ascending: those of the listeners, and the SSH server's. */
export function exposedPortsOf({ proxy, host }: FrontEnd): readonly number[] {
  const reachable = proxy.listeners.filter(({ address }) => !isLoopback(address));
  return exposedPorts(
    reachable.map(({ port }) => port),
    host.sshPort,
  );
}

/** @internal TCP ports that only the host itself may reach, ascending: the database's and the upstreams'. */
export function loopbackPortsOf(frontEnd: FrontEnd): readonly number[] {
  const exposed = exposedPortsOf(frontEnd);
  const urls = frontEnd.proxy.upstreams.flatMap(({ urls: all }) => all).filter((url) => !hasTokens(url));
  return loopbackPorts(urls).filter((port) => !exposed.includes(port));
}

/** @internal Forwards that a NAT router needs; none if the host's IPv4 address is public. */
export function portForwardsOf({ mode, host, proxy, listeners }: FrontEnd): readonly PortForward[] {
  const { scheme, publicPort, address } = mode;
  const given = [
    { listener: listeners.http, from: scheme === "http" ? publicPort : 80 },
    { listener: listeners.https, from: publicPort },
  ];
  const ports = given.flatMap(({ listener, from }) =>
    listener !== undefined && proxy.listeners.includes(listener) ? [{ from, to: listener.port }] : [],
  );
  return portForwards(isWildcard(address) ? host.clientAddress : address, ports);
}

/** @internal The ports of the front end are open, and all others are not. */
export function addFirewall(
  frontEnd: FrontEnd & ConstructorParameters<typeof Firewall>[0],
  props: FrontEndFirewallProps,
): Firewall {
  return new Firewall(frontEnd, "Firewall", {
    ...props,
    host: frontEnd.host,
    ports: () => exposedPortsOf(frontEnd).filter((port) => !isNarrowed(port, props)),
    loopbackPorts: () => loopbackPortsOf(frontEnd),
    unitDirectory: frontEnd.proxy.paths.unitDirectory,
  });
}

/** Whether an entry says in place of the front end who may reach a port; only another set of clients has an effect. */
const isNarrowed = (port: number, { allowed = [], from: others }: FrontEndFirewallProps): boolean =>
  allowed.some(
    (one) => one.port === port && one.protocol !== "udp" && (one.from !== undefined || others !== undefined),
  );

/** @internal The expected network around a front end. */
export const networkOf = (frontEnd: FrontEnd) => {
  const { host } = frontEnd;
  return {
    addresses: [host.address, ...(host.ipv6Address === undefined ? [] : [host.ipv6Address])],
    portForwards: portForwardsOf(frontEnd),
    dnsRecords: host.dnsRecords,
    exposedPorts: exposedPortsOf(frontEnd),
    loopbackPorts: loopbackPortsOf(frontEnd),
  };
};
