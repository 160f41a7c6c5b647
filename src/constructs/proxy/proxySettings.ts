import type { IConstruct } from "constructs";
import {
  type healthListener,
  type metricsAddress,
  type metricsSocket,
  proxySettings,
  type requestId,
} from "../../model/config/config.js";
import type {
  accessLogFile,
  accessLogStream,
  errorLogFile,
  errorLogStream,
  logs,
} from "../../model/config/logs.js";
import type { maintenance } from "../../model/config/pauses.js";
import type { acceptedRisk } from "../../model/config/security.js";
import type { ticketKeys } from "../../model/config/tls.js";
import type { limits, timeouts } from "../../model/schema/limits.js";
import type { InputOf } from "../../model/schema/inferred.js";
import { everyoneIn } from "../../model/net/address.js";
import { type Problem, problem, type ProxyConfigInput } from "../../model/index.js";
import type { ProxyNotifications } from "./notification.js";
import { proxyProblems } from "../props/checks.js";
import { fieldsOf } from "../props/fieldTable.js";
import { flag, type PropTable } from "../props/propTable.js";
import { isKnown } from "../props/tokens.js";

/** Settings of a proxy as a whole. */
export interface ProxySettings extends InputOf<typeof proxySettings> {
  /** @remarks A range with every address is refused without `trustEveryone` (`config.everyone-trusted`). */
  readonly trustedProxies?: readonly string[];
  /**
   * Whether `trustedProxies`, and `proxyProtocol.from` of listeners, may contain every address (`0.0.0.0/0`, `::/0`).
   * Only if all other clients are kept away by other means: the proxy believes the client's own claims.
   * @default false
   */
  readonly trustEveryone?: boolean;
  readonly requestId?: ProxyRequestId;
  /**
   * @default - on a host, access.log and error.log in the log directory; in a container, standard output and standard
   * error
   */
  readonly logs?: ProxyLogs;
  readonly limits?: ProxyLimits;
  readonly timeouts?: ProxyTimeouts;
  readonly maintenance?: ProxyMaintenance;
  readonly acceptedRisks?: readonly AcceptedRisk[];
  readonly healthListener?: HealthListener;
  /** @remarks Example: `{ targets: [Notification.ntfy({ … })] }`. */
  readonly notifications?: ProxyNotifications;
  readonly metricsListener?: MetricsAddress | MetricsSocket;
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
export const PROXY_SETTINGS: PropTable<ProxySettings> = { ...fieldsOf(proxySettings), trustEveryone: flag };

/** Ids of requests. */
export interface ProxyRequestId extends InputOf<typeof requestId> {}

export interface ProxyLimits extends InputOf<typeof limits> {}

export interface ProxyTimeouts extends InputOf<typeof timeouts> {}

/** A finding of the security review that is acceptable: docs/security-review.md. */
export interface AcceptedRisk extends InputOf<typeof acceptedRisk> {}

export interface ProxyMaintenance extends InputOf<typeof maintenance> {}

export interface HealthListener extends InputOf<typeof healthListener> {}

export interface ProxyLogs extends InputOf<typeof logs> {
  /** @default - access.log in the log directory */
  readonly access?: "off" | AccessLogFile | AccessLogStream;
  /** @default - error.log in the log directory */
  readonly error?: "off" | ErrorLogFile | ErrorLogStream;
}

/** What every access log has. */
export interface AccessLogFormat extends Pick<InputOf<typeof accessLogFile>, "format"> {}

/** Requests in a file. */
export interface AccessLogFile extends AccessLogFormat, Pick<InputOf<typeof accessLogFile>, "path"> {}

/**
 * A stream for the access log, as in containers: the container engine collects the stream, or under systemd the
 * journal.
 */
export interface AccessLogStream extends AccessLogFormat, Pick<InputOf<typeof accessLogStream>, "stream"> {}

/** A stream for the error log. */
export interface ErrorLogStream extends InputOf<typeof errorLogStream> {}

export interface ErrorLogFile extends InputOf<typeof errorLogFile> {}

export interface SharedTicketKeys extends InputOf<typeof ticketKeys> {
  /** @remarks Neither synthesis nor Terraform reads it. */
  readonly file: string;
}

/** Address for monitoring over HTTP. The firewall does not open the port. */
export interface MetricsAddress extends InputOf<typeof metricsAddress> {}

/** Unix socket for monitoring over HTTP; `/run/portico` is the service's directory. */
export interface MetricsSocket extends InputOf<typeof metricsSocket> {}

/** @internal Problems of lists of trusted addresses that include everyone: any client could then claim any address. */
export function trustedEveryoneProblems(
  proxy: IConstruct & { readonly config: ProxyConfigInput; readonly listeners: readonly IConstruct[] },
): Problem[] {
  const { trustedProxies, listeners } = proxy.config;
  return [
    ...everyoneProblems(`${proxy.node.path}.trustedProxies`, trustedProxies),
    ...listeners.flatMap(({ proxyProtocol }, i) =>
      everyoneProblems(`${proxy.listeners[i]!.node.path}.proxyProtocol.from`, proxyProtocol?.from),
    ),
  ];
}

/**
 * The same for one list, at the path of its prop; the config's own rules refuse a value that is not a list of texts.
 */
function everyoneProblems(path: string, ranges: readonly string[] = []): Problem[] {
  const texts = Array.isArray(ranges) ? ranges.filter((range) => typeof range === "string") : [];
  const reaching = texts.flatMap((range) => {
    const reach = isKnown(range) ? everyoneIn(range) : undefined;
    return reach === undefined ? [] : [{ range, reach }];
  });
  const [first] = reaching;
  if (first === undefined) return [];
  const everyone = reaching.map(({ range }) => range);
  const message = `${first.reach}: the proxy would believe what every client says about itself`;
  const more = { received: everyone, allowed: "addresses and ranges of the proxies in front of this one" };
  return [problem("config.everyone-trusted", path, message, more)];
}
