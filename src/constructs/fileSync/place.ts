import type { PublicPlace } from "../../applications/index.js";
import { urlAuthority } from "../../model/index.js";
import type { Mode } from "../mode.js";
import { originOf } from "./settings.js";

/** @internal Where clients find the application. */
export function placeOf(
  { scheme, publicPort: port }: Mode,
  serverNames: readonly [string, ...string[]],
): PublicPlace {
  const authorities = serverNames.map((name) => {
    const origin = originOf(scheme, name, port);
    return urlAuthority(scheme, origin.host, origin.port);
  });
  const origins = authorities.map((authority) => `${scheme}://${authority}`);
  return { scheme, host: serverNames[0], port, authority: authorities[0]!, origin: origins[0]!, origins };
}
