import type { IConstruct } from "constructs";
import type { ProxyConfigInput } from "../../model/index.js";
import type { HostPaths } from "../../render/index.js";
import type { IHost } from "../host/host.js";
import type { HostFile } from "../host/hostFile.js";
import type { Listener } from "./listener.js";
import type { SystemdUnit } from "../host/systemdUnit.js";
import type { IUpstream } from "./upstream.js";
import type { VirtualServer } from "./virtualServer.js";

/**
 * Proxies and the constructs that run them, as props take them: those of this package, or constructs that delegate to
 * them.
 */

/** A proxy on a host: a `ReverseProxy`, or a construct of your own that passes on the members of a `ReverseProxy`. */
export interface IReverseProxy extends IProxy {
  /** The host of the proxy. */
  readonly host: IHost;
  /** Paths of the proxy's files on the host. */
  readonly paths: HostPaths;
  /** The config file. */
  readonly configFile: HostFile;
}

/** A proxy, on a host or in containers. */
export interface IProxy extends IConstruct {
  /** The current config; may contain tokens. */
  readonly config: ProxyConfigInput;
  /** Listeners below this proxy, in the order they were added. */
  readonly listeners: readonly Listener[];
  /** Virtual servers below this proxy, in the order they were added. */
  readonly virtualServers: readonly VirtualServer[];
  /** Upstreams below this proxy, then other upstreams that the routes use. */
  readonly upstreams: readonly IUpstream[];
}

/**
 * The service of a proxy: a `ProxyService`, or a construct of your own that passes on the members of a
 * `ProxyService`.
 */
export interface IProxyService extends IConstruct {
  /** The host that the service runs on. */
  readonly host: IHost;
  /** The proxy. */
  readonly proxy: IReverseProxy;
  /** Config of the proxy. */
  readonly config: HostFile;
  /** Absolute path of Node on the host. */
  readonly nodePath: string;
  /** Node itself, if the deployment contains Node. */
  readonly nodeBinary?: HostFile;
  /** The runtime: proxy and `portico` command in one file. */
  readonly runtime: HostFile;
  /** `portico.service`. */
  readonly serviceUnit: SystemdUnit;
  /** `portico.socket`: systemd opens the sockets and passes the sockets on, so the proxy needs no privileges. */
  readonly socketUnit: SystemdUnit;
}

/**
 * A proxy in containers: a `ContainerProxy`, or a construct of your own that passes on the members of a
 * `ContainerProxy`.
 */
export interface IContainerProxy extends IProxy {
  /** Files that containers need besides the config, by path, in the order they were added. */
  readonly files: ReadonlyMap<string, string>;
}
