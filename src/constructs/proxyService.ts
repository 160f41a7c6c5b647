import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { Construct } from "constructs";
import { formatProblem, problem, ProblemError } from "../model/index.js";
import {
  CONFIG_SCHEMA_FILE,
  renderConfigSchema,
  clashingCredentials,
  proxyServiceUnit,
  proxySocketUnit,
  type ProxyUnitsInput,
} from "../render/index.js";
import type { Host } from "./host.js";
import { HostFile } from "./hostFile.js";
import type { NodeRuntime } from "./nodeRuntime.js";
import type { ReverseProxy } from "./reverseProxy.js";
import { SystemdUnit } from "./systemdUnit.js";

/** What runs a proxy on its host: the runtime, a hardened service unit, and a socket unit for its listeners. */
export class ProxyService extends Construct {
  /** The host it runs on. */
  readonly host: Host;
  /** Config of the proxy. */
  readonly config: HostFile;
  /** Absolute path of Node on the host. */
  readonly nodePath: string;
  /** Node itself, if it comes with the deployment. */
  readonly nodeBinary?: HostFile;
  /** The runtime: proxy and `portico` command in one file. */
  readonly runtime: HostFile;
  /** JSON Schema of the config, for editors. */
  readonly schema: HostFile;
  /** `portico.service`. */
  readonly serviceUnit: SystemdUnit;
  /** `portico.socket`: systemd listens and passes the sockets on, so the proxy needs no privileges. */
  readonly socketUnit: SystemdUnit;
  private readonly props: ProxyServiceProps;

  constructor(scope: Construct, id: string, props: ProxyServiceProps) {
    super(scope, id);
    this.props = props;
    const { host, paths } = props.proxy;
    const directory = paths.unitDirectory;
    this.host = host;
    this.config = props.proxy.configFile;
    const { nodeRuntime } = props;
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
      content: renderConfigSchema(),
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
    this.node.addValidation({ validate: () => this.clashes() });
  }

  private get unitsInput(): ProxyUnitsInput {
    const { nodePath } = this;
    const { proxy, stopTimeoutSeconds = 300, openFilesMax = 65_536 } = this.props;
    const { runtime, config, logDirectory } = proxy.paths;
    const routes = proxy.virtualServers.flatMap((server) => server.routes);
    return {
      nodePath,
      runtime,
      config,
      logDirectory,
      listeners: proxy.listeners.map(({ address, port }) => ({ address, port })),
      tlsFiles: this.tlsFiles,
      servedDirectories: routes.flatMap((route) => route.action.directory ?? []),
      stopTimeoutSeconds,
      openFilesMax,
    };
  }

  private get tlsFiles(): string[] {
    const files = this.props.proxy.listeners.flatMap(({ tlsFiles: tls }) =>
      tls === undefined
        ? []
        : [tls.key, tls.certificate, ...(tls.dhparam === undefined ? [] : [tls.dhparam])],
    );
    return [...new Set(files)];
  }

  private clashes(): string[] {
    return clashingCredentials(this.tlsFiles).map(([first, second]) =>
      formatProblem(
        problem("unit.bad-value", this.node.path, `cannot hand over ${first} and ${second} under one name`, {
          fix: "Give the TLS files of the proxy's listeners different base names.",
        }),
      ),
    );
  }
}

export interface ProxyServiceProps {
  /** The proxy to run. */
  readonly proxy: ReverseProxy;
  /**
   * Absolute path of Node on the host, version 20.19 or later.
   * @default - "/usr/bin/node", or "/usr/lib/portico/node" if Node comes with the deployment
   */
  readonly nodePath?: string;
  /**
   * A Node binary that comes with the deployment, so that the host needs none: `NodeRuntime.pinned()`.
   * @default - Node is on the host
   */
  readonly nodeRuntime?: NodeRuntime;
  /**
   * Another runtime to deploy, by its path on the machine that synthesizes.
   * @default - the runtime of this package
   */
  readonly runtimeBundle?: string;
  /**
   * How long a stop waits for running requests, in seconds; then they are cut. A reload waits as long as they take.
   * @default 300
   */
  readonly stopTimeoutSeconds?: number;
  /**
   * Most open files of each process. A proxied connection needs two, a served file two.
   * @default 65536
   */
  readonly openFilesMax?: number;
}

/** The runtime beside this module: in the package `dist/portico.mjs` lies above `dist/lib`, in the sources in `dist`. */
function packagedBundle(path: string): string {
  const places = ["../../portico.mjs", "../../dist/portico.mjs"].map((place) => resolve(__dirname, place));
  const found = places.find((place) => existsSync(place));
  if (found !== undefined) return found;
  const fix = "Run `npm run build`, or give `runtimeBundle`.";
  const message = "cannot be deployed: the runtime was not built";
  throw new ProblemError([problem("files.unreadable", path, message, { received: places[1], fix })]);
}
