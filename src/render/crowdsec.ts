import { MADE } from "./fail2ban.js";
import type { WatchedLog } from "./fail2ban.js";

/** An acquisition file for CrowdSec: which logs it reads, and that its parser of nginx's logs takes them. */
export function renderAcquisition(logs: readonly WatchedLog[]): string {
  const files = logs.map(({ path }) => `  - ${JSON.stringify(path)}\n`).join("");
  return `${MADE}filenames:\n${files}labels:\n  type: nginx\n`;
}
