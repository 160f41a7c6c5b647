import { Aspects } from "cdktf";
import { Construct, type IConstruct } from "constructs";
import { LOCAL_NETWORKS } from "../../model/access/localNetworks.js";
import { formatProblem, isCidr, isLoopback, type Problem, problem } from "../../model/index.js";
import {
  accessLogsOf,
  BAN_FILTER,
  BAN_LOG_PATH,
  type BanRules,
  CROWDSEC,
  FAIL2BAN,
  renderAcquisition,
  renderBanFilter,
  renderJails,
  sharesALog,
  type WatchedServer,
  watchedServers,
} from "../../render/index.js";
import { accepting } from "../../model/text/textRule.js";
import { needProgram } from "../delivery/neededPrograms.js";
import { HostFile } from "../host/hostFile.js";
import { freeId } from "../props/constructIds.js";
import { REVERSE_PROXY } from "../props/instances.js";
import { type LateValue, lateText } from "../props/lateChecks.js";
import { listOf, number, type PropTable, refuseProps, required, text } from "../props/propTable.js";
import { isKnown, renderAroundTokens } from "../props/tokens.js";
import { warn } from "../props/warn.js";
import type { IReverseProxy } from "../proxy/proxyInterfaces.js";

/**
 * A filter and jails for the host's fail2ban, from the `logIns` of the proxy's virtual servers: an address whose log-ins fail too
 * often cannot reach the ports of the proxy for a while. Each virtual server with log-ins has a jail, `portico-` and its name.
 * Passwords are not compared, so fail2ban also bans a phone with an old password: docs/fail2ban-crowdsec.md says whom
 * that suits, and which log-ins no access log shows.
 *
 * The host needs the package `fail2ban`; the activation reloads `fail2ban.service` when a file changes.
 */
export class Fail2ban extends Construct {
  /** The filter: `/etc/fail2ban/filter.d/portico.conf`. */
  readonly filter: HostFile;
  /** The jails: `/etc/fail2ban/jail.d/portico.conf`. */
  readonly jails: HostFile;
  private readonly props: Fail2banProps;

  constructor(scope: Construct, id: string, props: Fail2banProps) {
    super(scope, freeId(scope, id));
    refuseProps(this, props, FAIL2BAN_PROPS, (fit) => fail2banProblems(this.node.path, fit));
    this.props = props;
    const { host } = props.proxy;
    const file = (name: string, content: () => string): HostFile =>
      new HostFile(this, name, {
        host,
        path: `/etc/fail2ban/${name.toLowerCase()}.d/${BAN_FILTER}.conf`,
        role: "fail2ban",
        content,
      });
    this.filter = file("Filter", () => renderBanFilter(this.watched()));
    this.jails = file("Jail", () =>
      renderAroundTokens({ servers: this.watched(), rules: this.rules() }, ({ servers, rules }) =>
        renderJails(servers, rules),
      ),
    );
    this.jails.checkLate(() => lateLogPaths(props.proxy));
    needProgram(host, { ...FAIL2BAN, path: "/usr/bin/fail2ban-client" });
    this.node.addValidation({ validate: () => this.problems.map(formatProblem) });
    warnOfUnseen(this, () => this.watched());
  }

  private watched(): WatchedServer[] {
    return watchedServers(this.props.proxy.config);
  }

  private rules(): BanRules {
    const { proxy, maxRetry = 10, findTimeMs = 600_000, banTimeMs = 600_000 } = this.props;
    const { banAction = "nftables", ignoreIp = LOCAL_NETWORKS } = this.props;
    const reached = proxy.listeners.filter(({ address }) => !isLoopback(address)).map(({ port }) => port);
    const ports = [...new Set(reached)];
    const { address, ipv6Address } = proxy.host;
    const own = ["127.0.0.0/8", "::1", address, ...(ipv6Address === undefined ? [] : [ipv6Address])];
    const ignored = [...ignoreIp, ...own, ...(proxy.config.trustedProxies ?? [])];
    return { maxRetry, findTimeMs, banTimeMs, banAction, ignoreIp: [...new Set(ignored)], ports };
  }

  /** @internal Problems of the proxy as it is by now: sites may be added after this construct. */
  get problems(): readonly Problem[] {
    const { path } = this.node;
    const servers = this.watched();
    return [
      ...(this.props.banAction === undefined ? otherAddressProblems(path, this.props.proxy) : []),
      ...logProblems(path, this.props.proxy),
      ...(servers.some(({ rules }) => rules.length > 0) ? [] : [nobody(path)]),
      ...servers
        .filter(({ rules, logs }) => rules.length > 0 && logs.length === 0)
        .map(({ name }) =>
          unreadable(path, `cannot see the log-ins of ${name}: none of its access logs is a file`),
        ),
      ...servers
        .filter((one) => sharesALog(one, this.props.proxy.config))
        .map(({ name }) => shared(path, name)),
    ];
  }
}

/** Options of bans by fail2ban. */
export interface Fail2banProps {
  /** The proxy whose access logs fail2ban reads. */
  readonly proxy: IReverseProxy;
  /**
   * Failed log-ins within `findTimeMs` after which an address is banned, 1 to 1000: `maxretry` of fail2ban.
   * @default 10
   */
  readonly maxRetry?: number;
  /**
   * The time in which failures count together, in milliseconds from 1000 to 604800000: `findtime` of fail2ban.
   * @default 600000
   */
  readonly findTimeMs?: number;
  /**
   * How long an address is banned, in milliseconds from 1000 to 31536000000: `bantime` of fail2ban.
   * @default 600000
   */
  readonly banTimeMs?: number;
  /**
   * Addresses and ranges that are never banned: `ignoreip` of fail2ban. The host's own addresses and
   * those of `trustedProxies` are not banned either.
   * @default Access.localNetworks()
   */
  readonly ignoreIp?: readonly string[];
  /**
   * Name of an action in `/etc/fail2ban/action.d`; it gets the options `name`, `port` and `protocol`. With an action of your own,
   * which bans at the load balancer, the front end may be behind this balancer.
   * @default "nftables"
   */
  readonly banAction?: string;
}

/**
 * An acquisition file for the host's CrowdSec, `/etc/crowdsec/acquis.d/portico.yaml`: the access logs, for the stock parser of
 * nginx (collection `crowdsecurity/nginx`). The logs must have the format `combined`.
 *
 * The host needs the package `crowdsec`; the activation reloads `crowdsec.service` when the file changes.
 */
export class CrowdSec extends Construct {
  /** The acquisition file. */
  readonly acquisition: HostFile;

  constructor(scope: Construct, id: string, props: CrowdSecProps) {
    super(scope, freeId(scope, id));
    refuseProps(this, props, CROWDSEC_PROPS);
    const { proxy } = props;
    const { host } = proxy;
    const logs = () => accessLogsOf(proxy.config, proxy.config.virtualServers);
    this.acquisition = new HostFile(this, "Acquisition", {
      host,
      path: "/etc/crowdsec/acquis.d/portico.yaml",
      role: "crowdsec",
      content: () => renderAroundTokens(logs(), renderAcquisition),
    });
    this.acquisition.checkLate(() => lateLogPaths(proxy));
    needProgram(host, { ...CROWDSEC, path: "/usr/bin/crowdsec" });
    const problems = (): Problem[] => [
      ...logProblems(this.node.path, proxy),
      ...(logs().length === 0
        ? [unreadable(this.node.path, "has no access log to read: none is a file")]
        : []),
      ...logs().flatMap(({ path, format }) =>
        format === "combined"
          ? []
          : [unreadable(this.node.path, `cannot read ${path}: its format is json`, COMBINED)],
      ),
    ];
    this.node.addValidation({ validate: () => problems().map(formatProblem) });
  }
}

/** Options of an acquisition file for CrowdSec. */
export interface CrowdSecProps {
  /** The proxy whose access logs CrowdSec reads. */
  readonly proxy: IReverseProxy;
}

const COMBINED = 'Set `logs.access.format: "combined"`: the stock parser of nginx reads this format.';

/** @internal Problems of the options by themselves. */
export function fail2banProblems(at: string, fit: Partial<Fail2banProps>): Problem[] {
  const numbers = [
    ["maxRetry", 1, 1_000],
    ["findTimeMs", 1_000, 604_800_000],
    ["banTimeMs", 1_000, 31_536_000_000],
  ] as const;
  const outside = numbers.flatMap(([name, min, max]) => {
    const received = fit[name];
    if (received === undefined || (Number.isInteger(received) && received >= min && received <= max))
      return [];
    const allowed = `a whole number from ${min} to ${max}, known at synthesis`;
    return [problem("config.out-of-range", `${at}.${name}`, "is out of range", { received, allowed })];
  });
  const ranges = (fit.ignoreIp ?? []).flatMap((received, i) => {
    if (!isKnown(received) || (isCidr(received) && !received.includes("%"))) return [];
    const allowed = "an IP address or a CIDR range such as 10.0.0.0/8";
    const what = "is not an address or a range";
    return [problem("config.bad-address", `${at}.ignoreIp[${i}]`, what, { received, allowed })];
  });
  const { banAction: received } = fit;
  if (received === undefined || /^[A-Za-z0-9_-]{1,64}$/.test(received)) return [...outside, ...ranges];
  const more = { received, allowed: "the name of a file in /etc/fail2ban/action.d, without `.conf`" };
  return [
    ...outside,
    ...ranges,
    problem("config.bad-name", `${at}.banAction`, "is not the name of an action", more),
  ];
}

/** A firewall sees the addresses of connections, which are not those of the clients. */
function otherAddressProblems(at: string, { config, listeners }: IReverseProxy): Problem[] {
  const { trustedProxies = [] } = config;
  const fix =
    "Ban at the load balancer, by an action of your own in `banAction`; or use `passwordGuard`, which needs no firewall.";
  const said = (message: string) => [problem("bans.no-effect", at, message, { fix })];
  if (trustedProxies.length > 0)
    return said(
      "bans addresses that this host's firewall does not see: with `trustedProxies`, connections come from a proxy",
    );
  if (listeners.some(({ proxyProtocol }) => proxyProtocol !== undefined))
    return said(
      "bans addresses that this host's firewall does not see: with `proxyProtocol`, connections come from a proxy",
    );
  return listeners.length > 0 && listeners.every(({ address }) => isKnown(address) && isLoopback(address))
    ? said(
        "bans nobody: clients come through a proxy on this host, because all listeners have loopback addresses",
      )
    : [];
}

/** Logs from which no program can tell which address to ban. */
function logProblems(at: string, { config }: IReverseProxy): Problem[] {
  const { clientAddress = "full" } = config.logs ?? {};
  const paths = accessLogsOf(config, config.virtualServers).map(({ path }) => path);
  const hidden = `cannot see the addresses of clients: \`logs.clientAddress\` is "${clientAddress}"`;
  const fix = 'Set `logs.clientAddress: "full"`, or use `passwordGuard`, which reads no log.';
  return [
    ...(clientAddress === "full" ? [] : [unreadable(at, hidden, fix)]),
    ...paths
      .filter((path) => isKnown(path) && !isLogPath(path))
      .map((path) => unreadable(at, `cannot be given the path ${path}`, `Use ${BAN_LOG_PATH.allowed}.`)),
  ];
}

const isLogPath = accepting(BAN_LOG_PATH);

/** A path with a character that has a meaning there, known at apply only. */
const lateLogPaths = ({ node, config }: IReverseProxy): LateValue[] =>
  accessLogsOf(config, config.virtualServers).flatMap(({ path }) =>
    lateText("bans.unreadable-log", `${node.path}.logs`, BAN_LOG_PATH, path),
  );

function unreadable(
  at: string,
  message: string,
  fix = "Log to a file: `logs: { access: { path: … } }` of the proxy.",
): Problem {
  return problem("bans.unreadable-log", at, message, { fix });
}

const shared = (at: string, server: string): Problem =>
  unreadable(
    at,
    `cannot tell failed log-ins of ${server} from requests to other virtual servers: they share a log in the format ` +
      "combined, whose lines name no virtual server",
    'Set `logs: { access: { path: …, format: "json" } }` of the proxy.',
  );

const nobody = (at: string): Problem =>
  problem("bans.no-effect", at, "bans nobody: no access log shows a failed log-in of any site", {
    fix: "Use an application with `logIns`, such as `Application.custom` with `clients.logIns`; or remove the option.",
  });

/** Log-ins that get no jail; sites may be added after the construct. */
function warnOfUnseen(scope: Construct, watched: () => readonly WatchedServer[]): void {
  let warned = false;
  const visit = (node: IConstruct): void => {
    if (node !== scope || warned) return;
    warned = true;
    for (const { name, unseen } of watched()) {
      if (unseen.length === 0) continue;
      const list = unseen.map(({ method = "any method", path }) => `${method} ${path}`).join(", ");
      warn(
        scope,
        `fail2ban cannot see failures of these log-ins of ${name}: ${list}. Their status is that of a success; ` +
          "`passwordGuard` sees them.",
      );
    }
  };
  Aspects.of(scope).add({ visit });
}

/** @internal */
export const FAIL2BAN_PROPS: PropTable<Fail2banProps> = {
  proxy: required(REVERSE_PROXY),
  maxRetry: number,
  findTimeMs: number,
  banTimeMs: number,
  ignoreIp: listOf(text),
  banAction: text,
};

const CROWDSEC_PROPS: PropTable<CrowdSecProps> = { proxy: required(REVERSE_PROXY) };
