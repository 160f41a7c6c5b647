import type { DnsRecord, PortForward } from "../model/host.js";

/**
 * Options of a deployment, as its document contains them. The document's own types are derived from its schema and have
 * no hover text in an editor, so each field is described again here; tests keep the two the same.
 */

/** A daemon of the application, which activation stops and starts. */
export interface DaemonUnit {
  /** Its unit: its full name, ending in `.service`. */
  readonly unit: string;
  /**
   * Settings files that it reads, of `settings.files`: it stops before their edits, and starts after them.
   * @default - none
   */
  readonly restartOn?: readonly string[];
  /**
   * Whether it runs on while only the host in the application's URLs changes, and restarts after the edits.
   * @default - it stops before the edits
   */
  readonly domainChange?: "restart";
  /**
   * The row of `portico doctor` that tells of it: the `code` of one of `rows`.
   * @default - none
   */
  readonly code?: string;
  /**
   * A command that it must not have; `portico doctor` looks at the unit.
   * @default - it may have any
   */
  readonly command?: CommandRule;
}

/** A command that a daemon must not have. */
export interface CommandRule {
  /** Regular expression that its command must not match, whatever the case. */
  readonly never: string;
  /** The cause in words, where it does. */
  readonly says: string;
  /** What to do about it. */
  readonly fix: string;
}

/** systemd units of a host that activation stops and starts besides the proxy's own. */
export interface DeploymentUnits {
  /**
   * The application's daemons in the order in which they start; they stop in the reverse one.
   * @default - none
   */
  readonly daemons?: readonly DaemonUnit[];
  /**
   * Unit that loads the rule set of the firewall: its full name, ending in `.service`.
   * @default - none; no firewall was deployed
   */
  readonly firewall?: string;
}

/**
 * The application's database. Settings that were changed in the web interface are stored there and take
 * priority over the files.
 */
export interface DatabaseConnection {
  /** Name or address of the database server, without a port. */
  readonly host: string;
  /** TCP port, 1 to 65535. */
  readonly port: number;
  /** Name of the database. */
  readonly name: string;
  /** User that may read it. The password is asked for when a check runs and never stored. */
  readonly user: string;
}

/** How an activation finds out whether the front end answers as it should. */
export interface ResponseProbe {
  /**
   * Whether unexpected responses make the activation fail and roll back. `false` disables it.
   * @default true
   */
  readonly enabled?: boolean;
  /**
   * Path of an image below the path of expected responses that ask for one (`file: "image"`).
   * @default - an image is searched for in the directory of their route
   */
  readonly imagePath?: string;
  /**
   * How long the responses may take to become as expected, in seconds from 1 to 3600.
   * @default 60
   */
  readonly timeoutSeconds?: number;
}

/** What an activation knows about a host besides its files and units. */
export interface HostDescription {
  /**
   * Name of the deployment in messages: letters, digits, `-`, `_`, `.`.
   * @default - messages do not name it
   */
  readonly name?: string;
  /**
   * The application's settings, where they are, and whether they are edited.
   * @default - the settings are neither compared nor edited
   */
  readonly settings?: DescribedSettings;
  /**
   * Directories that the proxy serves; `portico doctor` checks that others can read them. One inside another comes
   * after it.
   * @default - no permissions are checked
   */
  readonly trees?: readonly ServedTree[];
  /**
   * Rows of `portico doctor` about the application, in the order of the report. One that explains another comes before it.
   * @default - none
   */
  readonly rows?: readonly DoctorRow[];
  /**
   * The application's database, for checks of the settings stored in it.
   * @default - not checked
   */
  readonly database?: DatabaseConnection;
  /**
   * What the network around the host should look like; `portico doctor` compares.
   * @default - nothing is expected
   */
  readonly network?: ExpectedNetwork;
  /**
   * How the responses are checked after an activation.
   * @default - they have a minute to become as expected
   */
  readonly probe?: ResponseProbe;
  /**
   * Whether an activation fails and rolls back unless every certificate by ACME is issued within three minutes. A host
   * of a pair without the virtual address waits for ten seconds, and does not fail.
   * @default false
   */
  readonly requireCertificate?: boolean;
}

/** An application's own settings files, and what is done with them. */
export interface DescribedSettings {
  /** The files, from 1 to 10. What is not listed here stays as it is. */
  readonly files: readonly DescribedSettingsFile[];
  /**
   * Whether activation writes the settings into the files. `false` only reports what differs.
   * @default false
   */
  readonly apply?: boolean;
}

/** One of an application's own files. */
export type DescribedSettingsFile = IniSettingsFile | PythonSettingsFile | EnvSettingsFile;

/** What every settings file has, of whatever kind. */
export interface AnySettingsFile {
  /** Name for `restartOn` of daemons and `portico settings --file`. */
  readonly name: string;
  /** Absolute path on the host. */
  readonly path: string;
}

/** An INI file: an item is set in its place or added to its section. */
export interface IniSettingsFile extends AnySettingsFile {
  /** Selects the editor of INI files. */
  readonly kind: "ini";
  /** From 1 to 100, each once. */
  readonly items: readonly IniSettingsItem[];
}

/** A Python module: an item is set in its place or added between `SECRET_KEY` and `DATABASES`. */
export interface PythonSettingsFile extends AnySettingsFile {
  /** Selects the editor of Python modules. */
  readonly kind: "python";
  /** From 1 to 100, each once. */
  readonly items: readonly PythonSettingsItem[];
}

/** Environment variables, as Docker Compose reads them: an item is set in its place or added at the end. */
export interface EnvSettingsFile extends AnySettingsFile {
  /** Selects the editor of such files. */
  readonly kind: "env";
  /** From 1 to 100, each once. */
  readonly items: readonly EnvSettingsItem[];
}

/** What every item may say. */
export interface AnySettingsItem {
  /**
   * Row of `portico doctor` that fails where the item is not as listed.
   * @default "settings"
   */
  readonly code?: string;
  /**
   * Whether the application's web interface can store another value in its database, which takes priority over the file;
   * `database` says where. Only for texts.
   * @default false
   */
  readonly stored?: boolean;
}

/** `name = value` in a section. */
export interface IniSettingsItem extends AnySettingsItem {
  /** Section, without brackets. */
  readonly section: string;
  /** Key as it is written there. */
  readonly name: string;
  /** Text without spaces, quotes, `\`, `%`, `#` and `;`, or a whole number. */
  readonly value: string | number;
}

/** `name = value` at the top level of a module. */
export interface PythonSettingsItem extends AnySettingsItem {
  /** Name that the application reads. */
  readonly name: string;
  /** Text without spaces, quotes, `\`, `%`, `#` and `;`, a boolean, or a list of texts that others may add to. */
  readonly value: string | boolean | readonly string[];
}

/** `NAME=value` in a file of environment variables. */
export interface EnvSettingsItem extends AnySettingsItem {
  /** Variable; none of a secret. */
  readonly name: string;
  /** Text without spaces, quotes, `\`, `$`, `%`, `#` and `;`, a whole number, or a boolean: `true` or `false`. */
  readonly value: string | number | boolean;
}

/** A directory that the proxy serves: others can read every file in it, and enter every directory on the way. */
export interface ServedTree {
  /** The directory. Absolute path. */
  readonly path: string;
  /** The row of `portico doctor` that tells of it: the `code` of one of `rows`. */
  readonly code: string;
  /** The cause in words, where others cannot read something in it. */
  readonly says: string;
  /**
   * Whether activation makes it readable by others where it is not.
   * @default false
   */
  readonly fix?: boolean;
}

/** A row of `portico doctor`. It tells of what has its code: trees, daemons, settings items, causes of responses. */
export interface DoctorRow {
  /** Its id: letters, digits, `-`, `_`, `.`; none that `portico doctor` has on every host. */
  readonly code: string;
  /** Its title. */
  readonly title: string;
}

/** What the network around a host should look like. */
export interface ExpectedNetwork {
  /**
   * Addresses that the host has, or that a router translates to one of its own.
   * @default - none
   */
  readonly addresses?: readonly string[];
  /**
   * Forwards that a NAT router needs.
   * @default - none
   */
  readonly portForwards?: readonly PortForward[];
  /**
   * DNS records that lead to the host.
   * @default - none
   */
  readonly dnsRecords?: readonly DnsRecord[];
  /**
   * TCP ports open to everyone, each 1 to 65535.
   * @default - none
   */
  readonly exposedPorts?: readonly number[];
  /**
   * TCP ports that only the host itself may reach, each 1 to 65535.
   * @default - none
   */
  readonly loopbackPorts?: readonly number[];
}
