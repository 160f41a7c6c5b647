import { Construct } from "constructs";
import {
  type NetworkFileInput,
  type NetworkInterface,
  networkFileProblems,
  renderNetworkFile,
  renderResolverFile,
} from "../render/index.js";
import { refuse } from "./checks.js";
import type { Host } from "./host.js";
import { HostFile } from "./hostFile.js";
import { checkAroundTokens, hasTokens, renderAroundTokens } from "./tokens.js";

/**
 * The host's static address as a file of systemd-networkd (spec 1.4): address, netmask, gateway, DNS domain and
 * nameservers are the host's.
 *
 * A host that has its address from its provider needs none of this. On any other one it decides whether the host can
 * be reached at all: compare with `ip address` there before the first deployment, and have a console at hand.
 * systemd-networkd must be enabled, and nothing else (ifupdown, NetworkManager) may manage the interface.
 */
export class StaticNetwork extends Construct {
  /** The `.network` file. */
  readonly networkFile: HostFile;
  /** `/etc/resolv.conf`; undefined unless asked for. */
  readonly resolverFile?: HostFile;

  constructor(scope: Construct, id: string, props: StaticNetworkProps) {
    super(scope, id);
    const { host, name = "05-portico.network", apply = false } = props;
    const input = networkInput(props);
    // The file holds the netmask as the number of its bits, and Terraform cannot count them.
    const countable = hasTokens(input.netmask) ? { ...input, netmask: undefined } : input;
    const { problems } = checkAroundTokens(countable, networkFileProblems);
    refuse(problems.map((p) => ({ ...p, path: `${this.node.path}.${p.path}` })));
    this.networkFile = new HostFile(this, "NetworkFile", {
      host,
      path: `/etc/systemd/network/${name}`,
      content: renderAroundTokens(input, renderNetworkFile),
      role: apply ? "network" : "other",
    });
    if (props.resolverFile === true) {
      this.resolverFile = new HostFile(this, "ResolverFile", {
        host,
        path: "/etc/resolv.conf",
        content: renderAroundTokens(input, renderResolverFile),
        role: "other",
      });
    }
  }
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
    ...(host.ipv6Address === undefined
      ? {}
      : { ipv6: { address: host.ipv6Address, prefixLength: ipv6PrefixLength, gateway: ipv6Gateway } }),
  };
}

export interface StaticNetworkProps {
  /** The host; it must have a `netmask` (`network.bad-address`). */
  readonly host: Host;
  /**
   * The interface that gets the address: its name as the kernel has it, up to 15 characters, or its MAC address, which
   * stays when names change (`network.bad-interface`).
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
   * Whether a deployment makes systemd-networkd take a changed file at once. A mistake then cuts off the deployment
   * itself. Otherwise the file holds from the next boot, or after `networkctl reload`.
   * @default false
   */
  readonly apply?: boolean;
  /**
   * Whether to write `/etc/resolv.conf`, for a host without systemd-resolved, which otherwise gets the nameservers from
   * systemd-networkd.
   * @default false
   */
  readonly resolverFile?: boolean;
  /**
   * File name in `/etc/systemd/network`. The first file by name that matches an interface has it.
   * @default "05-portico.network"
   */
  readonly name?: string;
}
