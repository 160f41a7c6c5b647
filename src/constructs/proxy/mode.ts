import { isIPv4, isIPv6 } from "node:net";
import type { InputOf } from "../../model/schema/inferred.js";
import { isPort } from "../../model/net/address.js";
import { type Problem, problem } from "../../model/index.js";
import type { listenerOptions, virtualServerOptions } from "../../model/config/config.js";
import { PROXY_PROTOCOL, type ProxyProtocolOptions, type TlsSettings } from "./listener.js";
import { listenerOptionProblems, serverOptionProblems } from "../props/checks.js";
import { MODE, TLS_MATERIAL, TLS_POLICY } from "../props/instances.js";
import {
  choice,
  either,
  fields,
  flag,
  number,
  type PropTable,
  refuseNew,
  refuseOptions,
  text,
} from "../props/propTable.js";
import { HSTS_OPTIONS, type HstsOptions, selfSignedHstsProblems, withoutForce } from "./responseHeaders.js";
import { TlsMaterial } from "./tlsMaterial.js";
import { isKnown } from "../props/tokens.js";

/** The protocol of the application: HTTP or TLS. Each static method creates one mode. */
export abstract class Mode {
  /** `https` in TLS mode, otherwise `http`. */
  abstract readonly scheme: "http" | "https";
  /** The host's HTTP port; undefined with `httpPort: false`. */
  abstract readonly httpPort?: number;
  /** Public port. */
  abstract readonly publicPort: number;
  /** Local IPv4 address of the listeners. */
  readonly address: string;
  /** Local IPv6 address of the listeners, for a host that has an IPv6 address. */
  readonly ipv6Address: string;
  /** Proxies that may send the client's address by the PROXY protocol; undefined if there are none. */
  readonly proxyProtocol?: ProxyProtocolOptions;
  /** Options of the TLS listener; undefined in plain mode. */
  readonly https?: HttpsOptions;

  /** @internal Made through its static methods. */
  constructor({ address = "0.0.0.0", ipv6Address = "::", proxyProtocol }: ListenOptions = {}) {
    refuseNew("Mode", MODE, new.target === Mode);
    this.address = address;
    this.ipv6Address = ipv6Address;
    this.proxyProtocol = proxyProtocol;
  }

  /** HTTP on port 80. Passwords cross the network unencrypted: for tests, never for logins from the internet. */
  static plain(options: PlainOptions = {}): Mode {
    refuseOptions("Mode.plain", options, PLAIN_OPTIONS, (fit) => [
      ...listenProblems("Mode.plain", fit),
      ...portProblems("Mode.plain", fit),
    ]);
    return new PlainMode(options);
  }

  /** TLS with HTTP/2 on port 443; port 80 redirects to it, unless `httpPort` is `false`. */
  static tls(options: TlsOptions = {}): Mode {
    refuseOptions("Mode.tls", options, TLS_OPTIONS, (fit) => [
      ...listenProblems("Mode.tls", fit),
      ...portProblems("Mode.tls", { ...fit, httpsPort: fit.httpsPort ?? 443 }),
      ...tlsHstsProblems(fit),
    ]);
    return new TlsMode(options);
  }
}

/**
 * Local addresses of the listeners. Each address must belong to the host, or a router in front must forward
 * connections to the host.
 */
export interface ListenOptions extends Pick<InputOf<typeof listenerOptions>, "proxyProtocol"> {
  /**
   * Local IPv4 address of the listeners, `0.0.0.0` for all. With `127.0.0.1`, only programs on the host, such as
   * another proxy, reach the application.
   * @default "0.0.0.0"
   */
  readonly address?: string;
  /**
   * Local IPv6 address of the listeners, without brackets, `::` for all; only for a host with an `ipv6Address`.
   * @default "::"
   */
  readonly ipv6Address?: string;
  /** @remarks This applies to all listeners. */
  readonly proxyProtocol?: ProxyProtocolOptions;
}

/** Options of plain HTTP. */
export interface PlainOptions extends ListenOptions {
  /**
   * The host's HTTP port, 1 to 65535.
   * @default 80
   */
  readonly httpPort?: number;
  /**
   * Public port, if a router maps the port.
   * @default - `httpPort`
   */
  readonly publicPort?: number;
}

/** Options of TLS. */
export interface TlsOptions
  extends
    ListenOptions,
    TlsSettings,
    Pick<InputOf<typeof listenerOptions>, "http2">,
    Pick<InputOf<typeof virtualServerOptions>, "hsts"> {
  /** @default TlsMaterial.selfSigned() */
  readonly material?: TlsMaterial;
  /** @remarks This applies to all sites. Refused as the `hsts` of `VirtualServerProps`. */
  readonly hsts?: HstsOptions;
  /**
   * The host's HTTP port for the redirect, 1 to 65535; `false` for TLS alone: the front end has no HTTP port, and
   * redirects nobody.
   * @default 80
   */
  readonly httpPort?: number | false;
  /**
   * The host's TLS port, 1 to 65535.
   * @default 443
   */
  readonly httpsPort?: number;
  /**
   * Public TLS port, if a router maps the port. The redirect and the settings contain this port.
   * @default - `httpsPort`
   */
  readonly publicPort?: number;
}

/** Options of the TLS listener, with its port. */
export interface HttpsOptions extends TlsOptions {
  /** The host's TLS port. */
  readonly httpsPort: number;
}

class PlainMode extends Mode {
  override readonly scheme = "http";
  override readonly httpPort: number;
  override readonly publicPort: number;

  constructor({ httpPort = 80, publicPort = httpPort, ...listen }: PlainOptions) {
    super(listen);
    this.httpPort = httpPort;
    this.publicPort = publicPort;
  }
}

class TlsMode extends Mode {
  override readonly scheme = "https";
  override readonly httpPort?: number;
  override readonly publicPort: number;
  override readonly https: HttpsOptions;

  constructor(options: TlsOptions) {
    super(options);
    const { httpPort = 80, httpsPort = 443, publicPort = httpsPort } = options;
    if (httpPort !== false) this.httpPort = httpPort;
    this.publicPort = publicPort;
    this.https = { ...options, httpsPort };
  }
}

const LISTEN_OPTIONS: PropTable<ListenOptions> = {
  address: text,
  ipv6Address: text,
  proxyProtocol: PROXY_PROTOCOL,
};

const PLAIN_OPTIONS: PropTable<PlainOptions> = { ...LISTEN_OPTIONS, httpPort: number, publicPort: number };

const HTTP_PORT_FIX = "Set a port, or `false` for TLS without an HTTP port.";

const TLS_OPTIONS: PropTable<TlsOptions> = {
  ...LISTEN_OPTIONS,
  material: TLS_MATERIAL,
  policy: TLS_POLICY,
  http2: flag,
  hsts: fields(HSTS_OPTIONS),
  httpPort: { ...either(choice(false), number), fix: HTTP_PORT_FIX },
  httpsPort: number,
  publicPort: number,
};

function tlsHstsProblems({ hsts, material = TlsMaterial.selfSigned() }: TlsOptions): Problem[] {
  if (hsts === undefined) return [];
  const path = "Mode.tls.hsts";
  return [
    ...serverOptionProblems(path, "hsts", withoutForce(hsts)),
    ...selfSignedHstsProblems(path, hsts, [material]),
  ];
}

/** Whether the host has an address is found out there: behind a router, no config says which ones it has. */
function listenProblems(method: string, options: ListenOptions): Problem[] {
  const { address, ipv6Address, proxyProtocol } = options;
  const problems = listenerOptionProblems(`${method}.proxyProtocol`, "proxyProtocol", proxyProtocol);
  const refused = (name: string, received: string, allowed: string, fix?: string): void => {
    const more = { received, allowed, fix };
    problems.push(problem("config.bad-address", `${method}.${name}`, `is not ${allowed}`, more));
  };
  if (address !== undefined && isKnown(address) && !isIPv4(address)) {
    const fix = isIPv6(address) ? "Set the address as `ipv6Address`." : undefined;
    refused("address", address, "an IPv4 address, or `0.0.0.0` for all", fix);
  }
  if (ipv6Address !== undefined && isKnown(ipv6Address) && !isIPv6(ipv6Address)) {
    const fix = isIPv4(ipv6Address) ? "Set the address as `address`." : undefined;
    refused("ipv6Address", ipv6Address, "an IPv6 address without brackets, or `::` for all", fix);
  }
  return problems;
}

function portProblems(method: string, options: TlsOptions): Problem[] {
  const { httpPort = 80, httpsPort } = options;
  const outOfRange = (["httpPort", "httpsPort", "publicPort"] as const).flatMap((name) => {
    const port = options[name];
    if (port === undefined || port === false || !isKnown(port) || isPort(port)) return [];
    const mayBeOff = name === "httpPort" && httpsPort !== undefined;
    const more = { received: port, allowed: "1 to 65535", ...(mayBeOff ? { fix: HTTP_PORT_FIX } : {}) };
    return [problem("config.out-of-range", `${method}.${name}`, "is not a port", more)];
  });
  if (httpsPort !== httpPort) return outOfRange;
  const message = "is also the HTTP port";
  const more = {
    received: httpsPort,
    allowed: `a port other than ${httpPort}`,
    fix: "Use two different ports.",
  };
  return [...outOfRange, problem("config.duplicate-listener", `${method}.httpsPort`, message, more)];
}
