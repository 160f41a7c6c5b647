import { Construct, type IConstruct } from "constructs";
import { listenerOptions, proxyProtocol } from "../../model/config/config.js";
import type { InputOf } from "../../model/schema/inferred.js";
import { freeId } from "../props/constructIds.js";
import { canonicalAddress, isIpv6, isWildcard, type ListenerInput } from "../../model/index.js";
import { listenerProblems } from "../props/checks.js";
import { TLS_MATERIAL, TLS_POLICY } from "../props/instances.js";
import { fieldsOf } from "../props/fieldTable.js";
import { fields, flag, listOf, type PropTable, refuseProps, required, text } from "../props/propTable.js";
import { proxyOf, scopeOf } from "./proxyScope.js";
import { removeFromTree } from "../props/removal.js";
import type { TlsFiles, TlsMaterial } from "./tlsMaterial.js";
import { isKnown } from "../props/tokens.js";
import { TlsPolicy } from "./tlsPolicy.js";

/** A listener of the proxy: a `Listener`, or a construct of your own with the name of a `Listener`. */
export interface IListener extends IConstruct {
  /** Name in the config. */
  readonly name: string;
  /** Local address. */
  readonly address: string;
  /** TCP port. */
  readonly port: number;
  /** `https` with TLS material, else `http`. */
  readonly protocol: "http" | "https";
  /** The TLS options; undefined for http. */
  readonly tls?: ListenerTls;
}

/** An address and a port that accept connections. The scope is the proxy, or a construct below the proxy. */
export class Listener extends Construct implements IListener {
  readonly name: string;
  readonly address: string;
  readonly port: number;
  readonly protocol: "http" | "https";
  /** Files of the TLS material; undefined for http. */
  readonly tlsFiles?: TlsFiles;
  readonly tls?: ListenerTls;
  private readonly props: ListenerProps;

  constructor(scope: Construct, id: string, props: ListenerProps) {
    const place = scopeOf(scope, "Listeners");
    super(place, freeId(place, id));
    // The names of a certificate by ACME are those of virtual servers, which come later.
    refuseProps(this, props, LISTENER_PROPS, (fit) =>
      listenerProblems(this.node.path, rendered(fit as ListenerProps, fit.name ?? id, PLACEHOLDER_FILES)),
    );
    const proxy = proxyOf(this);
    this.props = props;
    this.name = props.name ?? id;
    this.address = props.address ?? DEFAULT_ADDRESS;
    this.port = props.port;
    this.protocol = props.tls === undefined ? "http" : "https";
    this.tls = props.tls;
    this.tlsFiles = props.tls === undefined ? undefined : proxy.tlsFiles(props.tls.material, this);
  }

  /**
   * Removes the listener, also that of a front end, and takes it from its virtual servers. A virtual server that has
   * no other listener is refused, unless you remove it too. The files of the listener's TLS material stay.
   */
  remove(): void {
    removeFromTree(this);
  }

  /** @internal Whether HTTP/2 was asked for explicitly. */
  get asksForHttp2(): boolean {
    return this.props.http2 === true;
  }

  /** @internal */
  get proxyProtocol(): ProxyProtocolOptions | undefined {
    return this.props.proxyProtocol;
  }

  /** @internal Whether only one of the two can have the port, as far as is known. */
  clashesWith({ address, port }: IListener): boolean {
    if (port !== this.port || !isKnown([port, address, this.address])) return false;
    if (isIpv6(address) !== isIpv6(this.address)) return false;
    return (
      canonicalAddress(address) === canonicalAddress(this.address) || [address, this.address].some(isWildcard)
    );
  }

  /** @internal The listener's section of the config, with further certificates. */
  render(further: readonly TlsFiles[] = []): ListenerInput {
    return rendered(this.props, this.name, this.tlsFiles, further);
  }
}

function rendered(
  { tls, http2, address = DEFAULT_ADDRESS, ...options }: ListenerProps,
  name: string,
  tlsFiles: TlsFiles | undefined,
  further: readonly TlsFiles[] = [],
): ListenerInput {
  // A listener that has no TLS ignores `http2`; a warning says so.
  if (tls === undefined) return { ...options, name, address, protocol: "http" };
  const { material, serverNames, policy = defaultPolicy([tlsFiles!, ...further]), ...tlsOptions } = tls;
  const certificates = further.length === 0 ? {} : { certificates: further.map(certificateInput) };
  const files = { ...certificateInput(tlsFiles!), ...certificates, dhparam: tlsFiles!.dhparam };
  const section = { ...tlsOptions, ...files, policy: policy.settings };
  return { ...options, name, address, protocol: "https", http2, tls: section };
}

const DEFAULT_ADDRESS = "0.0.0.0";

/** The service's policy for the RSA keys that it names; a policy that takes every key type if a key is not made here. */
const defaultPolicy = (all: readonly TlsFiles[]): TlsPolicy =>
  all.some(({ anyKeyType }) => anyKeyType) ? TlsPolicy.mozillaIntermediate() : TlsPolicy.fileSync();

const certificateInput = ({ certificate, key, acme }: TlsFiles) => ({ certificate, key, acme: acme?.() });

const PLACEHOLDER_FILES: TlsFiles = { certificate: "/certificate", key: "/key" };

/** Address, port and protocol of a listener. */
export interface ListenerProps extends Omit<InputOf<typeof listenerOptions>, "name" | "address" | "tls"> {
  /** @default - the construct's id */
  readonly name?: string;
  /** @default "0.0.0.0" */
  readonly address?: string;
  readonly proxyProtocol?: ProxyProtocolOptions;
  /**
   * Makes the listener `https`, with this material and policy.
   * @default - http
   */
  readonly tls?: ListenerTls;
}

/** Material and policy of TLS. */
export interface TlsSettings {
  /** Private key and certificate of the listener, and Diffie-Hellman parameters. */
  readonly material?: TlsMaterial;
  /**
   * Protocols, ciphers and curves.
   * @default - `TlsPolicy.fileSync()`; `TlsPolicy.mozillaIntermediate()` if a certificate of the listener is from
   * files (`TlsMaterial.fromFiles`, `fromSecret`), whose key may be ECDSA
   */
  readonly policy?: TlsPolicy;
}

/** TLS of a listener. */
export interface ListenerTls extends TlsSettings {
  readonly material: TlsMaterial;
  /**
   * Public names, besides those of the virtual servers, for a default server that responds to every name. A
   * self-signed certificate covers these names; another certificate without such a name causes a warning.
   * @default - none
   */
  readonly serverNames?: readonly string[];
}

/** Proxies that may send the client's address by the PROXY protocol, version 1 or 2. */
export interface ProxyProtocolOptions extends InputOf<typeof proxyProtocol> {}

/** @internal */
export const PROXY_PROTOCOL = fields<ProxyProtocolOptions>(fieldsOf(proxyProtocol));

const LISTENER_PROPS: PropTable<ListenerProps> = {
  ...fieldsOf(listenerOptions),
  tls: fields<ListenerTls>({
    material: required(TLS_MATERIAL),
    policy: TLS_POLICY,
    serverNames: listOf(text),
  }),
  http2: flag,
  proxyProtocol: PROXY_PROTOCOL,
};
