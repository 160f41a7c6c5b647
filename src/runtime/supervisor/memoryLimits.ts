import {
  connectionsWithin,
  LIMITS_BY_MEMORY,
  limitsWithin,
  MIB,
  type ProxyConfig,
} from "../../model/serving.js";
import type { LoadedConfig } from "../load/loadConfig.js";
import { ownLimits, workerCount } from "./allowance.js";

/** Limits of clients that follow from the memory of the control group, as a unit or a container's engine sets it. */

/** A config, and what of its limits is in the file. */
export type FromFile = Pick<LoadedConfig, "config" | "givenLimits">;

/** The config that workers serve: limits that the file does not set are those that memory has room for. */
export function withinMemory({ config, givenLimits = [] }: FromFile, group = ownLimits()): ProxyConfig {
  const { memoryBytes } = group;
  if (memoryBytes === undefined) return config;
  const number = workerCount(config, group);
  return {
    ...config,
    limits: { ...config.limits, ...limitsWithin(memoryBytes, number, config.limits, givenLimits) },
  };
}

/** A warning if clients that stay within limits of the config's own could take more memory than there is. */
export function memoryWarning(
  { config, givenLimits = [] }: FromFile,
  group = ownLimits(),
): string | undefined {
  const { memoryBytes } = group;
  const own = LIMITS_BY_MEMORY.filter((name) => givenLimits.includes(name));
  if (memoryBytes === undefined || own.length === 0) return undefined;
  const { limits } = withinMemory({ config, givenLimits }, group);
  const fit = connectionsWithin(memoryBytes, workerCount(config, group), limits);
  if (limits.connectionsMax <= fit) return undefined;
  const { connectionsMax, concurrentStreamsMax } = limits;
  return (
    `limits.connectionsMax (${connectionsMax}) and limits.concurrentStreamsMax (${concurrentStreamsMax}) let clients ` +
    `take more than the ${Math.floor(memoryBytes / MIB)} MiB of memory here, and the kernel would kill workers: ` +
    `there is room for ${fit} connections of each; lower the limits, or raise MemoryMax= in the service's unit, or the container's limit`
  );
}
