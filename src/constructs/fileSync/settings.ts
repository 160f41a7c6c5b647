import { Fn, Op, Token } from "cdktf";
import { Construct } from "constructs";
import { freeId } from "../constructIds.js";
import { bracketed, defaultPort, type Problem } from "../../model/index.js";
import { nameRule, PUBLIC_NAME } from "../../model/serverName.js";
import {
  type ApplicationSettingsInput,
  applicationSettingsValues,
  type ApplicationSettingsValues,
  FILE_SYNC_PATH,
  type FileSyncPaths,
  PATH_PREFIX,
  renderApplicationSettings,
  settingsProblems,
} from "../../applications/index.js";
import { DEFAULT_HOST_PATHS, type PublicOrigin } from "../../render/index.js";
import { hostPathProblems } from "../props/checks.js";
import type { IHost } from "../host.js";
import { HostFile } from "../hostFile.js";
import { ROUTE_PATHS } from "./paths.js";
import { HOST } from "../props/instances.js";
import { type LateCheck, latePort, lateText } from "../props/lateChecks.js";
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
import { guardStartVariant, lateWordChecks } from "../systemdUnit.js";
import {
  argument,
  checkAroundTokens,
  hasTokens,
  lateHostInUrl,
  renderAroundTokens,
} from "../props/tokens.js";

/**
 * The application's configuration items, all derived from the address that clients use: a scheme or host that
 * differs from the routes' is the most common reason why login works but upload fails.
 *
 * For each of the application's files there is a separate text in one directory on the host, to be copied into
 * that file. The files hold no secret, and the application's own secret key is neither read nor written.
 */
export class ApplicationSettings extends Construct {
  /** Item by item. */
  readonly values: ApplicationSettingsValues;
  /** `network-daemon.conf`: SERVICE_URL. */
  readonly networkDaemonFile: HostFile;
  /** `web-application-settings.py`: what goes between the secret-key item and the DATABASES item. */
  readonly webApplicationFile: HostFile;
  /** `file-server.conf`: where the file server listens. */
  readonly fileServerFile: HostFile;
  /** `web-application.service.conf`: a drop-in with the start command; undefined if none was given. */
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
      guardStartVariant(this.startCommandFile, () => startCommand);
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
    ...(props.routePaths === undefined ? {} : { routePaths: props.routePaths }),
    enableSettingsViaWeb: props.enableSettingsViaWeb ?? false,
    fileServerHost: fileServer?.host ?? "127.0.0.1",
    fileServerPort: textIfToken(fileServer?.port ?? 8082),
    ...(props.startCommand === undefined ? {} : { startCommand: props.startCommand }),
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

function lateSettingsChecks(at: string, props: ApplicationSettingsProps): LateCheck[] {
  const { host, serverNames, publicPort, pathPrefix, routePaths = {} } = props;
  const { fileServer = {}, startCommand = [] } = props;
  const name = (path: string, value: unknown, rule = PUBLIC_NAME): LateCheck[] =>
    lateText("settings.bad-value", `${at}.${path}`, rule, value);
  return [
    ...(serverNames === undefined
      ? host.lateChecks()
      : serverNames.flatMap((value, i) => name(`serverNames[${i}]`, value, nameRule(i)))),
    ...latePort(`${at}.publicPort`, publicPort),
    ...lateText("settings.bad-value", `${at}.pathPrefix`, PATH_PREFIX, pathPrefix),
    ...Object.entries(routePaths).flatMap(([route, path]) =>
      lateText("settings.bad-value", `${at}.routePaths.${route}`, FILE_SYNC_PATH, path),
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

/** What the application's settings follow from. */
export interface ApplicationSettingsProps {
  /** The host that the application runs on. */
  readonly host: IHost;
  /** Scheme that clients use. */
  readonly scheme: "http" | "https";
  /**
   * Names that clients use, the main one first; it is the one in all URLs. A further one may be `*.example.org`.
   * @default - the host's server names
   */
  readonly serverNames?: readonly string[];
  /**
   * Port that clients use, if a router or another proxy maps it; written unless it is the scheme's default.
   * @default 80 or 443
   */
  readonly publicPort?: number;
  /**
   * The word that the application's paths begin with.
   * @default "sync"
   */
  readonly pathPrefix?: string;
  /**
   * Paths that the word does not give, as those of the routes.
   * @default - none
   */
  readonly routePaths?: Partial<FileSyncPaths>;
  /**
   * Whether settings may be changed through the web interface. Those changes are stored in the application's
   * database and take priority over its files from then on, also over what is written here.
   * @default false
   */
  readonly enableSettingsViaWeb?: boolean;
  /**
   * Where the file server listens; on loopback it is reachable only through the proxy.
   * @default 127.0.0.1, port 8082
   */
  readonly fileServer?: FileServerListen;
  /**
   * Start script of the web application with its arguments, `start` among them. The FastCGI variant is refused
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

/** Where the file server listens. */
export interface FileServerListen {
  /**
   * Address that it listens on.
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
