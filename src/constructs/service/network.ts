import { Construct } from "constructs";
import { freeId } from "../props/constructIds.js";
import {
  type NetworkFileInput,
  type NetworkInterface,
  networkFileProblems,
  INTERFACE_NAME,
  IPV6_GATEWAY,
  MAC_ADDRESS,
  renderNetworkFile,
  renderResolverFile,
} from "../../render/index.js";
import { netmaskLength, type Problem, problem } from "../../model/index.js";
import type { IHost } from "../host/host.js";
import { HostFile } from "../host/hostFile.js";
import { HOST } from "../props/instances.js";
import { lateHostChecks } from "../props/hostChecks.js";
import { late, type LateValue, lateNumber, lateText } from "../props/lateChecks.js";
import { fields, flag, number, type PropTable, refuseProps, required, text } from "../props/propTable.js";
import { checkAroundTokens, hasTokens, isKnown, renderAroundTokens } from "../props/tokens.js";

/**
 * The host's static address as a file of systemd-networkd. Address, netmask, gateway, DNS domain and nameservers are
 * those of the host.
 *
 * A host that receives its address from a provider needs no such file. On any other host, an error in the file can
 * make the host unreachable: compare the file with `ip address` on the host before the first deployment, and have
 * access to a console. systemd-networkd must be enabled, and nothing else (ifupdown, NetworkManager) may manage the
 * interface.
 */
export class StaticNetwork extends Construct {
  /** The host. */
  readonly host: IHost;
  /** The `.network` file. */
  readonly networkFile: HostFile;
  /** `/etc/resolv.conf`; undefined without `resolverFile`. */
  readonly resolverFile?: HostFile;

  constructor(scope: Construct, id: string, props: StaticNetworkProps) {
    super(scope, freeId(scope, id));
    refuseProps(this, props, STATIC_NETWORK_PROPS, (fit) => networkProblems(this.node.path, fit));
    const { host, name = "05-portico.network", apply = false } = props;
    this.host = host;
    const input = networkInput(props);
    this.networkFile = new HostFile(this, "NetworkFile", {
      host,
      path: `/etc/systemd/network/${name}`,
      content: renderAroundTokens(input, renderNetworkFile),
      role: apply ? "network" : "other",
    });
    this.networkFile.checkLate(() => [
      ...lateHostChecks(host),
      ...lateGatewayChecks(host),
      ...lateNetworkChecks(this.node.path, props),
    ]);
    if (props.resolverFile === true) {
      this.resolverFile = new HostFile(this, "ResolverFile", {
        host,
        path: "/etc/resolv.conf",
        content: renderAroundTokens(input, renderResolverFile),
        role: "other",
      });
      this.resolverFile.checkLate(() => lateHostChecks(host));
    }
  }
}

function networkProblems(at: string, given: Partial<StaticNetworkProps>): Problem[] {
  const { host } = given;
  if (host === undefined) return nameProblems(at, given);
  const props = { interface: { name: "any" }, ...given, host };
  const input = networkInput(props);
  // The file holds the netmask as the number of its bits, and Terraform cannot count them.
  const countable = hasTokens(input.netmask) ? { ...input, netmask: undefined } : input;
  const { problems } = checkAroundTokens(countable, networkFileProblems);
  return [
    ...problems.map((p) => atProp(p, at, host)),
    ...contradictions(at, props),
    ...nameProblems(at, props),
  ];
}

/** Fields of the file as the props that they come from. */
function atProp(p: Problem, at: string, host: IHost): Problem {
  if (p.path === "netmask") {
    const place = `${host.node.path}.netmask`;
    if (!hasTokens(host.props.netmask)) return { ...p, path: place };
    const { allowed } = p;
    const fix = "Use a literal: the file has the number of the netmask's bits, which Terraform cannot count.";
    return problem(p.code, place, "is not known at synthesis", { ...(allowed && { allowed }), fix });
  }
  const prop = p.path.replace("ipv6.prefixLength", "ipv6PrefixLength").replace("ipv6.gateway", "ipv6Gateway");
  return { ...p, path: `${at}.${prop}` };
}

/** Options that lack something they need. */
function contradictions(at: string, props: StaticNetworkProps): Problem[] {
  const { host, resolverFile = false } = props;
  const lost = (["ipv6Gateway", "ipv6PrefixLength"] as const).filter(
    (one) => props[one] !== undefined && host.ipv6Address === undefined,
  );
  return [
    ...lost.map((one) => {
      const fix = `Set the host's \`ipv6Address\`, or remove \`${one}\`.`;
      const more = { received: props[one], fix };
      return problem(
        "network.bad-address",
        `${at}.${one}`,
        "has no effect: the host has no IPv6 address",
        more,
      );
    }),
    ...(resolverFile && (host.props.nameservers ?? []).length === 0
      ? [
          problem("network.bad-address", `${host.node.path}.nameservers`, "are needed for /etc/resolv.conf", {
            allowed: "at least one IP address",
            fix: "Set `nameservers` of the host, or remove `resolverFile`.",
          }),
        ]
      : []),
  ];
}

/** A file name that systemd-networkd ignores. */
function nameProblems(at: string, { name }: Partial<StaticNetworkProps>): Problem[] {
  if (name === undefined || !isKnown(name) || NETWORK_FILE.test(name)) return [];
  return [
    problem("network.bad-address", `${at}.name`, "is not the name of a file that systemd-networkd reads", {
      received: name,
      allowed: "a file name such as 05-portico.network",
      fix: "Use a file name that ends in `.network`, without a directory.",
    }),
  ];
}

const NETWORK_FILE = /^[\w.@-]+\.network$/;

function lateNetworkChecks(at: string, props: StaticNetworkProps): LateValue[] {
  const face: Partial<Record<"name" | "macAddress", string>> = props.interface;
  const bad = "network.bad-interface";
  return [
    ...lateText(bad, `${at}.interface.name`, INTERFACE_NAME, face.name),
    ...lateText(bad, `${at}.interface.macAddress`, MAC_ADDRESS, face.macAddress),
    ...lateNumber(`${at}.ipv6PrefixLength`, 1, 128, props.ipv6PrefixLength),
    ...lateText("network.bad-address", `${at}.ipv6Gateway`, IPV6_GATEWAY, props.ipv6Gateway),
  ];
}

/** The file reaches a gateway outside the subnet in another way, so this must be known at synthesis. */
function lateGatewayChecks({ node, address, props: { netmask, gateway } }: IHost): LateValue[] {
  const length = netmask === undefined ? undefined : netmaskLength(netmask);
  if (gateway === undefined || length === undefined || length === 32) return [];
  const allowed = `an address in the host's subnet, by netmask ${netmask}`;
  const what = problem("host.bad-network", `${node.path}.gateway`, "is outside the host's subnet", {
    allowed,
  });
  return late(what, { network: `${address}/${length}` }, gateway);
}

function networkInput(props: StaticNetworkProps): NetworkFileInput {
  const { host, ipv6PrefixLength = 64, ipv6Gateway } = props;
  const { netmask, gateway, dnsDomain, nameservers = [] } = host.props;
  return {
    interface: props.interface,
    address: host.address,
    netmask,
    gateway,
    dnsDomain,
    nameservers,
    ipv6:
      host.ipv6Address === undefined
        ? undefined
        : { address: host.ipv6Address, prefixLength: ipv6PrefixLength, gateway: ipv6Gateway },
  };
}

/** Options of the host's static address. */
export interface StaticNetworkProps {
  /** The host; it must have a `netmask` (`network.bad-address`). */
  readonly host: IHost;
  /**
   * The interface with the address: the kernel's name, up to 15 characters, or the MAC address, which stays the same
   * when names change (`network.bad-interface`).
   */
  readonly interface: NetworkInterface;
  /**
   * Prefix length of the IPv6 address, 1 to 128.
   * @default 64
   */
  readonly ipv6PrefixLength?: number;
  /**
   * IPv6 address of the router, without zone.
   * @default - the router that announces itself
   */
  readonly ipv6Gateway?: string;
  /**
   * Whether systemd-networkd loads a changed file during the deployment. A mistake then cuts off the deployment
   * itself. With `false`, the file takes effect at the next boot, or after `networkctl reload`.
   * @default false
   */
  readonly apply?: boolean;
  /**
   * Whether to write `/etc/resolv.conf`, for a host without systemd-resolved. systemd-resolved receives the
   * nameservers from systemd-networkd.
   * @default false
   */
  readonly resolverFile?: boolean;
  /**
   * File name in `/etc/systemd/network`. Of several files that match an interface, the first by name applies.
   * @default "05-portico.network"
   */
  readonly name?: string;
}

/** @internal */
export const STATIC_NETWORK_PROPS: PropTable<StaticNetworkProps> = {
  host: required(HOST),
  interface: required(fields<{ name?: string; macAddress?: string }>({ name: text, macAddress: text })),
  ipv6PrefixLength: number,
  ipv6Gateway: text,
  apply: flag,
  resolverFile: flag,
  name: text,
};
