import type { ListenerInput } from "../model/index.js";
import type { UnitDocument, UnitSection } from "./systemdUnit.js";

/** What the units of the proxy depend on. */
export interface ProxyUnitsInput {
  readonly nodePath: string;
  readonly runtime: string;
  readonly config: string;
  readonly logDirectory: string;
  readonly listeners: readonly Pick<ListenerInput, "address" | "port">[];
  /** Private keys, certificates and Diffie-Hellman parameters. */
  readonly tlsFiles: readonly string[];
  /** Directories that files are served from. */
  readonly servedDirectories: readonly string[];
  readonly stopTimeoutSeconds: number;
  readonly openFilesMax: number;
}

/**
 * `portico.service`: an unprivileged user that exists only while the service runs, and nothing it could do harm with.
 *
 * TLS files come in as credentials: systemd reads them as root when the service starts, and the proxy finds them in
 * `$CREDENTIALS_DIRECTORY` by their base name. The config keeps the paths on the host; the proxy prefers a credential
 * of the same base name. Key and certificate are handed over together, so a reload in the middle of a renewal never
 * pairs a new one with an old one; a renewed pair is taken by a restart.
 */
export function proxyServiceUnit(input: ProxyUnitsInput): UnitDocument {
  const { nodePath, runtime, config, listeners } = input;
  return {
    Unit: {
      Description: "Portico reverse proxy",
      Requires: "portico.socket",
      After: "network.target portico.socket",
    },
    Service: {
      Type: "exec",
      ExecStart: { command: [nodePath, runtime, "serve", config] },
      ExecReload: { command: ["/bin/kill", "-HUP", { variable: "MAINPID" }] },
      // The master stops its workers itself; only what is left when time is up is killed.
      KillMode: "mixed",
      TimeoutStopSec: input.stopTimeoutSeconds,
      Restart: "on-failure",
      RestartSec: 2,
      LimitNOFILE: input.openFilesMax,
      ...credentials(input.tlsFiles),
      ...logs(input.logDirectory),
      ...hardening(input.servedDirectories),
    },
    Install:
      listeners.length === 0
        ? { WantedBy: "multi-user.target" }
        : { WantedBy: "multi-user.target", Also: "portico.socket" },
  };
}

/** `portico.socket`: ports below 1024 without privileges, and connections that wait while the proxy restarts. */
export function proxySocketUnit({ listeners }: ProxyUnitsInput): UnitDocument {
  const named = listeners.some(({ address }) => address !== "0.0.0.0" && address !== "::");
  return {
    Unit: { Description: "Sockets of the Portico reverse proxy" },
    Socket: {
      ListenStream: listeners.map(
        ({ address, port }) => `${address.includes(":") ? `[${address}]` : address}:${port}`,
      ),
      // An IPv6 listener beside an IPv4 one on the same port must not take its connections.
      BindIPv6Only: "ipv6-only",
      Backlog: 4096,
      NoDelay: true,
      // A single address may come up after the socket unit.
      ...(named ? { FreeBind: true } : {}),
    },
    Install: { WantedBy: "sockets.target" },
  };
}

const baseName = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

function credentials(files: readonly string[]): UnitSection {
  return files.length === 0 ? {} : { LoadCredential: files.map((file) => `${baseName(file)}:${file}`) };
}

/** Pairs of different TLS files with one base name: only one of each could be handed over. */
export function clashingCredentials(files: readonly string[]): [string, string][] {
  return files.flatMap((file, i) => {
    const other = files.slice(0, i).find((f) => f !== file && baseName(f) === baseName(file));
    return other === undefined ? [] : [[other, file] as [string, string]];
  });
}

/** systemd makes and owns directories below /var/log; any other must exist and be writable. */
function logs(directory: string): UnitSection {
  const below = /^\/var\/log\/(.+)$/.exec(directory)?.[1];
  return below === undefined
    ? { ReadWritePaths: directory }
    : { LogsDirectory: below, LogsDirectoryMode: "0750" };
}

/** No MemoryDenyWriteExecute: the JIT of Node writes the code it runs. */
function hardening(servedDirectories: readonly string[]): UnitSection {
  const inHome = servedDirectories.some((directory) => /^\/(?:home|root|run\/user)(?:\/|$)/.test(directory));
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
  };
}
