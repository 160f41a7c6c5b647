import type { Construct } from "constructs";
import { isPort, isWildcard, type Problem, problem } from "../../model/index.js";
import { accepting } from "../../model/text/textRule.js";
import { INTERFACE_NAME, isProgramPath } from "../../render/index.js";
import { FRONT_END_PROPS, type FrontEndProps } from "../frontEnd/frontEndProps.js";
import { withMembers } from "../frontEnd/siteProps.js";
import { HOST_PROPS, type HostProps } from "../host/host.js";
import { accessOptionProblems } from "../proxy/access.js";
import { guardOptionProblems } from "../proxy/passwordGuard.js";
import { STATIC_NETWORK_PROPS, type StaticNetworkProps } from "../service/network.js";
import {
  type PathOf,
  choice,
  fields,
  listOf,
  number,
  type PropTable,
  refuseProps,
  required,
  text,
  without,
} from "../props/propTable.js";
import { isKnown } from "../props/tokens.js";

/** A host of a pair. The pair defines the names; a virtual IPv6 address is not supported. */
export interface PairHostProps extends Omit<
  HostProps,
  "virtualAddress" | "publicName" | "ipv6Address" | "ipv6Flags"
> {
  /**
   * Interface with the host's own address, by its kernel name; keepalived adds the virtual address to the interface.
   */
  readonly interface: string;
}

/** Options of a pair: two hosts, an address for both, and the options of a front end. */
export interface FrontEndPairProps<
  Upstreams extends object = object,
  Routes extends object = object,
  Settings extends Construct = Construct,
> extends Omit<FrontEndProps<Upstreams, Routes, Settings>, "host" | "network"> {
  /**
   * The two hosts, in one network, each with `Delivery.ssh` (`pair.no-ssh`). Addresses must be known at synthesis.
   */
  readonly hosts: readonly PairHostProps[];
  /**
   * IPv4 address for clients, on one of the two hosts at a time. A free address of the network of both hosts
   * (`host.bad-virtual-address`).
   */
  readonly virtualAddress: string;
  /**
   * A host to leave out, because the host is gone or does not respond: nothing connects to this host, and only the
   * other host changes. The files of this host stay in state; without this option, everything is delivered again. See
   * docs/host-gone.md.
   * @default - none; both are changed, one after the other
   */
  readonly without?: "first" | "second";
  /**
   * Domain name of the pair, in lower case. The domain name replaces the virtual address as server name.
   * @default - the virtual address
   */
  readonly publicName?: string;
  /**
   * Number of the pair in its network (VRID), 1 to 255.
   * @default 51
   */
  readonly virtualRouterId?: number;
  /**
   * Interval between advertisements of the host with the address, in milliseconds from 10 to 10000, a multiple of 10.
   * After somewhat more than three intervals without an advertisement, the other host takes over.
   * @default 200
   */
  readonly advertisementMs?: number;
  /**
   * Path of keepalived on the hosts.
   * @default "/usr/sbin/keepalived"
   */
  readonly keepalivedPath?: string;
  /**
   * TCP port, 1 to 65535, on both hosts' own addresses, for copying ACME certificates from the host with the virtual
   * address to the other host. Without ACME certificates the port is closed.
   * @default 9181
   */
  readonly copyPort?: number;
  /**
   * Writes each host's static address for systemd-networkd.
   * @default - the hosts' networks do not change
   */
  readonly network?: Omit<StaticNetworkProps, "host" | "interface" | "ipv6PrefixLength" | "ipv6Gateway">;
}

const PAIR_HOST_PROPS: PropTable<PairHostProps> = {
  ...without(HOST_PROPS, "virtualAddress", "publicName", "ipv6Address", "ipv6Flags"),
  interface: required(text),
};

const FRONT_END_PAIR_PROPS: PropTable<FrontEndPairProps> = {
  ...without(FRONT_END_PROPS, "host", "network"),
  hosts: required(listOf(fields(PAIR_HOST_PROPS))),
  virtualAddress: required(text),
  without: choice("first", "second"),
  publicName: text,
  virtualRouterId: number,
  advertisementMs: number,
  keepalivedPath: text,
  copyPort: number,
  network: fields(without(STATIC_NETWORK_PROPS, "host", "interface", "ipv6PrefixLength", "ipv6Gateway")),
};

/** @internal Refuses props from which no pair could be made. */
export function refusePair(construct: Construct, props: FrontEndPairProps): void {
  const at = (name: string): string => `${construct.node.path}.${name}`;
  refuseProps(construct, props, withMembers(props, FRONT_END_PAIR_PROPS), (fit) => [
    ...hostsProblems(fit, at),
    ...accessOptionProblems(at("access"), fit.access),
    ...guardOptionProblems(at("passwordGuard"), fit.passwordGuard),
    ...unknownProblems(fit, at),
    ...numberProblems(fit, at),
    ...listenProblems(fit, at),
    ...programProblems(fit, at),
  ]);
}

type PairFit = Partial<FrontEndPairProps>;
function hostsProblems({ hosts }: PairFit, at: PathOf): Problem[] {
  if (hosts === undefined) return [];
  if (hosts.length !== 2) {
    const more = { received: hosts.length, allowed: "two hosts" };
    const fix = "List two hosts. For one host use `FrontEnd`, for more than two a cluster.";
    return [problem("config.wrong-type", at("hosts"), "is not a list of two hosts", { ...more, fix })];
  }
  const [first, second] = hosts as readonly [PairHostProps, PairHostProps];
  const same = first.address === second.address;
  return [
    ...(same
      ? [
          problem("config.duplicate-name", at("hosts[1].address"), "is the address of the first host", {
            received: second.address,
            allowed: "the address of another host",
            fix: "Use another host: if both are on one machine, both fail with it.",
          }),
        ]
      : []),
    ...hosts.flatMap((host, i) => hostProblems(host, (name) => at(`hosts[${i}].${name}`))),
  ];
}

function hostProblems(host: PairHostProps, at: PathOf): Problem[] {
  const problems: Problem[] = [];
  if (isKnown(host.interface) && !accepting(INTERFACE_NAME)(host.interface)) {
    const { allowed } = INTERFACE_NAME;
    const more = { received: host.interface, allowed };
    problems.push(problem("network.bad-interface", at("interface"), "is not the name of an interface", more));
  }
  if (host.delivery?.needsActivation !== true) {
    problems.push(problem("pair.no-ssh", at("delivery"), "is not a delivery over ssh"));
  }
  return problems;
}

/** keepalived's configuration and units are made from them. */
function unknownProblems({ hosts = [], ...props }: PairFit, at: PathOf): Problem[] {
  const values = [
    ["virtualAddress", props.virtualAddress],
    ["virtualRouterId", props.virtualRouterId],
    ["advertisementMs", props.advertisementMs],
    ["keepalivedPath", props.keepalivedPath],
    ["copyPort", props.copyPort],
    ...hosts.flatMap((host, i) => [
      [`hosts[${i}].address`, host.address],
      [`hosts[${i}].interface`, host.interface],
    ]),
  ] as const;
  return values.flatMap(([name, value]) => {
    if (value === undefined || isKnown(value)) return [];
    const fix = "Use a literal: keepalived's configuration, or a unit, is made from it.";
    return [problem("config.wrong-type", at(name!), "is not known at synthesis", { fix })];
  });
}

function numberProblems(
  { virtualRouterId = 51, advertisementMs = 200, copyPort = 9181 }: PairFit,
  at: PathOf,
): Problem[] {
  const id = Number.isInteger(virtualRouterId) && virtualRouterId >= 1 && virtualRouterId <= 255;
  const time = advertisementMs % 10 === 0 && advertisementMs >= 10 && advertisementMs <= 10_000;
  const bad = (name: string, received: number, allowed: string): Problem =>
    problem("config.out-of-range", at(name), "is out of range", { received, allowed });
  return [
    ...(id || !isKnown(virtualRouterId) ? [] : [bad("virtualRouterId", virtualRouterId, "1 to 255")]),
    ...(isPort(copyPort) || !isKnown(copyPort) ? [] : [bad("copyPort", copyPort, "1 to 65535")]),
    ...(time || !isKnown(advertisementMs)
      ? []
      : [bad("advertisementMs", advertisementMs, "10 to 10000 milliseconds, a multiple of 10")]),
  ];
}

/** The host that waits does not have the virtual address yet. */
function listenProblems({ mode }: PairFit, at: PathOf): Problem[] {
  if (mode === undefined || isWildcard(mode.address)) return [];
  const fix =
    "Remove `address` from the mode: a host can listen on the virtual address only while it has this address.";
  const more = { received: mode.address, allowed: "0.0.0.0 (all addresses)", fix };
  return [problem("config.bad-address", at("mode"), "listens on a single address", more)];
}

function programProblems({ keepalivedPath: path }: PairFit, at: PathOf): Problem[] {
  if (path === undefined || !isKnown(path) || isProgramPath(path)) return [];
  const allowed = "an absolute path of letters, digits and ./_-+@:,=";
  const more = {
    received: path,
    allowed,
    fix: "Use the path that `command -v keepalived` prints on the host.",
  };
  return [problem("config.bad-file-path", at("keepalivedPath"), "is not the path of a program", more)];
}
