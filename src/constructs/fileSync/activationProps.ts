import type { InputOf } from "../../model/inferred.js";
import type { deploymentSchema } from "../../model/deployment.js";
import type { MediaPermissions, SettingsFilePaths } from "../../applications/index.js";
import type {
  DatabaseConnection,
  DescribedSettings,
  ReplayGate,
  ResponseProbe,
} from "../activationOptions.js";
import type { DoctorProps } from "../dailyDoctor.js";

/** Facts about the application for the activation, besides those in the front end's props. */
export interface FileSyncActivationProps
  extends
    DoctorProps,
    MediaPermissions,
    Pick<InputOf<typeof deploymentSchema>, "database" | "probe" | "replay" | "requireCertificate"> {
  /**
   * systemd units of the daemons, which the activation stops and starts when their settings change.
   * @default - the units of `daemons`
   */
  readonly units?: ApplicationUnits;
  /**
   * Paths of settings files, in which the activation compares or edits the front end's items.
   * @default - the activation changes no settings; see the files in /usr/share/portico/application-settings
   */
  readonly settings?: SettingsEditing;
  readonly database?: DatabaseConnection;
  readonly probe?: ResponseProbe;
  readonly replay?: ReplayGate;
}

/** Settings files of the file-sync service. */
export interface SettingsEditing extends Pick<DescribedSettings, "apply"> {
  /**
   * Paths of the settings files, at least one. Not together with `application`, which defines its files.
   * @default - those of the application
   */
  readonly files?: SettingsFilePaths;
}

/** Names of systemd units, by daemon. */
export interface ApplicationUnits {
  /**
   * Full name of the web application's unit, ending in `.service`.
   * @default - none; the activation neither stops nor starts the web application
   */
  readonly webApplication?: string;
  /**
   * Full name of the file server's unit, ending in `.service`.
   * @default - none; the activation neither stops nor starts the file server
   */
  readonly fileServer?: string;
  /**
   * Full name of the WebDAV daemon's unit, ending in `.service`.
   * @default - none; the activation neither stops nor starts the WebDAV daemon
   */
  readonly webdav?: string;
}
