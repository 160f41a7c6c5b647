import type { ErrorLevel } from "../exchange/exchange.js";
import { piecesText } from "../sockets/node/pieces.js";
import { allowanceText, type FromFile, memoryWarning, withinMemory } from "./report/allowance.js";
import { readFileSync } from "node:fs";
import type { ProxyConfig } from "../../model/index.js";

/** Log lines for the administrator about the process and the machine when a config begins to serve. */
export function startNotes(loaded: FromFile, isFirst: boolean): [ErrorLevel, string][] {
  const config = withinMemory(loaded);
  const warnings = [descriptorWarning(config), memoryWarning(loaded)].filter((one) => one !== undefined);
  const pieces = isFirst ? piecesText() : undefined;
  const allowance = isFirst ? allowanceText(config) : undefined;
  return [
    ...(allowance === undefined ? [] : [["info", allowance] as [ErrorLevel, string]]),
    ...warnings.map((one): [ErrorLevel, string] => ["warn", `warning: ${one}`]),
    ...(pieces === undefined ? [] : [["warn", pieces] as [ErrorLevel, string]]),
  ];
}

/**
 * A warning if a worker may open fewer descriptors than `limits.connectionsMax` needs: libuv silently closes the
 * connections beyond that, so nothing would show why clients are turned away.
 */
export function descriptorWarning(config: ProxyConfig): string | undefined {
  const available = descriptorsMax();
  const { connectionsMax } = config.limits;
  if (available === undefined || available >= connectionsMax + OTHER_DESCRIPTORS) return undefined;
  return (
    `limits.connectionsMax (${connectionsMax}) cannot be reached: a process may open ${available} files here; ` +
    "raise LimitNOFILE= in the service's unit (ulimit -n), or lower connectionsMax"
  );
}

/** Descriptors of a worker besides those of client and upstream connections. */
const OTHER_DESCRIPTORS = 64;

/** The hard limit: Node raises its soft one to it when it starts. */
function descriptorsMax(): number | undefined {
  try {
    const hard = /^Max open files\s+\S+\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "latin1"));
    return hard === null ? undefined : Number(hard[1]);
  } catch {
    return undefined;
  }
}
