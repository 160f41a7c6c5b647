import { isLoopback } from "../net/authority.js";
import { type Problem, problem } from "../text/problem.js";
import type { ProxyConfig, VirtualServerConfig } from "./config.js";

/** A guard against guessing, of the config: `passwordGuards`. */
export type PasswordGuardConfig = NonNullable<ProxyConfig["passwordGuards"]>[string];

/** A request that tries a secret. */
export type LogInConfig = NonNullable<VirtualServerConfig["logIns"]>[number];

/** Rules about guards against guessing that span fields. */
export function guardProblems(config: ProxyConfig): Problem[] {
  const names = Object.keys(config.passwordGuards ?? {});
  return config.virtualServers.flatMap(({ passwordGuard: received, logIns, listeners }, s) => {
    const path = `virtualServers[${s}].passwordGuard`;
    if (received === undefined) return [];
    if (!names.includes(received)) {
      const allowed = names.length === 0 ? "no guard is defined" : names.join(", ");
      const what = "is not the name of a guard";
      return [problem("config.unknown-reference", path, what, { received, allowed })];
    }
    if (logIns === undefined) {
      const what = "guards nothing: the virtual server has no `logIns`";
      return [
        problem("config.guard-without-log-in", path, what, { received, allowed: "a guard beside `logIns`" }),
      ];
    }
    return isOneClient(config, listeners)
      ? [problem("config.guard-of-one-client", path, ONE_CLIENT, ALLOWED)]
      : [];
  });
}

const ONE_CLIENT =
  "would take all clients for one: they come through a proxy on this host, because its listeners have loopback addresses, " +
  "and no `trustedProxies` or `proxyProtocol` names the clients";
const ALLOWED = { allowed: "a guard where each client has an address of its own" };

/** Whether all clients are certain to have the address of a program on this host. */
function isOneClient({ listeners, trustedProxies }: ProxyConfig, names: readonly string[]): boolean {
  if (trustedProxies.length > 0) return false;
  const used = listeners.filter(({ name }) => names.includes(name));
  return (
    used.length > 0 &&
    used.every(({ address, proxyProtocol }) => isLoopback(address) && proxyProtocol === undefined)
  );
}
