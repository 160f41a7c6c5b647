import { Construct, type IConstruct } from "constructs";
import { type Problem, problem } from "../../model/index.js";
import { DEFAULT_HOST_PATHS, type HostPaths, proxyConfigText } from "../../render/index.js";
import { hostPathProblems } from "../props/checks.js";
import { HOST_PROPS, hostFrom, hostPropProblems, type HostProps, type IHost } from "../host/host.js";
import { lateHostChecks } from "../props/hostChecks.js";
import { HostFile } from "../host/hostFile.js";
import { HOST } from "../props/instances.js";
import { either, fields, type PropTable, refuseProps, required, text } from "../props/propTable.js";
import type { IReverseProxy } from "./proxyInterfaces.js";
import { proxyOf } from "./proxyScope.js";
import { PROXY_SETTINGS, type ProxySettings, settingsProblems } from "./proxySettings.js";
import { ReverseProxyBase } from "./reverseProxyBase.js";
import { dhParametersFile, type TlsPlace } from "./tlsMaterial.js";
import { isKnown, renderJsonAroundTokens } from "../props/tokens.js";

/**
 * A proxy on a host. The proxy owns the listeners, virtual servers and upstreams below, and writes the config.
 * Synthesis and the host use the same rules: a config that passes synthesis loads on the host.
 */
export class ReverseProxy extends ReverseProxyBase implements IReverseProxy {
  readonly host: IHost;
  readonly paths: HostPaths;
  /** @internal Files and directories on the host that no route may serve, besides the proxy's own. */
  readonly privateFiles: string[] = [];
  readonly configFile: HostFile;
  /** @internal */
  protected readonly settings: ProxySettings;

  /** The proxy of a construct: the nearest proxy above. */
  static of(construct: IConstruct): ReverseProxy {
    return proxyOf(construct) as ReverseProxy;
  }

  constructor(scope: Construct, id: string, props: ReverseProxyProps) {
    super(scope, id);
    refuseProps(this, props, REVERSE_PROXY_PROPS, ({ host: given, paths, ...settings }) => [
      ...(given === undefined || Construct.isConstruct(given)
        ? []
        : hostPropProblems(`${this.node.path}/Host`, given)),
      ...hostPathProblems(paths, `${this.node.path}.paths`),
      ...settingsProblems(this.node.path, settings),
    ]);
    const { host, paths, ...settings } = props;
    this.host = hostFrom(this, host);
    this.paths = { ...DEFAULT_HOST_PATHS, ...paths };
    const { logDirectory } = this.paths;
    const logs = {
      access: { path: `${logDirectory}/access.log` },
      error: { path: `${logDirectory}/error.log` },
      ...settings.logs,
    };
    this.settings = { ...settings, logs };
    this.configFile = new HostFile(this, "Config", {
      host: this.host,
      path: this.paths.config,
      content: () => renderJsonAroundTokens(this.config, proxyConfigText),
      role: "config",
    });
    this.configFile.checkLate(() => lateHostChecks(this.host));
  }

  /** @internal Logs of the proxy as a whole. */
  get mainLogs(): ProxySettings["logs"] {
    return this.settings.logs;
  }

  /** @internal File with the secret of shared ticket keys, if there is one. */
  get ticketKeysFile(): string | undefined {
    return this.settings.ticketKeys?.file;
  }

  /** @internal */
  protected override get ownNames(): readonly string[] {
    const { address, ipv6Address, publicName } = this.host;
    return [address, ipv6Address, publicName].filter(
      (name) => name !== undefined && isKnown(name),
    ) as string[];
  }

  /** @internal */
  protected override placeProblems(): readonly Problem[] {
    const { config, tlsDirectory, settingsDirectory } = this.paths;
    return [
      ...this.sshPortProblems(),
      ...this.takenPortProblems(),
      ...this.directoryProblems([config, tlsDirectory, settingsDirectory, ...this.privateFiles]),
    ];
  }

  /** Listeners on the port of the host's SSH server. */
  private sshPortProblems(): Problem[] {
    const { sshPort } = this.host;
    const taken = this.listeners.filter(({ port }) => port === sshPort && isKnown(port));
    return taken.map(({ node, port }) =>
      problem("config.port-conflict", `${node.path}.port`, "is the port of the host's SSH server", {
        received: port,
        fix: "Choose another port, or correct the host's `sshPort` (`false` if there is no SSH server).",
      }),
    );
  }

  /** Listeners on a port of another proxy on the same host. */
  private takenPortProblems(): Problem[] {
    const proxies = this.node.root.node.findAll().filter((one) => one instanceof ReverseProxy);
    const before = proxies.slice(0, proxies.indexOf(this)).filter(({ host }) => host === this.host);
    const taken = before.flatMap(({ listeners }) => listeners);
    return this.listeners.flatMap((listener) => {
      const other = taken.find((one) => one.clashesWith(listener));
      if (other === undefined) return [];
      const fix = "Use another port or address, or one proxy with the virtual servers of both.";
      const message = `is taken by ${other.node.path} on the same host`;
      const more = { received: listener.port, fix };
      return [problem("config.port-conflict", `${listener.node.path}.port`, message, more)];
    });
  }

  /** @internal */
  protected override tlsPlace(): TlsPlace {
    const { host, paths } = this;
    const place = { host, directory: paths.tlsDirectory };
    return { ...place, dhParameters: () => dhParametersFile(this, place).path };
  }

  /** @internal */
  override onThisMachine(path: string): string | undefined {
    return this.host.delivery.onThisMachine(this.host, path);
  }
}

/** The host of a proxy, and the settings of the proxy as a whole. */
export interface ReverseProxyProps extends ProxySettings {
  /** The host that the proxy runs on: a `Host`, a construct of your own that is one (`IHost`), or props to make one. */
  readonly host: HostProps;
  /**
   * Paths on the host that differ from the defaults.
   * @default DEFAULT_HOST_PATHS
   */
  readonly paths?: Partial<HostPaths>;
}

/** @internal */
export const HOST_PATHS: PropTable<Partial<HostPaths>> = {
  config: text,
  tlsDirectory: text,
  runtime: text,
  defaultPageDirectory: text,
  unitDirectory: text,
  logDirectory: text,
  settingsDirectory: text,
  logRotation: text,
};

/** @internal */
export const REVERSE_PROXY_PROPS: PropTable<ReverseProxyProps> = {
  host: required(either(HOST, fields(HOST_PROPS))),
  paths: fields(HOST_PATHS),
  ...PROXY_SETTINGS,
};
