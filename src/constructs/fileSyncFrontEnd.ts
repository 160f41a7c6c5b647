import { TerraformOutput, Token } from "cdktf";
import { Construct } from "constructs";
import type { PortForward } from "../model/host.js";
import { problem } from "../model/index.js";
import { type HostPaths, renderDefaultPage } from "../render/index.js";
import { Action } from "./action.js";
import { ApplicationSettings, type ApplicationSettingsProps } from "./applicationSettings.js";
import { refuse } from "./checks.js";
import {
  addListeners,
  addRoutes,
  addUpstreams,
  type FileSyncListeners,
  type FileSyncRoutes,
  type FileSyncUpstreamOverrides,
  type FileSyncUpstreams,
} from "./fileSyncServers.js";
import { Host, type HostProps } from "./host.js";
import { HostFile } from "./hostFile.js";
import type { Mode } from "./mode.js";
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
  /** Files of the TLS material; undefined in plain mode. */
  readonly tls?: TlsFiles;
  /** Page of the default server. */
  readonly defaultPage: HostFile;
  /** Runtime and units. */
  readonly service: ProxyService;
  readonly settings: ApplicationSettings;
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
    this.routes = addRoutes(this.application, this.proxy.paths.logDirectory, {
      upstreams: this.upstreams,
      base: `/${prefix}`,
      scheme: this.mode.scheme,
      serverName: this.serverNames[0],
      mediaDirectory: props.mediaDirectory ?? `${props.installDirectory}/media`,
      avatarDirectory: props.avatarDirectory,
      requestBodyTimeoutMs: props.requestBodyTimeoutMs,
      page,
    });
    this.defaultPage = new HostFile(this, "DefaultPage", {
      host: this.host,
      path: `${this.proxy.paths.defaultPageDirectory}/index.html`,
      content: props.defaultPage ?? renderDefaultPage(),
    });
    this.service = new ProxyService(this, "Service", { ...props.service, proxy: this.proxy });
    this.settings = this.addSettings(props, prefix);
    this.url = `${this.settings.values.serviceUrl}/`;
    if (props.outputs === true) this.addOutputs();
  }

  /** Forwards that a NAT router needs (spec 1.5); none if the host's IPv4 address is public. */
  get portForwards(): readonly PortForward[] {
    const { httpPort, publicPort, https } = this.mode;
    if (https === undefined) return this.host.portForwards({ from: publicPort, to: httpPort });
    return this.host.portForwards({ from: 80, to: httpPort }, { from: publicPort, to: https.httpsPort });
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
   * Whether to add Terraform outputs: URL, DNS records to create, ports to forward.
   * @default false
   */
  readonly outputs?: boolean;
}
