import {
  type IniItem,
  isPort,
  type Problem,
  problem,
  type PublicOrigin,
  type PythonItem,
  renderOrigin,
  type SettingsFile,
} from "../model/index.js";
import { nameRule, PUBLIC_NAME } from "../model/net/serverName.js";
import { accepting, type DescribedRule } from "../model/text/textRule.js";
import { commandProblems, renderSettings, renderUnit, type UnitCommand } from "../render/index.js";

/** Paths of the application's routes, without a trailing slash. */
export interface FileSyncPaths {
  /**
   * Path of the web application.
   * @default - the prefix: `/sync`
   */
  readonly web: string;
  /**
   * Path of the file server. The path may be built into sync clients: those of Seafile request `/seafhttp`.
   * @default - the prefix followed by `http`: `/synchttp`
   */
  readonly fileServer: string;
  /**
   * Path of the WebDAV daemon.
   * @default - the prefix followed by `dav`: `/syncdav`
   */
  readonly webdav: string;
  /**
   * Path of the static media.
   * @default - the prefix followed by `media`: `/syncmedia`
   */
  readonly media: string;
}

/** The paths that a prefix gives, but for those that are given. */
export const fileSyncPaths = (prefix = "sync", given: Partial<FileSyncPaths> = {}): FileSyncPaths => ({
  web: given.web ?? `/${prefix}`,
  fileServer: given.fileServer ?? `/${prefix}http`,
  webdav: given.webdav ?? `/${prefix}dav`,
  media: given.media ?? `/${prefix}media`,
});

/** The input of the application's settings. */
export interface ApplicationSettingsInput {
  /** Origins under which clients reach the application, the main one first. */
  readonly origins: readonly PublicOrigin[];
  readonly pathPrefix: string;
  readonly routePaths?: Partial<FileSyncPaths>;
  readonly enableSettingsViaWeb: boolean;
  readonly fileServerHost: string;
  readonly fileServerPort: number | string;
  readonly startCommand?: UnitCommand["command"];
}

/** Items of the application's settings, and their values. */
export interface ApplicationSettingsValues {
  /** `SERVICE_URL`: URL of the application. */
  readonly serviceUrl: string;
  /** `FILE_SERVER_ROOT`: public URL of the file server. */
  readonly fileServerRoot: string;
  /** `SERVE_STATIC`: off, because the proxy serves static files. */
  readonly serveStatic: false;
  /** `MEDIA_URL`: path of the media. */
  readonly mediaUrl: string;
  /** `SITE_ROOT`: path of the application, with a trailing slash. */
  readonly siteRoot: string;
  /** `LOGIN_URL`: path of the login page. */
  readonly loginUrl: string;
  /** `COMPRESS_URL`: path of compressed media. */
  readonly compressUrl: string;
  /** `STATIC_URL`: path of static files. */
  readonly staticUrl: string;
  /** `ENABLE_SETTINGS_VIA_WEB`. */
  readonly enableSettingsViaWeb: boolean;
  /** Origins whose forms the web application accepts. Behind TLS, Django 4 refuses a login from other origins. */
  readonly csrfTrustedOrigins: readonly string[];
  /** `host` of the file server: listen address. */
  readonly fileServerHost: string;
  /** `port` of the file server; a text if only Terraform knows the port. */
  readonly fileServerPort: number | string;
}

export function applicationSettingsValues(input: ApplicationSettingsInput): ApplicationSettingsValues {
  const { origins } = input;
  const paths = fileSyncPaths(input.pathPrefix, input.routePaths);
  const main = renderOrigin(origins[0]!);
  const mediaUrl = `${paths.media}/`;
  return {
    serviceUrl: main + paths.web,
    fileServerRoot: main + paths.fileServer,
    serveStatic: false,
    mediaUrl,
    siteRoot: `${paths.web}/`,
    loginUrl: `${paths.web}/accounts/login/`,
    compressUrl: mediaUrl,
    staticUrl: `${mediaUrl}assets/`,
    enableSettingsViaWeb: input.enableSettingsViaWeb,
    csrfTrustedOrigins: origins.map(renderOrigin),
    fileServerHost: input.fileServerHost,
    fileServerPort: input.fileServerPort,
  };
}

/** Paths of the application's settings files; leave out files that the application does not have. */
export interface SettingsFilePaths {
  /**
   * Config file of the network daemon (an INI file). Absolute path.
   * @default - none: newer releases have no such file
   */
  readonly networkDaemon?: string;
  /**
   * Settings file of the web application (a Python file). Absolute path.
   * @default - none; edit the settings yourself
   */
  readonly webApplication?: string;
  /**
   * Config file of the file server (an INI file). Absolute path.
   * @default - none; edit the settings yourself
   */
  readonly fileServer?: string;
}

/** The application's files with their items (service 2.1), in the order in which they are written. */
export function applicationSettingsFiles(
  values: ApplicationSettingsValues,
  paths: SettingsFilePaths,
): readonly SettingsFile[] {
  // Clients are given these two, and the application's web interface can store others (service 2.2).
  const url = (name: string, value: string) => ({ name, value, code: "public-urls", stored: true });
  const { networkDaemon, webApplication, fileServer } = paths;
  const ini = (name: string, path: string | undefined, items: readonly IniItem[]): SettingsFile[] =>
    path === undefined ? [] : [{ name, path, kind: "ini", items }];
  const python = (name: string, path: string | undefined, items: readonly PythonItem[]): SettingsFile[] =>
    path === undefined ? [] : [{ name, path, kind: "python", items }];
  return [
    ...ini("network-daemon", networkDaemon, [
      { section: "General", ...url("SERVICE_URL", values.serviceUrl) },
    ]),
    ...python("web-application", webApplication, [
      url("FILE_SERVER_ROOT", values.fileServerRoot),
      { name: "SERVE_STATIC", value: values.serveStatic },
      { name: "MEDIA_URL", value: values.mediaUrl },
      { name: "SITE_ROOT", value: values.siteRoot },
      { name: "LOGIN_URL", value: values.loginUrl },
      { name: "COMPRESS_URL", value: values.compressUrl },
      { name: "STATIC_URL", value: values.staticUrl },
      { name: "ENABLE_SETTINGS_VIA_WEB", value: values.enableSettingsViaWeb },
      { name: "CSRF_TRUSTED_ORIGINS", value: values.csrfTrustedOrigins },
    ]),
    ...ini("file-server", fileServer, [
      { section: "fileserver", name: "host", value: values.fileServerHost },
      { section: "fileserver", name: "port", value: values.fileServerPort },
    ]),
  ];
}

/** A text to copy into one of the application's own files. */
export interface CopiedText {
  readonly name: string;
  readonly text: string;
}

const COPIED = {
  networkDaemon: "network-daemon.conf",
  webApplication: "web-application-settings.py",
  fileServer: "file-server.conf",
};

/** Makes a text for each of the application's files that the items belong to. */
export function renderApplicationSettings(input: ApplicationSettingsInput): CopiedText[] {
  const files = applicationSettingsFiles(applicationSettingsValues(input), COPIED).map((file) => ({
    name: file.path,
    text: renderSettings(file),
  }));
  if (input.startCommand === undefined) return files;
  return [...files, { name: "web-application.service.conf", text: startDropIn(input.startCommand) }];
}

/** A drop-in for the web application's service unit; the empty ExecStart removes the one it had. */
function startDropIn(command: UnitCommand["command"]): string {
  return renderUnit({ Service: { ExecStart: ["", { command }] } });
}

/** The word that the application's paths begin with. */
export const PATH_PREFIX: DescribedRule = {
  pattern: "^[A-Za-z0-9][A-Za-z0-9_-]*$",
  allowed: "one word of letters, digits, `-` and `_`",
};

/** The path of one of its routes. */
export const APPLICATION_PATH: DescribedRule = {
  pattern: "^(?:/[A-Za-z0-9_-][A-Za-z0-9._~-]*)+$",
  allowed: "a path of segments of letters, digits and ._~-, without a slash at the end",
};

/**
 * Problems of the input: values that do not fit the settings (quotes would not protect them in an ini file, whose
 * readers expand different things), and a start command other than the start script with the argument `start` (service
 * 2.4).
 */
export function settingsProblems(input: ApplicationSettingsInput): Problem[] {
  const { startCommand, pathPrefix, routePaths = {}, fileServerHost, fileServerPort } = input;
  const texts: [string, unknown, DescribedRule][] = [
    ["pathPrefix", pathPrefix, PATH_PREFIX],
    ...Object.entries(routePaths).flatMap(([name, path]): [string, unknown, DescribedRule][] =>
      path === undefined ? [] : [[`routePaths.${name}`, path, APPLICATION_PATH]],
    ),
    ["fileServerHost", fileServerHost, PUBLIC_NAME],
    ...input.origins.map(({ host }, i): [string, unknown, DescribedRule] => [
      `origins[${i}].host`,
      host,
      nameRule(i),
    ]),
  ];
  const ports: [string, unknown][] = [
    ["fileServerPort", fileServerPort],
    ...input.origins.slice(0, 1).map(({ port }): [string, unknown] => ["origins[0].port", port]),
  ];
  const bad = [
    ...(input.origins.length > 0
      ? []
      : [
          problem("config.missing-field", "origins", "is empty", {
            allowed: "at least one name",
            fix: "List the names that clients use, or remove `serverNames` to use the names of the host.",
          }),
        ]),
    ...texts.flatMap(([path, received, rule]) => {
      const { allowed } = rule;
      return typeof received === "string" && accepting(rule)(received)
        ? []
        : [problem("settings.bad-value", path, `is not ${allowed}`, { received, allowed })];
    }),
    ...ports.flatMap(([path, received]) =>
      isPort(Number(received))
        ? []
        : [problem("config.out-of-range", path, "is not a port", { received, allowed: "1 to 65535" })],
    ),
  ];
  if (startCommand === undefined) return bad;
  const command = commandProblems(startCommand, "startCommand");
  if (command.length > 0 || startCommand.slice(1).includes("start")) return [...bad, ...command];
  const allowed = "the start script, then the argument `start`";
  const fix = "Add the argument `start`.";
  const message = "does not start the web application";
  return [
    ...bad,
    problem("unit.bad-value", "startCommand", message, { received: startCommand, allowed, fix }),
  ];
}
