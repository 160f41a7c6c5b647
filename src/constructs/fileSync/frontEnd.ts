import { Lazy, TerraformOutput } from "cdktf";
import { Construct } from "constructs";
import { freeId } from "../constructIds.js";
import type { PortForward } from "../../model/host.js";
import {
  canonicalAddress,
  formatProblem,
  isLoopback,
  isWildcard,
  problem,
  ProblemError,
  upstreamAddress,
} from "../../model/index.js";
import { fileSyncPaths } from "../../applications/index.js";
import { renderDefaultPage } from "../../render/index.js";
import { Action } from "../action.js";
import { settingsFiles, takenNameProblems } from "./claims.js";
import { warn } from "../warn.js";
import type { Activation } from "../activation.js";
import { ApplicationDaemons } from "./daemons.js";
import { ApplicationSettings } from "./settings.js";
import { activateFrontEnd, describeFrontEnd } from "./activation.js";
import { dnsRecordsOutput } from "../dnsOutput.js";
import {
  addRoutes,
  addServers,
  addUpstreams,
  applicationUrl,
  type FileSyncRoutes,
  type FileSyncUpstreams,
  httpsOf,
  rootRedirect,
} from "./servers.js";
import { type FileSyncFrontEndProps, refuseFrontEnd, refuseLostAddress, refuseSameNames } from "./props.js";
import { fileSyncExpectations, type MediaDirectories } from "../../applications/index.js";
import type { Firewall } from "../firewall.js";
import {
  addFirewall,
  addListeners,
  exposedPortsOf,
  type FrontEndListeners,
  loopbackPortsOf,
  portForwardsOf,
} from "../frontEndParts.js";
import { Host } from "../host.js";
import { HostFile } from "../hostFile.js";
import type { Mode } from "../mode.js";
import type { Listener } from "../listener.js";
import { StaticNetwork } from "../network.js";
import { ProxyService } from "../proxyService.js";
import { ReverseProxy } from "../reverseProxy.js";
import type { TlsFiles } from "../tlsMaterial.js";
import { hasTokens, isKnown } from "../props/tokens.js";
import type { VirtualServer } from "../virtualServer.js";

/**
 * The whole front end of a file-sync web application: proxy, routes, TLS, units and settings on one host.
 * Every part is a member, and everything about it can be given by props or added afterwards.
 */
export class FileSyncFrontEnd extends Construct {
  /** The host it runs on. */
  readonly host: Host;
  /** Plain HTTP or TLS. */
  readonly mode: Mode;
  /** The proxy; further listeners, virtual servers and upstreams are added to it. */
  readonly proxy: ReverseProxy;
  /** The listeners. */
  readonly listeners: FrontEndListeners;
  /** The application's daemons. */
  readonly upstreams: FileSyncUpstreams;
  /** Answers on the HTTP port for names that are not the application's. */
  readonly defaultServer: VirtualServer;
  /** The application's virtual server: on the HTTP port in plain mode, on the HTTPS port in TLS mode. */
  readonly application: VirtualServer;
  /** Leads from HTTP to HTTPS; undefined in plain mode. */
  readonly redirect?: VirtualServer;
  /** Routes of the application's virtual server. */
  readonly routes: FileSyncRoutes;
  /** Directories on the host that the media routes serve. */
  readonly media: MediaDirectories;
  /** Files of the TLS material; undefined in plain mode. */
  readonly tls?: TlsFiles;
  /** Page of the default server. */
  readonly defaultPage: HostFile;
  /** Runtime and units. */
  readonly service: ProxyService;
  /** The application's settings that follow from all this. */
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
    super(scope, freeId(scope, id));
    refuseFrontEnd(this, props);
    const paths = fileSyncPaths(props.pathPrefix, props.routePaths);
    this.host = Construct.isConstruct(props.host) ? (props.host as Host) : new Host(this, "Host", props.host);
    this.mode = props.mode;
    refuseSameNames(this, props);
    refuseLostAddress(this);
    this.warnOfOtherAddress();
    this.serverNames = [...this.host.serverNames, ...(props.additionalServerNames ?? [])];
    this.proxy = new ReverseProxy(this, "Proxy", { ...props.proxy, host: this.host, paths: props.paths });
    this.listeners = addListeners(this.proxy, this.mode, this.serverNames);
    this.upstreams = addUpstreams(this.proxy, props.upstreams ?? {});
    this.tls = this.listeners.https?.tlsFiles;
    const page = Action.staticFiles(this.proxy.paths.defaultPageDirectory, { index: ["index.html"] });
    const { listeners, mode, serverNames } = this;
    const path = paths.web;
    const root = props.rootRedirect === true ? rootRedirect(mode, path) : undefined;
    const place = { scheme: mode.scheme, host: serverNames[0], path };
    const expect = fileSyncExpectations(place, root !== undefined);
    const common = { listeners, mode, serverNames, paths, expect };
    const servers = addServers(this.proxy, { ...common, page, root, responseHeaders: props.responseHeaders });
    this.defaultServer = servers.defaultServer;
    this.redirect = servers.redirect;
    this.application = servers.application;
    this.node.addValidation({ validate: () => takenNameProblems(this).map(formatProblem) });
    this.proxy.privateFiles.push(...settingsFiles(props));
    this.media = {
      directory: props.mediaDirectory ?? `${props.installDirectory}/media`,
      avatarDirectory: props.avatarDirectory,
    };
    this.routes = addRoutes(this.application, this.proxy.paths.logDirectory, {
      upstreams: this.upstreams,
      paths,
      scheme: this.mode.scheme,
      serverName: this.serverNames[0],
      mediaDirectory: this.media.directory,
      avatarDirectory: this.media.avatarDirectory,
      requestBodyTimeoutMs: props.requestBodyTimeoutMs,
      webdavDestination: props.webdavDestination,
      responseHeaders: props.routeResponseHeaders,
      page: root ?? page,
      expect,
      logs: props.proxy?.logs,
    });
    this.defaultPage = new HostFile(this, "DefaultPage", {
      host: this.host,
      path: `${this.proxy.paths.defaultPageDirectory}/index.html`,
      content: props.defaultPage ?? renderDefaultPage(root && applicationUrl(mode, serverNames[0], path)),
      role: "page",
    });
    this.service = new ProxyService(this, "Service", { ...props.service, proxy: this.proxy });
    this.settings = this.addSettings(props);
    this.url = `${this.settings.values.serviceUrl}/`;
    const { network, firewall, daemons } = props;
    const { host } = this;
    const { unitDirectory } = this.proxy.paths;
    if (network !== undefined) this.network = new StaticNetwork(this, "Network", { ...network, host });
    if (firewall !== undefined) {
      // A static address needs no answers from a DHCP server.
      this.firewall = addFirewall(this, { dhcpClient: this.network === undefined, ...firewall });
    }
    if (daemons !== undefined) {
      this.daemons = new ApplicationDaemons(this, "Daemons", { ...daemons, host, unitDirectory });
    }
    if (props.activation !== undefined || host.delivery.needsActivation) {
      this.activation = activateFrontEnd(this, props.activation ?? {});
    } else describeFrontEnd(this);
    if (props.outputs === true) this.addOutputs();
  }

  /** The HTTPS listener on IPv4: `listeners.https`, for where there is one. In plain mode it is refused. */
  get httpsListener(): Listener {
    return httpsOf(this);
  }

  /** TCP ports that the network reaches, ascending: those of the listeners, and the SSH server's. */
  get exposedPorts(): readonly number[] {
    return exposedPortsOf(this);
  }

  /** TCP ports that only the host itself may reach, ascending: the database's and the daemons'. */
  get loopbackPorts(): readonly number[] {
    return loopbackPortsOf(this);
  }

  /** Forwards that a NAT router needs; none if the host's IPv4 address is public. */
  get portForwards(): readonly PortForward[] {
    return portForwardsOf(this);
  }

  /** Settings, certificate and DNS records name the host's own address. */
  private warnOfOtherAddress(): void {
    const { host, mode } = this;
    for (const name of ["address", "ipv6Address"] as const) {
      const [own, listens] = [name === "address" ? host.clientAddress : host[name], mode[name]];
      if (own === undefined || !isKnown([own, listens]) || isWildcard(listens) || isLoopback(listens))
        continue;
      if (canonicalAddress(own) === canonicalAddress(listens)) continue;
      warn(
        this,
        `The proxy listens on ${listens} only, and the host's ${name}, which clients are sent to, is ${own}.`,
      );
    }
  }

  private addSettings(props: FileSyncFrontEndProps): ApplicationSettings {
    return new ApplicationSettings(this, "Settings", {
      ...props.settings,
      fileServer: props.settings?.fileServer ?? this.fileServerAddress(),
      directory: this.proxy.paths.settingsDirectory,
      host: this.host,
      scheme: this.mode.scheme,
      publicPort: this.mode.publicPort,
      serverNames: this.serverNames,
      pathPrefix: props.pathPrefix,
      routePaths: props.routePaths,
    });
  }

  /** The file server listens where its upstream says. */
  private fileServerAddress(): { host: string; port: number } {
    const { url } = this.upstreams.fileServer;
    const leads = hasTokens(url) ? undefined : upstreamAddress(url);
    if (leads !== undefined && "port" in leads) {
      const { host, port } = leads;
      return { host: host === "localhost" ? "127.0.0.1" : host, port };
    }
    const why = leads === undefined ? "is not known at synthesis" : "names no port";
    const fix = `Give \`settings.fileServer\`: the URL of its upstream ${why}.`;
    const more = { allowed: "an object with host, port", fix };
    throw new ProblemError([
      problem("settings.bad-value", `${this.node.path}.settings.fileServer`, "is missing", more),
    ]);
  }

  private addOutputs(): void {
    new TerraformOutput(this, "Url", { value: this.url, description: "Where users find the application." });
    new TerraformOutput(this, "DnsRecords", {
      value: dnsRecordsOutput(this.host),
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
}
