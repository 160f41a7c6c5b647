import { leadsTo, type RedirectGoal } from "../actions/location.js";
import { NameTable } from "../nameTable.js";
import type { ListenerConfig, ProxyConfig } from "./config.js";

/** The names of all virtual servers. */
export function ownNames({ virtualServers }: Pick<ProxyConfig, "virtualServers">): NameTable<true> {
  const names = new NameTable<true>();
  for (const { serverNames } of virtualServers) names.add(serverNames, true);
  return names;
}

/** The proxy's own listener that a redirect leads to; undefined if it leads elsewhere. */
export function listenerLedTo(goal: RedirectGoal, config: ProxyConfig): ListenerConfig | undefined {
  const { host } = goal;
  const ours = host === undefined || ownNames(config).find(host) !== undefined;
  return ours ? config.listeners.find((listener) => leadsTo(goal, listener)) : undefined;
}
