import { isPort } from "../../model/address.js";
import { type Problem, problem } from "../../model/index.js";
import { refuse } from "../props/checks.js";
import { TLS_MATERIAL, TLS_POLICY } from "../props/instances.js";
import { flag, number, type PropTable, refuseOptions } from "../props/propTable.js";
import type { TlsMaterial } from "../tlsMaterial.js";
import type { TlsPolicy } from "../tlsPolicy.js";
import { isKnown } from "../props/tokens.js";

/** Whether the application is reached over HTTP or over TLS. A closed choice: take one of the static methods. */
export abstract class Mode {
  /** Scheme that clients use. */
  abstract readonly scheme: "http" | "https";
  /** Port that the host listens on for HTTP. */
  abstract readonly httpPort: number;
  /** Port that clients use. */
  abstract readonly publicPort: number;
  /** What the TLS listener is made of; undefined in plain mode. */
  readonly https?: HttpsOptions;

  /**
   * HTTP on port 80. Passwords cross the network in the clear: for tests, never for logins from the
   * internet.
   */
  static plain(options: PlainOptions = {}): Mode {
    refuseOptions("Mode.plain", options, PLAIN_OPTIONS);
    refuse(portProblems("Mode.plain", options));
    return new PlainMode(options);
  }

  /** TLS with HTTP/2 on port 443; port 80 redirects to it. */
  static tls(options: TlsOptions = {}): Mode {
    refuseOptions("Mode.tls", options, TLS_OPTIONS);
    refuse(portProblems("Mode.tls", { ...options, httpsPort: options.httpsPort ?? 443 }));
    return new TlsMode(options);
  }
}

/** Options of plain HTTP. */
export interface PlainOptions {
  /**
   * Port the host listens on, 1 to 65535.
   * @default 80
   */
  readonly httpPort?: number;
  /**
   * Port that clients use, where a router maps it.
   * @default - the port the host listens on
   */
  readonly publicPort?: number;
}

/** Options of TLS. */
export interface TlsOptions {
  /**
   * Private key, certificate and Diffie-Hellman parameters.
   * @default TlsMaterial.selfSigned()
   */
  readonly material?: TlsMaterial;
  /**
   * Protocols, ciphers and curves.
   * @default TlsPolicy.fileSync()
   */
  readonly policy?: TlsPolicy;
  /**
   * Whether HTTP/2 is offered.
   * @default true
   */
  readonly http2?: boolean;
  /**
   * Port the host listens on for the redirect, 1 to 65535.
   * @default 80
   */
  readonly httpPort?: number;
  /**
   * Port the host listens on for TLS, 1 to 65535.
   * @default 443
   */
  readonly httpsPort?: number;
  /**
   * Port that clients use for TLS, where a router maps it. The redirect and the settings use it.
   * @default - the port the host listens on for TLS
   */
  readonly publicPort?: number;
}

/** @internal */
export interface HttpsOptions extends TlsOptions {
  readonly httpsPort: number;
}

class PlainMode extends Mode {
  override readonly scheme = "http";
  override readonly httpPort: number;
  override readonly publicPort: number;

  constructor({ httpPort = 80, publicPort = httpPort }: PlainOptions) {
    super();
    this.httpPort = httpPort;
    this.publicPort = publicPort;
  }
}

class TlsMode extends Mode {
  override readonly scheme = "https";
  override readonly httpPort: number;
  override readonly publicPort: number;
  override readonly https: HttpsOptions;

  constructor(options: TlsOptions) {
    super();
    const { httpPort = 80, httpsPort = 443, publicPort = httpsPort } = options;
    this.httpPort = httpPort;
    this.publicPort = publicPort;
    this.https = { ...options, httpsPort };
  }
}

const PLAIN_OPTIONS: PropTable<PlainOptions> = { httpPort: number, publicPort: number };

const TLS_OPTIONS: PropTable<TlsOptions> = {
  material: TLS_MATERIAL,
  policy: TLS_POLICY,
  http2: flag,
  httpPort: number,
  httpsPort: number,
  publicPort: number,
};

function portProblems(method: string, options: TlsOptions): Problem[] {
  const { httpPort = 80, httpsPort } = options;
  const outOfRange = (["httpPort", "httpsPort", "publicPort"] as const).flatMap((name) => {
    const port = options[name];
    if (port === undefined || !isKnown(port) || isPort(port)) return [];
    const more = { received: port, allowed: "1 to 65535" };
    return [problem("config.out-of-range", `${method}.${name}`, "is not a port", more)];
  });
  if (httpsPort !== httpPort) return outOfRange;
  const message = "is the HTTP port as well";
  const more = {
    received: httpsPort,
    allowed: `a port other than ${httpPort}`,
    fix: "Give two different ports.",
  };
  return [...outOfRange, problem("config.duplicate-listener", `${method}.httpsPort`, message, more)];
}
