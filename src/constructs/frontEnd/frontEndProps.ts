import type { Construct } from "constructs";
import { isWildcard, type Problem, problem } from "../../model/index.js";
import type { HostPaths } from "../../render/index.js";
import { ACCESS, accessOptionProblems } from "../proxy/access.js";
import { guardOptionProblems, PASSWORD_GUARD } from "../proxy/passwordGuard.js";
import { FAIL2BAN_PROPS, fail2banProblems, type Fail2banProps } from "../service/bans.js";
import { FIREWALL_PROPS } from "../service/firewall.js";
import { HOST_PROPS, type HostProps, type IHost } from "../host/host.js";
import type { Mode } from "../proxy/mode.js";
import { STATIC_NETWORK_PROPS, type StaticNetworkProps } from "../service/network.js";
import { hostPathProblems, refuse } from "../props/checks.js";
import { APPLICATION, HOST, MODE } from "../props/instances.js";
import {
  type PathOf,
  either,
  fields,
  flag,
  listOf,
  type PropTable,
  refuseProps,
  required,
  text,
  without,
} from "../props/propTable.js";
import { isKnown } from "../props/tokens.js";
import { PROXY_SERVICE_PROPS, type ProxyServiceProps } from "../service/proxyService.js";
import { HOST_PATHS, REVERSE_PROXY_PROPS, type ReverseProxyProps } from "../proxy/reverseProxy.js";
import { ACTIVATION_PROPS, type FrontEndActivationProps } from "./activationProps.js";
import { type FrontEndFirewallProps, givenPartProblems } from "./parts.js";
import { isPageServed, respondsToAnyName } from "./servers.js";
import {
  type FrontEndAccess,
  type OwnSiteOptions,
  type SiteOptions,
  namesProblems,
  SITE_OPTIONS,
  siteProblems,
  withMembers,
} from "./siteProps.js";

/**
 * Options of a front end on a host. The host and the mode are required. With `application`, the front end has a site with
 * the host's names, and the options of this site; `addSite` adds sites with other names.
 */
export interface FrontEndProps<
  Upstreams extends object = object,
  Routes extends object = object,
  Settings extends Construct = Construct,
>
  extends OwnSiteOptions<Upstreams, Routes, Settings>, FrontEndAccess {
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
  /**
   * Settings of the proxy as a whole: workers, trusted proxies, main logs, limits, timeouts. If a main log is a
   * stream, routes have no separate log files.
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
  /**
   * Has the host's fail2ban ban addresses whose log-ins fail too often: a filter and jails from the `logIns` of the
   * applications; `{}` is enough. See docs/fail2ban-crowdsec.md.
   * @default - nothing for fail2ban
   */
  readonly fail2ban?: Omit<Fail2banProps, "proxy">;
  /**
   * Whether the host's CrowdSec reads the access logs. See docs/fail2ban-crowdsec.md.
   * @default false
   */
  readonly crowdSec?: boolean;
  /**
   * Writes the host's static address for systemd-networkd: the interface, and options that are not in the host's
   * props.
   * @default - the host's network does not change
   */
  readonly network?: Omit<StaticNetworkProps, "host">;
  /**
   * Options of the activation: `portico activate` checks the files, stops and starts changed units, probes the
   * expected responses, and returns to the last good state if a response is not as expected. `{}` is enough for a
   * local delivery.
   * @default - with a delivery over ssh, an activation that edits no settings; with a local delivery, no activation
   */
  readonly activation?: FrontEndActivationProps;
  /**
   * Whether to add Terraform outputs: URL, DNS records to create, ports to forward, exposed ports, and loopback
   * ports.
   * @default false
   */
  readonly outputs?: boolean;
}

/** @internal */
export const FRONT_END_PROPS: PropTable<FrontEndProps> = {
  host: required(either(HOST, fields(HOST_PROPS))),
  mode: required(MODE),
  application: APPLICATION,
  additionalServerNames: listOf(text),
  ...SITE_OPTIONS,
  defaultPage: text,
  proxy: fields(without(REVERSE_PROXY_PROPS, "host", "paths")),
  service: fields(without(PROXY_SERVICE_PROPS, "proxy")),
  paths: fields(HOST_PATHS),
  network: fields(without(STATIC_NETWORK_PROPS, "host")),
  firewall: fields(
    without(FIREWALL_PROPS, "host", "ports", "loopbackPorts", "unitDirectory", "acceptLockOut"),
  ),
  fail2ban: fields(without(FAIL2BAN_PROPS, "proxy")),
  crowdSec: flag,
  activation: fields(ACTIVATION_PROPS),
  access: ACCESS,
  passwordGuard: PASSWORD_GUARD,
  outputs: flag,
};

/** @internal Refuses props from which no part of a front end could be made. */
export function refuseFrontEnd(construct: Construct, props: FrontEndProps): void {
  const at = (name: string): string => `${construct.node.path}.${name}`;
  refuseProps(construct, props, withMembers(props, FRONT_END_PROPS), (fit) => [
    ...unusedProblems(fit, at),
    ...siteProblems(fit, at, false),
    ...accessOptionProblems(at("access"), fit.access),
    ...guardOptionProblems(at("passwordGuard"), fit.passwordGuard),
    ...namesProblems(at("additionalServerNames"), fit.additionalServerNames ?? []),
    ...hostPathProblems(fit.paths, at("paths")),
    ...fail2banProblems(at("fail2ban"), fit.fail2ban ?? {}),
    ...givenPartProblems(construct, { ...fit, upstreams: { ...fit.upstreams } }),
  ]);
}

/** @internal Options of an application beside none, and a page that nobody gets. */
export function unusedProblems(
  fit: Partial<
    SiteOptions & Pick<FrontEndProps, "mode" | "application" | "defaultPage" | "additionalServerNames">
  >,
  at: PathOf,
): Problem[] {
  const { application, mode, rootRedirect } = fit;
  if (application === undefined) {
    const names = [
      ...Object.keys(SITE_OPTIONS),
      "additionalServerNames",
      "defaultPage",
    ] as (keyof typeof fit)[];
    const given = names.filter((name) => fit[name] !== undefined);
    const fix = "Set `application`, or set the option in `addSite`.";
    const allowed = "options of the front end's own application, beside `application`";
    return given.map((name) =>
      problem("config.unknown-field", at(name), "has no effect: the front end has no `application`", {
        allowed,
        fix,
      }),
    );
  }
  const { definition } = application;
  if (fit.defaultPage === undefined || isPageServed({ application: definition, mode, rootRedirect }))
    return [];
  const allowed = "the option with an application of several paths, and with an HTTP port";
  const more = { allowed, fix: "Remove the option." };
  const message = respondsToAnyName({ application: definition })
    ? "is shown to nobody: there is no HTTP port, and `/` over https is not the page"
    : "is shown to nobody: requests for other names get 404";
  return [problem("config.unknown-field", at("defaultPage"), message, more)];
}

/** @internal Refuses a further name that is one of the host's, or is repeated. */
export function refuseSameNames(
  { node, host }: Construct & { readonly host: IHost },
  { additionalServerNames: names = [] }: FrontEndProps,
): void {
  const same = names.map((name, i) => [...host.serverNames, ...names.slice(0, i)].includes(name));
  const at = (i: number): string => `${node.path}.additionalServerNames[${i}]`;
  const known = host.serverNames.filter(isKnown).join(", ");
  const allowed = `names other than ${known === "" ? "those of the host" : known}, each once`;
  const more = { allowed, fix: "Remove the name." };
  refuse(
    names.flatMap((received, i) =>
      same[i]
        ? [problem("config.duplicate-server-name", at(i), "is already a server name", { received, ...more })]
        : [],
    ),
  );
}

/** @internal Refuses an IPv6 address to listen on where nothing listens on IPv6. */
export function refuseLostAddress({
  node,
  host,
  mode,
}: Construct & { readonly host: IHost; readonly mode: Mode }): void {
  const { ipv6Address } = mode;
  if (host.ipv6Address !== undefined || isWildcard(ipv6Address)) return;
  const message = "has an `ipv6Address`, but the host has no IPv6 address";
  const fix = "Set the host's `ipv6Address`, or remove `ipv6Address` from the mode.";
  refuse([problem("config.bad-address", `${node.path}.mode`, message, { received: ipv6Address, fix })]);
}
