import { type Problem, problem } from "../model/index.js";
import { accepting, type DescribedRule } from "../model/text/textRule.js";
import {
  type UnitCommand,
  type UnitDocument,
  type UnitSection,
  startVariantProblems,
} from "./systemdUnit.js";

/** Options of the unit of a daemon. */
export interface Daemon {
  /** The program's absolute path, then its arguments; no shell. */
  readonly command: UnitCommand["command"];
  /**
   * When systemd considers the daemon started (systemd.service(5)): `exec` if the program is the daemon and stays in
   * the foreground, `forking` if the program is a start script that returns once the daemon runs, `notify` if the
   * daemon notifies systemd.
   */
  readonly type: "exec" | "forking" | "notify";
  /** User of the daemon. Must exist. */
  readonly user: string;
  /**
   * Group of the daemon.
   * @default - the user's own
   */
  readonly group?: string;
  /**
   * Command that stops the daemon, if a signal is not enough.
   * @default - SIGTERM to all its processes
   */
  readonly stopCommand?: UnitCommand["command"];
  /**
   * File with the number of the main process; for `forking`, if systemd cannot guess the process.
   * @default - none
   */
  readonly pidFile?: string;
  /**
   * Working directory of the daemon. Must exist.
   * @default "/"
   */
  readonly workingDirectory?: string;
  /**
   * Environment variables, which everyone on the host can read. A name that looks like a secret is refused
   * (`unit.secret-in-environment`).
   * @default - none
   */
  readonly environment?: Readonly<Record<string, string>>;
  /**
   * File with further environment variables, one `NAME=value` a line: the place for secrets. systemd reads the file
   * as root, so mode 0600 is enough; without the file the daemon does not start.
   * @default - none
   */
  readonly environmentFile?: string;
  /**
   * When systemd restarts the daemon: after a failure, after every end, or never; each time after 5 s, without limit.
   * @default "on-failure"
   */
  readonly restart?: "on-failure" | "always" | "no";
  /**
   * Time limit of a start, in seconds, 1 to 86400; then the start has failed.
   * @default 90
   */
  readonly startTimeoutSeconds?: number;
  /**
   * Time limit of a stop, in seconds, 1 to 86400; then the daemon is killed.
   * @default 90
   */
  readonly stopTimeoutSeconds?: number;
  /**
   * Whether to remove rights that such daemons do not need: `/usr`, `/boot` and `/etc` are read-only, kernel and
   * clock are inaccessible, set-uid programs (`sudo`, a local `sendmail`) grant no privileges. Data, devices, homes,
   * network and sub-processes do not change. `false` disables all restrictions.
   * @default true
   */
  readonly hardening?: boolean;
  /**
   * Directories in `/usr`, `/boot` or `/etc` that the daemon may write to.
   * @default - none
   */
  readonly writableDirectories?: readonly string[];
  /**
   * Further directives of the `[Service]` section, with priority over the directives of the other options.
   * @default - none
   */
  readonly directives?: UnitSection;
}

/** The input of a daemon's unit besides the daemon. */
export interface DaemonUnitInput {
  readonly daemon: Daemon;
  readonly description: string;
  /** Units that start before it and stop after it. */
  readonly after: readonly string[];
  /** Units that start after it and stop before it. */
  readonly before: readonly string[];
}

/**
 * A unit that starts in its place (service 2.6). It wants the units before it, but does not require them: if a daemon
 * fails, the others continue, and also start at boot.
 */
export function daemonUnit(input: DaemonUnitInput): UnitDocument {
  const { daemon, after, before } = input;
  return {
    Unit: {
      Description: input.description,
      ...(after.length === 0 ? {} : { Wants: after.join(" ") }),
      After: ["network.target", ...after].join(" "),
      ...(before.length === 0 ? {} : { Before: before.join(" ") }),
    },
    Service: {
      Type: daemon.type,
      User: daemon.user,
      ...given("Group", daemon.group),
      ...given("WorkingDirectory", daemon.workingDirectory),
      ...environment(daemon.environment),
      ...given("EnvironmentFile", daemon.environmentFile),
      ExecStart: { command: daemon.command },
      ...(daemon.stopCommand === undefined ? {} : { ExecStop: { command: daemon.stopCommand } }),
      ...given("PIDFile", daemon.pidFile),
      Restart: daemon.restart ?? "on-failure",
      // Slower than systemd's limit of five starts in ten seconds, after which it would give up.
      RestartSec: 5,
      TimeoutStartSec: daemon.startTimeoutSeconds ?? 90,
      TimeoutStopSec: daemon.stopTimeoutSeconds ?? 90,
      ...(daemon.hardening === false ? {} : HARDENING),
      ...writable(daemon.writableDirectories),
      ...daemon.directives,
    },
    Install: { WantedBy: "multi-user.target" },
  };
}

const given = (directive: string, value: string | undefined): UnitSection =>
  value === undefined ? {} : { [directive]: value };

/**
 * Not here, because some application needs it: PrivateTmp (daemons that meet in /tmp), ProtectHome (data in homes),
 * PrivateDevices (FUSE, GPUs), RestrictNamespaces (sandboxed converters), MemoryDenyWriteExecute (JITs), filters of
 * system calls and address families.
 */
const HARDENING: UnitSection = {
  NoNewPrivileges: true,
  ProtectSystem: "full",
  ProtectClock: true,
  ProtectControlGroups: true,
  ProtectHostname: true,
  ProtectKernelLogs: true,
  ProtectKernelModules: true,
  ProtectKernelTunables: true,
  RestrictRealtime: true,
  RestrictSUIDSGID: true,
  LockPersonality: true,
};

function environment(variables: Readonly<Record<string, string>> = {}): UnitSection {
  const assignments = Object.entries(variables).map(([name, value]) => quote(`${name}=${value}`));
  return assignments.length === 0 ? {} : { Environment: assignments };
}

const writable = (directories: readonly string[] = []): UnitSection =>
  directories.length === 0 ? {} : { ReadWritePaths: directories.map(quote) };

/** A word of a list that systemd splits at white space; `$` means nothing there. */
const quote = (text: string): string => `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;

/** Longest time that a daemon may take to start or to stop: a day. */
export const DAEMON_SECONDS_MAX = 86_400;

const SECRET = /pass(?:word|wd|phrase)|secret|token|credential|(?:api|private|access|encryption)_?key/i;

/** Problems of a daemon, by field; those of its commands and directives are the unit's. */
export function daemonProblems(daemon: Daemon): Problem[] {
  const { user, group, environment: variables = {}, writableDirectories = [] } = daemon;
  const seconds = (path: string, value: number | undefined): Problem[] =>
    value === undefined || (Number.isInteger(value) && value >= 1 && value <= DAEMON_SECONDS_MAX)
      ? []
      : [
          problem("config.out-of-range", path, "is out of range", {
            received: value,
            allowed: "1 to 86400 seconds",
          }),
        ];
  return [
    ...accountProblems("user", user),
    ...accountProblems("group", group),
    ...pathProblems("workingDirectory", daemon.workingDirectory),
    ...pathProblems("environmentFile", daemon.environmentFile),
    ...pathProblems("pidFile", daemon.pidFile),
    ...writableDirectories.flatMap((path, i) => pathProblems(`writableDirectories[${i}]`, path)),
    ...Object.entries(variables).flatMap(([name, value]) => variableProblems(name, value)),
    ...seconds("startTimeoutSeconds", daemon.startTimeoutSeconds),
    ...seconds("stopTimeoutSeconds", daemon.stopTimeoutSeconds),
  ];
}

/** User or group (useradd(8)). */
export const ACCOUNT: DescribedRule = {
  pattern: "^[A-Za-z_][0-9A-Za-z_-]{0,30}$",
  allowed: "an account name of up to 31 letters, digits, `_` and `-` that begins with a letter or `_`",
};

export function accountProblems(path: string, received: string | undefined): Problem[] {
  if (received === undefined || accepting(ACCOUNT)(received)) return [];
  const { allowed } = ACCOUNT;
  return [problem("unit.bad-value", path, `is not ${allowed}`, { received, allowed })];
}

/** systemd reads `-`, `~` and patterns in paths as more than a path; none of them is needed. */
export const DAEMON_PATH: DescribedRule = {
  pattern: "^/[0-9A-Za-z_./+@:,= -]*$",
  never: "/\\.\\.?(?:/|$)| $",
  allowed: "an absolute path of letters, digits, spaces and ./_-+@:,=",
};

function pathProblems(at: string, path: string | undefined): Problem[] {
  if (path === undefined || accepting(DAEMON_PATH)(path)) return [];
  const { allowed } = DAEMON_PATH;
  return [
    problem("config.bad-file-path", at, "is not a path that fits into a unit", { received: path, allowed }),
  ];
}

function variableProblems(name: string, value: unknown): Problem[] {
  const path = `environment.${name}`;
  if (typeof value !== "string" && typeof value !== "number") {
    return [
      problem("unit.bad-value", path, "is neither a string nor a number", {
        received: value,
        allowed: "a string or a number",
        fix: "Use a string or a number.",
      }),
    ];
  }
  if (!/^[A-Za-z_]\w*$/.test(name)) {
    const allowed = "a name of letters, digits and `_` that does not begin with a digit";
    return [problem("unit.bad-value", path, "is not the name of a variable", { received: name, allowed })];
  }
  // The value is not shown: it may be the secret that the name promises.
  if (SECRET.test(name))
    return [
      problem("unit.secret-in-environment", path, "looks like the name of a secret", {
        allowed: "variables whose values every user of the host may read",
      }),
    ];
  // Control characters are found in the unit.
  return startVariantProblems([String(value)], path);
}
