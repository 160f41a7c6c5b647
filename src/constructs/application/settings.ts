import { Fn, Op, Token } from "cdktf";
import { Construct } from "constructs";
import { freeId } from "../props/constructIds.js";
import { bracketed, defaultPort, type Problem, type PublicOrigin } from "../../model/index.js";
import { nameRule, PUBLIC_NAME } from "../../model/net/serverName.js";
import {
  type ApplicationSettingsInput,
  applicationSettingsValues,
  type ApplicationSettingsValues,
  APPLICATION_PATH,
  PATH_PREFIX,
  renderApplicationSettings,
  settingsProblems,
} from "../../applications/index.js";
import { DEFAULT_HOST_PATHS } from "../../render/index.js";
import { hostPathProblems } from "../props/checks.js";
import type { IHost } from "../host/host.js";
import { HostFile } from "../host/hostFile.js";
import { type FileSyncPathProps, ROUTE_PATHS } from "./paths.js";
import { HOST } from "../props/instances.js";
import { lateHostChecks } from "../props/hostChecks.js";
import { type LateValue, latePort, lateText } from "../props/lateChecks.js";
import {
  choice,
  fields,
  flag,
  listOf,
  number,
  type PropTable,
  refuseProps,
  required,
  text,
} from "../props/propTable.js";
import { guardStartVariant, lateWordChecks } from "../host/systemdUnit.js";
import {
  argument,
  checkAroundTokens,
  hasTokens,
  lateHostInUrl,
  renderAroundTokens,
} from "../props/tokens.js";

/**
 * The items of the application's settings, derived from the public URL. If the settings and the routes have different
 * schemes or hosts, login usually works but uploads fail.
 *
 * Each settings file of the application has a separate text in one directory on the host, for copying into that file.
 * The texts contain no secrets; the application's secret key is neither read nor written.
 */
export class ApplicationSettings extends Construct {
  /** Values by item. */
  readonly values: ApplicationSettingsValues;
  /** `network-daemon.conf`: SERVICE_URL. */
  readonly networkDaemonFile: HostFile;
  /** `web-application-settings.py`: items between the secret key and DATABASES. */
  readonly webApplicationFile: HostFile;
  /** `file-server.conf`: listen address and port of the file server. */
  readonly fileServerFile: HostFile;
  /** `web-application.service.conf`: a drop-in with the start command; undefined without `startCommand`. */
  readonly startCommandFile?: HostFile;

  constructor(scope: Construct, id: string, props: ApplicationSettingsProps) {
    super(scope, freeId(scope, id));
    refuseProps(this, props, APPLICATION_SETTINGS_PROPS, (fit) => settingsPropProblems(this.node.path, fit));
    const input = settingsInput(props);
    this.values = applicationSettingsValues(input);
    const { host, directory = DEFAULT_HOST_PATHS.settingsDirectory } = props;
    const file = (fileId: string, name: string): HostFile => {
      const render = (known: ApplicationSettingsInput): string =>
        renderApplicationSettings(known).find((f) => f.name === name)!.text;
      const content = renderAroundTokens(input, render);
      const made = new HostFile(this, fileId, {
        host,
        path: `${directory}/${name}`,
        content,
        role: "settings",
      });
      made.checkLate(() => lateSettingsChecks(this.node.path, props));
      return made;
    };
    this.networkDaemonFile = file("NetworkDaemon", "network-daemon.conf");
    this.webApplicationFile = file("WebApplication", "web-application-settings.py");
    this.fileServerFile = file("FileServer", "file-server.conf");
    if (props.startCommand !== undefined) {
      const { startCommand } = props;
      this.startCommandFile = file("StartCommand", "web-application.service.conf");
      guardStartVariant(this.startCommandFile, `${this.node.path}.startCommand`, () => startCommand);
    }
  }
}

/** @internal */
export const settingsPropProblems = (at: string, fit: Partial<ApplicationSettingsProps>): Problem[] => [
  ...checkAroundTokens(settingsInput(fit), settingsProblems).problems.map((p) => atProp(p, at)),
  ...hostPathProblems({ directory: fit.directory }, at),
];

function settingsInput(props: Partial<ApplicationSettingsProps>): ApplicationSettingsInput {
  const { host, scheme = "https", publicPort, fileServer } = props;
  const { serverNames = host?.serverNames ?? [] } = props;
  const port = publicPort ?? defaultPort(scheme);
  return {
    origins: serverNames.map((name) => originOf(scheme, name, port)),
    pathPrefix: props.pathPrefix ?? "sync",
    routePaths: props.routePaths,
    enableSettingsViaWeb: props.enableSettingsViaWeb ?? false,
    fileServerHost: fileServer?.host ?? "127.0.0.1",
    fileServerPort: textIfToken(fileServer?.port ?? 8082),
    startCommand: props.startCommand,
  };
}

/** @internal Leaves out the scheme's own port and adds brackets, also where only Terraform knows the value. */
export function originOf(scheme: "http" | "https", name: string, port: number): PublicOrigin {
  const own = defaultPort(scheme);
  const host = hasTokens(name) ? lateHostInUrl(name) : name;
  if (!hasTokens(port)) return { scheme, host, port };
  const known = hasTokens(host) ? host : bracketed(host);
  const suffix = Fn.conditional(Op.eq(port, own), "", Fn.join("", [":", argument(port)]));
  return { scheme, host: `${known}${Token.asString(suffix)}`, port: own };
}

/** Fields of the settings as the props that they come from. */
function atProp(p: Problem, at: string): Problem {
  const prop = p.path
    .replace("origins[0].port", "publicPort")
    .replace(/origins(\[.*\])\.host/, "serverNames$1")
    .replace("origins", "serverNames")
    .replace(/fileServer(Host|Port)/, (_, name: string) => `fileServer.${name.toLowerCase()}`);
  return { ...p, path: `${at}.${prop}` };
}

function lateSettingsChecks(at: string, props: ApplicationSettingsProps): LateValue[] {
  const { host, serverNames, publicPort, pathPrefix, routePaths = {} } = props;
  const { fileServer = {}, startCommand = [] } = props;
  const name = (path: string, value: unknown, rule = PUBLIC_NAME): LateValue[] =>
    lateText("settings.bad-value", `${at}.${path}`, rule, value);
  return [
    ...(serverNames === undefined
      ? lateHostChecks(host)
      : serverNames.flatMap((value, i) => name(`serverNames[${i}]`, value, nameRule(i)))),
    ...latePort(`${at}.publicPort`, publicPort),
    ...lateText("settings.bad-value", `${at}.pathPrefix`, PATH_PREFIX, pathPrefix),
    ...Object.entries(routePaths).flatMap(([route, path]) =>
      lateText("settings.bad-value", `${at}.routePaths.${route}`, APPLICATION_PATH, path),
    ),
    ...name("fileServer.host", fileServer.host),
    ...latePort(`${at}.fileServer.port`, fileServer.port),
    ...lateWordChecks(`${at}.startCommand`, startCommand),
  ];
}

/** A number that is not known yet must not be written into a text as the number that stands for it in cdktf. */
function textIfToken(value: number): number | string {
  return Token.isUnresolved(value) ? Token.asString(value) : value;
}

/** Inputs of the application's settings. */
export interface ApplicationSettingsProps extends FileSyncPathProps {
  /** The host that gets the texts. */
  readonly host: IHost;
  /** Scheme that clients use. */
  readonly scheme: "http" | "https";
  /**
   * Public names, the main one first; all URLs contain the main name. A further name may be `*.example.org`.
   * @default - the host's server names
   */
  readonly serverNames?: readonly string[];
  /**
   * Public port, if a router or another proxy maps the port. URLs contain the port unless it is the scheme's default.
   * @default 80 or 443
   */
  readonly publicPort?: number;
  /**
   * Whether settings can be changed in the web interface. The application's database stores these changes, and they
   * take priority over all settings files.
   * @default false
   */
  readonly enableSettingsViaWeb?: boolean;
  /**
   * Listen address and port of the file server. On loopback, clients reach the file server only through the proxy.
   * @default 127.0.0.1, port 8082
   */
  readonly fileServer?: FileServerListen;
  /**
   * Start script of the web application with its arguments, including `start`. The FastCGI variant is refused
   * (`unit.fastcgi-start`).
   * @default - no drop-in is written
   */
  readonly startCommand?: readonly string[];
  /**
   * Directory on the host for the texts.
   * @default "/usr/share/portico/application-settings"
   */
  readonly directory?: string;
}

/** The address and the port of the file server. */
export interface FileServerListen {
  /**
   * Listen address.
   * @default "127.0.0.1"
   */
  readonly host?: string;
  /**
   * TCP port, 1 to 65535.
   * @default 8082
   */
  readonly port?: number;
}

/** @internal */
export const APPLICATION_SETTINGS_PROPS: PropTable<ApplicationSettingsProps> = {
  host: required(HOST),
  scheme: required(choice("http", "https")),
  serverNames: listOf(text),
  publicPort: number,
  pathPrefix: text,
  routePaths: ROUTE_PATHS,
  enableSettingsViaWeb: flag,
  fileServer: fields<FileServerListen>({ host: text, port: number }),
  startCommand: listOf(text),
  directory: text,
};
