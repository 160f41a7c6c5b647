import { Construct, type IConstruct } from "constructs";
import { formatProblem, type Problem, type ProxyConfigInput } from "../model/index.js";
import { DEFAULT_HOST_PATHS, type HostPaths, renderProxyConfig } from "../render/index.js";
import { configProblems } from "./checks.js";
import type { Host } from "./host.js";
import { HostFile } from "./hostFile.js";
import { Listener, type ListenerProps } from "./listener.js";
import { PROXY, proxyOf, type ProxyScope } from "./proxyScope.js";
import { guardServerNames } from "./serverNameGuard.js";
import type { TlsFiles, TlsMaterial } from "./tlsMaterial.js";
import { renderJsonAroundTokens, settleTokens } from "./tokens.js";
import { Upstream, type UpstreamProps } from "./upstream.js";
import { VirtualServer, type VirtualServerProps } from "./virtualServer.js";

/**
 * A proxy on a host: it owns the listeners, virtual servers and upstreams below it, and writes the config they come to.
 * What passes when the app is synthesized loads on the host, since both use the same rules.
 */
export class ReverseProxy extends Construct implements ProxyScope {
  /** The proxy that a construct belongs to: the nearest one above it. */
  static of(construct: IConstruct): ReverseProxy {
    return proxyOf(construct) as ReverseProxy;
  }

  /** @internal */
  readonly [PROXY] = true;
  /** The host it runs on. */
  readonly host: Host;
  /** Where its files lie on the host. */
  readonly paths: HostPaths;
  /** The config file. */
  readonly configFile: HostFile;
  private readonly props: ReverseProxyProps;
  private readonly materials = new Map<TlsMaterial, TlsFiles>();

  constructor(scope: Construct, id: string, props: ReverseProxyProps) {
    super(scope, id);
    this.props = props;
    this.host = props.host;
    this.paths = { ...DEFAULT_HOST_PATHS, ...props.paths };
    this.configFile = new HostFile(this, "Config", {
      host: props.host,
      path: this.paths.config,
      content: () => renderJsonAroundTokens(this.config, renderProxyConfig),
      role: "config",
    });
    guardServerNames(this.configFile, () => this.config);
    this.node.addValidation({ validate: () => this.problems.map(formatProblem) });
  }

  /** Adds a listener and returns it. */
  addListener(id: string, props: ListenerProps): Listener {
    return new Listener(this, id, props);
  }

  /** Adds a virtual server and returns it. */
  addVirtualServer(id: string, props: VirtualServerProps): VirtualServer {
    return new VirtualServer(this, id, props);
  }

  /** Adds an upstream and returns it. */
  addUpstream(id: string, props: UpstreamProps): Upstream {
    return new Upstream(this, id, props);
  }

  /** Listeners below this proxy, in the order they were added. */
  get listeners(): readonly Listener[] {
    return this.node.findAll().filter((child) => child instanceof Listener);
  }

  /** Virtual servers below this proxy, in the order they were added. */
  get virtualServers(): readonly VirtualServer[] {
    return this.node.findAll().filter((child) => child instanceof VirtualServer);
  }

  /** Upstreams below this proxy, then those elsewhere that its routes name. */
  get upstreams(): readonly Upstream[] {
    const own = this.node.findAll().filter((child) => child instanceof Upstream);
    const named = this.virtualServers.flatMap((server) =>
      server.routes.flatMap((route) => route.action.upstream ?? []),
    );
    return [...new Set([...own, ...named])];
  }

  /** The config as it stands now; may contain tokens. */
  get config(): ProxyConfigInput {
    const { workers, trustedProxies, limits, timeouts, logs } = this.props;
    const { logDirectory } = this.paths;
    const config: ProxyConfigInput = {
      version: 1,
      workers,
      trustedProxies,
      logs: {
        access: { path: `${logDirectory}/access.log` },
        error: { path: `${logDirectory}/error.log` },
        ...logs,
      },
      limits,
      timeouts,
      listeners: this.listeners.map((listener) => listener.render()),
      upstreams: this.upstreams.map((upstream) => upstream.render()),
      virtualServers: this.virtualServers.map((server) => server.render()),
    };
    return settleTokens(this, config);
  }

  /** Everything the host would refuse; empty if the config loads. Checked whenever the app is synthesized. */
  get problems(): readonly Problem[] {
    const problems = configProblems(this.config);
    return problems.map((p) => ({
      ...p,
      path: p.path === "" ? this.node.path : `${this.node.path}: ${p.path}`,
    }));
  }

  /** Files of a TLS material on this proxy's host; the material's resources are made at the first call. */
  tlsFiles(material: TlsMaterial): TlsFiles {
    const known = this.materials.get(material);
    if (known !== undefined) return known;
    const files = material.bind(this, { host: this.host, directory: this.paths.tlsDirectory });
    this.materials.set(material, files);
    return files;
  }
}

export interface ReverseProxyProps {
  /** The host it runs on. */
  readonly host: Host;
  /**
   * Paths on the host that differ from the defaults.
   * @default DEFAULT_HOST_PATHS
   */
  readonly paths?: Partial<HostPaths>;
  /**
   * Worker processes, 1 to 256; `auto` for one a CPU.
   * @default "auto"
   */
  readonly workers?: "auto" | number;
  /**
   * Addresses and CIDR ranges of proxies in front of this one. Only their forwarding fields are believed.
   * @default - none
   */
  readonly trustedProxies?: readonly string[];
  /**
   * Main logs, for routes without logs of their own; `off` for none (errors then go to standard error).
   * @default - access.log and error.log in the log directory
   */
  readonly logs?: ProxyConfigInput["logs"];
  /**
   * Limits of every worker: head bytes, connections, streams and more.
   * @default - see the config reference
   */
  readonly limits?: ProxyConfigInput["limits"];
  /**
   * Timeouts of connections: request head, keep-alive, TLS handshake, drain; in milliseconds.
   * @default - see the config reference
   */
  readonly timeouts?: ProxyConfigInput["timeouts"];
}
