import { type Problem, problem } from "../model/index.js";
import { quote, refusal } from "./shell.js";

/**
 * Requirements of a host, as shell scripts that a delivery runs before it sends anything. They end with status 1 and a
 * problem as text, or do nothing.
 */

/** The oldest systemd that does all that the units ask for: the one of Ubuntu 22.04. */
export const SYSTEMD_MIN = 249;

/** Processors by the names that `uname -m` has for them. */
export type Machine = "x86_64" | "aarch64";

/** Refuses a host without systemd, or with an old one. */
export function systemdScript(): string {
  const none = problem("host.no-systemd", "host", "does not run systemd", {
    fix: "Deploy to a host that systemd has booted: Debian 12, Ubuntu 22.04 or later.",
  });
  const old = problem("host.old-systemd", "host", "has a systemd that is too old", {
    received: "%s",
    allowed: `systemd ${SYSTEMD_MIN} or later`,
  });
  return `[ -d /run/systemd/system ] || ${refusal(none)}
version=$(systemctl --version | sed -n '1s/^systemd \\([0-9]*\\).*/\\1/p')
[ "$version" -ge ${SYSTEMD_MIN} ] || ${refusal(old, '"$version"')}
`;
}

/** Refuses a host whose processor a delivered Node does not support. */
export function machineScript(machine: Machine): string {
  const other = problem(
    "host.other-processor",
    "host",
    "has a processor that the delivered Node does not support",
    {
      received: "%s",
      allowed: machine,
    },
  );
  return `[ "$(uname -m)" = ${machine} ] || ${refusal(other, '"$(uname -m)"')}`;
}

/** A program of the host's distribution. */
export interface NeededProgram {
  readonly name: string;
  readonly path: string;
  /** The package that contains it. */
  readonly from: string;
}

/** Refuses a host without a program. */
export function programScript({ path, ...program }: NeededProgram): string {
  return `[ -x ${quote(path)} ] || ${refusal(missingProgram(program))}\n`;
}

export function missingProgram({ name, from }: Omit<NeededProgram, "path">): Problem {
  const fix = `Install the package on the host: \`apt-get install ${from}\`. Then apply again.`;
  return problem("host.no-program", "host", `does not have the program \`${name}\``, { fix });
}

/** Loads the rules of a firewall. */
export const NFT = { name: "nft", from: "nftables" } as const;

/** Holds the address that the hosts of a pair share. */
export const KEEPALIVED = { name: "keepalived", from: "keepalived" } as const;

/** Bans addresses by the lines of logs. */
export const FAIL2BAN = { name: "fail2ban-client", from: "fail2ban" } as const;

/** The same, by scenarios that its users share. */
export const CROWDSEC = { name: "crowdsec", from: "crowdsec" } as const;

/** Refuses a user without root's rights. */
export function rootScript(sudo: boolean): string {
  const path = "delivery.user";
  const none = sudo
    ? problem("delivery.no-root", path, "may not use sudo without a password")
    : problem("delivery.no-root", path, "is not root, and the delivery does not use sudo");
  return `${sudo ? "sudo -n true 2> /dev/null" : '[ "$(id -u)" -eq 0 ]'} || ${refusal(none)}`;
}
