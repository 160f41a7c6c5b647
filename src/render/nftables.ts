import { isIPv4 } from "node:net";
import { isCidr, isPort, type Problem, problem } from "../model/index.js";
import { unclearRange } from "../model/config/trustChecks.js";
import type { UnitDocument } from "./systemdUnit.js";

/** The connections that a host accepts. */
export interface FirewallInput {
  /** Open TCP ports. */
  readonly ports: readonly number[];
  /** Addresses and ranges that may reach `ports`; everyone without this list. */
  readonly from?: readonly string[];
  /** TCP ports that only the host itself reaches. */
  readonly loopbackPorts: readonly number[];
  readonly allowed: readonly AllowedPort[];
  /** Addresses of hosts that share a virtual address with this one (VRRP). */
  readonly vrrpPeers?: readonly string[];
  readonly dhcpClient: boolean;
}

/** A further open port. */
export interface AllowedPort {
  /** Port, 1 to 65535. */
  readonly port: number;
  /**
   * Transport.
   * @default "tcp"
   */
  readonly protocol?: "tcp" | "udp";
  /**
   * Addresses and ranges that may reach the port.
   * @default - everyone
   */
  readonly from?: readonly string[];
}

/** The same, ready to be written: a range that is not known yet comes with its family, `ip` or `ip6`. */
export interface FirewallRules extends Omit<FirewallInput, "from" | "allowed"> {
  readonly from?: readonly SourceRange[];
  readonly allowed: readonly (Omit<AllowedPort, "from"> & { readonly from?: readonly SourceRange[] })[];
}

export type SourceRange = string | { readonly family: string; readonly range: string };

/** The one table that is ours; all others stay as they are. */
const TABLE = "inet portico";

/**
 * The rule set, to be loaded by `nft -f`, which takes a file as one transaction: the old rules apply until the new ones
 * do. A verdict of another table still counts, so packets that another table drops stay dropped (fail2ban), and
 * forwarded traffic (containers) does not pass through this one.
 */
export function renderFirewall(input: FirewallRules): string {
  const { ports, from, loopbackPorts, allowed, vrrpPeers = [], dhcpClient } = input;
  const rules = [
    'iif "lo" accept',
    ...(loopbackPorts.length === 0
      ? []
      : [`tcp dport ${set(loopbackPorts)} counter drop comment "on loopback only"`]),
    "ct state vmap { established : accept, related : accept, invalid : drop }",
    "",
    ...(ports.length === 0 ? [] : accepted(`tcp dport ${set(ports)} accept`, from)),
    ...allowed.flatMap((one) => accepted(`${one.protocol ?? "tcp"} dport ${one.port} accept`, one.from)),
    ...(vrrpPeers.length === 0 ? [] : [`ip saddr ${set(vrrpPeers)} ip protocol 112 accept`]),
    "",
    ...ICMP,
    ...(dhcpClient ? DHCP : []),
    "",
    'counter drop comment "everything else"',
  ];
  const body = rules.map((rule) => (rule === "" ? "" : `\t\t${rule}`)).join("\n");
  return `# What this host lets in (nft -f takes all of it, or nothing). Made by Portico; changes here are overwritten.

# The first line makes the table if there is none, so that the second one can delete it.
table ${TABLE}
delete table ${TABLE}

table ${TABLE} {
\tchain input {
\t\ttype filter hook input priority filter; policy drop;

${body}
\t}
}
`;
}

const set = (items: readonly (number | string)[]): string => `{ ${items.join(", ")} }`;

function accepted(accept: string, from: readonly SourceRange[] | undefined): string[] {
  if (from === undefined) return [accept];
  const sources = from.map((one) => (typeof one === "string" ? { family: familyOf(one), range: one } : one));
  const families = [...new Set(sources.map(({ family }) => family))].sort();
  return families.map((family) => {
    const ranges = sources.filter((source) => source.family === family).map(({ range }) => range);
    return `${family} saddr ${set(ranges)} ${accept}`;
  });
}

const familyOf = (range: string): string => (isIPv4(range.split("/")[0]!) ? "ip" : "ip6");

/**
 * Messages that IP needs: errors, path MTU discovery, and for IPv6 the discovery of neighbours and routers, accepted
 * only from the same link (hop limit 255), and reports about multicast groups (RFC 4890, 4.4). Echo helps to find
 * faults.
 */
const ICMP = [
  "icmp type { destination-unreachable, time-exceeded, parameter-problem, echo-request } accept",
  "icmpv6 type { destination-unreachable, packet-too-big, time-exceeded, parameter-problem, echo-request } accept",
  "ip6 hoplimit 255 icmpv6 type { nd-router-advert, nd-neighbor-solicit, nd-neighbor-advert } accept",
  "ip6 saddr fe80::/10 icmpv6 type { mld-listener-query, mld-listener-report, mld-listener-done, mld2-listener-report } accept",
];

// Responses to a broadcast or multicast are not part of an established connection.
const DHCP = ["udp sport 67 udp dport 68 accept", "ip6 saddr fe80::/10 udp sport 547 udp dport 546 accept"];

/** Problems of the accepted connections, by field. */
export function firewallProblems(input: FirewallInput): Problem[] {
  const { ports, from: fromPorts, loopbackPorts, allowed, vrrpPeers = [] } = input;
  const open = [
    ...ports.map((port, i) => [`ports[${i}]`, port, "tcp"] as const),
    ...allowed.map(({ port, protocol }, i) => [`allowed[${i}].port`, port, protocol ?? "tcp"] as const),
  ];
  return [
    ...[...open, ...loopbackPorts.map((port, i) => [`loopbackPorts[${i}]`, port] as const)].flatMap(
      ([path, port]) =>
        isPort(port)
          ? []
          : [
              problem("config.out-of-range", path, "is not a port", {
                received: port,
                allowed: "1 to 65535",
              }),
            ],
    ),
    ...open.flatMap(([path, port, protocol]) =>
      protocol === "tcp" && loopbackPorts.includes(port)
        ? [problem("firewall.loopback-port", path, "must be reachable on loopback only", { received: port })]
        : [],
    ),
    ...rangeProblems("from", fromPorts),
    ...allowed.flatMap(({ from }, i) => rangeProblems(`allowed[${i}].from`, from)),
    ...vrrpPeers.flatMap((peer, i) =>
      isIPv4(peer)
        ? []
        : [
            problem("config.bad-address", `vrrpPeers[${i}]`, "is not an IPv4 address", {
              received: peer,
              allowed: "the IPv4 address of the other host",
            }),
          ],
    ),
  ];
}

function rangeProblems(path: string, from: readonly string[] | undefined): Problem[] {
  if (from?.length === 0) {
    const fix = "List the addresses that may reach the port, or remove `from` to allow all addresses.";
    const more = { allowed: "at least one address or range", fix };
    return [problem("config.missing-field", path, "is empty: no client could reach the port", more)];
  }
  return (from ?? []).flatMap((range, j) =>
    isCidr(range) && !range.includes("%")
      ? unclearRange(`${path}[${j}]`, range)
      : [
          problem("config.bad-address", `${path}[${j}]`, "is neither an address nor a range", {
            received: range,
            allowed: "an IP address or a CIDR range such as 10.0.0.0/8",
          }),
        ],
  );
}

/** Entries that change nothing. Numbers that are no ports are left out: two that are not known yet may differ. */
export const noEffectProblems = (input: FirewallInput): Problem[] =>
  input.allowed.flatMap(({ port }, i) =>
    !isPort(port) || hasEffect(input, i)
      ? []
      : [
          problem("firewall.no-effect", `allowed[${i}]`, "has no effect: the port is open already", {
            received: port,
          }),
        ],
  );

/** Whether an entry decides who reaches its port: not if `ports` or an entry for everyone opens the port already. */
function hasEffect({ ports, allowed }: FirewallInput, i: number): boolean {
  const { port, protocol = "tcp", from } = allowed[i]!;
  if (protocol === "tcp" && ports.includes(port)) return false;
  return !allowed.some(
    (one, j) =>
      one.port === port &&
      (one.protocol ?? "tcp") === protocol &&
      one.from === undefined &&
      (from !== undefined || j > i),
  );
}

/** Name of the unit of a firewall. */
export const FIREWALL_UNIT = "portico-firewall.service";

/** `portico-firewall.service`: loads the rules before the network comes up, and removes only its own rules. */
export function firewallUnit(nft: string, ruleSet: string): UnitDocument {
  const load = { command: [nft, "-f", ruleSet] };
  return {
    Unit: {
      Description: "Packet filter of the Portico front end",
      DefaultDependencies: false,
      Wants: "network-pre.target",
      // The distribution's own rules flush everything when they start and when they stop.
      After: "nftables.service",
      PartOf: "nftables.service",
      Before: "network-pre.target shutdown.target",
      Conflicts: "shutdown.target",
      AssertFileIsExecutable: nft,
    },
    Service: {
      Type: "oneshot",
      RemainAfterExit: true,
      ExecStart: load,
      ExecReload: load,
      ExecStop: { command: [nft, `add table ${TABLE}; delete table ${TABLE}`] },
      CapabilityBoundingSet: "CAP_NET_ADMIN",
      NoNewPrivileges: true,
      ProtectSystem: "strict",
      ProtectHome: true,
      PrivateDevices: true,
      ProtectKernelTunables: true,
      ProtectKernelLogs: true,
      ProtectControlGroups: true,
      ProtectClock: true,
      ProtectHostname: true,
      RestrictAddressFamilies: "AF_NETLINK AF_UNIX",
      RestrictNamespaces: true,
      RestrictRealtime: true,
      RestrictSUIDSGID: true,
      LockPersonality: true,
      MemoryDenyWriteExecute: true,
      SystemCallArchitectures: "native",
      SystemCallFilter: "@system-service",
      UMask: "0077",
    },
    Install: { WantedBy: "sysinit.target nftables.service" },
  };
}

/** A drop-in for `nftables.service`: whenever it has loaded its rules, and so flushed ours, ours are loaded again. */
export function firewallDropIn(): UnitDocument {
  const again = {
    specifiers: "-/usr/bin/systemctl --no-block try-reload-or-restart portico-firewall.service",
  };
  return { Service: { ExecStartPost: again, ExecReload: again } };
}
