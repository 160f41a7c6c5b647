import { existsSync } from "node:fs";
import type { Deployment, ProxyConfig } from "../../model/index.js";
import type { Evidence } from "./evidence.js";
import { foreignRules } from "./foreignRules.js";
import { askFromOutside, clientAddresses } from "./fromOutside.js";
import { ownAddresses } from "./hostFacts.js";

/** Those of the options of a diagnosis that this needs. */
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
): Promise<Pick<Evidence, "outside" | "foreignRules">> {
  if (programs === undefined || process.geteuid!() !== 0) return {};
  const ports = [...new Set(config.listeners.map(({ port }) => port))];
  const rules = await foreignRules(ports, deployment?.services.keepalived !== undefined);
  const seen = rules === undefined ? {} : { foreignRules: rules };
  // Why nothing responds then has other rows.
  const isSilent = responses.every(({ outcome }) => outcome === undefined || "failure" in outcome);
  if (isSilent || (units !== undefined && units.proxy?.state !== "active")) return seen;
  const outside = await askFromOutside(clientAddresses(ownAddresses(), deployment), {
    programs,
    configFile,
    timeoutMs: Math.min(timeoutMs, OUTSIDE_MS),
    ...(existsSync(deploymentFile) ? { deploymentFile } : {}),
    ...(host === undefined ? {} : { host }),
  });
  return { outside, ...seen };
}

/** The network is in this machine, so nothing takes long on it. */
const OUTSIDE_MS = 4_000;
