import { isPort, type Problem, problem } from "../model/index.js";
import { PUBLIC_NAME } from "../model/serverName.js";
import { accepting, type TextRule } from "../model/textRule.js";
import { type PublicOrigin, renderOrigin } from "./publicOrigin.js";
import { commandProblems, renderUnit, type UnitCommand } from "./systemdUnit.js";

/** What the application's settings follow from. */
export interface ApplicationSettingsInput {
  /** Origins under which clients reach the application, the main one first. */
  readonly origins: readonly PublicOrigin[];
  /** The word its paths begin with: `sync` gives `/sync`, `/synchttp`, `/syncmedia`, `/syncdav`. */
  readonly pathPrefix: string;
  readonly enableSettingsViaWeb: boolean;
  readonly fileServerHost: string;
  readonly fileServerPort: number | string;
  /** Start script of the web application and its arguments. */
  readonly startCommand?: UnitCommand["command"];
}

/** The configuration items and their values. */
export interface ApplicationSettingsValues {
  /** `SERVICE_URL`: where users find the application. */
  readonly serviceUrl: string;
  /** `FILE_SERVER_ROOT`: where clients reach the file server. */
  readonly fileServerRoot: string;
  /** `SERVE_STATIC`: off, since the proxy serves static files. */
  readonly serveStatic: false;
  /** `MEDIA_URL`: path of the media. */
  readonly mediaUrl: string;
  /** `SITE_ROOT`: path of the application, with a slash at its end. */
  readonly siteRoot: string;
  /** `LOGIN_URL`: path of the login page. */
  readonly loginUrl: string;
  /** `COMPRESS_URL`: path of compressed media. */
  readonly compressUrl: string;
  /** `STATIC_URL`: path of static files. */
  readonly staticUrl: string;
  /** `ENABLE_SETTINGS_VIA_WEB`: whether settings may be changed through the web. */
  readonly enableSettingsViaWeb: boolean;
  /** Origins whose forms the web application accepts; Django 4 refuses a login without them behind TLS. */
  readonly csrfTrustedOrigins: readonly string[];
  /** `host` of the file server: the address it listens on. */
  readonly fileServerHost: string;
  /** `port` of the file server; a text where Terraform fills it in. */
  readonly fileServerPort: number | string;
}

export function applicationSettingsValues(input: ApplicationSettingsInput): ApplicationSettingsValues {
  const { origins, pathPrefix: prefix } = input;
  const main = renderOrigin(origins[0]!);
  const mediaUrl = `/${prefix}media/`;
  return {
    serviceUrl: `${main}/${prefix}`,
    fileServerRoot: `${main}/${prefix}http`,
    serveStatic: false,
    mediaUrl,
    siteRoot: `/${prefix}/`,
    loginUrl: `/${prefix}/accounts/login/`,
    compressUrl: mediaUrl,
    staticUrl: `${mediaUrl}assets/`,
    enableSettingsViaWeb: input.enableSettingsViaWeb,
    csrfTrustedOrigins: origins.map(renderOrigin),
    fileServerHost: input.fileServerHost,
    fileServerPort: input.fileServerPort,
  };
}

/** A text to copy into one of the application's own files. */
export interface SettingsFile {
  readonly name: string;
  readonly text: string;
}

/** One text for each of the application's files that the items belong to. */
export function renderApplicationSettings(input: ApplicationSettingsInput): SettingsFile[] {
  const values = applicationSettingsValues(input);
  const files = [
    { name: "network-daemon.conf", text: networkDaemon(values) },
    { name: "web-application-settings.py", text: webApplication(values) },
    { name: "file-server.conf", text: fileServer(values) },
  ];
  if (input.startCommand === undefined) return files;
  return [...files, { name: "web-application.service.conf", text: startDropIn(input.startCommand) }];
}

function networkDaemon(values: ApplicationSettingsValues): string {
  return `[General]\nSERVICE_URL = ${values.serviceUrl}\n`;
}

function fileServer(values: ApplicationSettingsValues): string {
  return `[fileserver]\nhost = ${values.fileServerHost}\nport = ${values.fileServerPort}\n`;
}

/** The items of the web application's settings file (service 2.1), in the order in which they are written. */
export function webApplicationItems(
  values: ApplicationSettingsValues,
): [string, string | boolean | readonly string[]][] {
  return [
    ["FILE_SERVER_ROOT", values.fileServerRoot],
    ["SERVE_STATIC", values.serveStatic],
    ["MEDIA_URL", values.mediaUrl],
    ["SITE_ROOT", values.siteRoot],
    ["LOGIN_URL", values.loginUrl],
    ["COMPRESS_URL", values.compressUrl],
    ["STATIC_URL", values.staticUrl],
    ["ENABLE_SETTINGS_VIA_WEB", values.enableSettingsViaWeb],
    ["CSRF_TRUSTED_ORIGINS", values.csrfTrustedOrigins],
  ];
}

function webApplication(values: ApplicationSettingsValues): string {
  const place = "# Between the secret-key item and the DATABASES item.\n";
  return (
    place +
    webApplicationItems(values)
      .map(([name, value]) => `${name} = ${pythonLiteral(value)}\n`)
      .join("")
  );
}

/** A drop-in for the web application's service unit; the empty ExecStart removes the one it had. */
function startDropIn(command: UnitCommand["command"]): string {
  return renderUnit({ Service: { ExecStart: ["", { command }] } });
}

/** A Python literal of the same value. */
export function pythonLiteral(value: string | boolean | readonly string[]): string {
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "string") return `[${value.map(pythonLiteral).join(", ")}]`;
  const escaped = value
    .replaceAll("\\", "\\\\")
    .replaceAll("'", "\\'")

    .replace(/[\u0000-\u001f\u007f]/g, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, "0")}`);
  return `'${escaped}'`;
}

type Rule = TextRule & { readonly allowed: string };

/** The word that the application's paths begin with. */
export const PATH_PREFIX: Rule = {
  pattern: "^[A-Za-z0-9][A-Za-z0-9_-]*$",
  allowed: "one word of letters, digits, `-` and `_`",
};

/**
 * What is wrong with the input: values that are not what the settings are to hold (nor would quotes carry them safely
 * through an ini file, whose readers differ in what they expand), and a start command other than the start script with
 * the argument `start` (service 2.4).
 */
export function settingsProblems(input: ApplicationSettingsInput): Problem[] {
  const { startCommand, pathPrefix, fileServerHost, fileServerPort } = input;
  const texts: [string, unknown, Rule][] = [
    ["pathPrefix", pathPrefix, PATH_PREFIX],
    ["fileServerHost", fileServerHost, PUBLIC_NAME],
    ...input.origins.map(({ host }, i): [string, unknown, Rule] => [`origins[${i}].host`, host, PUBLIC_NAME]),
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
            fix: "Name the host as clients do, or leave the names out for those of the host.",
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
