import { Construct } from "constructs";
import { freeId } from "./constructIds.js";
import { scopeOf } from "./proxyScope.js";
import type { UpstreamInput } from "../model/index.js";
import { upstreamProblems } from "./props/checks.js";
import { warn } from "./warn.js";
import { any, judged, type PropTable, refuseProps } from "./props/propTable.js";

/**
 * A backend that routes forward to. It does not belong to one proxy: every proxy whose routes use it renders
 * it.
 */
export class Upstream extends Construct {
  /** Name in the config and in logs. */
  readonly name: string;
  /** Where it listens. */
  readonly url: string;
  /** What its TLS needs, if its URL is `https`. */
  readonly tls?: UpstreamTls;
  private readonly input: UpstreamInput;

  constructor(scope: Construct, id: string, props: UpstreamProps) {
    const place = scopeOf(scope, "Upstreams");
    super(place, freeId(place, id));
    refuseProps(this, props, UPSTREAM_PROPS, (fit) =>
      upstreamProblems(this.node.path, { ...(fit as UpstreamProps), name: fit.name ?? id }),
    );
    this.input = { ...props, name: props.name ?? id };
    this.name = this.input.name;
    this.url = this.input.url;
    if (props.tls !== undefined) this.tls = props.tls;
    if (props.tls?.verify === false) warn(this, UNVERIFIED);
  }

  /** @internal Files of the host that its TLS takes, by the names of their fields. */
  get tlsFiles(): Readonly<Record<string, string>> {
    const { caFile, certificateFile, privateKeyFile } = this.tls ?? {};
    const files = Object.entries({ caFile, certificateFile, privateKeyFile });
    return Object.fromEntries(files.filter((file): file is [string, string] => file[1] !== undefined));
  }

  /** @internal Its section of the config. */
  render(): UpstreamInput {
    return this.input;
  }
}

const UNVERIFIED =
  "`verify: false` takes whoever answers for the upstream, who can read and change everything: give its root " +
  "certificate, or the certificate itself if it signed itself, as `caFile`.";

/** TLS to an upstream at an `https` URL: versions 1.2 and 1.3, HTTP/1.1. */
export interface UpstreamTls {
  /**
   * PEM file on the host: root certificates by which the upstream is trusted, and no others; for a private authority, or a
   * certificate that signed itself.
   * @default - the roots that Node brings
   */
  readonly caFile?: string;
  /**
   * Name or address that the certificate has to be for; a name is also asked for (SNI).
   * @default - the host of `url`
   */
  readonly serverName?: string;
  /**
   * PEM file on the host: a certificate for an upstream that demands one, then its chain. With `privateKeyFile`.
   * @default - none
   */
  readonly certificateFile?: string;
  /**
   * PEM file on the host: its private key, without passphrase. Only root has to read it.
   * @default - none
   */
  readonly privateKeyFile?: string;
  /**
   * Whether the upstream has to prove who it is. `false` takes whoever answers for it, and is warned of: better name its
   * root certificate as `caFile`.
   * @default true
   */
  readonly verify?: boolean;
}

/** Where a backend listens, and how connections to it are used. */
export interface UpstreamProps {
  /**
   * `http://HOST:PORT`, with nothing after the port, `https://HOST:PORT` for TLS, or `unix:/PATH` for a Unix socket. A host
   * that is not an address is looked up whenever a connection is made; several addresses of it are tried in turn. A URL that leads back to a listener of the same proxy is refused
   * (`config.proxy-loop`). The proxy's user must have the right to write to a socket: through others, or a group of
   * `service: { groups }`; a socket below /tmp, /home or /run/user is refused (`unit.no-access`).
   */
  readonly url: string;
  /**
   * Name in the config and in logs: letters, digits, `-`, `_`, `.`.
   * @default - the construct's id
   */
  readonly name?: string;
  /**
   * TLS, for an `https` URL.
   * @default - its certificate is from an authority that Node knows, and for the host of `url`
   */
  readonly tls?: UpstreamTls;
  /**
   * Time to establish a connection, with TLS if it has any, in milliseconds from 1 to 2147483647. A request that exceeds
   * it gets 504.
   * @default 5000 (the default application of a front end: 36000000)
   */
  readonly connectTimeoutMs?: number;
  /**
   * Idle time allowed between two writes of a request to the upstream, in milliseconds from 1 to 2147483647. It
   * does not limit the whole request: an upload may take any time as long as it progresses. 504 when exceeded.
   * @default 60000 (the default application of a front end: 36000000)
   */
  readonly sendTimeoutMs?: number;
  /**
   * Idle time allowed between two reads of an answer, in milliseconds from 1 to 2147483647; 504 when exceeded before
   * the answer began.
   * @default 60000 (the default application of a front end: 36000000)
   */
  readonly readTimeoutMs?: number;
  /**
   * Most connections to the upstream, per worker: 1 to 1000000. WebSocket tunnels count. With two workers the
   * host opens up to twice as many, and while old workers finish after a reload, theirs come on top. When all
   * are in use, requests wait; the clients take turns. 1000000 in effect disables the limit.
   * @default 4096
   */
  readonly connectionsMax?: number;
  /**
   * Most requests that wait for a connection, per worker: 0 to 1000000. One more gets 503 with `Retry-After` at
   * once; 0 lets none wait.
   * @default 1024
   */
  readonly queuedRequestsMax?: number;
  /**
   * How many of `connectionsMax` and of `queuedRequestsMax` one client may have, in percent from 1 to 100, rounded down,
   * but at least one. One client is an IPv4 address or an IPv6 /48 network: an office behind one address has 3,072
   * requests in progress per worker by default, and 768 that wait. Raise it where nearly all users share an address. 100
   * disables the limit.
   * @default 75
   */
  readonly clientSharePercent?: number;
  /**
   * How long a request waits for a connection, in milliseconds from 1 to 2147483647; then it gets 503 with
   * `Retry-After`.
   * @default 30000
   */
  readonly queueTimeoutMs?: number;
  /**
   * Idle connections kept for reuse, per worker: 0 to 65535. 0 opens a connection for every request.
   * @default 512
   */
  readonly idleConnectionsMax?: number;
  /**
   * How long an idle connection is kept, in milliseconds from 1 to 2147483647. Keep it below the upstream's own
   * keep-alive time, or requests meet connections that are just being closed.
   * @default 1500 (gunicorn closes after 2 s)
   */
  readonly idleTimeoutMs?: number;
  /**
   * Longest head of an answer, in bytes from 1024 to 1048576; a longer one gets 502.
   * @default 65536
   */
  readonly headBytesMax?: number;
}

/** @internal */
export const UPSTREAM_PROPS: PropTable<UpstreamProps> = {
  url: judged,
  name: any,
  tls: any,
  connectTimeoutMs: any,
  sendTimeoutMs: any,
  readTimeoutMs: any,
  connectionsMax: any,
  queuedRequestsMax: any,
  clientSharePercent: any,
  queueTimeoutMs: any,
  idleConnectionsMax: any,
  idleTimeoutMs: any,
  headBytesMax: any,
};
