import type { daemon, database, deploymentSchema, probe, replay, services } from "../model/deployment.js";
import type { network } from "../model/network.js";
import type { commandRule, row, tree } from "../model/rows.js";
import type {
  envFile,
  envItem,
  iniFile,
  iniItem,
  pythonFile,
  pythonItem,
  settingsFields,
} from "../model/settings.js";
import type { InputOf } from "../model/inferred.js";
import type { DnsRecord, PortForward } from "../model/host.js";

/** Options of a deployment, as its document contains them. */

/** A daemon of the application, which activation stops and starts. */
export interface DaemonUnit extends InputOf<typeof daemon> {
  readonly command?: CommandRule;
}

/** A command that a daemon must not have. */
export interface CommandRule extends InputOf<typeof commandRule> {}

/** systemd units of a host that activation stops and starts besides the proxy's own. */
export interface DeploymentUnits extends Pick<InputOf<typeof services>, "daemons" | "firewall"> {
  readonly daemons?: readonly DaemonUnit[];
}

/**
 * The application's database. Settings that were changed in the web interface are stored there and take
 * priority over the files.
 */
export interface DatabaseConnection extends InputOf<typeof database> {}

/** How an activation finds out whether the front end answers as it should. */
export interface ResponseProbe extends InputOf<typeof probe> {}

/**
 * Requests of an access log that run through the config in force and the new one before anything is touched: a request that
 * would be treated differently belongs to a client that the change may break.
 */
export interface ReplayGate extends InputOf<typeof replay> {}

/** What an activation knows about a host besides its files and units. */
export interface HostDescription extends Pick<
  InputOf<typeof deploymentSchema>,
  "name" | "settings" | "trees" | "rows" | "database" | "network" | "probe" | "replay" | "requireCertificate"
> {
  readonly settings?: DescribedSettings;
  readonly trees?: readonly ServedTree[];
  readonly rows?: readonly DoctorRow[];
  readonly database?: DatabaseConnection;
  readonly network?: ExpectedNetwork;
  readonly probe?: ResponseProbe;
  readonly replay?: ReplayGate;
}

/** An application's own settings files, and what is done with them. */
export interface DescribedSettings extends InputOf<typeof settingsFields> {
  readonly files: readonly DescribedSettingsFile[];
}

/** One of an application's own files. */
export type DescribedSettingsFile = IniSettingsFile | PythonSettingsFile | EnvSettingsFile;

/** An INI file: an item is set in its place or added to its section. */
export interface IniSettingsFile extends InputOf<typeof iniFile> {
  readonly items: readonly IniSettingsItem[];
}

/** A Python module: an item is set in its place or added between `SECRET_KEY` and `DATABASES`. */
export interface PythonSettingsFile extends InputOf<typeof pythonFile> {
  readonly items: readonly PythonSettingsItem[];
}

/** Environment variables, as Docker Compose reads them: an item is set in its place or added at the end. */
export interface EnvSettingsFile extends InputOf<typeof envFile> {
  readonly items: readonly EnvSettingsItem[];
}

/** `name = value` in a section. */
export interface IniSettingsItem extends InputOf<typeof iniItem> {}

/** `name = value` at the top level of a module. */
export interface PythonSettingsItem extends InputOf<typeof pythonItem> {}

/** `NAME=value` in a file of environment variables. */
export interface EnvSettingsItem extends InputOf<typeof envItem> {}

/** A directory that the proxy serves: others can read every file in it, and enter every directory on the way. */
export interface ServedTree extends InputOf<typeof tree> {}

/** A row of `portico doctor`. It tells of what has its code: trees, daemons, settings items, causes of responses. */
export interface DoctorRow extends InputOf<typeof row> {}

/** What the network around a host should look like. */
export interface ExpectedNetwork extends InputOf<typeof network> {
  readonly portForwards?: readonly PortForward[];
  readonly dnsRecords?: readonly DnsRecord[];
}
