import type { Problem } from "../model/index.js";
import type { ProxyNotifications } from "./notification.js";
import type { MetricsAddress, MetricsSocket } from "./metricsListener.js";
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
  readonly clientAddressField?: string;
  /**
   * Gives each request an id that upstreams, log lines and error pages have; `{}` is enough.
   * @default - only requests with an error page of the virtual server have one
   */
  readonly requestId?: ProxyRequestId;
  /**
   * Name under which responses that the proxy makes for a failure say what it was, in `Proxy-Status` (RFC 9209), on virtual
   * servers that have none of their own: `edge; error=connection_refused`. Letters, digits, `-`, `_`, `.`.
   * @default - the field is not sent
   */
  readonly proxyStatus?: string;
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
   * Where monitoring asks for `/metrics`, as Prometheus does: `{ address: "127.0.0.1", port: 9181 }`, or
   * `{ path: "/run/portico/metrics.sock" }`. On a public address only with `allow`.
   * @default - nothing answers; it is counted in any case
   */
  readonly metricsListener?: MetricsAddress | MetricsSocket;
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
  proxyStatus: any,
  logs: any,
  limits: any,
  timeouts: any,
  maintenance: any,
  healthListener: any,
  notifications: any,
  metricsListener: any,
  ticketKeys: any,
};

/** Ids of requests. */
export interface ProxyRequestId {
  readonly field?: string;
  readonly response?: boolean;
}

/** Limits of every worker. A limit cannot be turned off, but its largest value has the same effect. */
export interface ProxyLimits {
  readonly requestLineBytesMax?: number;
  readonly headBytesMax?: number;
  readonly headerCountMax?: number;
  readonly connectionsMax?: number;
  readonly connectionsPerClientMax?: number;
  readonly keepAliveRequestsMax?: number;
  readonly concurrentStreamsMax?: number;
  readonly streamResetsPerSecondMax?: number;
}

/** Timeouts of client connections. Only `drainDelayMs` can be turned off; the largest value, 2147483647 ms, is 24 days. */
export interface ProxyTimeouts {
  readonly requestHeadMs?: number;
  readonly keepAliveMs?: number;
  readonly tlsHandshakeMs?: number;
  readonly drainDelayMs?: number;
  readonly drainMs?: number;
}

/** What holds while `portico maintenance on` is in force, and requests get 503 with `Retry-After`. */
export interface ProxyMaintenance {
  readonly allow?: readonly string[];
  readonly page?: string;
  readonly graceMs?: number;
}

/**
 * Where a proxy answers probes over HTTP: `/healthz` with 200 while it works, `/readyz` with 200 while it accepts and is
 * not about to stop; else 503.
 */
export interface HealthListener {
  readonly address: string;
  readonly port: number;
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
  readonly format?: "combined" | "json";
}

/** A stream that requests are logged to, as containers do: the engine collects it, or under systemd the journal. */
export interface AccessLogStream {
  readonly stream: "stdout" | "stderr";
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
  readonly rotateMs?: number;
}
