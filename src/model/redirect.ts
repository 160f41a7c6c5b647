import { defaultPort } from "./authority.js";
import type { RedirectActionConfig } from "./config.js";

/** Port a redirect leads to: its own, or its scheme's. */
export function redirectPort(action: RedirectActionConfig): number {
  return action.port ?? defaultPort(action.scheme);
}
