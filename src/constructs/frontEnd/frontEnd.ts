import { Lazy, TerraformOutput } from "cdktf";
import type { Construct } from "constructs";
import type { PortForward } from "../../model/host/host.js";
import { canonicalAddress, isLoopback, isWildcard } from "../../model/index.js";
import type { Activation } from "../service/activation.js";
import { freeId } from "../props/constructIds.js";
import { OF_FRONT_END, sayWhere } from "../proxy/elsewhere.js";
import { CrowdSec, Fail2ban } from "../service/bans.js";
import type { Firewall } from "../service/firewall.js";
import { dnsRecordsOutput, hostFrom, type IHost } from "../host/host.js";
import { HostFile } from "../host/hostFile.js";
import type { Mode } from "../proxy/mode.js";
import { StaticNetwork } from "../service/network.js";
import { isKnown } from "../props/tokens.js";
import { ProxyService } from "../service/proxyService.js";
import { ReverseProxy } from "../proxy/reverseProxy.js";
import type { TlsFiles } from "../proxy/tlsMaterial.js";
import { warn } from "../props/warn.js";
import { activateFrontEnd, describeFrontEnd } from "./activation.js";
import { type FrontEndProps, refuseFrontEnd, refuseLostAddress, refuseSameNames } from "./frontEndProps.js";
import {
  addFirewall,
  addListeners,
  exposedPortsOf,
  type FrontEndListeners,
  loopbackPortsOf,
  portForwardsOf,
} from "./parts.js";
import { SitesOfProxy } from "./sitesOfProxy.js";

/**
 * The front end of a host: proxy, TLS, units, and sites, each with the server names and the routes of one application.
 * Every part is a member, and can be changed by props or afterwards.
 */
export class FrontEnd<
  Upstreams extends object = object,
  Routes extends object = object,
  Settings extends Construct = Construct,
> extends SitesOfProxy<Upstreams, Routes, Settings> {
  /** The host of the front end. */
  readonly host: IHost;
  /** Plain HTTP or TLS. */
  readonly mode: Mode;
  /** The proxy. You can add listeners, virtual servers and upstreams to the proxy. */
  readonly proxy: ReverseProxy;
  /** The listeners. */
  readonly listeners: FrontEndListeners;
  /** Files of the TLS material of the listeners; undefined in plain mode. */
  readonly tls?: TlsFiles;
  /** Page of the default server; undefined where requests for other names get 404. */
  readonly defaultPage?: HostFile;
  /** Runtime and units. */
  readonly service: ProxyService;
  /** The host's static address; undefined without `network`. */
  readonly network?: StaticNetwork;
  /** Packet filter of the host; undefined without `firewall`. */
  readonly firewall?: Firewall;
  /** Files for the host's fail2ban; undefined without `fail2ban`. */
  readonly fail2ban?: Fail2ban;
  /** File for the host's CrowdSec; undefined without `crowdSec`. */
  readonly crowdSec?: CrowdSec;
  /** The activation on the host; undefined for a local delivery without `activation`. */
  readonly activation?: Activation;

  constructor(scope: Construct, id: string, props: FrontEndProps<Upstreams, Routes, Settings>) {
    super(scope, freeId(scope, id));
    refuseFrontEnd(this, props);
    this.host = hostFrom(this, props.host);
    this.mode = props.mode;
    refuseSameNames(this, props);
    refuseLostAddress(this);
    this.warnOfOtherAddress();
    const { host, mode } = this;
    const { application } = props;
    const serverNames = [...host.serverNames, ...(props.additionalServerNames ?? [])];
    this.proxy = new ReverseProxy(this, "Proxy", { ...props.proxy, host, paths: props.paths });
    const { proxy } = this;
    this.listeners = addListeners(proxy, mode, application === undefined ? [] : serverNames);
    this.tls = this.listeners.https?.tlsFiles;
    const { defaultPageDirectory } = proxy.paths;
    const page = this.addOwnSite({ ...props, serverNames }, defaultPageDirectory);
    if (page !== undefined) {
      const path = `${defaultPageDirectory}/index.html`;
      this.defaultPage = new HostFile(this, "DefaultPage", { host, path, content: page, role: "page" });
    }
    this.service = new ProxyService(this, "Service", { ...props.service, proxy });
    const { network, firewall, fail2ban, activation } = props;
    if (network !== undefined) this.network = new StaticNetwork(this, "Network", { ...network, host });
    if (firewall !== undefined) {
      // A static address needs no responses from a DHCP server.
      this.firewall = addFirewall(this, { dhcpClient: this.network === undefined, ...firewall });
    }
    if (fail2ban !== undefined) this.fail2ban = new Fail2ban(this, "Fail2ban", { ...fail2ban, proxy });
    if (props.crowdSec === true) this.crowdSec = new CrowdSec(this, "CrowdSec", { proxy });
    if (activation !== undefined || host.delivery.needsActivation) {
      this.activation = activateFrontEnd(this, activation ?? {});
    } else describeFrontEnd(this);
    if (props.outputs === true) this.addOutputs();
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

  private addOutputs(): void {
    const [own] = this.sites;
    if (own !== undefined) {
      const description = "Where users find the application.";
      new TerraformOutput(this, "Url", { value: own.url, description });
    }
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

sayWhere(FrontEnd, OF_FRONT_END);
