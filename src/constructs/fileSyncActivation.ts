import { Activation } from "./activation.js";
import type {
  ApplicationUnits,
  DatabaseConnection,
  HostDescription,
  ResponseProbe,
  SettingsEditing,
} from "./activationOptions.js";
import type { FileSyncFrontEnd } from "./fileSyncFrontEnd.js";

/** What activation has to know about the application, beside what the front end knows itself. */
export interface FileSyncActivationProps {
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
   * Whether activation makes media files and their directories readable for others where they are not.
   * It does so as the user whose directories they are; a destroy takes back what it gave.
   * @default false
   */
  readonly fixMedia?: boolean;
  /**
   * The application's database, for checks of the settings stored in it. The password is asked for at run time.
   * @default - not checked
   */
  readonly database?: DatabaseConnection;
  /**
   * How the expected responses are checked afterwards.
   * @default - they have a minute to come; an image is looked for in the media directory
   */
  readonly probe?: ResponseProbe;
}

/** @internal The activation of a front end. */
export function activateFrontEnd(frontEnd: FileSyncFrontEnd, props: FileSyncActivationProps): Activation {
  const { daemons, firewall, service } = frontEnd;
  const units = {
    webApplication: daemons?.webApplication?.name,
    fileServer: daemons?.fileServer?.name,
    webdav: daemons?.webdav?.name,
    firewall: firewall?.unit.name,
    ...props.units,
  };
  return new Activation(frontEnd, "Activation", {
    service,
    services: Object.fromEntries(Object.entries(units).filter(([, unit]) => unit !== undefined)),
    describe: () => describe(frontEnd, props),
  });
}

function describe(frontEnd: FileSyncFrontEnd, props: FileSyncActivationProps): HostDescription {
  const { settings, database, probe, fixMedia = false } = props;
  const { values } = frontEnd.settings;
  const { host } = frontEnd;
  return {
    ...(settings === undefined ? {} : { settings: { ...settings, values } }),
    media: { ...frontEnd.media, fix: fixMedia },
    ...(database === undefined ? {} : { database }),
    network: {
      addresses: [host.address, ...(host.ipv6Address === undefined ? [] : [host.ipv6Address])],
      portForwards: frontEnd.portForwards,
      dnsRecords: frontEnd.host.dnsRecords,
      exposedPorts: frontEnd.exposedPorts,
      loopbackPorts: frontEnd.loopbackPorts,
    },
    ...(probe === undefined ? {} : { probe }),
  };
}
