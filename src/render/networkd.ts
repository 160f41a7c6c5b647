import { accepting, IPV6_PATTERN, type DescribedRule } from "../model/text/textRule.js";
import { netmaskLength, ipv4Bits, sameNetwork, type Problem, problem } from "../model/index.js";

/** A static address as systemd-networkd sets it (service 1.4). */
export interface NetworkFileInput {
  readonly interface: NetworkInterface;
  readonly address: string;
  readonly netmask?: string;
  readonly gateway?: string;
  readonly dnsDomain?: string;
  readonly nameservers: readonly string[];
  readonly ipv6?: StaticIpv6;
}

/** A network interface: by name, or by hardware address, which does not change when the interface is renamed. */
export type NetworkInterface =
  | {
      /** Name of the interface: `eth0`. */
      readonly name: string;
    }
  | {
      /** Address of the interface's hardware: `52:54:00:12:34:56`. */
      readonly macAddress: string;
    };

export interface StaticIpv6 {
  readonly address: string;
  readonly prefixLength: number;
  /** If there is no gateway here, routers announce themselves. */
  readonly gateway?: string;
}

type Section = readonly (readonly [key: string, value: string])[];

/** The `.network` file (systemd.network(5)). */
export function renderNetworkFile(input: NetworkFileInput): string {
  const { ipv6, gateway, nameservers, dnsDomain } = input;
  const length = netmaskLength(input.netmask!)!;
  const outside = gateway !== undefined && !inSubnet(gateway, input.address, length);
  const sections: [string, Section][] = [
    ["Match", match(input.interface)],
    [
      "Network",
      [
        ["DHCP", "no"],
        ["Address", `${input.address}/${length}`],
        ...(gateway === undefined || outside ? [] : [["Gateway", gateway] as const]),
        ...(ipv6 === undefined ? [] : ipv6Lines(ipv6)),
        ...nameservers.map((server) => ["DNS", server] as const),
        ...(dnsDomain === undefined ? [] : [["Domains", dnsDomain] as const]),
        // A server needs its own address, not one that changes every day.
        ["IPv6PrivacyExtensions", "no"],
        // Both would listen for names on the local network, on ports that should not be open.
        ["LLMNR", "no"],
        ["MulticastDNS", "no"],
      ],
    ],
    // A prefix that a router announces must not add further addresses to the one the records name.
    ...(ipv6 !== undefined && ipv6.gateway === undefined
      ? [["IPv6AcceptRA", [["UseAutonomousPrefix", "no"]]] as [string, Section]]
      : []),
    ...(outside ? [onLink(gateway)] : []),
    ...(ipv6?.gateway === undefined ? [] : [onLink(ipv6.gateway)]),
  ];
  return sections
    .map(([name, lines]) => `[${name}]\n${lines.map(([key, value]) => `${key}=${value}\n`).join("")}`)
    .join("\n");
}

function match(face: NetworkInterface): Section {
  if ("name" in face) return [["Name", face.name]];
  // Bridges and bonds copy the hardware address of one of their ports, but their types differ.
  return [
    ["MACAddress", face.macAddress],
    ["Type", "ether"],
  ];
}

function ipv6Lines(ipv6: StaticIpv6): Section {
  return [
    ["Address", `${ipv6.address}/${ipv6.prefixLength}`],
    ["IPv6AcceptRA", ipv6.gateway === undefined ? "yes" : "no"],
  ];
}

/** A router that the host's own prefix need not cover: providers route single addresses that way. */
const onLink = (gateway: string): [string, Section] => [
  "Route",
  [
    ["Gateway", gateway],
    ["GatewayOnLink", "yes"],
  ],
];

function inSubnet(gateway: string, address: string, length: number): boolean {
  // No other host is in a network of one address, whatever the values that are not known yet.
  if (length === 32) return false;
  const [a, b] = [ipv4Bits(gateway), ipv4Bits(address)];
  return a === undefined || b === undefined || sameNetwork(a, b, length);
}

/** `/etc/resolv.conf` (resolv.conf(5)), for hosts without systemd-resolved. */
export function renderResolverFile(input: Pick<NetworkFileInput, "nameservers" | "dnsDomain">): string {
  const search = input.dnsDomain === undefined ? "" : `search ${input.dnsDomain}\n`;
  return search + input.nameservers.map((server) => `nameserver ${server}\n`).join("");
}

/** Problems of the input for a static address. Address, gateway and nameservers are the host's, and checked there. */
export function networkFileProblems(input: NetworkFileInput): Problem[] {
  const { ipv6 } = input;
  const problems = interfaceProblems(input.interface);
  if (input.netmask === undefined || netmaskLength(input.netmask) === undefined) {
    const allowed = "a netmask such as 255.255.255.0, known at synthesis";
    const message = input.netmask === undefined ? "is missing" : "is not a netmask";
    problems.push(problem("network.bad-address", "netmask", message, { received: input.netmask, allowed }));
  }
  if (ipv6 === undefined) return problems;
  const { prefixLength: length, gateway } = ipv6;
  if (!Number.isInteger(length) || length < 1 || length > 128) {
    const allowed = "1 to 128";
    problems.push(
      problem("network.bad-address", "ipv6.prefixLength", "is not a prefix length", {
        received: length,
        allowed,
      }),
    );
  }
  if (gateway !== undefined && !accepting(IPV6_GATEWAY)(gateway)) {
    const { allowed } = IPV6_GATEWAY;
    problems.push(
      problem("network.bad-address", "ipv6.gateway", "is not an IPv6 address", {
        received: gateway,
        allowed,
      }),
    );
  }
  return problems;
}

/** Names that the kernel accepts (IFNAMSIZ), except those that networkd reads as a pattern, a list or a negation. */
export const INTERFACE_NAME: DescribedRule = {
  pattern: "^[A-Za-z0-9_.-]{1,15}$",
  never: "^\\.{1,2}$",
  allowed: "a name such as eth0: up to 15 letters, digits, `_`, `.` and `-`",
};

/** The lowest bit of the first byte marks a group: no interface has such an address. */
export const MAC_ADDRESS: DescribedRule = {
  pattern: "^[0-9A-Fa-f][02468ACEace](?::[0-9A-Fa-f]{2}){5}$",
  never: "^[0:]+$",
  allowed: "an address such as 52:54:00:12:34:56",
};

export const IPV6_GATEWAY: DescribedRule = {
  pattern: `^${IPV6_PATTERN}$`,
  allowed: "an IPv6 address without zone",
};

function interfaceProblems(face: { readonly name?: string; readonly macAddress?: string }): Problem[] {
  const { name, macAddress } = face;
  if ((name === undefined) === (macAddress === undefined)) {
    const allowed = "either `name` or `macAddress`";
    const message = name === undefined ? "names no interface" : "names an interface twice";
    return [problem("network.bad-interface", "interface", message, { received: face, allowed })];
  }
  if (name !== undefined) {
    const { allowed } = INTERFACE_NAME;
    if (accepting(INTERFACE_NAME)(name)) return [];
    const message = "is not the name of an interface";
    return [problem("network.bad-interface", "interface.name", message, { received: name, allowed })];
  }
  const { allowed } = MAC_ADDRESS;
  if (accepting(MAC_ADDRESS)(macAddress!)) return [];
  const message = "is not a MAC address of an interface";
  return [
    problem("network.bad-interface", "interface.macAddress", message, { received: macAddress, allowed }),
  ];
}
