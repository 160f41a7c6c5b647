import { isDeepStrictEqual } from "node:util";
import { Construct, type IConstruct } from "constructs";
import { freeId } from "../props/constructIds.js";
import {
  type CertificateAuthorityInput,
  formatProblem,
  type Problem,
  problem,
  type ProxyConfigInput,
} from "../../model/index.js";
import type { NamedAccess } from "./access.js";
import type { NamedGuard } from "./passwordGuard.js";
import { type AcmeOptions, authorityName, authorityOf } from "./acme.js";
import { excludedKeyProblems } from "./certificatesHere.js";
import {
  type ConfigOverride,
  indexedPath,
  lostOverrides,
  overridden,
  overridePathProblems,
} from "./configOverrides.js";
import { sayWhere } from "./elsewhere.js";
import { configProblems, refuse } from "../props/checks.js";
import { type IListener, Listener, type ListenerProps } from "./listener.js";
import { any, refuseId, refuseOptions, required, text } from "../props/propTable.js";
import { configSettings, type ProxySettings, trustedEveryoneProblems } from "./proxySettings.js";
import type { IProxy } from "./proxyInterfaces.js";
import { PROXY } from "./proxyScope.js";
import { privateDirectoryProblems, servedBy } from "./servedDirectories.js";
import type { TlsFiles, TlsMaterial, TlsPlace } from "./tlsMaterial.js";
import { settleTokens } from "../props/tokens.js";
import { notificationFiles } from "../../model/config/namedFiles.js";
import { type IUpstream, madeOfUrls, tlsFilesOf, Upstream, type UpstreamProps } from "./upstream.js";
import { warnOf } from "./warnings.js";
import { VirtualServer, type VirtualServerProps } from "./virtualServer.js";

/**
 * The common base of all proxies. A proxy owns the listeners, virtual servers and upstreams below, and renders the
 * config. `ReverseProxy` runs on a host, `ContainerProxy` in containers.
 */
export abstract class ReverseProxyBase extends Construct implements IProxy {
  /** @internal */
  readonly [PROXY] = true;
  /** @internal Settings of the proxy as a whole. */
  protected abstract readonly settings: ProxySettings;
  private readonly overrides: ConfigOverride[] = [];
  private readonly materials = new Map<TlsMaterial, TlsFiles>();
  private readonly tlsUses: ((files: TlsFiles) => void)[] = [];
  private readonly credentialFileUses: ((file: string) => void)[] = [];
  private readonly authorities: CertificateAuthorityInput[] = [];
  /** @internal Address that is one host's of several at a time; the host that has it asks the authorities. */
  holderAddress?: string;
  /** @internal Who may come in where neither route nor site says so. */
  access?: NamedAccess;
  /** @internal Guards log-ins where no site says so. */
  guard?: NamedGuard;

  /** @internal */
  constructor(scope: Construct, id: string) {
    super(scope, freeId(scope, id));
    warnOf(this);
    this.node.addValidation({ validate: () => this.problems.map(formatProblem) });
  }

  /** Adds a listener and returns it. */
  addListener(id: string, props: ListenerProps): Listener {
    refuseId(this, "addListener", id);
    return new Listener(this, id, props);
  }

  /** Adds a virtual server and returns it. */
  addVirtualServer(id: string, props: VirtualServerProps): VirtualServer {
    refuseId(this, "addVirtualServer", id);
    return new VirtualServer(this, id, props);
  }

  /** Adds an upstream and returns it. */
  addUpstream(id: string, props: UpstreamProps): Upstream {
    refuseId(this, "addUpstream", id);
    return new Upstream(this, id, props);
  }

  /**
   * Sets a field of the config after all constructs have rendered: the escape hatch for fields without a prop.
   * Synthesis checks the result. For a listener, only `http2`, `name` and `tls.policy` can be set, because the
   * listener determines sockets, credentials and the firewall. The file of `ticketKeys` cannot be set either.
   *
   * @param path the field, with items of lists by name or index:
   * `virtualServers[application].routes[web].sendTimeoutMs`, or as in errors of `portico check`:
   * `virtualServers[0].routes[1].sendTimeoutMs`
   * @param value the new value; `undefined` deletes the field. May contain tokens.
   */
  addConfigOverride(path: string, value: unknown): void {
    const at = `${this.node.path}.addConfigOverride`;
    refuseOptions<{ path: string; value?: unknown }>(
      at,
      { path, value },
      { path: required(text), value: any },
    );
    refuse(overridePathProblems(at, path));
    this.overrides.push({ path, value });
  }

  get listeners(): readonly Listener[] {
    return this.node.findAll().filter((child) => child instanceof Listener);
  }

  get virtualServers(): readonly VirtualServer[] {
    return this.node.findAll().filter((child) => child instanceof VirtualServer);
  }

  get upstreams(): readonly IUpstream[] {
    const own: IUpstream[] = this.node
      .findAll()
      .filter((child) => child instanceof Upstream && !madeOfUrls.has(child)) as Upstream[];
    const named = this.virtualServers.flatMap((server) =>
      server.routes.flatMap((route) => route.action.upstream ?? []),
    );
    return [...new Set([...own, ...named])];
  }

  get config(): ProxyConfigInput {
    return settleTokens(this, overridden(this.rendered, this.overrides));
  }

  /** The config that the constructs make, without overrides. */
  private get rendered(): ProxyConfigInput {
    return {
      ...configSettings(this.settings),
      version: 1,
      ...this.accessPolicies,
      ...this.passwordGuards,
      ...(this.authorities.length === 0 ? {} : { certificateAuthorities: this.certificateAuthorities }),
      listeners: this.listeners.map((listener) => listener.render(this.certificatesOf(listener))),
      upstreams: this.upstreams.map((upstream) => upstream.render()),
      virtualServers: this.virtualServers.map((server) => server.render()),
    };
  }

  /** Those that routes name. */
  private get accessPolicies(): Pick<ProxyConfigInput, "accessPolicies"> {
    const used = this.virtualServers.flatMap(({ routes }) =>
      routes.flatMap(({ policy }) => (policy === undefined ? [] : [[policy.name, policy.policy] as const])),
    );
    return used.length === 0 ? {} : { accessPolicies: Object.fromEntries(used) };
  }

  /** Those that virtual servers name. */
  private get passwordGuards(): Pick<ProxyConfigInput, "passwordGuards"> {
    const used = this.virtualServers.flatMap(({ passwordGuard: one }) =>
      one === undefined ? [] : [[one.name, one.guard] as const],
    );
    return used.length === 0 ? {} : { passwordGuards: Object.fromEntries(used) };
  }

  private get certificateAuthorities(): readonly CertificateAuthorityInput[] {
    const { authorities, holderAddress } = this;
    return holderAddress === undefined ? authorities : authorities.map((one) => ({ ...one, holderAddress }));
  }

  /** All problems that make the proxy refuse the config; empty if the config loads. Synthesis checks for problems. */
  get problems(): readonly Problem[] {
    const removal = this.virtualServers.flatMap((server) => server.removalProblems);
    const { config } = this;
    const problems = configProblems(config, this.ownNames)
      .map((p) => this.asOverridden(this.atServerName(p, config) ?? atConstructs(p, this), p.path))
      .filter(({ path }) => removal.every((other) => other.path !== path));
    return [
      ...problems,
      ...removal,
      ...this.virtualServers.flatMap((server) => server.bypassProblems),
      ...this.placeProblems(),
      ...excludedKeyProblems(this),
      ...(this.settings.trustEveryone === true ? [] : trustedEveryoneProblems(this)),
      ...lostOverrides(this.rendered, this.overrides).map(({ path }) =>
        problem(
          "config.unknown-reference",
          `${this.node.path}.addConfigOverride`,
          "does not lead to a field",
          {
            received: path,
            fix: "Use the path of a field that the config has without the override.",
          },
        ),
      ),
    ];
  }

  /** A problem of a name in a certificate by ACME is that of the virtual server which has the name. */
  private atServerName(p: Problem, config: ProxyConfigInput): Problem | undefined {
    const [, listener, further, at] = CERTIFICATE_NAME.exec(p.path) ?? [];
    const { name: on, tls } = config.listeners[Number(listener)] ?? {};
    const { acme } = (further === undefined ? tls : tls?.certificates?.[Number(further)]) ?? {};
    const name = acme?.names[Number(at)];
    if (name === undefined) return undefined;
    const has = (server: VirtualServer): boolean =>
      server.serverNames.includes(name) && server.listeners.some((one) => one.name === on);
    const server = this.virtualServers.find(has);
    if (server === undefined) return undefined;
    return { ...p, path: `${server.namedBy}.serverNames[${server.serverNames.indexOf(name)}]` };
  }

  /** Adds to a problem that an override set its field. */
  private asOverridden(p: Problem, field: string): Problem {
    const override = this.overrides.find(({ path: written }) => {
      const path = indexedPath(this.rendered, written);
      return field === path || (field.startsWith(path) && /^[.[]/.test(field.slice(path.length)));
    });
    if (override === undefined) return p;
    return { ...p, message: `${p.message} (set by addConfigOverride(${JSON.stringify(override.path)}, …))` };
  }

  /**
   * Known names of clients on a listener: those of the listener, and of the listener's virtual servers without a
   * separate certificate.
   */
  namesOn(listener: IListener): readonly string[] {
    const servers = this.virtualServers.filter(
      ({ listeners, tls }) => listeners.some(({ name }) => name === listener.name) && tls === undefined,
    );
    return [...(listener.tls?.serverNames ?? []), ...servers.flatMap(({ serverNames }) => serverNames)];
  }

  /** @internal Files of every TLS material in use, each with the prop that names it. */
  get usedTlsFiles(): readonly (readonly [at: string, files: TlsFiles])[] {
    return [...this.listeners, ...this.virtualServers].flatMap(({ node, tlsFiles }) =>
      tlsFiles === undefined ? [] : [[`${node.path}.tls`, tlsFiles] as const],
    );
  }

  /** @internal Files of request fields, of upstreams' TLS and of notifications, each with the prop that names it. */
  get credentialFiles(): readonly (readonly [at: string, file: string])[] {
    const below = (at: string, files: Readonly<Record<string, string>>) =>
      Object.entries(files).map(([name, file]) => [`${at}.${name}`, file] as const);
    return [
      ...this.virtualServers.flatMap(({ routes }) =>
        routes.flatMap(({ node, action }) =>
          below(`${node.path}.action.setHeadersFromCredential`, action.credentials),
        ),
      ),
      ...Object.entries(this.accessPolicies.accessPolicies ?? {}).flatMap(([name, { basic }]) =>
        basic === undefined
          ? []
          : [[`${this.node.path}.accessPolicies.${name}.basic.usersFile`, basic.usersFile] as const],
      ),
      ...this.upstreams.flatMap((one) => below(`${one.node.path}.tls`, tlsFilesOf(one))),
      ...(this.settings.notifications?.targets ?? []).flatMap((target, i) =>
        below(`${this.node.path}.notifications.targets[${i}]`, notificationFiles(target)),
      ),
    ];
  }

  /**
   * @internal Routes that would serve keys, secrets or settings.
   *
   * @param places further private files and directories where it runs
   */
  protected directoryProblems(places: readonly string[]): Problem[] {
    const tls = this.usedTlsFiles.flatMap(([, { key, authorityFiles = {} }]) => [
      key,
      ...Object.values(authorityFiles),
    ]);
    const fields = this.credentialFiles.map(([, file]) => file);
    const files = [...tls, ...fields, this.settings.ticketKeys?.file, ...places];
    return privateDirectoryProblems(
      servedBy(this.virtualServers.flatMap(({ routes }) => routes)),
      files.filter((file) => file !== undefined),
    );
  }

  /** Certificates of the virtual servers on a TLS listener, which clients get by the name that they ask for. */
  private certificatesOf(listener: Listener): readonly TlsFiles[] {
    if (listener.tls === undefined) return [];
    const servers = this.virtualServers.filter(({ listeners }) =>
      listeners.some(({ name }) => name === listener.name),
    );
    const own = servers.flatMap(({ tlsFiles }) => tlsFiles ?? []);
    return [...new Set(own)].filter((files) => files !== listener.tlsFiles);
  }

  /**
   * Files of a TLS material of this proxy; the first call creates the material's resources.
   *
   * @param user the construct that uses the material; the files of a second self-signed material are named after the
   * construct
   */
  tlsFiles(material: TlsMaterial, user?: IConstruct): TlsFiles {
    const known = this.materials.get(material);
    if (known !== undefined) return known;
    const listeners = () => this.listeners.filter(({ tls }) => tls?.material === material);
    const servers = () => this.virtualServers.filter(({ tls }) => tls === material);
    const files = material.bind(this, {
      ...this.tlsPlace(),
      user: user?.node.id,
      forHost: () => listeners().length > 0 || servers().length === 0,
      serverNames: () => [
        ...listeners().flatMap((listener) => this.namesOn(listener)),
        ...servers().flatMap(({ serverNames }) => serverNames),
      ],
      addAuthority: (options) => this.addAuthority(options),
    });
    this.materials.set(material, files);
    for (const used of this.tlsUses) used(files);
    return files;
  }

  /** @internal Calls back for the files of every TLS material, those that are added later included. */
  onTlsFiles(used: (files: TlsFiles) => void): void {
    this.materials.forEach(used);
    this.tlsUses.push(used);
  }

  /** @internal A route takes request fields from files, or goes to an upstream whose TLS does. */
  useCredentialFiles(files: readonly string[]): void {
    for (const used of this.credentialFileUses) files.forEach(used);
  }

  /** @internal Calls back for every such file, those that are added later included. */
  onCredentialFiles(used: (file: string) => void): void {
    this.credentialFiles.forEach(([, file]) => used(file));
    this.credentialFileUses.push(used);
  }

  /** Materials of the same authority and account share one. */
  private addAuthority(options: AcmeOptions): string {
    const wanted = authorityOf(options);
    const same = this.authorities.find(({ name: _, ...known }) => isDeepStrictEqual(known, wanted));
    if (same !== undefined) return same.name;
    const taken = this.authorities.map((authority) => authority.name);
    const name = authorityName(wanted.directory, taken);
    this.authorities.push({ name, ...wanted });
    return name;
  }

  /** @internal Addresses and names that lead to where it runs, which its config need not mention. */
  protected get ownNames(): readonly string[] {
    return [];
  }

  /** @internal Problems of the config in the place where it runs. */
  protected placeProblems(): readonly Problem[] {
    return [];
  }

  /** @internal The place in which TLS materials put their files. */
  protected abstract tlsPlace(): TlsPlace;

  /** @internal A file where it runs as a file of the machine that synthesizes, if that has it. */
  abstract onThisMachine(path: string): string | undefined;
}

sayWhere(ReverseProxyBase, { addRoute: "a virtual server of the proxy" });

/** A name in a certificate by ACME. Names that its material lists are checked where they are listed. */
const CERTIFICATE_NAME = /^listeners\[(\d+)\]\.tls\.(?:certificates\[(\d+)\]\.)?acme\.names\[(\d+)\]$/;

/** The parts of a proxy in the order of its config. */
interface PartsInOrder extends IConstruct {
  readonly listeners: readonly IConstruct[];
  readonly upstreams: readonly IConstruct[];
  readonly virtualServers: readonly (IConstruct & { readonly routes: readonly IConstruct[] })[];
}

/**
 * A problem of a config with construct paths in place of the config's indexes: `virtualServers[2].routes[5]` means
 * nothing to the author of a stack.
 */
function atConstructs(problem: Problem, proxy: PartsInOrder): Problem {
  const named = (text: string): string =>
    text.replace(
      PART,
      (index, kind: "listeners" | "upstreams" | "virtualServers", at: string, route?: string) => {
        const part = proxy[kind][Number(at)];
        const child = route === undefined ? part : proxy.virtualServers[Number(at)]?.routes[Number(route)];
        return child?.node.path ?? index;
      },
    );
  const server = /virtualServers\[.*?\]/.exec(problem.path)?.[0];
  // A message about routes is about those of the same server.
  const whole = (text: string): string =>
    named(server === undefined ? text : text.replace(/(?<![.\w])routes\[/g, `${server}.routes[`));
  const path = named(problem.path);
  return {
    ...problem,
    path: path === problem.path ? `${proxy.node.path}${path === "" ? "" : "."}${path}` : path,
    message: whole(problem.message),
    ...(problem.allowed === undefined ? {} : { allowed: whole(problem.allowed) }),
  };
}

/** The index of a server's own `listeners[0]` stays: it is that of a prop. */
const PART = /(?<![.\w])(listeners|upstreams|virtualServers)\[(.*?)\](?:\.routes\[(.*?)\])?/g;
