import { Construct } from "constructs";
import { isLoopback, isWildcard, type Problem } from "../../model/index.js";
import { exposedPorts, loopbackPorts, type PortForward, portForwards } from "../../model/host/host.js";
import type { AllowedPort } from "../../render/index.js";
import { Firewall, firewallPropProblems, type FirewallProps } from "../service/firewall.js";
import { type IHost, hostPropProblems, type HostProps } from "../host/host.js";
import type { Listener, ListenerProps } from "../proxy/listener.js";
import type { Mode } from "../proxy/mode.js";
import { upstreamProblems } from "../props/checks.js";
import { hasTokens } from "../props/tokens.js";
import { type ProxyServiceProps, serviceProblems } from "../service/proxyService.js";
import type { ReverseProxy } from "../proxy/reverseProxy.js";
import { type ProxySettings, settingsProblems } from "../proxy/proxySettings.js";
import { TlsMaterial } from "../proxy/tlsMaterial.js";
import { type UpstreamProps, withChanges } from "../proxy/upstream.js";

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

/** @internal Adds a listener for each port of the mode, and an IPv6 listener as well if the host has an IPv6 address. */
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
interface FrontEndCore {
  readonly host: IHost;
  readonly mode: Mode;
  readonly proxy: ReverseProxy;
  readonly listeners: FrontEndListeners;
}

/** @internal TCP ports that the network reaches, ascending: those of the listeners, and the SSH server's. */
export function exposedPortsOf({ proxy, host }: FrontEndCore): readonly number[] {
  const reachable = proxy.listeners.filter(({ address }) => !isLoopback(address));
  return exposedPorts(
    reachable.map(({ port }) => port),
    host.sshPort,
  );
}

/** @internal TCP ports that only the host itself may reach, ascending: the database's and the upstreams'. */
export function loopbackPortsOf(frontEnd: FrontEndCore): readonly number[] {
  const exposed = exposedPortsOf(frontEnd);
  const urls = frontEnd.proxy.upstreams.flatMap(({ urls: all }) => all).filter((url) => !hasTokens(url));
  return loopbackPorts(urls).filter((port) => !exposed.includes(port));
}

/** @internal Forwards that a NAT router needs; none if the host's IPv4 address is public. */
export function portForwardsOf({ mode, host, proxy, listeners }: FrontEndCore): readonly PortForward[] {
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
  frontEnd: FrontEndCore & ConstructorParameters<typeof Firewall>[0],
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
export const networkOf = (frontEnd: FrontEndCore) => {
  const { host } = frontEnd;
  return {
    addresses: [host.address, ...(host.ipv6Address === undefined ? [] : [host.ipv6Address])],
    portForwards: portForwardsOf(frontEnd),
    dnsRecords: host.dnsRecords,
    exposedPorts: exposedPortsOf(frontEnd),
    loopbackPorts: loopbackPortsOf(frontEnd),
  };
};
