import { existsSync } from "node:fs";
import type { Deployment } from "../../model/index.js";
import type { Finding } from "./evidence.js";
import { hasStartLinks, showUnits } from "./shownUnits.js";

/** Directory of files that logrotate(8) reads. */
const READ_FROM = "/etc/logrotate.d/";
const PROGRAM = "/usr/sbin/logrotate";
const TIMER = "logrotate.timer";

/**
 * What keeps the logs of a deployment from being rotated: its file for logrotate does nothing alone.
 *
 * @returns undefined if the deployment has no such file, or systemd does not answer
 */
export async function rotationFindings({ files }: Deployment): Promise<Finding[] | undefined> {
  const own = files.find(({ path }) => path.startsWith(READ_FROM));
  if (own === undefined) return undefined;
  if (!existsSync(PROGRAM))
    return [{ at: PROGRAM, what: "does not exist", fix: "apt-get install logrotate" }];
  const shown = await showUnits([TIMER], SHOW_SECONDS);
  if ("code" in shown) return undefined;
  const [timer] = shown;
  if (timer!.load === "not-found" && existsSync("/etc/cron.daily/logrotate")) return [];
  const fix = `systemctl unmask ${TIMER}; systemctl enable --now ${TIMER}`;
  if (timer!.active !== "active")
    return [{ at: TIMER, what: `is ${timer!.active}: nothing starts logrotate`, fix }];
  if (!hasStartLinks(timer!.startLinks)) return [{ at: TIMER, what: "does not start with the host", fix }];
  return [];
}

const SHOW_SECONDS = 10;
