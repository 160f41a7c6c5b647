import type { TerraformResource } from "cdktf";
import { Construct } from "constructs";
import { freeId } from "../props/constructIds.js";
import { reachableAt } from "../../model/index.js";
import { needProgram } from "../delivery/neededPrograms.js";
import {
  KEEPALIVED,
  type AllowedPort,
  certificateCopiesUnit,
  type KeepalivedInput,
  keepalivedUnit,
  readinessUnit,
  renderKeepalived,
  secretExchangeScript,
  SHARED_DIRECTORY,
} from "../../render/index.js";
import { FrontEnd } from "../frontEnd/frontEnd.js";
import type { Site } from "../frontEnd/site.js";
import type { SiteProps } from "../frontEnd/siteProps.js";
import { Mode } from "../proxy/mode.js";
import { Host, type IHost } from "../host/host.js";
import type { ProxySettings } from "../proxy/proxySettings.js";
import { HostFile } from "../host/hostFile.js";
import { escapeTemplate } from "../props/tokens.js";
import { SystemdUnit } from "../host/systemdUnit.js";
import { warn } from "../props/warn.js";
import { type FrontEndPairProps, type PairHostProps, refusePair } from "./props.js";
import { TerraformData } from "../delivery/terraformData.js";
import { type SelfSignedTls, type TlsContext, type TlsFiles, TlsMaterial } from "../proxy/tlsMaterial.js";

/**
 * The same front end on two hosts, with one address that moves between the hosts (VRRP, by keepalived). If the host
 * with the address fails, or its proxy is not ready, the other host has the address within a second. Connections
 * through the failed host are cut. An address that has moved does not move back.
 *
 * Each host needs Debian's package `keepalived`; the machine that runs Terraform needs OpenSSH's client. See
 * docs/pair.md.
 */
export class FrontEndPair<
  Upstreams extends object = object,
  Routes extends object = object,
  Settings extends Construct = Construct,
> extends Construct {
  /** The hosts, in the order of the props. */
  readonly hosts: readonly [Host, Host];
  /** The front end of each host. Add every change to both front ends. */
  readonly frontEnds: readonly [FrontEnd<Upstreams, Routes, Settings>, FrontEnd<Upstreams, Routes, Settings>];
  /** Public address of the pair. */
  readonly virtualAddress: string;
  /** Configuration of keepalived on each host. */
  readonly keepalivedFiles: readonly [HostFile, HostFile];
  private readonly without: FrontEndPairProps["without"];

  constructor(scope: Construct, id: string, props: FrontEndPairProps<Upstreams, Routes, Settings>) {
    super(scope, freeId(scope, id));
    refusePair(this, props);
    const { hosts, virtualAddress, publicName, without, ...rest } = props;
    const {
      virtualRouterId = 51,
      advertisementMs = 200,
      keepalivedPath = "/usr/sbin/keepalived",
      copyPort = 9181,
      ...common
    } = rest;
    const [a, b] = hosts as readonly [PairHostProps, PairHostProps];
    this.without = without;
    const hostOf = (id: string, { interface: _, ...host }: PairHostProps, isLeftOut: boolean): Host => {
      const delivery = isLeftOut ? host.delivery!.leftOut() : host.delivery;
      return new Host(this, id, { ...host, virtualAddress, publicName, delivery });
    };
    this.hosts = [hostOf("FirstHost", a, without === "first"), hostOf("SecondHost", b, without === "second")];
    if (without !== undefined) {
      warn(
        this,
        `The ${without} host is left out: nothing is delivered to it. Remove \`without\` when the host is reachable again.`,
      );
    }
    const open: [AllowedPort[], AllowedPort[]] = [[], []];
    const first = this.addFrontEnd("First", common, this.hosts[0], a, b.address, open[0]);
    const second = this.addFrontEnd(
      "Second",
      { ...common, mode: sameCertificate(first, this.hosts[1]), outputs: false },
      this.hosts[1],
      b,
      a.address,
      open[1],
    );
    this.frontEnds = [first, second];
    this.virtualAddress = virtualAddress;
    const shared = { virtualAddress, virtualRouterId, advertisementMs };
    this.keepalivedFiles = [
      addKeepalived(first, keepalivedPath, { ...shared, ...placeOf(a), peer: b.address, priority: 101 }),
      addKeepalived(second, keepalivedPath, { ...shared, ...placeOf(b), peer: a.address, priority: 100 }),
    ];
    const before = ticketKeysOf(props) === undefined ? [] : [this.shareSecret("TicketKeys", TICKET_KEY_FILE)];
    this.order(before);
    for (const { proxy } of this.frontEnds) proxy.holderAddress = virtualAddress;
    this.onAcme(() => {
      before.push(this.shareSecret("CopyKey", COPY_KEY_FILE));
      addCopies(first, a.address, b.address, copyPort);
      addCopies(second, b.address, a.address, copyPort);
      open[0].push({ port: copyPort, from: [b.address] });
      open[1].push({ port: copyPort, from: [a.address] });
    });
  }

  /** Public URL of the application on the pair. Throws without `application`. */
  get url(): string {
    return this.frontEnds[0].site.url;
  }

  /** Adds a site to both front ends, as `addSite` of a `FrontEnd` does; the two sites, in the order of the hosts. */
  addSite<U extends object, R extends object, S extends Construct>(
    id: string,
    props: SiteProps<U, R, S>,
  ): readonly [Site<U, R, S>, Site<U, R, S>] {
    const [first, second] = this.frontEnds;
    const site = first.addSite(id, props);
    const { tlsFiles } = site.virtualServer;
    const tls = tlsFiles?.selfSigned && new SharedMaterial(tlsFiles.selfSigned, second.host);
    return [site, second.addSite(id, { ...props, ...(tls && { tls }) })];
  }

  private addFrontEnd(
    id: string,
    { network, firewall, proxy, ...more }: CommonProps<Upstreams, Routes, Settings>,
    host: IHost,
    { interface: name }: PairHostProps,
    peer: string,
    open: AllowedPort[],
  ): FrontEnd<Upstreams, Routes, Settings> {
    open.push(...(firewall?.allowed ?? []));
    return new FrontEnd(this, id, {
      ...more,
      host,
      proxy: { healthListener: HEALTH, ...ticketKeysOf({ mode: more.mode, proxy }), ...proxy },
      ...(network && { network: { ...network, interface: { name } } }),
      ...(firewall && {
        firewall: { ...firewall, allowed: open, vrrpPeers: [...(firewall.vrrpPeers ?? []), peer] },
      }),
    });
  }

  /**
   * Activates one host after the other, so that a deployment that fails on one host does not reach the other; the host with
   * the address comes last, so that the address moves once at most. Only the hosts know which host has it: the first host is
   * activated before the second unless it has the address, and again after the second, when there may be nothing left to do.
   */
  private order(before: TerraformResource[]): void {
    const [first, second] = this.frontEnds.map(({ activation }) => activation!);
    const ahead = first!.aheadWithout(this.virtualAddress, new Construct(this, "Ahead"), before);
    second!.after(ahead);
    first!.after(second!.resource);
  }

  /** Calls once, as soon as a certificate by ACME is used; it may be added later than this is made. */
  private onAcme(used: () => void): void {
    let once: (() => void) | undefined = used;
    for (const { proxy } of this.frontEnds)
      proxy.onTlsFiles(({ acme }) => {
        if (acme === undefined) return;
        once?.();
        once = undefined;
      });
  }

  /** Neither plan nor state ever has it. */
  private shareSecret(id: string, file: string): TerraformData {
    const logins = this.hosts.map((host) => host.delivery.login(host)!);
    const there = (["first", "second"] as const).filter((name) => name !== this.without);
    const variables = logins.map((login, i) => login.variables(i === 0 ? "FIRST" : "SECOND"));
    return new TerraformData(this, id, {
      triggersReplace: logins.map(({ machine }) => machine.id),
      provisioners: [
        {
          type: "local-exec",
          interpreter: ["/bin/sh", "-c"],
          // Terraform prints the command.
          command: 'eval "$EXCHANGE"',
          environment: {
            EXCHANGE: escapeTemplate(secretExchangeScript(file, there)),
            ...Object.assign({}, ...variables),
          },
        },
      ],
    });
  }
}

const HEALTH = { address: "127.0.0.1", port: 9180 };
const TICKET_KEY_FILE = `${SHARED_DIRECTORY}/ticket-key`;
const COPY_KEY_FILE = `${SHARED_DIRECTORY}/copy-key`;
const KEEPALIVED_FILE = "/etc/portico/keepalived.conf";

type CommonProps<Upstreams extends object, Routes extends object, Settings extends Construct> = Omit<
  FrontEndPairProps<Upstreams, Routes, Settings>,
  | "hosts"
  | "virtualAddress"
  | "publicName"
  | "without"
  | "virtualRouterId"
  | "advertisementMs"
  | "keepalivedPath"
  | "copyPort"
>;

/** The shared key file for tickets. Without TLS there are no tickets; a file that the user names is on both hosts. */
function ticketKeysOf({
  mode,
  proxy,
}: Pick<FrontEndPairProps, "mode" | "proxy">): Pick<ProxySettings, "ticketKeys"> | undefined {
  if (mode.https === undefined || proxy?.ticketKeys !== undefined) return undefined;
  return { ticketKeys: { file: TICKET_KEY_FILE } };
}

const placeOf = ({ address, interface: name }: PairHostProps) => ({ address, interface: name });

/** keepalived and the unit that reports readiness to it. */
function addKeepalived(frontEnd: FrontEnd, program: string, input: KeepalivedInput): HostFile {
  const { host, proxy, activation } = frontEnd;
  const scope = new Construct(frontEnd, "Keepalived");
  const directory = proxy.paths.unitDirectory;
  const content = renderKeepalived(input);
  needProgram(host, { ...KEEPALIVED, path: program });
  const file = new HostFile(scope, "Configuration", {
    host,
    path: KEEPALIVED_FILE,
    content,
    role: "keepalived",
  });
  new SystemdUnit(scope, "Ready", {
    host,
    directory,
    name: "portico-ready.service",
    unit: () => {
      const { address, port } = proxy.config.healthListener!;
      return readinessUnit({ address: reachableAt(address), port });
    },
  });
  const unit = keepalivedUnit(program, KEEPALIVED_FILE);
  const { name } = new SystemdUnit(scope, "Address", {
    host,
    directory,
    name: "portico-address.service",
    unit,
  });
  activation!.useKeepalived(name);
  return file;
}

/** The unit that sends this host's certificates to the other host, and takes those of the other host. */
function addCopies(frontEnd: FrontEnd, address: string, peer: string, port: number): void {
  const { host, proxy, service } = frontEnd;
  const { runtime, config, unitDirectory } = proxy.paths;
  const unit = certificateCopiesUnit({
    nodePath: service.nodePath,
    runtime,
    config,
    address,
    peer,
    port,
    keyFile: COPY_KEY_FILE,
  });
  new SystemdUnit(frontEnd, "Copies", {
    host,
    directory: unitDirectory,
    name: "portico-copies.service",
    unit,
  });
}

/** Clients that have accepted the certificate of one host meet no other one. */
function sameCertificate({ mode, tls }: FrontEnd, host: IHost): Mode {
  if (mode.https === undefined || tls?.selfSigned === undefined) return mode;
  const { address, ipv6Address } = mode;
  return Mode.tls({
    ...mode.https,
    address,
    ipv6Address,
    material: new SharedMaterial(tls.selfSigned, host),
  });
}

/** A key and a certificate that Terraform has made for another host, on this one too. */
class SharedMaterial extends TlsMaterial {
  override readonly selfSigned = true;

  constructor(
    private readonly tls: SelfSignedTls,
    private readonly host: IHost,
  ) {
    super();
  }

  override another(): undefined {
    return undefined;
  }

  override bind(scope: Construct, context: TlsContext): TlsFiles {
    const { keyFile, certificateFile, privateKey, certificate } = this.tls;
    const { host } = this;
    // The names of the files are those of the first host, which differ by site; so do the ids.
    const suffix = scope.node.tryFindChild("KeyFile") === undefined ? "" : `-${context.user}`;
    const copy = (id: string, { path, mode, role, sensitive }: HostFile, content: string): HostFile =>
      new HostFile(scope, `${id}${suffix}`, { host, path, mode, role, sensitive, content });
    return {
      key: copy("KeyFile", keyFile, privateKey.privateKeyPem).path,
      certificate: copy("CertificateFile", certificateFile, certificate.certPem).path,
      dhparam: context.dhParameters(),
      selfSigned: this.tls,
    };
  }
}
