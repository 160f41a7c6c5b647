/** Absolute paths on a host, without the delivery's root. */
export interface HostPaths {
  /** The proxy config. */
  readonly config: string;
  /** Directory of private key, certificate and Diffie-Hellman parameters. */
  readonly tlsDirectory: string;
  /** The runtime: proxy and command line tool in one file. */
  readonly runtime: string;
  /** Directory of the default server's page. */
  readonly defaultPageDirectory: string;
  /** Directory of systemd units. */
  readonly unitDirectory: string;
  /** Directory of access and error logs. */
  readonly logDirectory: string;
  /** Directory of the application settings for copying into the application's files. */
  readonly settingsDirectory: string;
  /** File for logrotate(8), which reads all files of the directory. */
  readonly logRotation: string;
}

/** The default paths (Filesystem Hierarchy Standard 3.0). */
export const DEFAULT_HOST_PATHS: HostPaths = {
  config: "/etc/portico/portico.json",
  tlsDirectory: "/etc/portico/tls",
  runtime: "/usr/lib/portico/portico.mjs",
  defaultPageDirectory: "/usr/share/portico/default",
  unitDirectory: "/etc/systemd/system",
  logDirectory: "/var/log/portico",
  settingsDirectory: "/usr/share/portico/application-settings",
  logRotation: "/etc/logrotate.d/portico",
};

/** Paths of mounted files in a container. */
export const CONTAINER_PATHS = {
  config: DEFAULT_HOST_PATHS.config,
  tlsDirectory: DEFAULT_HOST_PATHS.tlsDirectory,
  dhParameters: "/etc/portico/dhparam2048.pem",
  defaultPageDirectory: DEFAULT_HOST_PATHS.defaultPageDirectory,
  /** User 65532 of the image may write there. */
  stateDirectory: "/var/lib/portico",
} as const;

/** Control socket of the deployed service, in the directory that its unit has systemd make. */
export const CONTROL_SOCKET = "/run/portico/control.sock";
