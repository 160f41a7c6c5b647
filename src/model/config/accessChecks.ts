import { isLoopback } from "../net/authority.js";
import { type Problem, problem } from "../text/problem.js";
import { FieldFate, requestFieldFate, usualSpelling } from "../actions/fieldFates.js";
import { withinRanges } from "../access/addressSet.js";
import { LOCAL_NETWORKS } from "../access/localNetworks.js";
import { isWildcard } from "../net/address.js";
import type { ProxyConfig } from "./config.js";

/** Rules about access policies that span fields. */
export function accessProblems(config: ProxyConfig): Problem[] {
  const { accessPolicies = {}, virtualServers } = config;
  const names = Object.keys(accessPolicies);
  return [
    ...names.flatMap((name) => rulelessProblems(`accessPolicies.${name}`, accessPolicies[name]!)),
    ...virtualServers.flatMap(({ routes }, s) =>
      routes.flatMap(({ access }, r) => {
        if (access === undefined || names.includes(access)) return [];
        const more = {
          received: access,
          allowed: names.length === 0 ? "no policy is defined" : names.join(", "),
        };
        const path = `virtualServers[${s}].routes[${r}].access`;
        return [problem("config.unknown-reference", path, "is not the name of an access policy", more)];
      }),
    ),
    ...names.flatMap((name) => {
      const { basic, forwardAuth } = accessPolicies[name]!;
      const at = `accessPolicies.${name}`;
      return [
        ...(basic === undefined || forwardAuth === undefined ? [] : [twoLogIns(at)]),
        ...clientFieldProblems(`${at}.basic.userField`, basic?.userField),
        ...(forwardAuth?.copyFields ?? []).flatMap((field, i) =>
          clientFieldProblems(`${at}.forwardAuth.copyFields[${i}]`, field),
        ),
      ];
    }),
    ...keptFields(config),
    ...readablePasswords(config),
  ];
}

const twoLogIns = (path: string): Problem =>
  problem("config.two-log-ins", path, "asks for a password, and asks a portal for the same request", {
    allowed: "one of `basic` and `forwardAuth`",
  });

function keptFields({ accessPolicies = {}, virtualServers }: ProxyConfig): Problem[] {
  const named = Object.values(accessPolicies).flatMap(({ forwardAuth }) => forwardAuth?.copyFields ?? []);
  const by = "a portal names the user";
  return fieldsOfOthers(
    virtualServers,
    named,
    by,
    "Remove the field here, or from `copyFields` of the policy.",
  );
}

/**
 * A route that keeps another spelling of a field would let clients name the user, and one that believes a proxy, that proxy.
 *
 * @param named fields that only the proxy may set
 * @param by who is named by them
 */
export function fieldsOfOthers(
  servers: ProxyConfig["virtualServers"],
  named: readonly string[],
  by: string,
  fix: string,
): Problem[] {
  const own = new Set(named.map(usualSpelling));
  if (own.size === 0) return [];
  const message = `is a field by which ${by}, so that no request may bring it`;
  return servers.flatMap(({ routes }, s) =>
    routes.flatMap(({ action }, r) =>
      action.type !== "proxy"
        ? []
        : (["keepFields", "trustedFields"] as const).flatMap((list) =>
            action[list].flatMap((received, i) => {
              if (!own.has(usualSpelling(received))) return [];
              const path = `virtualServers[${s}].routes[${r}].action.${list}[${i}]`;
              return [problem("config.bad-header", path, message, { received, fix })];
            }),
          ),
    ),
  );
}

/** Upstreams believe the field: clients must not be able to send it, on any route. */
export function clientFieldProblems(path: string, received: string | undefined): Problem[] {
  if (received === undefined || requestFieldFate(received) === FieldFate.Named) return [];
  const allowed =
    "a field that the proxy drops from every client's request, in each spelling: `Remote-User`, `X-Remote-User`, " +
    "`X-Forwarded-User`, `X-Auth-Request-User`, and others that name a user";
  return [problem("config.bad-header", path, "is a field that clients may send", { received, allowed })];
}

/** Whether a proxy in front may speak TLS to clients. One on this host does not stand before clients of a public address. */
export const mayEndTls = ({ trustedProxies }: Pick<ProxyConfig, "trustedProxies">): boolean =>
  trustedProxies.some((range) => !isLoopback(range.split("/")[0]!));

/**
 * Routes that ask for passwords or cookies without TLS, so that everyone on the way can read them. Something in front that ends TLS
 * is a trusted proxy, or connects to a private address.
 */
function readablePasswords(config: ProxyConfig): Problem[] {
  const { accessPolicies = {}, listeners, virtualServers } = config;
  if (mayEndTls(config)) return [];
  const isPrivate = withinRanges(LOCAL_NETWORKS);
  return virtualServers.flatMap(({ routes, listeners: through }, s) => {
    const open = listeners.find(
      ({ name, protocol, address, proxyProtocol }) =>
        through.includes(name) &&
        protocol === "http" &&
        proxyProtocol === undefined &&
        (isWildcard(address) || !isPrivate(address)),
    );
    if (open === undefined) return [];
    return routes.flatMap(({ access, action }, r) => {
      const { basic, forwardAuth } = (access === undefined ? undefined : accessPolicies[access]) ?? {};
      if (basic === undefined && forwardAuth === undefined) return [];
      if (action.type === "redirect") return [];
      const what = basic === undefined ? "lets users in by a cookie" : "asks for passwords";
      const message = `${what} without TLS, on the listener ${open.name} at ${open.address}`;
      const more = {
        received: access,
        allowed: "a virtual server on listeners with TLS, or on private addresses; or `trustedProxies`",
      };
      const path = `virtualServers[${s}].routes[${r}].access`;
      return [problem("config.password-without-tls", path, message, more)];
    });
  });
}

type Rules = Pick<
  NonNullable<ProxyConfig["accessPolicies"]>[string],
  "allow" | "deny" | "denyFile" | "basic" | "forwardAuth"
>;

/** A policy that lets everyone in is a mistake: what is open has none. */
export function rulelessProblems(
  path: string,
  { allow, deny, denyFile, basic, forwardAuth }: Rules,
): Problem[] {
  if ([allow, deny, denyFile, basic, forwardAuth].some((rule) => rule !== undefined)) return [];
  const allowed = "at least one of `allow`, `deny`, `denyFile`, `basic` and `forwardAuth`";
  return [problem("config.access-without-rule", path, "refuses nobody", { allowed })];
}
