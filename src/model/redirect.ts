import type { RedirectActionConfig } from "./config.js";

/** Port a redirect leads to: its own, or its scheme's. */
export function redirectPort(action: RedirectActionConfig): number {
  return action.port ?? (action.scheme === "https" ? 443 : 80);
}
