import { isIP, isIPv4 } from "node:net";
import { ipv4Bits, ipv4Scope, ipv6Groups, ipv6Scope, netmaskLength, sameNetwork } from "../net/address.js";
import { isLoopback, upstreamAddress } from "../net/authority.js";
import type { InputOf } from "../schema/inferred.js";
import { badValueFix } from "../text/notSupported.js";
import type { dnsRecord, portForward } from "./network.js";
import { type Problem, problem } from "../text/problem.js";
import { isDomainName } from "../net/serverName.js";

/** Addresses and names of a host. Only the IPv4 address is required. */
export interface HostAddresses {
  /**
   * Static IPv4 address, outside the router's DHCP range. Loopback addresses are accepted for local trials; an IPv6
   * address is refused (`host.ipv6-only`), as are multicast and link-local ones (`host.bad-ipv4`).
   */
  readonly address: string;
  /**
   * IPv4 address for clients in place of `address`, which another host can take over; a `FrontEndPair` sets this
   * option. The virtual address replaces `address` in server names, certificates, DNS records and the application's
   * settings. Must be another address in the host's subnet (`host.bad-virtual-address`).
   * @default - none; clients use `address`
   */
  readonly virtualAddress?: string;
  /**
   * Netmask in dotted form. With a netmask, address and gateway must fit the subnet (`host.bad-network`).
   * @default - the subnet is not checked
   */
  readonly netmask?: string;
  /**
   * IPv4 address of the router. Must be in the subnet, unless the netmask is 255.255.255.255.
   * @default - none
   */
  readonly gateway?: string;
  /**
   * DNS domain of the host, in lower case.
   * @default - none
   */
  readonly dnsDomain?: string;
  /**
   * IP addresses of DNS servers (`host.bad-nameserver`).
   * @default - none
   */
  readonly nameservers?: readonly string[];
  /**
   * Permanent IPv6 address of global scope, without zone or prefix length. With this address, every port has an IPv6
   * listener. Link-local, loopback, site-local and multicast addresses are refused (`host.bad-ipv6`); unique-local
   * and documentation addresses are accepted, but have no DNS record.
   * @default - IPv4 only
   */
  readonly ipv6Address?: string;
  /**
   * Flags of the IPv6 address in `ip -6 address show`; `temporary`, `deprecated`, `tentative` and `dadfailed` are
   * refused, because such an address may disappear.
   * @default - none
   */
  readonly ipv6Flags?: readonly string[];
  /**
   * Domain name, in lower case and without a port. The name replaces the addresses as server name. A certificate that
   * browsers trust needs a name. The name may come from another resource.
   * @default - the addresses
   */
  readonly publicName?: string;
  /**
   * First and last address that the router assigns; the host's address must be outside (`host.inside-dhcp-range`).
   * @default - not checked
   */
  readonly dhcpRange?: DhcpRange;
}

/** Addresses that a router assigns. */
export interface DhcpRange {
  /** The first address, IPv4. */
  readonly from: string;
  /** The last address, IPv4, not below the first. */
  readonly to: string;
}

/**
 * Every problem of a host's addresses and names.
 *
 * @param isKnown false for a value that is not known yet (a reference that Terraform resolves at apply); rules that
 *   would need it are left out
 */
export function hostProblems(
  host: HostAddresses,
  path: string,
  isKnown: (value: unknown) => boolean = () => true,
): Problem[] {
  const known = Object.fromEntries(
    Object.entries(host).filter(([, value]) => value !== undefined && isKnown(value)),
  ) as Partial<HostAddresses>;
  const field = (name: keyof HostAddresses): string => `${path}.${name}`;
  const addressed = host.address === undefined || known.address !== undefined;
  const address = addressed ? addressProblems(known.address, field("address")) : [];
  // Rules about the network need an address to compare with.
  const bits = address.length === 0 && known.address !== undefined ? ipv4Bits(known.address) : undefined;
  return [
    ...address,
    ...virtualAddressProblems(known, bits, field, isKnown),
    ...networkProblems(known, bits, field, isKnown),
    ...dhcpProblems(known, bits, field, isKnown),
    ...ipv6Problems(known, field),
    ...nameProblems(known, field, isKnown),
  ];
}

type Field = (name: keyof HostAddresses) => string;
type GivenAddresses = Partial<HostAddresses>;

function addressProblems(address: string | undefined, path: string): Problem[] {
  const allowed = "a static IPv4 address such as 192.0.2.10";
  if (address === undefined) {
    const fix =
      "Set the host's static IPv4 address. If it comes from a variable, check that the variable is set.";
    return [
      problem("host.ipv6-only", path, "is missing: a host needs a static IPv4 address", { allowed, fix }),
    ];
  }
  if (isIP(address) === 6) {
    return [problem("host.ipv6-only", path, "is an IPv6 address", { received: address, allowed })];
  }
  const scope = ipv4Scope(address);
  if (scope === undefined) {
    return [problem("host.bad-ipv4", path, "is not an IPv4 address", { received: address, allowed })];
  }
  return scope === "unusable" || scope === "linkLocal"
    ? [
        problem("host.bad-ipv4", path, "cannot be the permanent address of a host", {
          received: address,
          allowed,
        }),
      ]
    : [];
}

/** It is an address like the host's own, in the same subnet, and another one. */
function virtualAddressProblems(
  known: GivenAddresses,
  bits: number | undefined,
  field: Field,
  isKnown: IsKnown,
): Problem[] {
  const { virtualAddress, netmask, gateway, dhcpRange, address } = known;
  if (virtualAddress === undefined) return [];
  const path = field("virtualAddress");
  const refuse = (message: string, allowed: string): Problem[] => [
    problem("host.bad-virtual-address", path, message, { received: virtualAddress, allowed }),
  ];
  if (addressProblems(virtualAddress, path).length > 0) {
    return refuse("cannot be the virtual address of two hosts", "a static IPv4 address such as 192.0.2.10");
  }
  const own = ipv4Bits(virtualAddress)!;
  const others = { address, gateway };
  const same = Object.entries(others).find(([, other]) => other !== undefined && ipv4Bits(other) === own);
  if (same !== undefined) return refuse(`is the host's ${same[0]}`, "an address that no machine uses");
  const length = netmask === undefined ? undefined : netmaskLength(netmask);
  if (bits !== undefined && length !== undefined && !sameNetwork(own, bits, length)) {
    const allowed = `an address in the subnet of ${address} with netmask ${netmask}`;
    return refuse("is outside the host's subnet", allowed);
  }
  return dhcpProblems({ address: virtualAddress, dhcpRange }, own, () => path, isKnown);
}

function networkProblems(
  known: GivenAddresses,
  bits: number | undefined,
  field: Field,
  isKnown: IsKnown,
): Problem[] {
  const { netmask, gateway, nameservers = [] } = known;
  const problems = nameservers.flatMap((server, i) =>
    !isKnown(server) || isIP(server) !== 0
      ? []
      : [
          problem("host.bad-nameserver", `${field("nameservers")}[${i}]`, "is not an IP address", {
            received: server,
            allowed: "an IPv4 or IPv6 address",
          }),
        ],
  );
  if (gateway !== undefined && !isIPv4(gateway)) {
    problems.push(
      problem("host.bad-network", field("gateway"), "is not an IPv4 address", {
        received: gateway,
        allowed: "the router's IPv4 address, such as 192.0.2.1",
      }),
    );
  }
  if (netmask === undefined) return problems;
  const length = netmaskLength(netmask);
  if (length === undefined || length === 0) {
    const allowed = "a netmask such as 255.255.255.0";
    return [
      ...problems,
      problem("host.bad-network", field("netmask"), "is not a netmask", { received: netmask, allowed }),
    ];
  }
  if (bits === undefined) return problems;
  return [...problems, ...subnetProblems(known, bits, length, field)];
}

type IsKnown = (value: unknown) => boolean;

function subnetProblems(known: GivenAddresses, bits: number, length: number, field: Field): Problem[] {
  const { address, gateway, netmask } = known;
  const problems: Problem[] = [];
  const size = 2 ** (32 - length);
  const inside = bits % size;
  // A /31 link and a /32 have no network and broadcast address (RFC 3021).
  if (length < 31 && (inside === 0 || inside === size - 1)) {
    const kind = inside === 0 ? "network" : "broadcast";
    const message = `is the ${kind} address of its own subnet`;
    problems.push(
      problem("host.bad-network", field("address"), message, {
        received: address,
        allowed: `the address of a host in a subnet with netmask ${netmask}`,
      }),
    );
  }
  const router = gateway === undefined ? undefined : ipv4Bits(gateway);
  if (router === undefined) return problems;
  if (router === bits) {
    problems.push(
      problem("host.bad-network", field("gateway"), "is the host's own address", {
        received: gateway,
        allowed: "the router's IPv4 address, such as 192.0.2.1",
      }),
    );
  } else if (length < 32 && !sameNetwork(router, bits, length)) {
    // Providers route a /32 through a gateway outside it, so that one case is not a mistake.
    const allowed = `an address in the subnet of ${address} with netmask ${netmask}`;
    problems.push(
      problem("host.bad-network", field("gateway"), "is outside the host's subnet", {
        received: gateway,
        allowed,
      }),
    );
  }
  return problems;
}

function dhcpProblems(
  known: GivenAddresses,
  bits: number | undefined,
  field: Field,
  isKnown: IsKnown,
): Problem[] {
  const { dhcpRange: range } = known;
  if (range === undefined || !isKnown(range.from) || !isKnown(range.to)) return [];
  const path = field("dhcpRange");
  const from = ipv4Bits(range.from);
  const to = ipv4Bits(range.to);
  if (from === undefined || to === undefined || from > to) {
    const allowed = "two IPv4 addresses, the lower one first";
    return [
      problem("host.bad-dhcp-range", path, "is not a range of IPv4 addresses", { received: range, allowed }),
    ];
  }
  if (bits === undefined || bits < from || bits > to) return [];
  return [
    problem(
      "host.inside-dhcp-range",
      field("address"),
      "is an address that the router may assign to another host",
      {
        received: known.address,
        allowed: `an address outside ${range.from} to ${range.to}`,
      },
    ),
  ];
}

// Flags of `ip -6 address show` that mean: this address will not last, or is not in use.
const NOT_LASTING = ["temporary", "deprecated", "tentative", "dadfailed"];

function ipv6Problems(known: GivenAddresses, field: Field): Problem[] {
  const { ipv6Address: address, ipv6Flags: flags = [] } = known;
  const notLasting = flags.filter((flag) => NOT_LASTING.includes(flag));
  const problems = notLasting.map((flag) =>
    problem("host.bad-ipv6", field("ipv6Flags"), `marks the address as ${flag}`, {
      received: flags,
      allowed: `an address with none of the flags ${NOT_LASTING.join(", ")}`,
    }),
  );
  if (address === undefined) return problems;
  const allowed = "a global address without zone or prefix length, such as 2001:db8::10";
  const refuse = (message: string): Problem[] => [
    ...problems,
    problem("host.bad-ipv6", field("ipv6Address"), message, { received: address, allowed }),
  ];
  if (address.includes("%") || ipv6Groups(address) === undefined) return refuse("is not an IPv6 address");
  const scope = ipv6Scope(address);
  if (scope === "public" || scope === "private") return problems;
  const kind = {
    linkLocal: "a link-local address",
    loopback: "a loopback address",
    unusable: "not of global scope",
  };
  return refuse(`is ${kind[scope as keyof typeof kind]}`);
}

function nameProblems(known: GivenAddresses, field: Field, isKnown: IsKnown): Problem[] {
  return (["publicName", "dnsDomain"] as const).flatMap((name) => {
    const value = known[name];
    if (value === undefined || !isKnown(value)) return [];
    if (isDomainName(value) && value !== "_" && /\D/.test(value.split(".").at(-1)!)) return [];
    return [
      problem("host.bad-name", field(name), "is not a domain name", {
        received: value,
        allowed: "a lower-case name such as files.example.org, without scheme, port or trailing dot",
        ...badValueFix("host.bad-name", value),
      }),
    ];
  });
}

/** A DNS record that maps the host's public name to an address. */
export interface DnsRecord extends InputOf<typeof dnsRecord> {}

/** Records for the host's public addresses only: others would lead outside clients nowhere (service 1.6). */
export function dnsRecords(host: Pick<HostAddresses, "address" | "ipv6Address" | "publicName">): DnsRecord[] {
  const { address, ipv6Address, publicName: name } = host;
  if (name === undefined) return [];
  const records: DnsRecord[] = [];
  if (ipv4Scope(address) === "public") records.push({ name, type: "A", value: address });
  if (ipv6Address !== undefined && ipv6Scope(ipv6Address) === "public") {
    records.push({ name, type: "AAAA", value: ipv6Address });
  }
  return records;
}

/** A port forward that a NAT router needs to make the host reachable from the internet. */
export interface PortForward extends InputOf<typeof portForward> {}

/** The forwards for the ports, if the host's IPv4 address is private; a public address needs none. */
export function portForwards(address: string, ports: readonly { from: number; to: number }[]): PortForward[] {
  if (ipv4Scope(address) !== "private") return [];
  return ports.map(({ from, to }) => ({ protocol: "tcp", port: from, toAddress: address, toPort: to }));
}

/** TCP ports that the network may reach: those of the listeners, and 22 where there is an SSH server (service 1.7). */
export function exposedPorts(listeners: readonly number[], sshPort: number | undefined): number[] {
  return ascending(sshPort === undefined ? listeners : [...listeners, sshPort]);
}

/** The database's port: nothing routes to it (service 1.2). */
export const DATABASE_PORT = 3306;

/** TCP ports that only the host itself may reach (service 1.7): the database's, and those of upstreams on loopback. */
export function loopbackPorts(upstreamUrls: readonly string[], databasePort = DATABASE_PORT): number[] {
  const local = upstreamUrls.flatMap((url) => {
    const leads = upstreamAddress(url);
    return "port" in leads && isLoopback(leads.host) ? [leads.port] : [];
  });
  return ascending([databasePort, ...local]);
}

const ascending = (ports: readonly number[]): number[] => [...new Set(ports)].sort((a, b) => a - b);
