import type { PublicPlace } from "../../applications/index.js";
import { renderOrigin } from "../../render/index.js";
import type { Mode } from "../mode.js";
import { originOf } from "./settings.js";

/** @internal Where clients find the application. */
export function placeOf(
  { scheme, publicPort }: Mode,
  serverNames: readonly [string, ...string[]],
): PublicPlace {
  const origins = serverNames.map((name) => renderOrigin(originOf(scheme, name, publicPort)));
  return { scheme, host: serverNames[0], origin: origins[0]!, origins };
}
