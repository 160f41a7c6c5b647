import type { DnsRecord, PortForward } from "../model/host.js";

/**
 * Options of a deployment, as its document contains them. Their texts are those of the fields in its schema
 * (`src/model/`), which the declarations of the package get when it is built; a test keeps the types the same.
 */

/** A daemon of the application, which activation stops and starts. */
export interface DaemonUnit {
  readonly unit: string;
  readonly restartOn?: readonly string[];
  readonly domainChange?: "restart";
  readonly code?: string;
  readonly command?: CommandRule;
}

/** A command that a daemon must not have. */
export interface CommandRule {
  readonly never: string;
  readonly says: string;
  readonly fix: string;
}

/** systemd units of a host that activation stops and starts besides the proxy's own. */
export interface DeploymentUnits {
  readonly daemons?: readonly DaemonUnit[];
  readonly firewall?: string;
}

/**
 * The application's database. Settings that were changed in the web interface are stored there and take
 * priority over the files.
 */
export interface DatabaseConnection {
  readonly host: string;
  readonly port: number;
  readonly name: string;
  readonly user: string;
}

/** How an activation finds out whether the front end answers as it should. */
export interface ResponseProbe {
  readonly enabled?: boolean;
  readonly imagePath?: string;
  readonly timeoutSeconds?: number;
}

/**
 * Requests of an access log that run through the config in force and the new one before anything is touched: a request that
 * would be treated differently belongs to a client that the change may break.
 */
export interface ReplayGate {
  readonly accessLog?: string;
  readonly logBytesMax?: number;
  readonly host?: string;
  readonly changesMax?: number;
}

/** What an activation knows about a host besides its files and units. */
export interface HostDescription {
  readonly name?: string;
  readonly settings?: DescribedSettings;
  readonly trees?: readonly ServedTree[];
  readonly rows?: readonly DoctorRow[];
  readonly database?: DatabaseConnection;
  readonly network?: ExpectedNetwork;
  readonly probe?: ResponseProbe;
  readonly replay?: ReplayGate;
  readonly requireCertificate?: boolean;
}

/** An application's own settings files, and what is done with them. */
export interface DescribedSettings {
  readonly files: readonly DescribedSettingsFile[];
  readonly apply?: boolean;
}

/** One of an application's own files. */
export type DescribedSettingsFile = IniSettingsFile | PythonSettingsFile | EnvSettingsFile;

/** What every settings file has, of whatever kind. */
export interface AnySettingsFile {
  readonly name: string;
  readonly path: string;
}

/** An INI file: an item is set in its place or added to its section. */
export interface IniSettingsFile extends AnySettingsFile {
  readonly kind: "ini";
  readonly items: readonly IniSettingsItem[];
}

/** A Python module: an item is set in its place or added between `SECRET_KEY` and `DATABASES`. */
export interface PythonSettingsFile extends AnySettingsFile {
  readonly kind: "python";
  readonly items: readonly PythonSettingsItem[];
}

/** Environment variables, as Docker Compose reads them: an item is set in its place or added at the end. */
export interface EnvSettingsFile extends AnySettingsFile {
  readonly kind: "env";
  readonly items: readonly EnvSettingsItem[];
}

/** What every item may say. */
export interface AnySettingsItem {
  readonly code?: string;
  readonly stored?: boolean;
}

/** `name = value` in a section. */
export interface IniSettingsItem extends AnySettingsItem {
  readonly section: string;
  readonly name: string;
  readonly value: string | number;
}

/** `name = value` at the top level of a module. */
export interface PythonSettingsItem extends AnySettingsItem {
  readonly name: string;
  readonly value: string | boolean | readonly string[];
}

/** `NAME=value` in a file of environment variables. */
export interface EnvSettingsItem extends AnySettingsItem {
  readonly name: string;
  readonly value: string | number | boolean;
}

/** A directory that the proxy serves: others can read every file in it, and enter every directory on the way. */
export interface ServedTree {
  readonly path: string;
  readonly code: string;
  readonly says: string;
  readonly fix?: boolean;
}

/** A row of `portico doctor`. It tells of what has its code: trees, daemons, settings items, causes of responses. */
export interface DoctorRow {
  readonly code: string;
  readonly title: string;
}

/** What the network around a host should look like. */
export interface ExpectedNetwork {
  readonly addresses?: readonly string[];
  readonly portForwards?: readonly PortForward[];
  readonly dnsRecords?: readonly DnsRecord[];
  readonly exposedPorts?: readonly number[];
  readonly loopbackPorts?: readonly number[];
}
