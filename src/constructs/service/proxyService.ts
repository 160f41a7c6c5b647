import { existsSync } from "node:fs";
import { basename } from "node:path";
import { Fn, Op, Token } from "cdktf";
import { Construct } from "constructs";
import { packageFile } from "../packageFile.js";
import { freeId } from "../props/constructIds.js";
import { formatProblem, type Problem, problem, ProblemError } from "../../model/index.js";
import type { LateRule } from "../../model/lateValues.js";
import { accepting } from "../../model/text/textRule.js";
import {
  ACCOUNT,
  accountProblems,
  CONFIG_SCHEMA_FILE,
  renderLogRotation,
  clashingCredentials,
  isProgramPath,
  PROGRAM_PATH,
  proxyServiceUnit,
  proxySocketUnit,
  type ProxyUnitsInput,
  UNIT_MEMORY,
  UNIT_PATH,
} from "../../render/index.js";
import type { IHost } from "../host/host.js";
import { HostFile } from "../host/hostFile.js";
import { NODE_RUNTIME, REVERSE_PROXY } from "../props/instances.js";
import { late, type LateValue, lateNumber, lateText, patternsOf } from "../props/lateChecks.js";
import type { NodeRuntime } from "../host/nodeRuntime.js";
import { listOf, number, type PropTable, refuseProps, required, text } from "../props/propTable.js";
import type { IProxyService, IReverseProxy } from "../proxy/proxyInterfaces.js";
import { proxyBehind } from "../proxy/proxyScope.js";
import { unreachable } from "../proxy/servedDirectories.js";
import { Renewals } from "./renewals.js";
import { SystemdUnit } from "../host/systemdUnit.js";
import { argument, hasTokens, isKnown, lateHostInUrl, renderAroundTokens } from "../props/tokens.js";

/** The service of a proxy on a host: the runtime, a hardened service unit, and a socket unit for the listeners. */
export class ProxyService extends Construct implements IProxyService {
  readonly host: IHost;
  readonly proxy: IReverseProxy;
  readonly config: HostFile;
  readonly nodePath: string;
  readonly nodeBinary?: HostFile;
  readonly runtime: HostFile;
  /** JSON Schema of the config, for editors. */
  readonly schema: HostFile;
  readonly serviceUnit: SystemdUnit;
  readonly socketUnit: SystemdUnit;
  /** File for logrotate, for daily rotation of the logs; undefined without rotation. */
  readonly logRotation?: HostFile;
  private readonly props: ProxyServiceProps;
  private readonly renewals: Renewals;

  constructor(scope: Construct, id: string, props: ProxyServiceProps) {
    super(scope, freeId(scope, id));
    refuseProps(this, props, PROXY_SERVICE_PROPS, (fit) => serviceProblems(this.node.path, fit));
    this.props = props;
    const { nodeRuntime, proxy, logDaysKept: keptDays = 14 } = props;
    const { host, paths } = proxy;
    const directory = paths.unitDirectory;
    this.host = host;
    this.proxy = proxy;
    this.config = proxy.configFile;
    this.nodePath = props.nodePath ?? (nodeRuntime === undefined ? "/usr/bin/node" : "/usr/lib/portico/node");
    if (nodeRuntime !== undefined) {
      this.nodeBinary = new HostFile(this, "Node", {
        host,
        path: this.nodePath,
        source: nodeRuntime.binary(),
        mode: "0755",
        role: "node",
      });
    }
    const source = props.runtimeBundle ?? packagedBundle(this.node.path);
    this.runtime = new HostFile(this, "Runtime", {
      host,
      path: paths.runtime,
      source,
      mode: "0755",
      role: "runtime",
    });
    this.schema = new HostFile(this, "Schema", {
      host,
      path: CONFIG_SCHEMA_FILE,
      source: packagedSchema(this.node.path),
    });
    const unit = () => proxyServiceUnit(this.unitsInput);
    this.serviceUnit = new SystemdUnit(this, "ServiceUnit", {
      host,
      directory,
      name: "portico.service",
      unit,
    });
    const socket = () => proxySocketUnit(this.unitsInput);
    this.socketUnit = new SystemdUnit(this, "SocketUnit", {
      host,
      directory,
      name: "portico.socket",
      unit: socket,
    });
    this.serviceUnit.checkLate(() => [
      ...lateServiceChecks(this.node.path, props),
      ...this.unitPaths.flatMap(([at, path]) => lateText("unit.bad-value", at, UNIT_PATH, path)),
      ...this.lateLogDirectoryChecks(),
    ]);
    this.node.addValidation({ validate: () => this.clashes() });
    this.renewals = new Renewals(this, proxy);
    if (keptDays === 0) return;
    this.logRotation = new HostFile(this, "LogRotation", {
      host,
      path: paths.logRotation,
      content: () =>
        renderAroundTokens({ logs: this.logs, keptDays, service: "portico.service" }, renderLogRotation),
    });
    // 0 means that there is no such file. Written into the file, it would make logrotate delete every log.
    this.logRotation.checkLate(() => [
      ...lateNumber(`${this.node.path}.logDaysKept`, 1, LOG_DAYS_MAX, keptDays),
      ...lateText("unit.bad-value", `${proxy.node.path}.paths.logDirectory`, UNIT_PATH, paths.logDirectory),
    ]);
  }

  /**
   * `portico-certificates.path`: watches existing certificates and secrets on the host, and makes the proxy load
   * changed files; undefined without such files.
   */
  get renewalPathUnit(): SystemdUnit | undefined {
    return this.renewals.pathUnit;
  }

  /** Files that the proxy logs to, each once. */
  private get logs(): string[] {
    const { logs, virtualServers } = this.props.proxy.config;
    const routes = virtualServers.flatMap(({ routes = [] }) => routes);
    const all = [
      logs?.access,
      logs?.error,
      ...routes.flatMap(({ accessLog, errorLog }) => [accessLog, errorLog]),
    ];
    return [...new Set(all.flatMap((log) => (typeof log === "object" && "path" in log ? [log.path] : [])))];
  }

  private get unitsInput(): ProxyUnitsInput {
    const { nodePath } = this;
    const { proxy, openFilesMax = 65_536, memoryMax = "50%", groups = [] } = this.props;
    const { runtime, config, logDirectory } = proxy.paths;
    const routes = proxy.virtualServers.flatMap((server) => server.routes);
    return {
      nodePath,
      runtime,
      config,
      ...(this.logs.length === 0 ? {} : { logDirectory }),
      listeners: proxy.listeners.map(({ address, port }) => ({ address, port })),
      tlsFiles: this.tlsFiles,
      acme: proxyBehind(proxy).usedTlsFiles.some(([, files]) => files.acme !== undefined),
      ...(hasTokens(this.tlsFiles) ? { baseNameOf } : {}),
      ...(hasTokens(proxy.listeners.map(({ address }) => address)) ? { hostOf: lateHostInUrl } : {}),
      servedDirectories: routes.flatMap((route) => route.action.directory ?? []),
      ...(groups.length === 0 ? {} : { groups }),
      stopTimeoutSeconds: this.stopSeconds,
      openFilesMax,
      memoryMax,
    };
  }

  /** The requests have their time from when the proxy drains. */
  private get stopSeconds(): number {
    const { proxy, stopTimeoutSeconds = 300 } = this.props;
    const { drainDelayMs = 0 } = proxy.config.timeouts ?? {};
    if (isKnown([stopTimeoutSeconds, drainDelayMs]))
      return stopTimeoutSeconds + Math.ceil(drainDelayMs / 1000);
    return Token.asNumber(
      Op.add(stopTimeoutSeconds, Fn.ceil(Op.div(drainDelayMs, 1000) as unknown as number)),
    );
  }

  private get tlsFiles(): string[] {
    return this.tlsPaths.map(([, path]) => path);
  }

  /**
   * Files that the proxy gets as credentials: those of TLS, to upstreams too, and of request fields. Each with the prop
   * that it comes from.
   */
  private get tlsPaths(): [at: string, path: string][] {
    const found = new Map<string, string>();
    const { node } = this.props.proxy;
    const { ticketKeysFile, credentialFiles, usedTlsFiles } = proxyBehind(this.props.proxy);
    if (ticketKeysFile !== undefined) found.set(ticketKeysFile, `${node.path}.ticketKeys.file`);
    for (const [at, { key, certificate, dhparam, authorityFiles }] of usedTlsFiles) {
      for (const [name, path] of Object.entries({ key, certificate, dhparam, ...authorityFiles })) {
        if (path !== undefined && !found.has(path)) found.set(path, `${at}.${name}`);
      }
    }
    for (const [at, path] of credentialFiles) if (!found.has(path)) found.set(path, at);
    return [...found].map(([path, at]) => [at, path]);
  }

  /** Paths in directives that systemd splits. */
  private get unitPaths(): [at: string, path: string][] {
    const { node, paths } = this.proxy;
    return [[`${node.path}.paths.logDirectory`, paths.logDirectory], ...this.tlsPaths];
  }

  /** systemd makes directories below /var/log: whether it is one must be known when the unit is written. */
  private lateLogDirectoryChecks(): LateValue[] {
    const { node, paths } = this.props.proxy;
    const rule = {
      pattern: "^/",
      never: "^/var/log(?:/|$)",
      allowed: "a directory outside /var/log, or a path that begins with a literal `/var/log/`",
    };
    const { logDirectory } = paths;
    if (logDirectory.startsWith("/")) return [];
    return lateText("unit.bad-value", `${node.path}.paths.logDirectory`, rule, logDirectory);
  }

  private clashes(): string[] {
    const bad = this.unitPaths
      .filter(([, path]) => isKnown(path) && !isUnitPath(path))
      .map(([at, received]) => {
        const { allowed } = UNIT_PATH;
        const message = "is a path that systemd would split into several in portico.service";
        return formatProblem(problem("unit.bad-value", at, message, { received, allowed }));
      });
    return [...bad, ...this.sameNames(), ...this.problems.map(formatProblem)];
  }

  /** @internal Problems of files that the unit hides from the proxy. */
  get problems(): readonly Problem[] {
    return unreachable(this.props.proxy, this.logs);
  }

  private sameNames(): string[] {
    return clashingCredentials(this.tlsFiles).map(([first, second]) =>
      formatProblem(
        problem("unit.bad-value", this.node.path, `cannot pass ${first} and ${second} under the same name`, {
          fix: "Rename one of the two files.",
        }),
      ),
    );
  }
}

/** Options of the proxy's service. */
export interface ProxyServiceProps {
  /** The proxy to run. */
  readonly proxy: IReverseProxy;
  /**
   * Absolute path of Node on the host, version 20.19 or later: letters, digits and `./_-+@:,=`.
   * @default - "/usr/bin/node", or "/usr/lib/portico/node" if Node comes with the deployment
   */
  readonly nodePath?: string;
  /**
   * A Node binary in the deployment, for a host without Node: `NodeRuntime.pinned()`.
   * @default - Node is on the host
   */
  readonly nodeRuntime?: NodeRuntime;
  /**
   * Another runtime to deploy, by its path on the machine that synthesizes.
   * @default - the runtime of this package
   */
  readonly runtimeBundle?: string;
  /**
   * Time that a stop waits for running requests, in seconds from 1 to 604800; then the requests are cut. The proxy's
   * `drainDelayMs` passes before this time. A reload waits until the requests end.
   * @default 300
   */
  readonly stopTimeoutSeconds?: number;
  /**
   * Most open files of each process, 256 to 1048576. A proxied connection needs two, a served file two.
   * @default 65536
   */
  readonly openFilesMax?: number;
  /**
   * Most memory of all processes, in the syntax of systemd (`MemoryMax=`): `128M` or more, `2G`, or `1%` to `100%` of
   * the host's memory. This limit determines `limits.connectionsMax`, `connectionsPerClientMax` and
   * `concurrentStreamsMax` that the proxy does not set, so that clients cannot exceed the memory. `infinity` removes
   * the limit; the three limits then have the defaults of the config.
   * @default "50%"
   */
  readonly memoryMax?: string;
  /**
   * Groups of the host for the proxy's user, to access a Unix socket or served files. The groups must exist.
   * @default - none
   */
  readonly groups?: readonly string[];
  /**
   * Days of logs to keep, 0 to 3650: logrotate(8) rotates the logs every day, compresses the logs, and makes the
   * proxy open new files. The host needs the package `logrotate`, which Debian and Ubuntu servers have. 0: no file
   * for logrotate; the logs grow without other rotation.
   * @default 14
   */
  readonly logDaysKept?: number;
}

const isUnitPath = accepting(UNIT_PATH);

const baseNameOf = (path: string): string =>
  hasTokens(path) ? (Fn.basename(argument(path)) as string) : path.slice(path.lastIndexOf("/") + 1);

const LOG_DAYS_MAX = 3_650;

/** @internal */
export const packagedBundle = (path: string): string =>
  packaged(path, "portico.mjs", "the runtime was not built", "Run `npm run build`, or set `runtimeBundle`.");

const packagedSchema = (path: string): string =>
  packaged(path, basename(CONFIG_SCHEMA_FILE), "the schema was not built", "Run `npm run build`.");

/** A built file. */
function packaged(path: string, file: string, why: string, fix: string): string {
  const place = packageFile("dist", file);
  if (existsSync(place)) return place;
  const message = `cannot be deployed: ${why}`;
  throw new ProblemError([problem("files.unreadable", path, message, { received: place, fix })]);
}

/** @internal */
export const PROXY_SERVICE_PROPS: PropTable<ProxyServiceProps> = {
  proxy: required(REVERSE_PROXY),
  nodePath: text,
  nodeRuntime: NODE_RUNTIME,
  runtimeBundle: text,
  stopTimeoutSeconds: number,
  openFilesMax: number,
  memoryMax: text,
  groups: listOf(text),
  logDaysKept: number,
};

interface ServiceRule {
  readonly name: "stopTimeoutSeconds" | "openFilesMax" | "logDaysKept" | "nodePath" | "memoryMax";
  /** The problem of a value that does not fit. */
  readonly problem: (at: string, received?: unknown) => Problem;
  readonly rule: LateRule;
  readonly accepts: (value: unknown) => boolean;
}

function range(name: ServiceRule["name"], minimum: number, maximum: number): ServiceRule {
  const allowed = `a whole number from ${minimum} to ${maximum}`;
  return {
    name,
    problem: (at, received) => problem("config.out-of-range", at, "is out of range", { received, allowed }),
    rule: { minimum, maximum },
    accepts: (value) => Number.isInteger(value) && Number(value) >= minimum && Number(value) <= maximum,
  };
}

const RULES: readonly ServiceRule[] = [
  range("stopTimeoutSeconds", 1, 604_800),
  range("openFilesMax", 256, 1_048_576),
  range("logDaysKept", 0, LOG_DAYS_MAX),
  {
    name: "nodePath",
    problem: (at, received) =>
      problem("config.bad-file-path", at, "is not the path of a program", {
        received,
        allowed: "an absolute path of letters, digits and ./_-+@:,=",
        fix: "Use the path that `command -v node` prints on the host.",
      }),
    rule: patternsOf(PROGRAM_PATH),
    accepts: (value) => isProgramPath(value as string),
  },
  {
    name: "memoryMax",
    problem: (at, received) =>
      problem("unit.bad-value", at, "is not an amount of memory", { received, allowed: UNIT_MEMORY.allowed }),
    rule: patternsOf(UNIT_MEMORY),
    accepts: (value) => accepting(UNIT_MEMORY)(value as string),
  },
];

/** @internal */
export function serviceProblems(at: string, props: Partial<ProxyServiceProps>): Problem[] {
  const groups = isKnown(props.groups) ? (props.groups ?? []) : [];
  return [
    ...RULES.flatMap(({ name, problem, accepts }) => {
      const value = props[name];
      return value === undefined || !isKnown(value) || accepts(value)
        ? []
        : [problem(`${at}.${name}`, value)];
    }),
    ...groups.flatMap((group, i) => (isKnown(group) ? accountProblems(`${at}.groups[${i}]`, group) : [])),
  ];
}

function lateServiceChecks(at: string, props: ProxyServiceProps): LateValue[] {
  return [
    ...RULES.filter(({ name }) => name !== "logDaysKept").flatMap(({ name, problem, rule }) =>
      late(problem(`${at}.${name}`), rule, props[name]),
    ),
    ...(props.groups ?? []).flatMap((group, i) =>
      lateText("unit.bad-value", `${at}.groups[${i}]`, ACCOUNT, group),
    ),
  ];
}
