import type { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { mayEndTls } from "../config/accessChecks.js";
import { siteOf } from "../config/sites.js";
import { responseFieldRules } from "../config/responseFields.js";
import { Router } from "../config/router.js";
import { everyoneIn } from "../net/address.js";
import { isLoopback } from "../net/authority.js";
import { CATCH_ALL } from "../net/serverName.js";
import type { ListenerConfig, ProxyConfig, RouteConfig, VirtualServerConfig } from "../index.js";
import type { FindingLevel } from "./findings.js";
import type { ACCEPTABLE } from "../config/security.js";
import { SECURITY_FINDINGS, type SecurityFindingId } from "./securityFindings.js";

/** A weakness of a config, as it is. */
export interface SecurityFinding {
  readonly id: SecurityFindingId;
  readonly level: FindingLevel;
  /** JSON path in the config, such as `virtualServers[0].routes[1]`. */
  readonly place: string;
  /** Name of the site or of the listener; absent where the finding concerns neither. */
  readonly at?: string;
  readonly message: string;
  readonly fix: string;
  /** The value that the finding is about. */
  readonly value?: string;
  /** Why the administrator accepts it: then it is no reason to refuse the config. */
  readonly accepted?: string;
}

/** Whether somebody has to do something about the finding. */
export const isOpenRisk = ({ level, accepted }: SecurityFinding): boolean =>
  level !== "note" && accepted === undefined;

/** Whether a certificate vouches for itself: no authority does. */
export const signsItself = (certificate: X509Certificate): boolean => certificate.checkIssued(certificate);

/** Whether the certificate at a path is self-signed; undefined where it cannot be read. */
type IsSelfSigned = (certificate: string) => boolean | undefined;

/**
 * Weaknesses of a config: what strangers on the internet can read, reach or guess. The gravest come first. Findings in
 * `acceptedRisks` have its reason.
 */
export function securityFindings(
  config: ProxyConfig,
  isSelfSigned: IsSelfSigned,
): readonly SecurityFinding[] {
  const router = new Router(config);
  const found = [
    ...config.listeners.flatMap((listener, i) => listenerFindings(config, listener, i, isSelfSigned)),
    ...config.virtualServers.flatMap((server, i) =>
      serverFindings(config, router, server, `virtualServers[${i}]`, isSelfSigned),
    ),
  ];
  const { acceptedRisks } = config;
  const accepting = (finding: SecurityFinding) => acceptedRisks.find((risk) => isFor(risk, finding));
  const unused = acceptedRisks.flatMap((risk, i) =>
    found.some((finding) => accepting(finding) === risk)
      ? []
      : [made("security.unused-acceptance", `acceptedRisks[${i}]`, { value: said(risk) })],
  );
  const all = found.map((finding): SecurityFinding => {
    const reason = accepting(finding)?.reason;
    return reason === undefined ? finding : { ...finding, accepted: reason };
  });
  const order: readonly FindingLevel[] = ["error", "warning", "note"];
  return [...all, ...unused].sort((a, b) => order.indexOf(a.level) - order.indexOf(b.level));
}

interface Risk {
  readonly finding: (typeof ACCEPTABLE)[number];
  readonly at?: string | undefined;
}

const isFor = ({ finding, at }: Risk, { id, at: place }: SecurityFinding): boolean =>
  finding === id && (at === undefined || at === place);

const said = ({ finding, at }: Risk): string => (at === undefined ? finding : `${finding} at ${at}`);

const made = (
  id: SecurityFindingId,
  place: string,
  more: Pick<SecurityFinding, "at" | "value">,
): SecurityFinding => {
  const [level, message, fix] = SECURITY_FINDINGS[id];
  return { id, level, place, ...more, message, fix };
};

function listenerFindings(
  config: ProxyConfig,
  listener: ListenerConfig,
  i: number,
  isSelfSigned: IsSelfSigned,
): readonly SecurityFinding[] {
  const { address, protocol, tls, name: at, proxyProtocol } = listener;
  if (isLoopback(address)) return [];
  const place = `listeners[${i}]`;
  if (protocol === "http") {
    // Before it stands a proxy that may speak TLS to clients.
    if (proxyProtocol !== undefined || mayEndTls(config)) return [];
    const open = config.virtualServers.filter(
      (server) => server.listeners.includes(at) && server.routes.some(leadsToApplication),
    );
    return open.map((server) => made("security.plain-http", place, { at, value: server.serverNames[0]! }));
  }
  return certificatesOf(tls!).flatMap((value) => {
    const own = isSelfSigned(value);
    if (own === false) return [];
    return made(own === true ? "security.self-signed" : "security.unknown-certificate", place, { at, value });
  });
}

/** Files of certificates; those by ACME have none. */
const certificatesOf = (tls: NonNullable<ListenerConfig["tls"]>): readonly string[] =>
  [tls, ...(tls.certificates ?? [])].flatMap(({ certificate }) => certificate ?? []);

const leadsToApplication = ({ action }: RouteConfig): boolean => action.type === "proxy";

function serverFindings(
  config: ProxyConfig,
  router: Router,
  server: VirtualServerConfig,
  place: string,
  isSelfSigned: IsSelfSigned,
): readonly SecurityFinding[] {
  const outside = config.listeners.filter(
    ({ name, address }) => server.listeners.includes(name) && !isLoopback(address),
  );
  if (outside.length === 0) return [];
  const at = siteOf(server);
  const { privatePaths = [], logIns = [], passwordGuard } = server;
  const openTo = (path: string): RouteConfig | undefined => {
    const route = router.route(server, path);
    return route !== undefined && leadsToApplication(route) && isOpen(config, server, route)
      ? route
      : undefined;
  };
  const unguarded = passwordGuard === undefined ? logIns.find(({ path }) => openTo(path)) : undefined;
  const openRoutes = (id: SecurityFindingId, paths: readonly string[]): readonly SecurityFinding[] => {
    const routes = new Map(paths.flatMap((path) => [[openTo(path), path] as const]));
    routes.delete(undefined);
    return [...routes].map(([route, value]) =>
      made(id, `${place}.routes[${server.routes.indexOf(route!)}]`, { at, value }),
    );
  };
  return [
    ...openRoutes("security.private-open", [
      ...privatePaths,
      ...server.routes.flatMap(({ path }) =>
        privatePaths.some((above) => path.startsWith(`${above}/`)) ? path : [],
      ),
    ]),
    ...(unguarded === undefined ? [] : [made("security.no-guard", place, { at, value: unguarded.path })]),
    ...(lacksHsts(config, server, outside, isSelfSigned) ? [made("security.no-hsts", place, { at })] : []),
  ];
}

/** Whether strangers may send requests to a route. */
function isOpen(
  { accessPolicies = {} }: ProxyConfig,
  { clientCertificate }: VirtualServerConfig,
  { access }: RouteConfig,
): boolean {
  if (clientCertificate?.required === true) return false;
  const { allow, basic, forwardAuth } = (access === undefined ? undefined : accessPolicies[access]) ?? {};
  const admitsAll = allow === undefined || allow.some((range) => everyoneIn(range) !== undefined);
  return admitsAll && basic === undefined && forwardAuth === undefined;
}

/** Browsers heed the field for names only, and over https without an error of the certificate (RFC 6797, 8.1). */
function lacksHsts(
  { virtualServers }: ProxyConfig,
  server: VirtualServerConfig,
  outside: readonly ListenerConfig[],
  isSelfSigned: IsSelfSigned,
): boolean {
  const isTrusted = ({ tls }: ListenerConfig): boolean =>
    tls !== undefined &&
    (tls.acme !== undefined || certificatesOf(tls).some((file) => isSelfSigned(file) !== true));
  const isSecure = outside.some(isTrusted);
  // A server for any name has the names that http redirects.
  const named = server.default ? virtualServers : [server];
  const names = named.flatMap(({ serverNames }) => serverNames);
  if (!isSecure || !names.some((name) => name !== CATCH_ALL && isIP(name) === 0)) return false;
  return server.routes
    .filter(leadsToApplication)
    .some(
      (route) => responseFieldRules(server, route, "https").get("strict-transport-security") === undefined,
    );
}
