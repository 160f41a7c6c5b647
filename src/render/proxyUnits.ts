import { baseName, pathName } from "../model/host/credentialName.js";
import { bracketed, CERTIFICATE_STORE, isWildcard, type ListenerInput } from "../model/index.js";
import type { TextRule } from "../model/text/textRule.js";
import type { UnitCommand, UnitDocument, UnitSection } from "./systemdUnit.js";

/** The input of the proxy's units. */
export interface ProxyUnitsInput {
  readonly nodePath: string;
  readonly runtime: string;
  readonly config: string;
  /**
   * Directory of the log files.
   * @default - there are no log files
   */
  readonly logDirectory?: string;
  readonly listeners: readonly Pick<ListenerInput, "address" | "port">[];
  /** Private keys, certificates and Diffie-Hellman parameters, and the files for requests to an authority. */
  readonly tlsFiles: readonly string[];
  /**
   * Whether the proxy gets certificates by ACME: then it keeps them, and the keys, below /var/lib.
   * @default false
   */
  readonly acme?: boolean;
  /**
   * The last segment of a TLS file's path, for paths that are not known yet.
   * @default - what follows the last slash
   */
  readonly baseNameOf?: (path: string) => string;
  /**
   * An address as it is written before `:PORT`, for addresses that are not known yet.
   * @default - an IPv6 address gets brackets
   */
  readonly hostOf?: (address: string) => string;
  /** Directories that files are served from. */
  readonly servedDirectories: readonly string[];
  /** Groups of the host that its user is in. */
  readonly groups?: readonly string[];
  /** Time from SIGTERM until the remaining processes are killed. */
  readonly stopTimeoutSeconds: number;
  readonly openFilesMax: number;
  /** Most memory of all its processes, as systemd writes it. */
  readonly memoryMax: string;
}

/**
 * `portico.service`: an unprivileged user that exists only while the service runs, and as few rights as possible.
 *
 * TLS files are passed as credentials: systemd reads them as root when the service starts, and the proxy finds them in
 * `$CREDENTIALS_DIRECTORY` by their base name. The config keeps the paths on the host; the proxy prefers a credential
 * of the same base name. Files renewed since then are handed over by a reload: `portico reload`, run as root (`+`),
 * copies all of them as one set into a directory that only root can write to, makes the proxy load them, and withdraws
 * the copies if they are refused. They are in memory (`/run`), readable for the service's user alone, until it stops.
 *
 * A reload ends when the new configuration serves, and fails if it was refused; `Type=notify` does the same for a
 * start. Restarts have no limit: if systemd gave up, the sockets would refuse connections, and a host should recover
 * automatically once the cause is fixed. (systemd counts and delays restarts only from version 254 on.)
 */
export function proxyServiceUnit(input: ProxyUnitsInput): UnitDocument {
  const { nodePath, runtime, config, listeners } = input;
  return {
    Unit: {
      Description: "Portico reverse proxy",
      Requires: "portico.socket",
      After: "network.target portico.socket",
      StartLimitIntervalSec: 0,
    },
    Service: {
      Type: "notify",
      // systemd-notify reports for the master, which after an upgrade is not the process that systemd started.
      NotifyAccess: "all",
      ...credentials(input),
      ExecStart: { command: [nodePath, runtime, "serve", config] },
      ExecReload: reloadCommand(input),
      // The master stops its workers itself; only processes that remain after the timeout are killed.
      KillMode: "mixed",
      TimeoutStopSec: input.stopTimeoutSeconds,
      Restart: "on-failure",
      RestartSec: 2,
      // Read by the master, whose limits of clients follow from it. No MemoryHigh=: below the limit the kernel takes
      // back the page cache of served files, and throttling the processes would not help. A percentage is written as it
      // is: systemd expands nothing here.
      MemoryMax: { specifiers: input.memoryMax },
      // A worker that the kernel kills for want of memory is replaced by the master.
      OOMPolicy: "continue",
      LimitNOFILE: input.openFilesMax,
      RuntimeDirectory: "portico",
      RuntimeDirectoryMode: "0700",
      // Keeps pauses by command over a crash and restart of the service.
      RuntimeDirectoryPreserve: "restart",
      ...logs(input.logDirectory),
      ...(input.acme === true ? CERTIFICATE_DIRECTORY : {}),
      ...hardening(input.servedDirectories),
      ...(input.groups === undefined ? {} : { SupplementaryGroups: input.groups.join(" ") }),
    },
    Install:
      listeners.length === 0
        ? { WantedBy: "multi-user.target" }
        : { WantedBy: "multi-user.target", Also: "portico.socket" },
  };
}

/** `portico.socket`: ports below 1024 without privileges, and connections that wait while the proxy restarts. */
export function proxySocketUnit({ listeners, hostOf = bracketed }: ProxyUnitsInput): UnitDocument {
  const named = listeners.some(({ address }) => !isWildcard(address));
  return {
    Unit: { Description: "Sockets of the Portico reverse proxy" },
    Socket: {
      ListenStream: listeners.map(({ address, port }) => `${hostOf(address)}:${port}`),
      // An IPv6 listener must not take the connections of an IPv4 one on the same port.
      BindIPv6Only: "ipv6-only",
      Backlog: 4096,
      NoDelay: true,
      // A single address may come up after the socket unit.
      ...(named ? { FreeBind: true } : {}),
    },
    Install: { WantedBy: "sockets.target" },
  };
}

/**
 * `portico-certificates.path`: watches certificates, keys and secrets that something on the host changes. The proxy itself may
 * not read them, and systemd passes credentials only when a service starts.
 *
 * @param paths the files, and their directories: systemd does not notice a link that is replaced, as certbot's are
 */
export function renewalPathUnit(paths: readonly string[]): UnitDocument {
  return {
    Unit: { Description: "Watches the certificates and secrets of the Portico reverse proxy" },
    Path: { PathChanged: paths },
    Install: { WantedBy: "multi-user.target" },
  };
}

/**
 * `portico-certificates.service`: has the proxy load them, if it runs; the proxy refuses an invalid set.
 *
 * It does not wait for that. While it runs, systemd forgets further changes; so it ends before the reload has read
 * anything, and whatever changes from then on starts it again.
 */
export function renewalServiceUnit(): UnitDocument {
  return {
    Unit: {
      Description: "Passes changed certificates and secrets to the Portico reverse proxy",
      // However often files change.
      StartLimitIntervalSec: 0,
    },
    Service: {
      Type: "oneshot",
      // Key and certificate change one after the other.
      ExecStartPre: { command: ["/bin/sleep", "5"] },
      ExecStart: { command: ["/bin/systemctl", "--no-block", "try-reload-or-restart", "portico.service"] },
    },
  };
}

/** Not `portico`, which is root's: systemd would give it to the service's user. */
export const CERTIFICATE_DIRECTORY: UnitSection = {
  StateDirectory: CERTIFICATE_STORE.replace("/var/lib/", ""),
  StateDirectoryMode: "0700",
};

/** The directory in which a reload hands over renewed credentials. */
const HANDED_OVER = "/run/portico-credentials";

function credentials(input: ProxyUnitsInput): UnitSection {
  if (input.tlsFiles.length === 0) return {};
  const forget = { command: ["/bin/rm", "-rf", HANDED_OVER], privileged: true };
  return {
    LoadCredential: credentialNames(input),
    Environment: `PORTICO_CREDENTIALS=${HANDED_OVER}`,
    // Credentials that systemd read at the start are newer than those of an earlier reload.
    ExecStartPre: forget,
    ExecStopPost: forget,
  };
}

/**
 * Whether a reload brings a running proxy from one `portico.service` to another: only the files that are handed over differ.
 * systemd takes the command of the reload from the new one.
 */
export const isReloadEnough = (before: string, after: string): boolean =>
  withoutCredentials(before) === withoutCredentials(after);

const withoutCredentials = (unit: string): string =>
  unit.replaceAll(/^(?:LoadCredential|ExecReload)=.*\n/gm, "");

function reloadCommand(input: ProxyUnitsInput): UnitCommand {
  const reload = [input.nodePath, input.runtime, "reload"];
  if (input.tlsFiles.length === 0) return { command: reload };
  const files = credentialNames(input).flatMap((file) => ["--credential", file]);
  const to = ["--credential-directory", HANDED_OVER, "--pid", { variable: "MAINPID" }];
  return { command: [...reload, ...files, ...to], privileged: true };
}

function credentialNames({ tlsFiles, baseNameOf = baseName }: ProxyUnitsInput): string[] {
  const names = namesOf(tlsFiles, baseNameOf);
  return tlsFiles.map((file, i) => `${names[i]}:${file}`);
}

/** The base name of each file, or its whole path where another file has the same base name. */
function namesOf(files: readonly string[], baseNameOf: (path: string) => string): string[] {
  const names = files.map(baseNameOf);
  return files.map((file, i) => {
    const shared = files.some((other, j) => other !== file && names[j] === names[i]);
    return shared ? pathName(file) : names[i]!;
  });
}

/**
 * Paths of the log directory and the TLS files. systemd splits lists of directories at spaces and colons, so the rest
 * would become writable too; and it ends a credential's name at the first colon.
 */
export const UNIT_PATH: TextRule & { readonly allowed: string } = {
  pattern: "^/[0-9A-Za-z_./@+,=~%-]*$",
  allowed: "an absolute path of letters, digits and ./_-+@,=~%",
};

/** Less than 128 MiB is too little for a worker that has clients. */
export const UNIT_MEMORY: TextRule & { readonly allowed: string } = {
  pattern:
    "^(?:(?:12[89]|1[3-9][0-9]|[2-9][0-9]{2}|[1-9][0-9]{3,6})M|[1-9][0-9]{0,3}G|(?:[1-9][0-9]?|100)%|infinity)$",
  allowed: "`128M` or more, `1G` or more, `1%` to `100%` of the host's memory, or `infinity`",
};

/** Pairs of different TLS files that would have the same credential name: only one of each could be handed over. */
export function clashingCredentials(files: readonly string[]): [string, string][] {
  const names = namesOf(files, baseName);
  return files.flatMap((file, i) => {
    const other = files.slice(0, i).find((f, j) => f !== file && names[j] === names[i]);
    return other === undefined ? [] : [[other, file] as [string, string]];
  });
}

/** systemd makes and owns directories below /var/log; any other must exist and be writable. */
function logs(directory: string | undefined): UnitSection {
  if (directory === undefined) return {};
  const below = /^\/var\/log\/(.+)/.exec(directory)?.[1];
  return below === undefined
    ? { ReadWritePaths: directory }
    : { LogsDirectory: below, LogsDirectoryMode: "0750" };
}

/** No MemoryDenyWriteExecute: the JIT of Node writes the code it runs. */
export function hardening(servedDirectories: readonly string[]): UnitSection {
  // A directory that is not known yet may be in a home.
  const inHome = servedDirectories.some(
    (directory) => !directory.startsWith("/") || /^\/(?:home|root|run\/user)(?:\/|$)/.test(directory),
  );
  return {
    DynamicUser: true,
    User: "portico",
    // Logs are 0640.
    UMask: "0027",
    CapabilityBoundingSet: "",
    AmbientCapabilities: "",
    NoNewPrivileges: true,
    ProtectSystem: "strict",
    ProtectHome: inHome ? "read-only" : true,
    PrivateTmp: true,
    PrivateDevices: true,
    DevicePolicy: "closed",
    PrivateUsers: true,
    ProtectClock: true,
    ProtectKernelTunables: true,
    ProtectKernelModules: true,
    ProtectKernelLogs: true,
    ProtectControlGroups: true,
    ProtectHostname: true,
    ProtectProc: "invisible",
    ProcSubset: "pid",
    RestrictNamespaces: true,
    RestrictRealtime: true,
    RestrictSUIDSGID: true,
    RemoveIPC: true,
    LockPersonality: true,
    KeyringMode: "private",
    RestrictAddressFamilies: "AF_INET AF_INET6 AF_UNIX",
    SystemCallArchitectures: "native",
    SystemCallFilter: ["@system-service", "~@privileged @resources"],
    // A call that a later Node tries is refused, rather than the end of the process.
    SystemCallErrorNumber: "EPERM",
  };
}
