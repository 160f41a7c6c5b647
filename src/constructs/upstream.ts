import { Construct, type IConstruct } from "constructs";
import { freeId } from "./constructIds.js";
import { scopeOf } from "./proxyScope.js";
import { type UpstreamInput, urlsOf } from "../model/index.js";
import { upstreamProblems } from "./props/checks.js";
import { warn } from "./warn.js";
import { any, type PropTable, refuseProps } from "./props/propTable.js";

/** What routes forward to: an `Upstream`, also one of another stack, or a construct of your own that is one. */
export interface IUpstream extends IConstruct {
  /** Name in the config and in logs. */
  readonly name: string;
  /** Where it listens; the first of `urls`. */
  readonly url: string;
  /** Where its servers listen. */
  readonly urls: readonly string[];
  /** What its TLS needs, if its URL is `https`. */
  readonly tls?: UpstreamTls;
  /** Its section of the config. One of your own gives that of an `Upstream` that it has, or makes it. */
  render(): UpstreamInput;
}

/**
 * A backend that routes forward to. It does not belong to one proxy: every proxy whose routes use it renders
 * it.
 */
export class Upstream extends Construct implements IUpstream {
  readonly name: string;
  readonly url: string;
  readonly urls: readonly string[];
  readonly tls?: UpstreamTls;
  private readonly input: UpstreamInput;

  /**
   * An upstream that exists already, at the URL that its maker gives: an output of another stack, an attribute of a
   * resource. Everything else is as by default. One of another stack of the same app needs none of it: it can be used as
   * it is.
   *
   * @param url as `url` of `UpstreamProps`
   */
  static fromUrl(scope: Construct, id: string, url: string): IUpstream {
    return new Upstream(scope, id, { url });
  }

  constructor(scope: Construct, id: string, props: UpstreamProps) {
    const place = scopeOf(scope, "Upstreams");
    super(place, freeId(place, id));
    refuseProps(this, props, UPSTREAM_PROPS, (fit) =>
      upstreamProblems(this.node.path, { ...(fit as UpstreamProps), name: fit.name ?? id }),
    );
    this.input = { ...props, name: props.name ?? id };
    this.name = this.input.name;
    this.urls = urlsOf(this.input).map(({ url }) => url);
    [this.url] = this.urls as [string];
    if (props.tls !== undefined) this.tls = props.tls;
    if (props.tls?.verify === false) warn(this, UNVERIFIED);
  }

  render(): UpstreamInput {
    return this.input;
  }
}

/** @internal Files of the host that an upstream's TLS takes, by the names of their fields. */
export function tlsFilesOf({ tls = {} }: IUpstream): Readonly<Record<string, string>> {
  const { caFile, certificateFile, privateKeyFile } = tls;
  const files = Object.entries({ caFile, certificateFile, privateKeyFile });
  return Object.fromEntries(files.filter((file): file is [string, string] => file[1] !== undefined));
}

/** @internal Props with changes to them: `servers` take the place of `url`. */
export function withChanges(props: UpstreamProps, changes: Partial<UpstreamProps> = {}): UpstreamProps {
  return { ...props, ...(changes.servers === undefined ? {} : { url: undefined }), ...changes };
}

const UNVERIFIED =
  "`verify: false` accepts every server that answers for the upstream, and that server can read and change everything: " +
  "set `caFile` to the root certificate, or to the certificate itself if it is self-signed, and remove `verify: false`.";

/** TLS to an upstream at an `https` URL: versions 1.2 and 1.3, HTTP/1.1. */
export interface UpstreamTls {
  readonly caFile?: string;
  readonly serverName?: string;
  readonly certificateFile?: string;
  readonly privateKeyFile?: string;
  readonly verify?: boolean;
}

/** One of the servers of an upstream. */
export interface UpstreamServer {
  /** Where it listens, as `url` of `UpstreamProps`. */
  readonly url: string;
  readonly weight?: number;
  readonly backup?: boolean;
}

/** What binds the requests of a session to one of several servers, as long as that is up: exactly one of the two. */
export interface UpstreamSticky {
  /**
   * Cookie in which the application keeps a session: requests with the same value go to the same server, by a hash, so no
   * cookie is added, hosts and pods agree without a word, and when a server goes, only its sessions move. The response that
   * sets the cookie may come from another server, so servers have to share their sessions; what they keep of one beside
   * that (caches, uploads in parts) stays at one server.
   * @default - none
   */
  readonly applicationCookie?: string;
  /**
   * Cookie of the proxy, which binds a client to the server that answered it first: for applications whose servers keep
   * sessions for themselves. It is `HttpOnly`, `SameSite=Lax`, over TLS `Secure`, and names the server by a keyed hash.
   * Several hosts or pods agree if they have `ticketKeys`.
   * @default - none
   */
  readonly cookie?: string;
}

/** Checks of each server of an upstream, which one process of the proxy makes. */
export interface UpstreamHealth {
  readonly path?: string;
  readonly port?: number;
  readonly expect?: readonly number[];
  readonly tcp?: boolean;
  readonly intervalMs?: number;
  readonly fall?: number;
  readonly rise?: number;
}

/** Where a backend listens, and how connections to it are used. */
export interface UpstreamProps {
  /**
   * One server: `http://HOST:PORT`, with nothing after the port, `https://HOST:PORT` for TLS, or `unix:/PATH` for a Unix socket. A host
   * that is not an address is looked up whenever a connection is made; several addresses of it are tried in turn. A URL that leads back to a listener of the same proxy is refused
   * (`config.proxy-loop`). The proxy's user must have the right to write to a socket: through others, or a group of
   * `service: { groups }`; a socket below /tmp, /home or /run/user is refused (`unit.no-access`).
   * @default - `servers`, which is needed without it
   */
  readonly url?: string;
  readonly servers?: readonly UpstreamServer[];
  readonly balance?: "roundRobin" | "leastConnections" | "clientAddress";
  /**
   * What binds the requests of a session to one of several servers.
   * @default - nothing
   */
  readonly sticky?: UpstreamSticky;
  readonly spread?: boolean;
  /**
   * Checks of each of several servers.
   * @default - servers are judged by the requests that they get
   */
  readonly health?: UpstreamHealth;
  readonly slowStartMs?: number;
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
   * Version of the PROXY protocol in whose header each connection says who the client is: its address, and the one that it
   * connected to. The upstream has to expect it. No connection is used for a second request, so `idleConnectionsMax` and
   * `idleTimeoutMs` are refused beside it (`config.used-once`).
   * @default - no header
   */
  readonly proxyProtocol?: "v1" | "v2";
  /**
   * Time to establish a connection, with TLS if it has any, in milliseconds from 1 to 2147483647. A request that exceeds
   * it gets 504. Where there is another server to try, no more than 3 s.
   * @default 5000 (the default application of a front end: 36000000)
   */
  readonly connectTimeoutMs?: number;
  readonly holdMs?: number;
  /**
   * Idle time allowed between two writes of a request to the upstream, in milliseconds from 1 to 2147483647. It
   * does not limit the whole request: an upload may take any time as long as it progresses. 504 when exceeded.
   * @default 60000 (the default application of a front end: 36000000)
   */
  readonly sendTimeoutMs?: number;
  /**
   * Idle time allowed between two reads of a response, in milliseconds from 1 to 2147483647; 504 when exceeded before
   * the response began.
   * @default 60000 (the default application of a front end: 36000000)
   */
  readonly readTimeoutMs?: number;
  readonly connectionsMax?: number;
  readonly queuedRequestsMax?: number;
  readonly clientSharePercent?: number;
  readonly queueTimeoutMs?: number;
  readonly idleConnectionsMax?: number;
  /**
   * How long an idle connection is kept, in milliseconds from 1 to 2147483647. Keep it below the upstream's own
   * keep-alive time, or requests meet connections that are just being closed.
   * @default 1500 (gunicorn closes after 2 s)
   */
  readonly idleTimeoutMs?: number;
  readonly headBytesMax?: number;
}

/** @internal */
export const UPSTREAM_PROPS: PropTable<UpstreamProps> = {
  url: any,
  servers: any,
  balance: any,
  sticky: any,
  spread: any,
  health: any,
  slowStartMs: any,
  name: any,
  tls: any,
  proxyProtocol: any,
  connectTimeoutMs: any,
  holdMs: any,
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
