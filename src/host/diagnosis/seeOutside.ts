import { existsSync } from "node:fs";
import type { Deployment, ProxyConfig } from "../../model/index.js";
import type { Evidence } from "./evidence.js";
import { foreignRules } from "./system/foreignRules.js";
import { askFromOutside, clientAddresses } from "./fromOutside.js";
import { legacyRules } from "./system/legacyRules.js";
import { ownAddresses } from "./system/hostFacts.js";

/** The options of a diagnosis that this needs. */
interface AskingFrom {
  readonly programs?: readonly string[];
  readonly deploymentFile: string;
  readonly host?: string;
  readonly timeoutMs: number;
}

/** Asks from a network beside the host, where this program may make one; and looks for rules in the way there. */
export async function seeOutside(
  configFile: string,
  config: ProxyConfig,
  deployment: Deployment | undefined,
  { programs, deploymentFile, host, timeoutMs }: AskingFrom,
  { units, responses = [] }: Partial<Evidence>,
): Promise<Pick<Evidence, "outside" | "foreignRules" | "rulesUnseen">> {
  if (programs === undefined || process.geteuid!() !== 0) return {};
  const ports = [...new Set(config.listeners.map(({ port }) => port))];
  const vrrp = deployment?.services.keepalived !== undefined;
  const [rules, legacy] = [await foreignRules(ports, vrrp), await legacyRules(ports, vrrp)];
  const all = [...(rules ?? []), ...legacy.rules];
  const seen = {
    ...(rules === undefined && all.length === 0 ? {} : { foreignRules: all }),
    rulesUnseen: legacy.unseen,
  };
  // Why nothing responds then has other rows.
  const isSilent = responses.every(({ outcome }) => outcome === undefined || "failure" in outcome);
  if (isSilent || (units !== undefined && units.proxy?.state !== "active")) return seen;
  const outside = await askFromOutside(clientAddresses(ownAddresses(), deployment), {
    programs,
    configFile,
    timeoutMs: Math.min(timeoutMs, OUTSIDE_MS),
    ...(existsSync(deploymentFile) ? { deploymentFile } : {}),
    host,
  });
  return { outside, ...seen };
}

/** The network is in this machine, so nothing takes long on it. */
const OUTSIDE_MS = 4_000;
