import type { InputOf } from "../../model/inferred.js";
import type { deploymentSchema } from "../../model/deployment.js";
import { type SettingsFilePaths } from "../../applications/index.js";
import type {
  DatabaseConnection,
  DescribedSettings,
  ReplayGate,
  ResponseProbe,
} from "../activationOptions.js";
import type { DailyDoctor } from "../dailyDoctor.js";

/** What activation has to know about the application, besides what the front end knows itself. */
export interface FileSyncActivationProps extends Pick<
  InputOf<typeof deploymentSchema>,
  "database" | "probe" | "replay" | "requireCertificate"
> {
  /**
   * Units of the application's daemons, which stop and start when their settings change.
   * @default - those that `daemons` makes
   */
  readonly units?: ApplicationUnits;
  /**
   * The application's own settings files, and whether activation edits the items of the front end in place.
   * @default - the settings are left to you; see the files in /usr/share/portico/application-settings
   */
  readonly settings?: SettingsEditing;
  /**
   * Whether activation makes media files and their directories readable by others where they are not. It does
   * so as the user who owns the directories; a destroy undoes it.
   * @default false
   */
  readonly fixMedia?: boolean;
  readonly database?: DatabaseConnection;
  readonly probe?: ResponseProbe;
  readonly replay?: ReplayGate;
  /**
   * Whether and how the host is looked after every day.
   * @default - `portico doctor` runs early every morning; see {@link DailyDoctor}
   */
  readonly doctor?: DailyDoctor;
}

/** The application's own settings files, and what is done with them. */
export interface SettingsEditing extends Pick<DescribedSettings, "apply"> {
  /**
   * Where the files are, at least one of them. Not beside an `application`, which knows its files.
   * @default - those of the application
   */
  readonly files?: SettingsFilePaths;
}

/** systemd units of the application's daemons. */
export interface ApplicationUnits {
  /**
   * Unit of the web application: its full name, ending in `.service`.
   * @default - none; the web application is neither stopped nor started
   */
  readonly webApplication?: string;
  /**
   * Unit of the file server: its full name, ending in `.service`.
   * @default - none; the file server is neither stopped nor started
   */
  readonly fileServer?: string;
  /**
   * Unit of the WebDAV daemon: its full name, ending in `.service`.
   * @default - none; the WebDAV daemon is neither stopped nor started
   */
  readonly webdav?: string;
}
