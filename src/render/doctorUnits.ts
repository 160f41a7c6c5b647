import type { UnitDocument, UnitSection } from "./systemdUnit.js";

/** The unit that checks a host every day; it fails if the check finds a problem, which is not a fault of the unit. */
export const DOCTOR_UNIT = "portico-doctor.service";
export const DOCTOR_TIMER = "portico-doctor.timer";

export interface DoctorUnitInput {
  readonly nodePath: string;
  readonly runtime: string;
  /** Unit that systemd starts when something is wrong. */
  readonly onFailure?: string;
}

/**
 * `portico-doctor.service`: problems are in the journal, and the unit is in `systemctl --failed` until a run finds no
 * problem. It runs as root, since it reads keys, rules and the application's files, and can write nowhere.
 */
export function doctorServiceUnit({ nodePath, runtime, onFailure }: DoctorUnitInput): UnitDocument {
  return {
    Unit: {
      Description: "Checks that the Portico reverse proxy is as deployed, and responds as it should",
      ...(onFailure === undefined ? {} : { OnFailure: onFailure }),
    },
    Service: {
      Type: "oneshot",
      ExecStart: { command: [nodePath, runtime, "doctor"] },
      // Longer than all its requests together, each of which has a deadline.
      TimeoutStartSec: 900,
      Nice: 10,
      ...HARDENING,
    },
  };
}

/** `portico-doctor.timer`: early in the morning, at another minute on each host. */
export function doctorTimerUnit(): UnitDocument {
  return {
    Unit: { Description: "Daily check that the Portico reverse proxy is as deployed" },
    Timer: { OnCalendar: "*-*-* 05:00", RandomizedDelaySec: "1h" },
    Install: { WantedBy: "timers.target" },
  };
}

/**
 * Left out are options that would hide what the check reads: other users' processes, homes, the kernel's settings and
 * its network.
 */
const HARDENING: UnitSection = {
  UMask: "0077",
  // Reads what belongs to others, becomes the application's user and ends what works as that user, asks the proxy at its
  // socket, and compares the rules in the kernel with those that it loads into an empty network namespace.
  CapabilityBoundingSet:
    "CAP_DAC_READ_SEARCH CAP_DAC_OVERRIDE CAP_SETUID CAP_SETGID CAP_SETPCAP CAP_KILL CAP_SYS_PTRACE CAP_NET_ADMIN CAP_SYS_ADMIN",
  NoNewPrivileges: true,
  ProtectSystem: "strict",
  ProtectHome: "read-only",
  PrivateTmp: true,
  PrivateDevices: true,
  DevicePolicy: "closed",
  ProtectClock: true,
  ProtectKernelTunables: true,
  ProtectKernelModules: true,
  ProtectKernelLogs: true,
  ProtectControlGroups: true,
  ProtectHostname: true,
  RestrictNamespaces: "net",
  RestrictRealtime: true,
  RestrictSUIDSGID: true,
  LockPersonality: true,
  KeyringMode: "private",
  RestrictAddressFamilies: "AF_INET AF_INET6 AF_UNIX AF_NETLINK",
  SystemCallArchitectures: "native",
  SystemCallFilter: "@system-service",
  SystemCallErrorNumber: "EPERM",
};
