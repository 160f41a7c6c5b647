import { Fn, Op } from "cdktf";
import { Construct, type IConstruct } from "constructs";
import { IPV4_SPECIAL_RANGES, IPV6_RANGES } from "../../model/net/address.js";
import { freeId } from "../props/constructIds.js";
import { canonicalIpv6, formatProblem, isPort, type Problem, problem } from "../../model/index.js";
import {
  type DhcpRange,
  type DnsRecord,
  dnsRecords,
  type HostAddresses,
  hostProblems,
  type PortForward,
  portForwards,
} from "../../model/host/host.js";
import { Delivery } from "../delivery/delivery.js";
import { DELIVERY } from "../props/instances.js";
import {
  choice,
  either,
  fields,
  judged,
  listOf,
  number,
  type PropTable,
  refuseProps,
  required,
  text,
} from "../props/propTable.js";
import { hasTokens, isKnown, lateAddress } from "../props/tokens.js";

/** The server machine: a `Host`, or a construct of your own. */
export interface IHost extends IConstruct {
  /** Static IPv4 address. */
  readonly address: string;
  /** Public address: the virtual address if there is one, otherwise the host's own. */
  readonly clientAddress: string;
  /** Global IPv6 address in canonical form (RFC 5952), if the host has one. */
  readonly ipv6Address?: string;
  /** Domain name, if the host has one. */
  readonly publicName?: string;
  /** TCP port of the SSH server; undefined if there is none. */
  readonly sshPort?: number;
  /** The delivery of the host's files. */
  readonly delivery: Delivery;
  /** The props of the host. */
  readonly props: HostProps;
  /**
   * Public names, the main one first: the public name, which replaces the addresses; without a public name, the
   * public IPv4 address, and the IPv6 address.
   */
  readonly serverNames: readonly [string, ...string[]];
  /**
   * DNS records for the host: `A` if the IPv4 address is public, `AAAA` if the IPv6 address is public. None without a
   * public name; none for an address that is not known at synthesis.
   */
  readonly dnsRecords: readonly DnsRecord[];
  /** Port forwards that a NAT router needs for the ports; none if the IPv4 address is public. */
  portForwards(
    ...ports: {
      /** Public port. */
      readonly from: number;
      /** The host's port. */
      readonly to: number;
    }[]
  ): readonly PortForward[];
}

/** The server machine: addresses, public name, and how files reach the host. */
export class Host extends Construct implements IHost {
  readonly address: string;
  readonly clientAddress: string;
  readonly ipv6Address?: string;
  readonly publicName?: string;
  readonly sshPort?: number;
  readonly delivery: Delivery;
  readonly props: HostProps;

  /**
   * A host that another stack or resource created, by an address such as an output of the stack or an attribute of
   * the resource. The host's network does not change; `delivery` is optional.
   *
   * @param address as `address` of `HostProps`
   */
  static fromAddress(
    scope: Construct,
    id: string,
    address: string,
    props: Omit<HostProps, "address"> = {},
  ): IHost {
    return new Host(scope, id, { ...props, address });
  }

  constructor(scope: Construct, id: string, props: HostProps) {
    super(scope, freeId(scope, id));
    refuseProps(this, props, HOST_PROPS, (fit) => hostPropProblems(this.node.path, fit));
    this.props = props;
    this.address = props.address;
    this.clientAddress = props.virtualAddress ?? props.address;
    this.ipv6Address = props.ipv6Address === undefined ? undefined : canonical(props.ipv6Address);
    this.publicName = props.publicName;
    this.sshPort = props.sshPort === false ? undefined : (props.sshPort ?? 22);
    this.delivery = props.delivery ?? Delivery.local();
    this.node.addValidation({ validate: () => this.problems.map(formatProblem) });
  }

  /** @internal Problems that are known once everything is made. */
  get problems(): readonly Problem[] {
    return this.delivery.problemsOf(this);
  }

  get serverNames(): readonly [string, ...string[]] {
    if (this.publicName !== undefined) return [this.publicName];
    return this.ipv6Address === undefined ? [this.clientAddress] : [this.clientAddress, this.ipv6Address];
  }

  get dnsRecords(): readonly DnsRecord[] {
    const { publicName, clientAddress: address } = this;
    const ipv6Address = hasTokens(this.ipv6Address) ? undefined : this.ipv6Address;
    return dnsRecords({ publicName, address, ipv6Address });
  }

  portForwards(...ports: Parameters<IHost["portForwards"]>): readonly PortForward[] {
    return portForwards(this.clientAddress, ports);
  }
}

/** A value that is not an address stays as it is, so that its check reports it. */
function canonical(address: string): string {
  return hasTokens(address) ? lateAddress(address, 128, address) : canonicalIpv6(address)!;
}

/** @internal The host of a construct that takes a host, or props to make one. */
export const hostFrom = (scope: Construct, host: HostProps): IHost =>
  Construct.isConstruct(host) ? (host as Host) : new Host(scope, "Host", host);

/** @internal */
export const hostPropProblems = (path: string, fit: Partial<HostProps>): Problem[] => [
  ...hostProblems(fit as HostProps, path, isKnown),
  ...sshPortProblems(fit, path),
];

function sshPortProblems({ sshPort }: Partial<HostProps>, path: string): Problem[] {
  if (sshPort === undefined || sshPort === false || !isKnown(sshPort)) return [];
  if (isPort(sshPort)) return [];
  const allowed = "1 to 65535, or `false`";
  return [problem("config.out-of-range", `${path}.sshPort`, "is not a port", { received: sshPort, allowed })];
}

/** Addresses and names of a host, and how files reach the host. */
export interface HostProps extends HostAddresses {
  /**
   * TCP port of the SSH server, 1 to 65535; `false` without an SSH server. The port is exposed with the front end's
   * ports, and a firewall leaves the port open.
   * @default 22
   */
  readonly sshPort?: number | false;
  /**
   * How files reach the host.
   * @default Delivery.local(): into a folder below `out`, for inspection; `Delivery.local({ root: "/" })` installs
   * them on the machine that runs Terraform
   */
  readonly delivery?: Delivery;
}

/** @internal */
export const HOST_PROPS: PropTable<HostProps> = {
  address: judged,
  virtualAddress: text,
  netmask: text,
  gateway: text,
  dnsDomain: text,
  nameservers: listOf(text),
  ipv6Address: text,
  ipv6Flags: listOf(text),
  publicName: text,
  dhcpRange: fields<DhcpRange>({ from: required(text), to: required(text) }),
  sshPort: {
    ...either(choice(false), number),
    fix: "Set a port, or `false` for a host without an SSH server.",
  },
  delivery: DELIVERY,
};

/**
 * @internal DNS records of a host as the value of an output. If an address is known only at apply, Terraform decides then whether
 * it is public: an empty list would say that no record is needed.
 */
export function dnsRecordsOutput(host: IHost): unknown {
  const { publicName: name, address, ipv6Address } = host;
  if (name === undefined || !hasTokens([address, ipv6Address])) return host.dnsRecords;
  const whenPublic = (isPublic: unknown, type: string, value: string): unknown =>
    Fn.conditional(isPublic, [{ name, type, value }], []);
  return Fn.concat([
    whenPublic(
      Op.not(Fn.anytrue(IPV4_SPECIAL_RANGES.map(([base, length]) => isInNetwork(address, length, base)))),
      "A",
      address,
    ),
    ...(ipv6Address === undefined ? [] : [whenPublic(isPublicIpv6(ipv6Address), "AAAA", ipv6Address)]),
  ]);
}

/**
 * Whether an address is in the network that begins at `base`. A value that is not an address is reported only by its
 * own check.
 */
function isInNetwork(address: string, length: number, base: string): unknown {
  return Fn.try([Op.eq(Fn.cidrhost(Fn.join("/", [address, String(length)]), 0), base), false]);
}

/** The same rule as the model's `ipv6Scope`: in the range of public addresses, and in no range listed before it. */
function isPublicIpv6(address: string): unknown {
  const at = IPV6_RANGES.findIndex(([, , scope]) => scope === "public");
  const [base, length] = IPV6_RANGES[at]!;
  const others = IPV6_RANGES.slice(0, at).map(([other, bits]) => isInNetwork(address, bits, other));
  return Op.and(isInNetwork(address, length, base), Op.not(Fn.anytrue(others)));
}
