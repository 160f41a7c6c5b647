import { Construct } from "constructs";
import { type Daemon, daemonProblems, daemonUnit } from "../render/index.js";
import { refuse } from "./checks.js";
import type { Host } from "./host.js";
import { SystemdUnit } from "./systemdUnit.js";
import { checkAroundTokens } from "./tokens.js";

/**
 * Units for the application's daemons, where the application brings none: database, then file server, then web
 * application and WebDAV daemon, then the proxy start, and they stop in the opposite order (spec 3).
 */
export class ApplicationDaemons extends Construct {
  /** Unit of the file server. */
  readonly fileServer?: SystemdUnit;
  /** Unit of the web application. */
  readonly webApplication?: SystemdUnit;
  /** Unit of the WebDAV daemon. */
  readonly webdav?: SystemdUnit;

  constructor(scope: Construct, id: string, props: ApplicationDaemonsProps) {
    super(scope, id);
    const { databaseUnit = "mariadb.service", proxyUnit = "portico.service" } = props;
    const database = databaseUnit === false ? [] : [databaseUnit];
    const names = { ...DEFAULT_NAMES, ...props.names };
    const add = (daemon: DaemonName, after: readonly string[]): SystemdUnit | undefined => {
      const settings = props[daemon];
      if (settings === undefined) return undefined;
      const { problems } = checkAroundTokens(settings, daemonProblems);
      refuse(problems.map((p) => ({ ...p, path: `${this.node.path}.${daemon}.${p.path}` })));
      return new SystemdUnit(this, ID[daemon], {
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
    };
    this.fileServer = add("fileServer", database);
    const before = this.fileServer === undefined ? database : [...database, names.fileServer];
    this.webApplication = add("webApplication", before);
    this.webdav = add("webdav", before);
  }
}

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

export interface ApplicationDaemonsProps {
  /** The host that the application runs on. */
  readonly host: Host;
  /**
   * Upload and download (spec 1.2).
   * @default - no unit
   */
  readonly fileServer?: Daemon;
  /**
   * Web interface. Its command must not select the FastCGI variant (`unit.fastcgi-start`, spec 2.1): words that are
   * known only at apply are looked at by Terraform then.
   * @default - no unit
   */
  readonly webApplication?: Daemon;
  /**
   * WebDAV.
   * @default - no unit
   */
  readonly webdav?: Daemon;
  /**
   * Names of the units.
   * @default - sync-file-server.service, sync-web-application.service, sync-webdav.service
   */
  readonly names?: Partial<Record<DaemonName, string>>;
  /**
   * Unit of the database, which starts first; `false` if it runs elsewhere.
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
