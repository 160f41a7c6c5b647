import type { UnitDocument } from "./systemdUnit.js";

/** The part of a host in a pair: the shared address, and the other host. */
export interface KeepalivedInput {
  /** Interface that gets the virtual address. */
  readonly interface: string;
  /** The host's own IPv4 address. */
  readonly address: string;
  /** The other host's. */
  readonly peer: string;
  readonly virtualAddress: string;
  /** Tells this pair from others (VRID), 1 to 255. */
  readonly virtualRouterId: number;
  /** The host with the lower priority gives the address up, if two hosts hold it at once. */
  readonly priority: number;
  /** Time between two advertisements, a multiple of 10 ms. */
  readonly advertisementMs: number;
}

/** `0` in it says that this host is ready; keepalived learns of a change at once (inotify). */
export const READY_FILE = "/run/portico-ready/state";

/**
 * keepalived.conf(5). A host that is not ready is in state FAULT: it gives up the address, and reports that to the
 * other host. Both begin as BACKUP with `nopreempt`, so an address that has moved stays where it is: each move cuts
 * connections.
 */
export function renderKeepalived(input: KeepalivedInput): string {
  const { address, peer, virtualAddress, virtualRouterId, priority, advertisementMs } = input;
  return `# Holds ${virtualAddress} on this host or on ${peer}. Made by Portico; changes here are overwritten.

global_defs {
    # Version 3 (RFC 5798) counts in hundredths of a second.
    vrrp_version 3
    # Neighbours that have missed the news learn it within a minute.
    vrrp_garp_master_refresh 60
}

track_file ready {
    file "${READY_FILE}"
    # Anything but 0 is a fault.
    weight 0
}

vrrp_instance portico {
    state BACKUP
    nopreempt
    interface ${input.interface}
    virtual_router_id ${virtualRouterId}
    priority ${priority}
    advert_int ${advertisementMs / 1000}
    unicast_src_ip ${address}
    # Nobody else can take the address.
    check_unicast_src
    unicast_peer {
        ${peer}
    }
    virtual_ipaddress {
        ${virtualAddress}/32 dev ${input.interface}
    }
    track_file {
        ready
    }
}
`;
}

/**
 * `portico-ready.service`: asks the proxy five times a second whether it is ready, and writes it down for keepalived. A
 * script of keepalived's own (`vrrp_script`) would run once a second at most, in a new process each time; this is one
 * shell that starts none. Two responses must be missing in a row.
 */
export function readinessUnit(health: { readonly address: string; readonly port: number }): UnitDocument {
  const command = ["/usr/bin/bash", "-c", READINESS_SCRIPT, "portico-ready"];
  return {
    Unit: {
      Description: "Whether the Portico front end is ready",
      // keepalived reads the file from its start.
      Before: "portico-address.service",
      StartLimitIntervalSec: 0,
    },
    Service: {
      Type: "notify",
      NotifyAccess: "all",
      ExecStart: { command: [...command, health.address, String(health.port), READY_FILE] },
      Restart: "always",
      RestartSec: "200ms",
      RuntimeDirectory: "portico-ready",
      // keepalived watches the directory, which must not be replaced by another one.
      RuntimeDirectoryPreserve: "restart",
      User: "portico-ready",
      DynamicUser: true,
      ...HARDENING,
      CapabilityBoundingSet: "",
      PrivateUsers: true,
      RestrictAddressFamilies: "AF_INET AF_INET6 AF_UNIX",
    },
    Install: { WantedBy: "multi-user.target" },
  };
}

/** Arguments: address, port, file. Only builtins of bash, except for one message to systemd. */
const READINESS_SCRIPT = [
  "trap '' PIPE",
  // A pipe that nothing is written to: a read from it waits.
  "exec 9<> <(:)",
  "ready() {" +
    ' local status=; { exec 3<> "/dev/tcp/$1/$2"; } 2> /dev/null || return 1;' +
    " printf 'GET /readyz HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' >&3 2> /dev/null;" +
    " read -r -t 1 -u 3 _ status _;" +
    " exec 3>&-;" +
    ' [ "$status" = 200 ]; }',
  // After a restart the last state counts until the first check: a restart must not move the address.
  '[ -e "$3" ] || echo 1 > "$3"',
  "systemd-notify --ready; missed=0 state= written=",
  "while :; do" +
    ' if ready "$1" "$2"; then missed=0 state=0; elif ((++missed >= 2)); then state=1; fi;' +
    ' if [ "$state" != "$written" ]; then echo "$state" > "$3"; written=$state; fi;' +
    " read -r -t 0.2 -u 9;" +
    " done",
].join("; ");

/** `portico-address.service`: keepalived with our configuration, beside the distribution's own keepalived.service. */
export function keepalivedUnit(program: string, configuration: string): UnitDocument {
  return {
    Unit: {
      Description: "Virtual address of the Portico front end",
      Wants: "network-online.target",
      Requires: "portico-ready.service",
      After: "network-online.target portico-ready.service",
      AssertFileIsExecutable: program,
      StartLimitIntervalSec: 0,
    },
    Service: {
      Type: "notify",
      // The daemon's child process reports readiness, too.
      NotifyAccess: "all",
      ExecStart: {
        command: [
          program,
          "--dont-fork",
          "--vrrp",
          `--use-file=${configuration}`,
          "--pid=/run/portico-address/keepalived.pid",
          "--vrrp_pid=/run/portico-address/vrrp.pid",
        ],
      },
      ExecReload: { command: ["/bin/kill", "-HUP", { variable: "MAINPID" }] },
      RuntimeDirectory: "portico-address",
      Restart: "always",
      // At its start keepalived removes an address that a killed keepalived has left.
      RestartSec: "200ms",
      // An advertisement that is late moves the address.
      Nice: -15,
      ...HARDENING,
      CapabilityBoundingSet: "CAP_NET_ADMIN CAP_NET_RAW CAP_NET_BROADCAST",
      RestrictAddressFamilies: "AF_INET AF_INET6 AF_NETLINK AF_PACKET AF_UNIX",
    },
    Install: { WantedBy: "multi-user.target" },
  };
}

const HARDENING = {
  NoNewPrivileges: true,
  ProtectSystem: "strict",
  ProtectHome: true,
  PrivateTmp: true,
  PrivateDevices: true,
  ProtectClock: true,
  ProtectKernelModules: true,
  ProtectKernelLogs: true,
  ProtectControlGroups: true,
  ProtectHostname: true,
  RestrictNamespaces: true,
  RestrictRealtime: true,
  RestrictSUIDSGID: true,
  LockPersonality: true,
  MemoryDenyWriteExecute: true,
  SystemCallArchitectures: "native",
  SystemCallFilter: "@system-service",
} as const;
