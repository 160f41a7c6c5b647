import {
  type ApplicationSettingsValues,
  fileSyncPaths,
  fileSyncService,
  type MediaPermissions,
  type SettingsFilePaths,
} from "../../applications/index.js";
import { proxyOptions } from "../../model/actions/proxy.js";
import type { InputOf } from "../../model/schema/inferred.js";
import { type Problem, problem, ProblemError, upstreamAddress } from "../../model/index.js";
import { isFilePath } from "../../model/text/textRule.js";
import { hostPathProblems } from "../props/checks.js";
import { kindsOf } from "../props/fieldTable.js";
import { type PathOf, fields, flag, type PropTable, text, without } from "../props/propTable.js";
import { hasTokens, isKnown } from "../props/tokens.js";
import type { IUpstream } from "../proxy/upstream.js";
import type { HostedSite, SiteApplication } from "./siteApplication.js";
import {
  APPLICATION_DAEMONS_PROPS,
  ApplicationDaemons,
  type ApplicationDaemonsProps,
  daemonPropProblems,
  unitNames,
} from "./daemons.js";
import { type FileSyncPathProps, pathProblems, ROUTE_PATHS } from "./paths.js";
import {
  APPLICATION_SETTINGS_PROPS,
  ApplicationSettings,
  type ApplicationSettingsProps,
  settingsPropProblems,
} from "./settings.js";

/** The service of docs/service.md: a web application, a file server and a WebDAV daemon. */

/** Options of the file-sync service. One of `installDirectory` and `mediaDirectory` is required. */
export interface FileSyncOptions extends FileSyncPathProps, MediaPermissions {
  /**
   * Directory on the host with the web application; `media` below this directory contains the media.
   * @default - none; then `mediaDirectory` is needed
   */
  readonly installDirectory?: string;
  /**
   * Directory of the static media: icons, avatars, scripts. The directory, the directories above, and all contents
   * must be readable by others; otherwise the response is 403.
   * @default - `media` in the install directory
   */
  readonly mediaDirectory?: string;
  /**
   * Directory of avatars, if the media directory contains only links to the avatars. The proxy does not follow links
   * that leave a directory, so avatars need a separate route.
   * @default - avatars are in the media directory
   */
  readonly avatarDirectory?: string;
  /** @remarks This applies to the WebDAV daemon: RFC 4918 allows a path; Apache's mod_dav needs `absolute`. */
  readonly webdavDestination?: InputOf<typeof proxyOptions>["destination"];
  /**
   * Further settings of the application, and the files in which the activation compares or edits them. In containers
   * they have no effect.
   * @default - no start command; not through the web; no file is edited
   */
  readonly settings?: FileSyncSettings;
  /**
   * Units for the application's daemons, by daemon.
   * @default - the application brings its own
   */
  readonly daemons?: FileSyncDaemons;
  /**
   * systemd units of the daemons, which the activation stops and starts when their settings change.
   * @default - the units of `daemons`
   */
  readonly units?: ApplicationUnits;
}

/** Units for the daemons of the file-sync service. */
export interface FileSyncDaemons extends Omit<ApplicationDaemonsProps, "host" | "unitDirectory"> {}

/** Settings of the file-sync service that do not follow from its public URL. */
export interface FileSyncSettings extends Pick<
  ApplicationSettingsProps,
  "enableSettingsViaWeb" | "startCommand" | "fileServer"
> {
  /**
   * Paths of settings files, at least one, in which the activation compares or edits the items.
   * @default - the activation changes no settings; see the files in /usr/share/portico/application-settings
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

/** @internal */
export const FILE_SYNC_OPTIONS: PropTable<FileSyncOptions> = {
  installDirectory: text,
  mediaDirectory: text,
  avatarDirectory: text,
  pathPrefix: text,
  routePaths: ROUTE_PATHS,
  webdavDestination: kindsOf(proxyOptions, "destination").destination,
  settings: fields<FileSyncSettings>({
    enableSettingsViaWeb: APPLICATION_SETTINGS_PROPS.enableSettingsViaWeb,
    startCommand: APPLICATION_SETTINGS_PROPS.startCommand,
    fileServer: APPLICATION_SETTINGS_PROPS.fileServer,
    files: fields<SettingsFilePaths>({ networkDaemon: text, webApplication: text, fileServer: text }),
  }),
  daemons: fields(without(APPLICATION_DAEMONS_PROPS, "host", "unitDirectory")),
  units: fields<ApplicationUnits>({ fileServer: text, webApplication: text, webdav: text }),
  fixMedia: flag,
};

const METHOD = "Application.fileSync";

/** @internal */
export function fileSyncProblems(fit: Partial<FileSyncOptions>): Problem[] {
  const at = (name: string): string => `${METHOD}.${name}`;
  const { files, ...settings } = fit.settings ?? {};
  return [
    ...installProblems(fit, at),
    ...pathProblems(fit, at),
    ...directoryProblems(fit, at),
    ...hostPathProblems({ installDirectory: fit.installDirectory }, METHOD),
    ...hostPathProblems({ ...files }, at("settings.files")),
    ...(files !== undefined && Object.keys(files).length === 0 ? [noFiles(at("settings.files"))] : []),
    ...daemonPropProblems(at("daemons"), fit.daemons ?? {}),
    // Names are checked with the host.
    ...settingsPropProblems(at("settings"), { serverNames: ["localhost"], ...settings }),
  ];
}

/** @internal The service for one site; the values of its settings follow from the site's names. */
export function fileSyncSite(options: FileSyncOptions): SiteApplication<ApplicationSettings> {
  const { installDirectory, mediaDirectory, avatarDirectory, daemons, settings: { files } = {} } = options;
  let values: ApplicationSettingsValues;
  const definition = fileSyncService({
    paths: fileSyncPaths(options.pathPrefix, options.routePaths),
    media: { directory: mediaDirectory ?? `${installDirectory}/media`, avatarDirectory },
    fixMedia: options.fixMedia,
    destination: options.webdavDestination,
    units: { ...unitNames(daemons ?? {}), ...options.units },
    ...(files && { settings: { files, values: () => values } }),
  });
  return {
    definition,
    secretPlaces: installDirectory === undefined ? [] : [installDirectory],
    addSettings: (site) => {
      const { scope, host, unitDirectory } = site;
      const settings = addSettings(site, options);
      values = settings.values;
      if (daemons !== undefined)
        new ApplicationDaemons(scope, "Daemons", { ...daemons, host, unitDirectory });
      return settings;
    },
  };
}

function addSettings(site: HostedSite, options: FileSyncOptions): ApplicationSettings {
  const { scope, host, directory, mode, serverNames, upstreams } = site;
  const { files: _, ...settings } = options.settings ?? {};
  return new ApplicationSettings(scope, "Settings", {
    ...settings,
    fileServer: settings.fileServer ?? listenAddress(upstreams["fileServer"]!),
    directory,
    host,
    scheme: mode.scheme,
    publicPort: mode.publicPort,
    serverNames,
    pathPrefix: options.pathPrefix,
    routePaths: options.routePaths,
  });
}

/** The file server listens at the address of its upstream. */
function listenAddress({ url }: IUpstream): { host: string; port: number } {
  const leads = hasTokens(url) ? undefined : upstreamAddress(url);
  if (leads !== undefined && "port" in leads) {
    const { host, port } = leads;
    return { host: host === "localhost" ? "127.0.0.1" : host, port };
  }
  const why = leads === undefined ? "is not known at synthesis" : "names no port";
  const fix = `Set \`settings.fileServer\`: the URL of the file server's upstream ${why}.`;
  const more = { allowed: "an object with host, port", fix };
  throw new ProblemError([
    problem("settings.bad-value", `${METHOD}.settings.fileServer`, "is missing", more),
  ]);
}

function installProblems(options: Partial<FileSyncOptions>, at: PathOf): Problem[] {
  if (options.installDirectory !== undefined || options.mediaDirectory !== undefined) return [];
  const fix =
    "Set `installDirectory` to the directory of the application, or `mediaDirectory` to the directory of its media.";
  const more = { allowed: "an absolute path on the host", fix };
  return [problem("config.missing-field", at("installDirectory"), "is missing", more)];
}

function noFiles(path: string): Problem {
  const fix = "List the settings files of the application, or remove `files`.";
  const more = { allowed: "an object with networkDaemon, webApplication, fileServer", fix };
  return problem("config.missing-field", path, "is missing", more);
}

function directoryProblems(options: Partial<FileSyncOptions>, at: PathOf): Problem[] {
  return (["mediaDirectory", "avatarDirectory"] as const).flatMap((name) => {
    const directory = options[name];
    if (directory === undefined || !isKnown(directory) || isFilePath(directory)) return [];
    const more = {
      received: directory,
      allowed: "an absolute path on the host, without `//`, `.` or `..` segments",
    };
    return [problem("config.bad-file-path", at(name), "is not the path of a directory", more)];
  });
}
