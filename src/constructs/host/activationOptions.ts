import type { daemon, database, deploymentSchema, probe, replay, services } from "../../model/deployment.js";
import type { network } from "../../model/host/network.js";
import type { commandRule, row, tree } from "../../model/host/rows.js";
import type {
  envFile,
  envItem,
  iniFile,
  iniItem,
  pythonFile,
  pythonItem,
  settingsFields,
} from "../../model/host/settings.js";
import type { InputOf } from "../../model/schema/inferred.js";
import type { DnsRecord, PortForward } from "../../model/host/host.js";

/** Options of a deployment, as its document contains them. */

/** A daemon of the application. The activation stops and starts the daemon. */
export interface DaemonUnit extends InputOf<typeof daemon> {
  readonly command?: CommandRule;
}

/** A command that a daemon must not run. */
export interface CommandRule extends InputOf<typeof commandRule> {}

/** systemd units of a host, besides the units of the proxy, that the activation stops and starts. */
export interface DeploymentUnits extends Pick<InputOf<typeof services>, "daemons" | "firewall"> {
  readonly daemons?: readonly DaemonUnit[];
}

export interface DatabaseConnection extends InputOf<typeof database> {}

/** How the activation checks the responses of the front end. */
export interface ResponseProbe extends InputOf<typeof probe> {}

export interface ReplayGate extends InputOf<typeof replay> {}

/** Facts about a host for an activation, besides files and units. */
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

export interface DescribedSettings extends InputOf<typeof settingsFields> {
  readonly files: readonly DescribedSettingsFile[];
}

/** A settings file of the application. */
export type DescribedSettingsFile = IniSettingsFile | PythonSettingsFile | EnvSettingsFile;

/** An INI file: the activation replaces an item, or adds the item to its section. */
export interface IniSettingsFile extends InputOf<typeof iniFile> {
  readonly items: readonly IniSettingsItem[];
}

/** A Python module: the activation writes one block of lines between `SECRET_KEY` and `DATABASES`. */
export interface PythonSettingsFile extends InputOf<typeof pythonFile> {
  readonly items: readonly PythonSettingsItem[];
}

/**
 * Environment variables in the format of Docker Compose: the activation replaces an item, or adds the item at the
 * end.
 */
export interface EnvSettingsFile extends InputOf<typeof envFile> {
  readonly items: readonly EnvSettingsItem[];
}

/** `name = value` in a section. */
export interface IniSettingsItem extends InputOf<typeof iniItem> {}

/** `name = value` at the top level of a module. */
export interface PythonSettingsItem extends InputOf<typeof pythonItem> {}

/** `NAME=value` in a file of environment variables. */
export interface EnvSettingsItem extends InputOf<typeof envItem> {}

/** A directory that the proxy serves, for checks of permissions. */
export interface ServedTree extends InputOf<typeof tree> {}

/**
 * A row of `portico doctor`. Trees, daemons, settings items and causes of responses with the row's code belong to the
 * row.
 */
export interface DoctorRow extends InputOf<typeof row> {}

export interface ExpectedNetwork extends InputOf<typeof network> {
  readonly portForwards?: readonly PortForward[];
  readonly dnsRecords?: readonly DnsRecord[];
}
