import { OF_FRONT_END, sayWhere } from "../elsewhere.js";
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
import {
  type ApplicationDefinition,
  type ApplicationSettingsValues,
  fileSyncPaths,
  fileSyncService,
  type MediaDirectories,
} from "../../applications/index.js";
import { renderDefaultPage } from "../../render/index.js";
import { secretPlaces, takenNameProblems } from "./claims.js";
import { warn } from "../warn.js";
import type { Activation } from "../activation.js";
import { ApplicationDaemons, unitNames } from "./daemons.js";
import { ApplicationSettings } from "./settings.js";
import { activateFrontEnd, describeFrontEnd } from "./activation.js";
import { addSite, defaultServerOf, httpsOf } from "./servers.js";
import type { FileSyncRoutes, FileSyncSite, FileSyncUpstreams } from "./members.js";
import { SettingsTexts } from "./settingsTexts.js";
import type { AnyFrontEndProps, FileSyncFrontEndProps } from "./frontEndProps.js";
import { refuseFrontEnd, refuseLostAddress, refuseSameNames } from "./props.js";
import type { Firewall } from "../firewall.js";
import {
  addFirewall,
  addListeners,
  exposedPortsOf,
  type FrontEndListeners,
  type IFrontEnd,
  loopbackPortsOf,
  portForwardsOf,
} from "../frontEndParts.js";
import { dnsRecordsOutput, hostFrom, type IHost } from "../host.js";
import { HostFile } from "../hostFile.js";
import type { Mode } from "../mode.js";
import type { Listener } from "../listener.js";
import { StaticNetwork } from "../network.js";
import { ProxyService } from "../proxyService.js";
import { ReverseProxy } from "../reverseProxy.js";
import type { TlsFiles } from "../tlsMaterial.js";
import { refuse } from "../props/checks.js";
import { hasTokens, isKnown } from "../props/tokens.js";
import type { IUpstream } from "../upstream.js";
import type { VirtualServer } from "../virtualServer.js";

/**
 * The whole front end of a file-sync web application: proxy, routes, TLS, units and settings on one host. Every part
 * is a member, and can be changed by props or afterwards.
 */
export class FileSyncFrontEnd<
  Upstreams extends object = FileSyncUpstreams,
  Routes extends object = FileSyncRoutes,
>
  extends Construct
  implements IFrontEnd, FileSyncSite<Upstreams, Routes>
{
  readonly host: IHost;
  readonly mode: Mode;
  readonly proxy: ReverseProxy;
  readonly listeners: FrontEndListeners;
  readonly upstreams: Upstreams;
  private readonly ownDefault?: VirtualServer;
  readonly application: VirtualServer;
  readonly redirect?: VirtualServer;
  readonly routes: Routes;
  private readonly ownMedia?: MediaDirectories;
  /** Files of the TLS material; undefined in plain mode. */
  readonly tls?: TlsFiles;
  /** Page of the default server. */
  readonly defaultPage: HostFile;
  readonly service: ProxyService;
  private readonly ownSettings?: ApplicationSettings;
  /** Texts for the settings of another application; undefined for the default application. */
  readonly settingsTexts?: SettingsTexts;
  /** The host's static address; undefined without `network`. */
  readonly network?: StaticNetwork;
  readonly firewall?: Firewall;
  /** Units of the application's daemons; undefined without `daemons`. */
  readonly daemons?: ApplicationDaemons;
  readonly activation?: Activation;
  readonly serverNames: readonly [string, ...string[]];
  readonly url: string;

  constructor(scope: Construct, id: string, props: FileSyncFrontEndProps<Upstreams, Routes>) {
    super(scope, freeId(scope, id));
    refuseFrontEnd(this, props);
    this.host = hostFrom(this, props.host);
    this.mode = props.mode;
    refuseSameNames(this, props);
    refuseLostAddress(this);
    this.warnOfOtherAddress();
    this.serverNames = [...this.host.serverNames, ...(props.additionalServerNames ?? [])];
    this.proxy = new ReverseProxy(this, "Proxy", { ...props.proxy, host: this.host, paths: props.paths });
    this.listeners = addListeners(this.proxy, this.mode, this.serverNames);
    this.tls = this.listeners.https?.tlsFiles;
    if (props.application === undefined) this.ownMedia = mediaOf(props);
    const values = () => this.settings.values;
    const application = props.application?.definition ?? fileSyncDefinition(props, this.ownMedia!, values);
    const { listeners, mode, serverNames } = this;
    const { defaultPageDirectory: pageDirectory, logDirectory, settingsDirectory } = this.proxy.paths;
    const logs = props.proxy?.logs;
    const parts = { application, listeners, mode, serverNames, pageDirectory, logDirectory, logs };
    const site = addSite(this.proxy, { ...props, ...parts });
    this.upstreams = site.upstreams as Upstreams;
    this.ownDefault = site.defaultServer;
    this.redirect = site.redirect;
    this.application = site.application;
    this.routes = site.routes as Routes;
    this.url = site.url;
    this.node.addValidation({ validate: () => takenNameProblems(this).map(formatProblem) });
    this.defaultPage = new HostFile(this, "DefaultPage", {
      host: this.host,
      path: `${pageDirectory}/index.html`,
      content: props.defaultPage ?? renderDefaultPage(site.linked),
      role: "page",
    });
    this.service = new ProxyService(this, "Service", { ...props.service, proxy: this.proxy });
    if (props.application === undefined) {
      this.ownSettings = this.addSettings(props, site.upstreams.fileServer!);
    } else {
      const given = { application, place: site.place, host: this.host, directory: settingsDirectory };
      this.settingsTexts = new SettingsTexts(this, "Settings", given);
    }
    const settings = application.settings?.(site.place);
    this.proxy.privateFiles.push(...secretPlaces(props, settings));
    const { network, firewall, daemons } = props;
    const { host } = this;
    const { unitDirectory } = this.proxy.paths;
    if (network !== undefined) this.network = new StaticNetwork(this, "Network", { ...network, host });
    if (firewall !== undefined) {
      // A static address needs no responses from a DHCP server.
      this.firewall = addFirewall(this, { dhcpClient: this.network === undefined, ...firewall });
    }
    if (daemons !== undefined) {
      this.daemons = new ApplicationDaemons(this, "Daemons", { ...daemons, host, unitDirectory });
    }
    const { activation } = props;
    const activated = { application, settings };
    if (activation !== undefined || host.delivery.needsActivation) {
      this.activation = activateFrontEnd(this, activated, activation ?? {});
    } else describeFrontEnd(this, activated);
    if (props.outputs === true) this.addOutputs();
  }

  get defaultServer(): VirtualServer {
    return defaultServerOf(this, this.ownDefault);
  }

  get httpsListener(): Listener {
    return httpsOf(this);
  }

  /** The settings of the default application. Throws for another application, which has `settingsTexts`. */
  get settings(): ApplicationSettings {
    return this.ofDefault(
      "settings",
      this.ownSettings,
      "Use `settingsTexts`, which writes a file for each settings file of the application.",
    );
  }

  /** Directories on the host that the media routes of the default application serve. Throws for another application. */
  get media(): MediaDirectories {
    return this.ofDefault("media", this.ownMedia, "Use `directory` of a route's `action`.");
  }

  private ofDefault<T>(member: string, value: T | undefined, fix: string): T {
    if (value === undefined) {
      const more = { allowed: "a front end without `application`", fix };
      const path = `${this.node.path}.${member}`;
      refuse([problem("config.unknown-reference", path, "exists only for the default application", more)]);
    }
    return value!;
  }

  /** TCP ports that are open to the network, ascending: those of the listeners and of the SSH server. */
  get exposedPorts(): readonly number[] {
    return exposedPortsOf(this);
  }

  /** TCP ports for the host only, ascending: those of the database and the daemons. */
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
        `The proxy listens on ${listens} only, but clients are sent to the host's ${name}, which is ${own}.`,
      );
    }
  }

  private addSettings(props: AnyFrontEndProps, fileServer: IUpstream): ApplicationSettings {
    return new ApplicationSettings(this, "Settings", {
      ...props.settings,
      fileServer: props.settings?.fileServer ?? this.fileServerAddress(fileServer),
      directory: this.proxy.paths.settingsDirectory,
      host: this.host,
      scheme: this.mode.scheme,
      publicPort: this.mode.publicPort,
      serverNames: this.serverNames,
      pathPrefix: props.pathPrefix,
      routePaths: props.routePaths,
    });
  }

  /** The file server listens at the address of its upstream. */
  private fileServerAddress({ url }: IUpstream): { host: string; port: number } {
    const leads = hasTokens(url) ? undefined : upstreamAddress(url);
    if (leads !== undefined && "port" in leads) {
      const { host, port } = leads;
      return { host: host === "localhost" ? "127.0.0.1" : host, port };
    }
    const why = leads === undefined ? "is not known at synthesis" : "names no port";
    const fix = `Set \`settings.fileServer\`: the URL of the file server's upstream ${why}.`;
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
      value: Lazy.anyValue({ produce: () => this.portForwards }),
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

sayWhere(FileSyncFrontEnd, OF_FRONT_END);

const mediaOf = ({
  mediaDirectory,
  installDirectory,
  avatarDirectory,
}: AnyFrontEndProps): MediaDirectories => ({
  directory: mediaDirectory ?? `${installDirectory}/media`,
  avatarDirectory,
});

/** The application that props describe one by one. */
function fileSyncDefinition(
  props: AnyFrontEndProps,
  media: MediaDirectories,
  values: () => ApplicationSettingsValues,
): ApplicationDefinition {
  const { activation: { fixMedia, units, settings: { files } = {} } = {}, daemons = {} } = props;
  return fileSyncService({
    paths: fileSyncPaths(props.pathPrefix, props.routePaths),
    media,
    fixMedia,
    destination: props.webdavDestination,
    units: { ...unitNames(daemons), ...units },
    ...(files && { settings: { files, values } }),
  });
}
