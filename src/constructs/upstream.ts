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
   * @default - the host of the server's URL
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

/** One of the servers of an upstream. */
export interface UpstreamServer {
  /** Where it listens, as `url` of `UpstreamProps`. */
  readonly url: string;
  /**
   * How many requests it gets in comparison, from 1 to 1000: one with 2 gets twice as many as one with 1.
   * @default 1
   */
  readonly weight?: number;
  /**
   * Whether it gets requests only while all servers that are no backup are down or drained.
   * @default false
   */
  readonly backup?: boolean;
}

/** What binds the requests of a session to one of several servers, as long as that is up: exactly one of the two. */
export interface UpstreamSticky {
  /**
   * Cookie in which the application keeps a session: requests with the same value go to the same server, by a hash, so no
   * cookie is added, hosts and pods agree without a word, and when a server goes, only its sessions move. The answer that
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
  /**
   * Path that is asked for with GET, a query if need be.
   * @default "/"
   */
  readonly path?: string;
  /**
   * Port to ask, from 1 to 65535.
   * @default - the server's own
   */
  readonly port?: number;
  /**
   * Statuses that mean that the server is up, each from 200 to 599.
   * @default - 200
   */
  readonly expect?: readonly number[];
  /**
   * Whether an established connection is enough, with TLS if it has any. Nothing is asked then.
   * @default false
   */
  readonly tcp?: boolean;
  /**
   * Time between two checks of a server, give or take a tenth, in milliseconds from 100 to 2147483647. A check that takes
   * as long, or 10 s, has failed.
   * @default 5000
   */
  readonly intervalMs?: number;
  /**
   * How many checks in a row have to fail until the server is down: 1 to 100.
   * @default 3
   */
  readonly fall?: number;
  /**
   * How many checks in a row have to succeed until it is up again: 1 to 100.
   * @default 2
   */
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
  /**
   * Several servers, in place of `url`. A request that one of them did not take goes to another, and one that does not
   * answer gets none for a while. Connections, and what limits them, are those of each server.
   * @default - one server, at `url`
   */
  readonly servers?: readonly UpstreamServer[];
  /**
   * Which of several servers gets a request that no session binds to one. `"roundRobin"`: in turns, by weight.
   * `"leastConnections"`: the one with the fewest requests in progress, by weight. `"clientAddress"`: all requests of one
   * client (IPv4 address or IPv6 /48 network) the same one.
   * @default "roundRobin"
   */
  readonly balance?: "roundRobin" | "leastConnections" | "clientAddress";
  /**
   * What binds the requests of a session to one of several servers.
   * @default - nothing
   */
  readonly sticky?: UpstreamSticky;
  /**
   * Whether each address of a host name is a server of its own. The names are looked up every 5 s: addresses that come are
   * servers, and those that go get no new request. Without it, the addresses of a name are tried one after the other, as one
   * server.
   * @default false
   */
  readonly spread?: boolean;
  /**
   * Checks of each of several servers.
   * @default - servers are judged by the requests that they get
   */
  readonly health?: UpstreamHealth;
  /**
   * How long one of several servers that came back gets a share that grows from a tenth to the whole, in milliseconds from
   * 0 to 2147483647; 0 for the whole at once. Sessions that are bound to it come at once.
   * @default 10000
   */
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
  /**
   * How long requests wait when the only server begins to refuse connections, as while it restarts, in milliseconds
   * from 0 to 2147483647; 0 disables, and then, as afterwards, they get 502 at once. Those that wait are among `queuedRequestsMax`, also
   * uploads, of which nothing was read. Several servers: 0, since another one gets the request.
   * @default 5000
   */
  readonly holdMs?: number;
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
   * Most connections to the upstream, or to each of its servers, per worker: 1 to 1000000. WebSocket tunnels count. With two workers the
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
