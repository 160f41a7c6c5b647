import type { ErrorLevel } from "../exchange/exchange.js";
import { piecesText } from "../sockets/node/pieces.js";
import { allowanceText } from "./allowance.js";
import { descriptorWarning } from "./descriptorLimit.js";
import { type FromFile, memoryWarning, withinMemory } from "./memoryLimits.js";

/** What an administrator should know about the process and the machine when a config begins to serve. */
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
