import { Construct } from "constructs";
import { DATABASE_PORT } from "../model/host.js";
import { formatProblem, type Problem } from "../model/index.js";
import {
  type AllowedPort,
  DEFAULT_HOST_PATHS,
  firewallDropIn,
  type FirewallInput,
  firewallProblems,
  firewallUnit,
  renderFirewall,
  renderUnit,
} from "../render/index.js";
import { refuse } from "./checks.js";
import type { Host } from "./host.js";
import { HostFile } from "./hostFile.js";
import { SystemdUnit } from "./systemdUnit.js";
import { checkAroundTokens, renderAroundTokens } from "./tokens.js";

/**
 * A packet filter for what reaches the host itself (spec 8): the front end's ports and the SSH server's are open, the
 * daemons' and the database's are for the host alone, and so is everything that is not named.
 *
 * It is one nftables table of its own, loaded in one transaction: connections that exist go on, other tables
 * (containers, fail2ban) are left alone, and stopping the unit takes away this table only. What containers publish is
 * forwarded and does not pass it. Needs the package `nftables` on the host.
 */
export class Firewall extends Construct {
  /** The rule set. */
  readonly ruleSet: HostFile;
  /** `portico-firewall.service`, which loads it before the network comes up. */
  readonly unit: SystemdUnit;
  /** Has the rules loaded again whenever the distribution's `nftables.service` has flushed them. */
  readonly dropIn: HostFile;

  constructor(scope: Construct, id: string, props: FirewallProps) {
    super(scope, id);
    const { host, path = "/etc/portico/firewall.nft", nftPath = "/usr/sbin/nft" } = props;
    const problems = (): Problem[] =>
      checkAroundTokens(firewallInput(props), firewallProblems).problems.map((p) => ({
        ...p,
        path: `${this.node.path}.${p.path}`,
      }));
    const { ports, loopbackPorts } = props;
    const late = typeof ports === "function" || typeof loopbackPorts === "function";
    if (late) this.node.addValidation({ validate: () => problems().map(formatProblem) });
    else refuse(problems());
    const content = (): string => renderAroundTokens(firewallInput(props), renderFirewall);
    this.ruleSet = new HostFile(this, "RuleSet", { host, path, content, role: "firewall" });
    this.unit = new SystemdUnit(this, "Unit", {
      host,
      directory: props.unitDirectory,
      name: "portico-firewall.service",
      unit: firewallUnit(nftPath, path),
    });
    this.dropIn = new HostFile(this, "DropIn", {
      host,
      path: `${props.unitDirectory ?? DEFAULT_HOST_PATHS.unitDirectory}/nftables.service.d/portico.conf`,
      content: renderUnit(firewallDropIn()),
      // As a unit's, its change would restart the distribution's rules.
      role: "firewall",
    });
  }
}

function firewallInput(props: FirewallProps): FirewallInput {
  const { ports, loopbackPorts = [DATABASE_PORT], allowed = [], dhcpClient = true } = props;
  return { ports: now(ports), loopbackPorts: now(loopbackPorts), allowed, dhcpClient };
}

const now = (ports: Ports): readonly number[] => (typeof ports === "function" ? ports() : ports);

/** Ports, or a function that gives them when the app is synthesized. */
type Ports = readonly number[] | (() => readonly number[]);

export interface FirewallProps {
  /** The host to protect. */
  readonly host: Host;
  /**
   * TCP ports that are open to everybody. Without the SSH server's port in it or in `allowed`, nobody can log in over
   * the network any more.
   */
  readonly ports: Ports;
  /**
   * TCP ports that nobody but the host itself reaches. Opening one of them is refused (`firewall.loopback-port`).
   * @default [3306]
   */
  readonly loopbackPorts?: Ports;
  /**
   * Further ports to open.
   * @default - none
   */
  readonly allowed?: readonly AllowedPort[];
  /**
   * Whether answers to a DHCP client pass, as they must where the provider gives out the static address.
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
