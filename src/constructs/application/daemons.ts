import { Construct } from "constructs";
import { freeId } from "../props/constructIds.js";
import { type Problem, problem } from "../../model/index.js";
import {
  ACCOUNT,
  type Daemon,
  DAEMON_PATH,
  DAEMON_SECONDS_MAX,
  daemonProblems,
  daemonUnit,
} from "../../render/index.js";
import type { IHost } from "../host/host.js";
import { HOST } from "../props/instances.js";
import { type LateValue, lateNumber, lateText } from "../props/lateChecks.js";
import {
  choice,
  either,
  fields,
  flag,
  listOf,
  number,
  type PropTable,
  record,
  refuseProps,
  required,
  text,
} from "../props/propTable.js";
import { SystemdUnit, UNIT_NAME } from "../host/systemdUnit.js";
import { checkAroundTokens, isKnown } from "../props/tokens.js";

/**
 * Units for the daemons of an application that brings no units. Start order: database, file server, web application
 * and WebDAV daemon, proxy; the stop order is the reverse. No daemon runs without the daemons that it needs.
 */
export class ApplicationDaemons extends Construct {
  /** Unit of the file server. */
  readonly fileServer?: SystemdUnit;
  /** Unit of the web application. */
  readonly webApplication?: SystemdUnit;
  /** Unit of the WebDAV daemon. */
  readonly webdav?: SystemdUnit;

  constructor(scope: Construct, id: string, props: ApplicationDaemonsProps) {
    super(scope, freeId(scope, id));
    refuseProps(this, props, APPLICATION_DAEMONS_PROPS, (fit) => daemonPropProblems(this.node.path, fit));
    const { databaseUnit = "mariadb.service", proxyUnit = "portico.service" } = props;
    const database = databaseUnit === false ? [] : [databaseUnit];
    const names = allNames(props);
    const add = (daemon: DaemonName, after: readonly string[]): SystemdUnit | undefined => {
      const settings = props[daemon];
      if (settings === undefined) return undefined;
      const made = new SystemdUnit(this, ID[daemon], {
        host: props.host,
        directory: props.unitDirectory,
        name: names[daemon],
        unit: daemonUnit({
          daemon: settings,
          description: DESCRIPTION[daemon],
          after,
          before: [proxyUnit],
        }),
      });
      made.checkLate(() => lateDaemonChecks(`${this.node.path}.${daemon}`, settings));
      return made;
    };
    this.fileServer = add("fileServer", database);
    const before = this.fileServer === undefined ? database : [...database, names.fileServer];
    this.webApplication = add("webApplication", before);
    this.webdav = add("webdav", before);
  }
}

/** @internal */
export const daemonPropProblems = (at: string, fit: Partial<ApplicationDaemonsProps>): Problem[] => [
  ...unitNameProblems({ databaseUnit: fit.databaseUnit, proxyUnit: fit.proxyUnit }, at),
  ...(["fileServer", "webApplication", "webdav"] as const).flatMap((daemon) =>
    fit[daemon] === undefined
      ? []
      : checkAroundTokens(fit[daemon], daemonProblems).problems.map((p) => ({
          ...p,
          path: `${at}.${daemon}.${p.path}`,
        })),
  ),
];

function unitNameProblems(
  units: Readonly<Record<string, string | false | undefined>>,
  at: string,
): Problem[] {
  return Object.entries(units).flatMap(([name, received]) => {
    if (received === false || received === undefined || !isKnown(received) || UNIT_NAME.test(received))
      return [];
    const allowed = "a name such as mariadb.service";
    return [problem("unit.bad-value", `${at}.${name}`, "is not the name of a unit", { received, allowed })];
  });
}

function lateDaemonChecks(at: string, daemon: Daemon): LateValue[] {
  return [
    ...(["user", "group"] as const).flatMap((name) =>
      lateText("unit.bad-value", `${at}.${name}`, ACCOUNT, daemon[name]),
    ),
    ...(["workingDirectory", "environmentFile", "pidFile"] as const).flatMap((name) =>
      lateText("config.bad-file-path", `${at}.${name}`, DAEMON_PATH, daemon[name]),
    ),
    ...(daemon.writableDirectories ?? []).flatMap((path, i) =>
      lateText("config.bad-file-path", `${at}.writableDirectories[${i}]`, DAEMON_PATH, path),
    ),
    ...(["startTimeoutSeconds", "stopTimeoutSeconds"] as const).flatMap((name) =>
      lateNumber(`${at}.${name}`, 1, DAEMON_SECONDS_MAX, daemon[name]),
    ),
  ];
}

/** Names of the application's daemons in props. */
export type DaemonName = "fileServer" | "webApplication" | "webdav";

const ID = { fileServer: "FileServer", webApplication: "WebApplication", webdav: "Webdav" } as const;

const DESCRIPTION = {
  fileServer: "File server of the file-sync application",
  webApplication: "Web application of the file-sync application",
  webdav: "WebDAV daemon of the file-sync application",
} as const;

const DEFAULT_NAMES = {
  fileServer: "sync-file-server.service",
  webApplication: "sync-web-application.service",
  webdav: "sync-webdav.service",
} as const;

const allNames = ({ names }: Pick<ApplicationDaemonsProps, "names">) => ({ ...DEFAULT_NAMES, ...names });

/** @internal Names of the units that the props make. */
export function unitNames(props: Omit<ApplicationDaemonsProps, "host">): Partial<Record<DaemonName, string>> {
  const names = Object.entries(allNames(props)) as [DaemonName, string][];
  return Object.fromEntries(names.filter(([daemon]) => props[daemon] !== undefined));
}

/** Options of the units for the application's daemons. */
export interface ApplicationDaemonsProps {
  /** The host of the application. */
  readonly host: IHost;
  /**
   * The file server, for uploads and downloads.
   * @default - no unit
   */
  readonly fileServer?: Daemon;
  /**
   * The web interface. The command must not select the FastCGI variant (`unit.fastcgi-start`), because the proxy
   * sends HTTP. The host checks words of the command that are known only at apply.
   * @default - no unit
   */
  readonly webApplication?: Daemon;
  /**
   * The WebDAV daemon.
   * @default - no unit
   */
  readonly webdav?: Daemon;
  /**
   * Names of the units.
   * @default - sync-file-server.service, sync-web-application.service, sync-webdav.service
   */
  readonly names?: Partial<Record<DaemonName, string>>;
  /**
   * Unit of the database, which starts first; `false` if the host has no such unit.
   * @default "mariadb.service"
   */
  readonly databaseUnit?: string | false;
  /**
   * Unit of the proxy, which starts last.
   * @default "portico.service"
   */
  readonly proxyUnit?: string;
  /**
   * Directory of the units on the host.
   * @default "/etc/systemd/system"
   */
  readonly unitDirectory?: string;
}

const DAEMON = fields<Daemon>({
  command: required(listOf(text)),
  type: required(choice("exec", "forking", "notify")),
  user: required(text),
  group: text,
  stopCommand: listOf(text),
  pidFile: text,
  workingDirectory: text,
  environment: record,
  environmentFile: text,
  restart: choice("on-failure", "always", "no"),
  startTimeoutSeconds: number,
  stopTimeoutSeconds: number,
  hardening: flag,
  writableDirectories: listOf(text),
  directives: record,
});

/** @internal */
export const APPLICATION_DAEMONS_PROPS: PropTable<ApplicationDaemonsProps> = {
  host: required(HOST),
  fileServer: DAEMON,
  webApplication: DAEMON,
  webdav: DAEMON,
  names: fields<Partial<Record<DaemonName, string>>>({
    fileServer: text,
    webApplication: text,
    webdav: text,
  }),
  databaseUnit: either(choice(false), text),
  proxyUnit: text,
  unitDirectory: text,
};
