import type { ProxyConfig } from "../../model/serving.js";
import type { ErrorLevel } from "../exchange/exchange.js";
import { piecesText } from "../node/pieces.js";
import { allowanceText } from "./allowance.js";
import { descriptorWarning } from "./descriptorLimit.js";

/** What an administrator should know about the process and the machine when a config begins to serve. */
export function startNotes(config: ProxyConfig, isFirst: boolean): [ErrorLevel, string][] {
  const fewDescriptors = descriptorWarning(config);
  const pieces = isFirst ? piecesText() : undefined;
  const allowance = isFirst ? allowanceText(config) : undefined;
  return [
    ...(allowance === undefined ? [] : [["info", allowance] as [ErrorLevel, string]]),
    ...(fewDescriptors === undefined ? [] : [["warn", `warning: ${fewDescriptors}`] as [ErrorLevel, string]]),
    ...(pieces === undefined ? [] : [["warn", pieces] as [ErrorLevel, string]]),
  ];
}
