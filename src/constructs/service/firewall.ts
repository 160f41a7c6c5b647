import { Aspects, Fn, Token } from "cdktf";
import { Construct, type IConstruct } from "constructs";
import { isLoopback } from "../../model/index.js";
import { Listener } from "../proxy/listener.js";
import { proxyOf } from "../proxy/proxyScope.js";
import { warn } from "../props/warn.js";
import { needProgram } from "../delivery/neededPrograms.js";
import { freeId } from "../props/constructIds.js";
import { DATABASE_PORT } from "../../model/host/host.js";
import { CIDR } from "../../model/schema/fields.js";
import {
  challengeOf,
  type ChallengeType,
  clientPort,
  formatProblem,
  parseConfig,
  type Problem,
  problem,
} from "../../model/index.js";
import { IPV4_PATTERN } from "../../model/text/textRule.js";
import {
  type AllowedPort,
  DEFAULT_HOST_PATHS,
  FIREWALL_UNIT,
  firewallDropIn,
  type FirewallInput,
  firewallProblems,
  type FirewallRules,
  firewallUnit,
  isProgramPath,
  NFT,
  noEffectProblems,
  renderFirewall,
  renderUnit,
  type SourceRange,
} from "../../render/index.js";
import { hostPathProblems } from "../props/checks.js";
import type { IHost } from "../host/host.js";
import { HostFile } from "../host/hostFile.js";
import { HOST } from "../props/instances.js";
import { late, type LateValue, latePort, lateText } from "../props/lateChecks.js";
import {
  choice,
  fields,
  flag,
  listOf,
  number,
  produced,
  type PropTable,
  refuseProps,
  required,
  text,
} from "../props/propTable.js";
import { SystemdUnit } from "../host/systemdUnit.js";
import { argument, checkAroundTokens, hasTokens, isKnown, renderAroundTokens } from "../props/tokens.js";

/**
 * A packet filter for connections to the host: the ports of the front end and of the SSH server are open. Only the
 * host itself can reach the ports of the daemons and the database, and all other ports.
 *
 * The rules are a separate nftables table, loaded in one transaction: existing connections continue, other tables
 * (containers, fail2ban) do not change, and stopping the unit removes this table only. Traffic to published container
 * ports is forwarded and does not pass through the table. The host needs the package `nftables`.
 */
export class Firewall extends Construct {
  /** The rule set. */
  readonly ruleSet: HostFile;
  /** `portico-firewall.service`, which loads the rule set before the network starts. */
  readonly unit: SystemdUnit;
  /** Makes systemd load the rules again after the distribution's `nftables.service` flushed the rules. */
  readonly dropIn: HostFile;
  /** @internal The host, and the connections that it accepts, as far as they are known by now. */
  readonly opened: () => { readonly host: IHost; readonly input: FirewallInput };

  constructor(scope: Construct, id: string, props: FirewallProps) {
    super(scope, freeId(scope, id));
    const at = this.node.path;
    refuseProps(this, props, FIREWALL_PROPS, (fit) => firewallPropProblems(at, fit));
    const { host, path = "/etc/portico/firewall.nft", nftPath = "/usr/sbin/nft" } = props;
    if (isLate(props))
      this.node.addValidation({ validate: () => ruleProblems(at, props).map(formatProblem) });
    warnOfClosedListeners(this, props);
    this.opened = () => ({ host, input: firewallInput(props) });
    const content = (): string => renderAroundTokens(firewallRules(props), renderFirewall);
    this.ruleSet = new HostFile(this, "RuleSet", { host, path, content, role: "firewall" });
    this.ruleSet.checkLate(() => lateFirewallChecks(this.node.path, firewallInput(props)));
    needProgram(host, { ...NFT, path: nftPath });
    this.unit = new SystemdUnit(this, "Unit", {
      host,
      directory: props.unitDirectory,
      name: FIREWALL_UNIT,
      unit: firewallUnit(nftPath, path),
    });
    this.dropIn = new HostFile(this, "DropIn", {
      host,
      path: `${props.unitDirectory ?? DEFAULT_HOST_PATHS.unitDirectory}/nftables.service.d/portico.conf`,
      content: renderUnit(firewallDropIn()),
      // With the role `unit`, a change would restart the distribution's rules.
      role: "firewall",
    });
  }
}

/** @internal */
export const firewallPropProblems = (at: string, fit: Partial<FirewallProps>): Problem[] => [
  ...(isLate(fit) ? [] : ruleProblems(at, fit)),
  ...hostPathProblems({ path: fit.path }, at),
  ...programProblems(fit.nftPath, at),
];

/** Whether the ports are known only when the app is synthesized. */
const isLate = ({ ports, loopbackPorts }: Partial<FirewallProps>): boolean =>
  typeof ports === "function" || typeof loopbackPorts === "function";

const ruleProblems = (at: string, props: Partial<FirewallProps>): Problem[] => [
  ...[
    ...checkAroundTokens(firewallInput(props), firewallProblems).problems,
    ...noEffectProblems(firewallInput(props)),
  ].map((p) => ({ ...p, path: `${at}.${p.path}` })),
  ...sshPortProblems(at, props),
];

function firewallInput(props: Partial<FirewallProps>): FirewallInput {
  const {
    host,
    ports = [],
    from,
    loopbackPorts = [DATABASE_PORT],
    allowed = [],
    vrrpPeers = [],
    dhcpClient = true,
  } = props;
  const rest = { loopbackPorts: now(loopbackPorts), vrrpPeers, dhcpClient };
  if (from === undefined) return { ports: now(ports), allowed, ...rest };
  const isSsh = (port: number): boolean => port === host?.sshPort;
  const ssh = now(ports)
    .filter((port) => isSsh(port))
    .map((port) => ({ port }));
  return { ports: now(ports).filter((port) => !isSsh(port)), from, allowed: [...allowed, ...ssh], ...rest };
}

function firewallRules(props: FirewallProps): FirewallRules {
  const input = firewallInput(props);
  const source = (range: string): SourceRange =>
    hasTokens(range)
      ? { range, family: Token.asString(Fn.conditional(isIpv6(argument(range)), "ip6", "ip")) }
      : range;
  return {
    ...input,
    from: input.from?.map(source),
    allowed: input.allowed.map((one) => ({ ...one, from: one.from?.map(source) })),
  };
}

const isIpv6 = (range: string): unknown => Fn.can(Fn.regex(":", range));

function lateFirewallChecks(
  at: string,
  { ports, from = [], loopbackPorts, allowed, vrrpPeers = [] }: FirewallInput,
): LateValue[] {
  const port = (path: string, value: number): LateValue[] => latePort(`${at}.${path}`, value);
  const open = (path: string, value: number, protocol?: string): LateValue[] => [
    ...port(path, value),
    ...(protocol === "udp" ? [] : lateLoopbackCheck(`${at}.${path}`, loopbackPorts, value)),
  ];
  const range = (path: string, value: string): LateValue[] =>
    lateText("config.bad-address", `${at}.${path}`, RANGE, value);
  return [
    ...ports.flatMap((value, i) => open(`ports[${i}]`, value)),
    ...from.flatMap((value, j) => range(`from[${j}]`, value)),
    ...loopbackPorts.flatMap((value, i) => port(`loopbackPorts[${i}]`, value)),
    ...vrrpPeers.flatMap((peer, i) => lateText("config.bad-address", `${at}.vrrpPeers[${i}]`, PEER, peer)),
    ...allowed.flatMap((rule, i) => [
      ...open(`allowed[${i}].port`, rule.port, rule.protocol),
      ...(rule.from ?? []).flatMap((value, j) => range(`allowed[${i}].from[${j}]`, value)),
    ]),
  ];
}

/** A value known only at apply must not open a port that only the host itself may reach either. */
function lateLoopbackCheck(path: string, loopbackPorts: readonly number[], value: number): LateValue[] {
  if (loopbackPorts.length === 0) return [];
  const allowed = "a port that other hosts may reach";
  const what = problem("firewall.loopback-port", path, "must be reachable on loopback only", { allowed });
  return late(what, { noneOf: [...loopbackPorts] }, value);
}

function programProblems(nftPath: string | undefined, at: string): Problem[] {
  if (nftPath === undefined || !isKnown(nftPath) || isProgramPath(nftPath)) return [];
  const allowed = "an absolute path of letters, digits and ./_-+@:,=";
  const more = { received: nftPath, allowed, fix: "Use the path that `command -v nft` prints on the host." };
  return [problem("config.bad-file-path", `${at}.nftPath`, "is not the path of a program", more)];
}

/** Listeners that the rules keep clients or authorities from; they may be added after the firewall. */
function warnOfClosedListeners(firewall: Firewall, props: FirewallProps): void {
  const { host, ports, allowed = [] } = props;
  let warned = false;
  const visit = (node: IConstruct): void => {
    if (node !== firewall || warned) return;
    warned = true;
    const open = [...now(ports), ...allowed.map(({ port }) => port)];
    const listeners = node.node.root.node
      .findAll()
      .filter((one) => one instanceof Listener)
      .filter((one) => listensOn(one, host) && isKnown([one.port, one.address, ...open]))
      .filter(({ address }) => !isLoopback(address));
    for (const { node: at, port } of listeners.filter((one) => !open.includes(one.port))) {
      warn(
        firewall,
        `Port ${port} of ${at.path} is not open: no client can reach it. Add the port to \`ports\` or \`allowed\`.`,
      );
    }
    for (const listener of listeners.filter((one) => open.includes(one.port))) {
      const from = restrictionOf(listener.port, props);
      const challenge = from && challengeOn(listener);
      if (challenge === undefined) continue;
      warn(
        firewall,
        `Port ${listener.port} of ${listener.node.path} is open to ${from!.join(", ")} only: a certificate authority with other addresses ` +
          `cannot validate the challenge \`${challenge}\`. Open the port to everyone, or use \`challenge: "dns-01"\`.`,
      );
    }
  };
  Aspects.of(firewall).add({ visit });
}

const listensOn = (listener: Listener, host: IHost): boolean =>
  (proxyOf(listener) as { readonly host?: IHost }).host === host;

/** The challenge by which authorities ask a listener, if they do. */
function challengeOn({ node, protocol, port }: Listener): ChallengeType | undefined {
  const parsed = parseConfig(proxyOf(node.scope!).config);
  if (!parsed.ok) return undefined;
  const { value: config } = parsed;
  const listener = config.listeners.find((one) => one.protocol === protocol && one.port === port);
  const asked = listener && ({ 80: "http-01", 443: "tls-alpn-01" } as const)[clientPort(listener)];
  return config.certificateAuthorities.map((one) => challengeOf(config, one)).find((one) => one === asked);
}

const EVERYONE = ["0.0.0.0/0", "::/0"];

/** The only addresses to which a port is open; undefined if it is open to everyone. */
function restrictionOf(
  port: number,
  { ports, from, allowed = [] }: FirewallProps,
): readonly string[] | undefined {
  const sources = [
    ...(now(ports).includes(port) ? [from] : []),
    ...allowed.filter((one) => one.port === port && one.protocol !== "udp").map((one) => one.from),
  ];
  const all = sources.flatMap((one) => one ?? EVERYONE);
  return all.some((range) => EVERYONE.includes(range)) ? undefined : all;
}

/** Rules that shut out the host's administrator, or the next delivery. */
function sshPortProblems(at: string, props: Partial<FirewallProps>): Problem[] {
  const { host, ports = [], allowed = [], acceptLockOut = false } = props;
  const sshPort = host?.sshPort;
  const tcp = allowed.filter(({ protocol }) => protocol !== "udp");
  const open = [...now(ports), ...tcp.map(({ port }) => port)];
  const closed = (port: number | undefined): port is number =>
    port !== undefined && isKnown([port, ...open]) && !open.includes(port);
  const lockedOut = (message: string, fix?: string): Problem[] => [
    problem("firewall.locks-out", `${at}.ports`, message, { received: now(ports), fix }),
  ];
  if (acceptLockOut) return [];
  if (closed(sshPort))
    return lockedOut(`leaves out the SSH server's port ${sshPort}: logins over the network would be blocked`);
  const delivery = host?.delivery.portOn(host);
  if (!closed(delivery)) return [];
  return lockedOut(
    `leaves out port ${delivery}, to which the host's \`delivery\` connects: the next one would be blocked`,
    `Set the host's \`sshPort\` to ${delivery}, or add the port to \`allowed\`.`,
  );
}

const PEER = { pattern: `^${IPV4_PATTERN}$`, allowed: "the IPv4 address of the other host" };
const RANGE = { ...CIDR, never: "%", allowed: "an IP address or a CIDR range such as 10.0.0.0/8" };

const now = (ports: Ports): readonly number[] => (typeof ports === "function" ? ports() : ports);

/** Ports, or a function that returns ports when the app is synthesized. */
export type Ports = readonly number[] | (() => readonly number[]);

/** Options of a packet filter. */
export interface FirewallProps {
  /** The host to protect. */
  readonly host: IHost;
  /**
   * Open TCP ports. If neither `ports` nor `allowed` contains the SSH server's port, the rules
   * are refused without `acceptLockOut` (`firewall.locks-out`).
   */
  readonly ports: Ports;
  /**
   * Addresses and ranges that may reach `ports`, such as those of a load balancer or a VPN. The SSH server's port stays
   * open to everyone; an entry of `allowed` for this port restricts it.
   * @default - everyone
   */
  readonly from?: readonly string[];
  /**
   * TCP ports for the host only. Opening such a port is refused (`firewall.loopback-port`).
   * @default [3306]
   */
  readonly loopbackPorts?: Ports;
  /**
   * Further ports to open. An entry for a port that is open already is refused (`firewall.no-effect`).
   * @default - none
   */
  readonly allowed?: readonly AllowedPort[];
  /**
   * Whether the SSH server's port may stay closed to the network, for a host with a separate console.
   * @default false
   */
  readonly acceptLockOut?: boolean;
  /**
   * IPv4 addresses of hosts that share a virtual address with this host: the filter accepts VRRP advertisements from
   * these hosts (IP protocol 112). A `FrontEndPair` sets this option.
   * @default - none
   */
  readonly vrrpPeers?: readonly string[];
  /**
   * Whether the filter accepts responses to a DHCP client, needed if the provider assigns the static address by DHCP.
   * @default true
   */
  readonly dhcpClient?: boolean;
  /**
   * File on the host for the rule set.
   * @default "/etc/portico/firewall.nft"
   */
  readonly path?: string;
  /**
   * Path of `nft` on the host.
   * @default "/usr/sbin/nft"
   */
  readonly nftPath?: string;
  /**
   * Directory of the unit on the host.
   * @default "/etc/systemd/system"
   */
  readonly unitDirectory?: string;
}

/** @internal */
export const FIREWALL_PROPS: PropTable<FirewallProps> = {
  host: required(HOST),
  ports: required(produced(listOf(number))),
  from: listOf(text),
  loopbackPorts: produced(listOf(number)),
  allowed: listOf(
    fields<AllowedPort>({ port: required(number), protocol: choice("tcp", "udp"), from: listOf(text) }),
  ),
  acceptLockOut: flag,
  vrrpPeers: listOf(text),
  dhcpClient: flag,
  path: text,
  nftPath: text,
  unitDirectory: text,
};
