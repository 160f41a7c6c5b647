import { Lazy, TerraformOutput, Token } from "cdktf";
import { Construct } from "constructs";
import { exposedPorts, loopbackPorts, type PortForward } from "../model/host.js";
import { problem } from "../model/index.js";
import { type HostPaths, renderDefaultPage } from "../render/index.js";
import { Action } from "./action.js";
import type { Activation } from "./activation.js";
import { ApplicationDaemons, type ApplicationDaemonsProps } from "./applicationDaemons.js";
import { ApplicationSettings, type ApplicationSettingsProps } from "./applicationSettings.js";
import { refuse } from "./checks.js";
import { activateFrontEnd, type FileSyncActivationProps } from "./fileSyncActivation.js";
import {
  addListeners,
  addRoutes,
  addUpstreams,
  type FileSyncListeners,
  type FileSyncRoutes,
  type FileSyncUpstreamOverrides,
  type FileSyncUpstreams,
} from "./fileSyncServers.js";
import { Firewall, type FirewallProps } from "./firewall.js";
import { Host, type HostProps } from "./host.js";
import { HostFile } from "./hostFile.js";
import type { Mode } from "./mode.js";
import { StaticNetwork, type StaticNetworkProps } from "./network.js";
import { ProxyService, type ProxyServiceProps } from "./proxyService.js";
import { ReverseProxy, type ReverseProxyProps } from "./reverseProxy.js";
import type { TlsFiles } from "./tlsMaterial.js";
import { hasTokens } from "./tokens.js";
import type { VirtualServer } from "./virtualServer.js";

/**
 * The whole front end of a file-sync web application: proxy, routes, TLS, units and settings on one host.
 * Every part is a member, and everything about it can be given by props or added afterwards.
 */
export class FileSyncFrontEnd extends Construct {
  readonly host: Host;
  readonly mode: Mode;
  readonly proxy: ReverseProxy;
  readonly listeners: FileSyncListeners;
  readonly upstreams: FileSyncUpstreams;
  /** Answers on the HTTP port for names that are not the application's (spec 1.3). */
  readonly defaultServer: VirtualServer;
  /** The application's virtual server: on the HTTP port in plain mode, on the HTTPS port in TLS mode. */
  readonly application: VirtualServer;
  /** Leads from HTTP to HTTPS; undefined in plain mode. */
  readonly redirect?: VirtualServer;
  readonly routes: FileSyncRoutes;
  /** Directories on the host that the media routes serve. */
  readonly media: { readonly directory: string; readonly avatarDirectory?: string };
  /** Files of the TLS material; undefined in plain mode. */
  readonly tls?: TlsFiles;
  /** Page of the default server. */
  readonly defaultPage: HostFile;
  /** Runtime and units. */
  readonly service: ProxyService;
  readonly settings: ApplicationSettings;
  /** The host's static address; undefined unless asked for. */
  readonly network?: StaticNetwork;
  /** Packet filter of the host; undefined unless asked for. */
  readonly firewall?: Firewall;
  /** Units of the application's daemons; undefined unless asked for. */
  readonly daemons?: ApplicationDaemons;
  /** What makes it all take effect; undefined for a local delivery unless asked for. */
  readonly activation?: Activation;
  /** Names clients ask for, the main one first. */
  readonly serverNames: readonly [string, ...string[]];
  /** Where users find the application. */
  readonly url: string;

  constructor(scope: Construct, id: string, props: FileSyncFrontEndProps) {
    super(scope, id);
    const prefix = props.pathPrefix ?? "sync";
    this.refuseProps(props, prefix);
    this.host = Construct.isConstruct(props.host) ? (props.host as Host) : new Host(this, "Host", props.host);
    this.mode = props.mode;
    this.serverNames = [...this.host.serverNames, ...(props.additionalServerNames ?? [])];
    this.proxy = new ReverseProxy(this, "Proxy", { ...props.proxy, host: this.host, paths: props.paths });
    this.listeners = addListeners(this.proxy, this.mode);
    this.upstreams = addUpstreams(this.proxy, props.upstreams ?? {});
    this.tls = this.listeners.https?.tlsFiles;
    const page = Action.staticFiles(this.proxy.paths.defaultPageDirectory, { index: ["index.html"] });
    this.defaultServer = this.addDefaultServer(page);
    this.redirect = this.addRedirectServer(`/${prefix}`);
    this.application = this.addApplicationServer();
    this.media = {
      directory: props.mediaDirectory ?? `${props.installDirectory}/media`,
      avatarDirectory: props.avatarDirectory,
    };
    this.routes = addRoutes(this.application, this.proxy.paths.logDirectory, {
      upstreams: this.upstreams,
      base: `/${prefix}`,
      scheme: this.mode.scheme,
      serverName: this.serverNames[0],
      mediaDirectory: this.media.directory,
      avatarDirectory: this.media.avatarDirectory,
      requestBodyTimeoutMs: props.requestBodyTimeoutMs,
      webdavDestination: props.webdavDestination,
      page,
    });
    this.defaultPage = new HostFile(this, "DefaultPage", {
      host: this.host,
      path: `${this.proxy.paths.defaultPageDirectory}/index.html`,
      content: props.defaultPage ?? renderDefaultPage(),
      role: "page",
    });
    this.service = new ProxyService(this, "Service", { ...props.service, proxy: this.proxy });
    this.settings = this.addSettings(props, prefix);
    this.url = `${this.settings.values.serviceUrl}/`;
    const { network, firewall, daemons } = props;
    const { host } = this;
    const { unitDirectory } = this.proxy.paths;
    if (network !== undefined) this.network = new StaticNetwork(this, "Network", { ...network, host });
    if (firewall !== undefined) this.firewall = this.addFirewall(firewall);
    if (daemons !== undefined) {
      this.daemons = new ApplicationDaemons(this, "Daemons", { ...daemons, host, unitDirectory });
    }
    if (props.activation !== undefined || host.delivery.needsActivation) {
      this.activation = activateFrontEnd(this, props.activation ?? {});
    }
    if (props.outputs === true) this.addOutputs();
  }

  /** TCP ports that the network reaches, ascending: those of the listeners, and the SSH server's (spec 8). */
  get exposedPorts(): readonly number[] {
    const reachable = this.proxy.listeners.filter(({ address }) => !/^127\.|^::1$/.test(address));
    const ports = reachable.map(({ port }) => port);
    return exposedPorts(ports, this.host.sshPort);
  }

  /** TCP ports that only the host itself may reach, ascending: the database's and the daemons' (spec 8). */
  get loopbackPorts(): readonly number[] {
    const urls = this.proxy.upstreams.map(({ url }) => url).filter((url) => !hasTokens(url));
    return loopbackPorts(urls).filter((port) => !this.exposedPorts.includes(port));
  }

  /** Forwards that a NAT router needs (spec 1.5); none if the host's IPv4 address is public. */
  get portForwards(): readonly PortForward[] {
    const { httpPort, publicPort, https } = this.mode;
    if (https === undefined) return this.host.portForwards({ from: publicPort, to: httpPort });
    return this.host.portForwards({ from: 80, to: httpPort }, { from: publicPort, to: https.httpsPort });
  }

  private addFirewall(props: FrontEndFirewallProps): Firewall {
    const { proxy, host } = this;
    return new Firewall(this, "Firewall", {
      // A static address needs no answers from a DHCP server.
      dhcpClient: this.network === undefined,
      ...props,
      host,
      ports: () => this.exposedPorts,
      loopbackPorts: () => this.loopbackPorts,
      unitDirectory: proxy.paths.unitDirectory,
    });
  }

  private get httpListeners() {
    const { http, http6 } = this.listeners;
    return http6 === undefined ? [http] : [http, http6];
  }

  private addDefaultServer(page: Action): VirtualServer {
    const server = this.proxy.addVirtualServer("default", {
      serverNames: ["_"],
      listeners: this.httpListeners,
      default: true,
      versionTokens: true,
    });
    server.addRoute("page", { path: "/", action: page });
    return server;
  }

  private addRedirectServer(path: string): VirtualServer | undefined {
    if (this.mode.https === undefined) return undefined;
    const server = this.proxy.addVirtualServer("redirect", {
      serverNames: this.serverNames,
      listeners: this.httpListeners,
    });
    const action = Action.redirect({ status: 301, scheme: "https", port: this.mode.publicPort });
    server.addRoute("https", { path, match: "prefix", action });
    return server;
  }

  private addApplicationServer(): VirtualServer {
    const { https, https6 } = this.listeners;
    if (https === undefined) {
      const { serverNames, httpListeners: listeners } = this;
      return this.proxy.addVirtualServer("application", { serverNames, listeners });
    }
    const listeners = https6 === undefined ? [https] : [https, https6];
    return this.proxy.addVirtualServer("application", { serverNames: ["_"], listeners, default: true });
  }

  private addSettings(props: FileSyncFrontEndProps, pathPrefix: string): ApplicationSettings {
    return new ApplicationSettings(this, "Settings", {
      ...props.settings,
      fileServer: props.settings?.fileServer ?? this.fileServerAddress(),
      directory: this.proxy.paths.settingsDirectory,
      host: this.host,
      scheme: this.mode.scheme,
      publicPort: this.mode.publicPort,
      serverNames: this.serverNames,
      pathPrefix,
    });
  }

  /** The file server listens where its upstream says. */
  private fileServerAddress(): { host: string; port: number } {
    const { url } = this.upstreams.fileServer;
    if (hasTokens(url)) {
      const fix = "Give `settings.fileServer`: the URL of its upstream is not known at synthesis.";
      refuse([problem("settings.bad-value", `${this.node.path}.settings.fileServer`, "is missing", { fix })]);
    }
    const [, host, port = "80"] = /^http:\/\/\[?([^\]/]+?)\]?(?::(\d+))?\/?$/.exec(url)!;
    return { host: host === "localhost" ? "127.0.0.1" : host!, port: Number(port) };
  }

  private addOutputs(): void {
    new TerraformOutput(this, "Url", { value: this.url, description: "Where users find the application." });
    new TerraformOutput(this, "DnsRecords", {
      value: this.host.dnsRecords,
      description: "DNS records to create; only for public addresses.",
    });
    new TerraformOutput(this, "PortForwards", {
      value: this.portForwards,
      description: "Ports that a NAT router has to forward to the host.",
    });
    new TerraformOutput(this, "ExposedPorts", {
      value: Lazy.anyValue({ produce: () => this.exposedPorts }),
      description: "TCP ports that the network reaches.",
    });
    new TerraformOutput(this, "LoopbackPorts", {
      value: Lazy.anyValue({ produce: () => this.loopbackPorts }),
      description: "TCP ports that only the host itself may reach.",
    });
  }

  private refuseProps(props: FileSyncFrontEndProps, prefix: string): void {
    const at = (name: string): string => `${this.node.path}.${name}`;
    if (!/^[A-Za-z0-9][A-Za-z0-9_-]*$/.test(prefix)) {
      const allowed = "one word of letters, digits, `-` and `_`";
      refuse([
        problem("config.bad-route-path", at("pathPrefix"), "is no word", { received: prefix, allowed }),
      ]);
    }
    if (props.installDirectory === undefined && props.mediaDirectory === undefined) {
      const fix = "Give the directory that the application is installed in, or that of its media.";
      refuse([problem("config.missing-field", at("installDirectory"), "is missing", { fix })]);
    }
    const { publicPort } = props.mode;
    const known = !Token.isUnresolved(publicPort);
    if (known && !(Number.isInteger(publicPort) && publicPort >= 1 && publicPort <= 65_535)) {
      const allowed = "1 to 65535";
      const message = "is no port";
      refuse([
        problem("config.out-of-range", at("mode.publicPort"), message, { received: publicPort, allowed }),
      ]);
    }
  }
}

type FrontEndFirewallProps = Omit<FirewallProps, "host" | "ports" | "loopbackPorts" | "unitDirectory">;

export interface FileSyncFrontEndProps {
  /** The host, or what makes one. */
  readonly host: Host | HostProps;
  /** Plain HTTP or TLS. */
  readonly mode: Mode;
  /**
   * Directory on the host that the web application is installed in; its media lie in `media` below it.
   * @default - none; then `mediaDirectory` is needed
   */
  readonly installDirectory?: string;
  /**
   * Directory of the static media: icons, avatars, scripts. It, what is above it and what is in it must be readable
   * for others (spec 2.3).
   * @default - `media` in the install directory
   */
  readonly mediaDirectory?: string;
  /**
   * Directory of avatars, if the application keeps them with its data and only links to them from the media
   * directory. Links that leave a directory are not followed, so avatars get a route of their own.
   * @default - avatars lie in the media directory
   */
  readonly avatarDirectory?: string;
  /**
   * The word that paths begin with: `sync` gives `/sync`, `/synchttp`, `/syncmedia`, `/syncdav`.
   * @default "sync"
   */
  readonly pathPrefix?: string;
  /**
   * Further names of the application, in lower case.
   * @default - none
   */
  readonly additionalServerNames?: readonly string[];
  /**
   * Changes to the daemons' addresses, timeouts and connection reuse, by daemon.
   * @default - 127.0.0.1 with the ports 8000, 8080, 8082, timeouts of 36000 s (spec 1.2, 8)
   */
  readonly upstreams?: FileSyncUpstreamOverrides;
  /**
   * Idle time allowed between two reads of a request body on the proxied routes, in milliseconds; then 408.
   * @default 60000
   */
  readonly requestBodyTimeoutMs?: number;
  /**
   * How the WebDAV daemon gets a `Destination` that points at this front end: as a path, which RFC 4918 allows, or
   * `absolute`, as Apache's mod_dav wants it; `unchanged` leaves it alone.
   * @default "path"
   */
  readonly webdavDestination?: "path" | "absolute" | "unchanged";
  /**
   * Settings of the proxy as a whole: workers, trusted proxies, main logs, limits, timeouts.
   * @default - see ReverseProxy
   */
  readonly proxy?: Omit<ReverseProxyProps, "host" | "paths">;
  /**
   * How the proxy runs: Node, runtime, stop timeout, open files.
   * @default - see ProxyService
   */
  readonly service?: Omit<ProxyServiceProps, "proxy">;
  /**
   * The application's settings that do not follow from the rest: the start command of the web application, and
   * whether settings can be changed through the web.
   * @default - no start command; not through the web
   */
  readonly settings?: Pick<ApplicationSettingsProps, "enableSettingsViaWeb" | "startCommand" | "fileServer">;
  /**
   * Paths on the host that differ from the defaults.
   * @default DEFAULT_HOST_PATHS
   */
  readonly paths?: Partial<HostPaths>;
  /**
   * HTML of the default server's page.
   * @default - a page that says no application is served at this address
   */
  readonly defaultPage?: string;
  /**
   * Write the host's static address for systemd-networkd: the interface, and what else the host's props do not say.
   * @default - the host's network is left as it is
   */
  readonly network?: Omit<StaticNetworkProps, "host">;
  /**
   * Filter what reaches the host: the exposed ports are open, all others are not; `{}` will do.
   * @default - no filter
   */
  readonly firewall?: FrontEndFirewallProps;
  /**
   * Units for the application's daemons, by daemon.
   * @default - the application brings its own
   */
  readonly daemons?: Omit<ApplicationDaemonsProps, "host" | "unitDirectory">;
  /**
   * How the deployment takes effect: `portico activate` checks it, stops and starts what changed, looks at the answers,
   * and puts back the last good state if they are not as expected. `{}` will do for a local delivery.
   * @default - with a delivery over ssh, nothing about the application is told; with a local one, no activation
   */
  readonly activation?: FileSyncActivationProps;
  /**
   * Whether to add Terraform outputs: URL, DNS records to create, ports to forward, ports exposed and on loopback only.
   * @default false
   */
  readonly outputs?: boolean;
}
