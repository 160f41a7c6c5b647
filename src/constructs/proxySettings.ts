import type { Problem } from "../model/index.js";
import type { ProxyNotifications } from "./notification.js";
import { proxyProblems } from "./props/checks.js";
import { any, flag, type PropTable } from "./props/propTable.js";
import { everyoneProblems } from "./trustedEveryone.js";

/**
 * Settings of a proxy as a whole, as its config contains them. The config's own types are derived from its schema and
 * have no hover text in an editor, so each field is described again here; tests keep the two the same.
 */

/** Settings of a proxy as a whole. */
export interface ProxySettings {
  /**
   * Worker processes, 1 to 256; `auto` for one per CPU of the control group, as long as its memory has room for them.
   * @default "auto"
   */
  readonly workers?: "auto" | number;
  /**
   * Addresses and CIDR ranges of HTTP proxies in front of this one. Only their forwarding fields are trusted, and the
   * client of their requests is the one that `clientAddressField` names. A range with every address is refused without
   * `trustEveryone` (`config.everyone-trusted`).
   * @default - none
   */
  readonly trustedProxies?: readonly string[];
  /**
   * Whether `trustedProxies`, and `proxyProtocol.from` of listeners, may have every address (`0.0.0.0/0`, `::/0`). Only
   * where something else keeps everyone but those proxies away: what a client says about itself is believed.
   * @default false
   */
  readonly trustEveryone?: boolean;
  /**
   * Field in which trusted proxies name the client: the last address in it that is not in `trustedProxies`. With
   * something else than an address there, the client is the proxy. Any but the default needs `trustedProxies`.
   * @default "X-Forwarded-For"
   */
  readonly clientAddressField?: string;
  /**
   * Gives each request an id that upstreams, log lines and error pages have; `{}` is enough.
   * @default - only requests with an error page of the virtual server have one
   */
  readonly requestId?: ProxyRequestId;
  /**
   * Main logs, for routes without logs of their own; `off` for none (errors then go to standard error).
   * @default - on a host access.log and error.log in the log directory, in a container standard output and standard error
   */
  readonly logs?: ProxyLogs;
  /**
   * Limits of every worker: head bytes, connections, streams and more.
   * @default - see ProxyLimits
   */
  readonly limits?: ProxyLimits;
  /**
   * Timeouts of connections: request head, keep-alive, TLS handshake, drain; in milliseconds.
   * @default - see ProxyTimeouts
   */
  readonly timeouts?: ProxyTimeouts;
  /**
   * Who is served while `portico maintenance on` is in force.
   * @default - nobody
   */
  readonly maintenance?: ProxyMaintenance;
  /**
   * Where probes ask whether it is healthy and ready: `{ address: "127.0.0.1", port: 9180 }`. No public address.
   * @default - nothing answers probes
   */
  readonly healthListener?: HealthListener;
  /**
   * Whom it tells when a certificate is not renewed, a server stays down, a disk fills, workers end again and again, a reload
   * is refused, or an activation is rolled back: `{ targets: [Notification.ntfy({ … })] }`.
   * @default - nobody
   */
  readonly notifications?: ProxyNotifications;
  /**
   * Keys of TLS session tickets that this proxy shares with others: a client resumes its session with any of them.
   * @default - each proxy makes its own keys
   */
  readonly ticketKeys?: SharedTicketKeys;
}

/** @internal Problems of settings of a proxy as a whole. */
export function settingsProblems(path: string, settings: ProxySettings): Problem[] {
  const { trustEveryone = false, trustedProxies } = settings;
  return [
    ...proxyProblems(path, { version: 1, ...configSettings(settings) }),
    ...(trustEveryone ? [] : everyoneProblems(`${path}.trustedProxies`, trustedProxies)),
  ];
}

/** @internal Settings without those that are for the stack only. */
export function configSettings({
  trustEveryone,
  ...settings
}: ProxySettings): Omit<ProxySettings, "trustEveryone"> {
  return settings;
}

/** @internal */
export const PROXY_SETTINGS: PropTable<ProxySettings> = {
  workers: any,
  trustedProxies: any,
  trustEveryone: flag,
  clientAddressField: any,
  requestId: any,
  logs: any,
  limits: any,
  timeouts: any,
  maintenance: any,
  healthListener: any,
  notifications: any,
  ticketKeys: any,
};

/** Ids of requests. */
export interface ProxyRequestId {
  /**
   * Field in which upstreams get the id, in place of what the client sent. One of a trusted proxy is kept if it has up to
   * 128 letters, digits and `._:+/=-`.
   * @default "X-Request-Id"
   */
  readonly field?: string;
  /**
   * Whether responses have the field as well, in place of what the upstream sent.
   * @default false
   */
  readonly response?: boolean;
}

/** Limits of every worker. A limit cannot be turned off, but its largest value has the same effect. */
export interface ProxyLimits {
  /**
   * Longest request line, in bytes from 256 to 65536; a longer one gets 414.
   * @default 8192
   */
  readonly requestLineBytesMax?: number;
  /**
   * Longest request head, in bytes from 1024 to 1048576; a longer one gets 400.
   * @default 32768
   */
  readonly headBytesMax?: number;
  /**
   * Most request fields, from 8 to 2000; a request with more gets 400.
   * @default 200
   */
  readonly headerCountMax?: number;
  /**
   * Most client connections, from 1 to 1000000 for each worker; more are closed at once.
   * Where memory is limited, no more by default than it has room for.
   * @default 16384
   */
  readonly connectionsMax?: number;
  /**
   * Most connections of one client, which is an IPv4 address or an IPv6 /48 network: from 1 to 1000000 for each worker;
   * more are closed at once. Addresses in `trustedProxies` are not counted. The value of `connectionsMax` disables it. By
   * default at most half of a `connectionsMax` that follows from memory.
   * @default 4096
   */
  readonly connectionsPerClientMax?: number;
  /**
   * Requests on one HTTP/1.1 connection before it is closed, from 1 to 1000000000.
   * @default 1000
   */
  readonly keepAliveRequestsMax?: number;
  /**
   * Most concurrent streams of one HTTP/2 connection, from 1 to 10000. Where memory is limited, no more by default than it
   * has room for, but at least 16.
   * @default 128
   */
  readonly concurrentStreamsMax?: number;
  /**
   * Streams that a client may reset in a second, from 1 to 100000, before its HTTP/2 connection is closed.
   * @default 200
   */
  readonly streamResetsPerSecondMax?: number;
}

/** Timeouts of client connections. Only `drainDelayMs` can be turned off; the largest value, 2147483647 ms, is 24 days. */
export interface ProxyTimeouts {
  /**
   * Time from the first byte of a request head to its last, in milliseconds from 1 to 2147483647; then 408.
   * @default 60000
   */
  readonly requestHeadMs?: number;
  /**
   * How long an idle client connection is kept, in milliseconds from 1 to 2147483647.
   * @default 75000
   */
  readonly keepAliveMs?: number;
  /**
   * Time for a TLS handshake, in milliseconds from 1 to 2147483647; then the connection is closed.
   * @default 60000
   */
  readonly tlsHandshakeMs?: number;
  /**
   * How long the proxy goes on accepting after SIGTERM, with `/readyz` of its health listener failing, in milliseconds
   * from 0 to 2147483647. Then it drains. 0: it drains at once. For a proxy behind a load balancer, which needs time to
   * notice.
   * @default 0
   */
  readonly drainDelayMs?: number;
  /**
   * How long a stopping worker lets running requests finish, in milliseconds from 1 to 2147483647; then they are cut.
   * @default 36000000
   */
  readonly drainMs?: number;
}

/** What holds while `portico maintenance on` is in force, and requests get 503 with `Retry-After`. */
export interface ProxyMaintenance {
  /**
   * Addresses and CIDR ranges of clients that are served all the same. Behind trusted proxies the client is the one that
   * they name. Ranges with every address are refused.
   * @default - none
   */
  readonly allow?: readonly string[];
  /**
   * HTML for browsers, up to 32 KiB; programs get a line of text. It may have the placeholders of `errorPages`;
   * `{{message}}` is that of the command.
   * @default - the virtual server's error page for 503, or a page that asks again every 20 seconds
   */
  readonly page?: string;
  /**
   * How long WebSockets stay open when a maintenance begins, in milliseconds from 0 to 2147483647; then they are closed
   * with code 1012 (RFC 6455, 7.4.1), and clients connect anew. Other transfers end when they are done.
   * @default 10000
   */
  readonly graceMs?: number;
}

/**
 * Where a proxy answers probes over HTTP: `/healthz` with 200 while it works, `/readyz` with 200 while it accepts and is
 * not about to stop; else 503.
 */
export interface HealthListener {
  /**
   * Local address: loopback, private or link-local. `0.0.0.0` and `::` only with `anyAddress`. The firewall opens nothing
   * for it.
   */
  readonly address: string;
  /** TCP port, 1 to 65535. */
  readonly port: number;
  /**
   * Whether `address` may be `0.0.0.0` or `::`. For a container, whose network is its own; on a host, everyone could ask.
   * @default false
   */
  readonly anyAddress?: boolean;
}

/** Where a proxy logs the requests and errors of routes without logs of their own. */
export interface ProxyLogs {
  /**
   * Access log: one line per request, in a file or on a stream. `off` for none.
   * @default - access.log in the log directory
   */
  readonly access?: "off" | AccessLogFile | AccessLogStream;
  /**
   * Error log: a file or a stream. `off` writes errors to standard error, which systemd puts into the journal.
   * @default - error.log in the log directory
   */
  readonly error?: "off" | ErrorLogFile | ErrorLogStream;
}

/** A file that requests are logged to. */
export interface AccessLogFile {
  /** Absolute path on the host; the user that runs the proxy must be able to write there. */
  readonly path: string;
  /**
   * Format of a line: nginx's `combined`, or `json` for one JSON object per line, which also has the key exchange group
   * of the TLS connection in `tls_group`, and in `error` how a request failed.
   * @default "combined"
   */
  readonly format?: "combined" | "json";
}

/** A stream that requests are logged to, as containers do: the engine collects it, or under systemd the journal. */
export interface AccessLogStream {
  /**
   * Standard output or standard error. A line has up to 4096 bytes; of a longer one, what the client sent is cut. If
   * nobody reads the stream, up to 8 MiB of lines wait in each worker, and more are dropped and counted.
   */
  readonly stream: "stdout" | "stderr";
  /**
   * Format of a line: nginx's `combined`, or `json` for one JSON object per line, which also has the key exchange group
   * of the TLS connection in `tls_group`, and in `error` how a request failed.
   * @default "combined"
   */
  readonly format?: "combined" | "json";
}

/** A stream that errors are logged to. */
export interface ErrorLogStream {
  /** Standard output or standard error. A line has up to 4096 bytes; a longer one ends early. */
  readonly stream: "stdout" | "stderr";
}

/** A file that errors are logged to. */
export interface ErrorLogFile {
  /** Absolute path on the host; the user that runs the proxy must be able to write there. */
  readonly path: string;
}

/** Keys of TLS session tickets that several hosts or pods share. */
export interface SharedTicketKeys {
  /**
   * Absolute path of a file where the proxy runs, with the secret that the keys are derived from: base64 text of at least 32
   * bytes, as `openssl rand -base64 48` writes it. Keep it as private as a TLS key; neither synthesis nor Terraform
   * reads it.
   */
  readonly file: string;
  /**
   * How long each key is used, in milliseconds from 1000 to 2147483647. All who share the secret change keys at the
   * same moment, by their clocks.
   * @default 43200000
   */
  readonly rotateMs?: number;
}
