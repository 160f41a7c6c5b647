import type { X509Certificate } from "node:crypto";
import { redirectGoalOf } from "../../model/actions/table.js";
import { coversName } from "../../model/certificateName.js";
import {
  CATCH_ALL,
  leadsTo,
  type ListenerConfig,
  type Problem,
  problem,
  type ProxyConfig,
} from "../../model/serving.js";

/**
 * Warns of names that clients use on a certificate's listeners and that it does not cover: browsers refuse it there.
 */
export function nameWarnings(
  config: ProxyConfig,
  listeners: readonly ListenerConfig[],
  certificate: X509Certificate,
  label: string,
): Problem[] {
  const names = new Set(listeners.flatMap((listener) => namesOn(config, listener)));
  const missing = [...names].filter((name) => !coversName(certificate, name));
  if (missing.length === 0) return [];
  const message = `does not cover ${missing.join(", ")}`;
  return [problem("files.name-not-covered", label, message, { allowed: certificate.subjectAltName })];
}

/**
 * Names that clients use on a listener. A default server answers for all names; those known then are the ones that
 * other listeners redirect from.
 */
function namesOn(config: ProxyConfig, listener: ListenerConfig): string[] {
  const servers = config.virtualServers.filter(({ listeners, routes }) => {
    const leadsHere = routes.some(({ action }) => {
      const goal = redirectGoalOf(action);
      return goal !== undefined && goal.host === undefined && leadsTo(goal, listener);
    });
    return listeners.includes(listener.name) || leadsHere;
  });
  return servers.flatMap(({ serverNames }) => serverNames).filter((name) => name !== CATCH_ALL);
}
