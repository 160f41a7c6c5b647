import { leadsTo, type RedirectGoal } from "../actions/location.js";
import type { ListenerConfig, ProxyConfig } from "./config.js";

/** The proxy's own listener that a redirect leads to; undefined if it leads elsewhere. */
export function listenerLedTo(goal: RedirectGoal, config: ProxyConfig): ListenerConfig | undefined {
  const { host } = goal;
  const ours = host === undefined || config.virtualServers.some((v) => v.serverNames.includes(host));
  return ours ? config.listeners.find((listener) => leadsTo(goal, listener)) : undefined;
}
