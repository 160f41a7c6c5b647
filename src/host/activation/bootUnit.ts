import { DEPLOYMENT_STORE } from "../../model/index.js";
import { DEFAULT_HOST_PATHS } from "../../render/hostPaths.js";
import { renderUnit } from "../../render/systemdUnit.js";
import { sync } from "../../runtime/files/durable.js";
import { OOM_SCORE_ADJUST, RECORDS } from "./detached.js";
import { makeDirectory, placeBytes, placeLink, removeFile, removeIfEmpty } from "./durableFiles.js";
import { type Programs, runningPrograms } from "./programs.js";

/**
 * While a journal is open, a unit on the disk makes the next boot repair the host. After a power failure, daemons would
 * otherwise start, or fail to start, with the files of two deployments until the next deployment.
 */

const NAME = "portico-recovery.service";
const UNIT = `${DEFAULT_HOST_PATHS.unitDirectory}/${NAME}`;
const WANTS = `${DEFAULT_HOST_PATHS.unitDirectory}/multi-user.target.wants`;

/**
 * Installs it. systemd reads it at boot, so no reload is needed now.
 * @param units units that a recovery stops and starts
 */
export async function placeBootUnit(units: readonly string[]): Promise<void> {
  const programs = runningPrograms();
  // They were just uploaded, and may not be on the disk yet.
  for (const path of programs) await sync(path);
  const bytes = Buffer.from(bootUnit(programs, units));
  await placeBytes(UNIT, bytes, { mode: "0644", uid: 0, gid: 0 });
  await makeDirectory(WANTS);
  await placeLink(`${WANTS}/${NAME}`, `../${NAME}`);
}

/** Removes the unit. A unit that stays does nothing without a journal, and the next run removes it. */
export async function removeBootUnit(): Promise<void> {
  try {
    await removeFile(`${WANTS}/${NAME}`);
    await removeIfEmpty(WANTS);
    await removeFile(UNIT);
  } catch {
    // A read-only file system, for example.
  }
}

export function bootUnit(programs: Programs, units: readonly string[]): string {
  return renderUnit({
    Unit: {
      Description: "portico finishes or undoes an activation that was cut off",
      ConditionPathExists: `${DEPLOYMENT_STORE}/journal.json`,
      RequiresMountsFor: DEPLOYMENT_STORE,
      // The boot's own jobs first: a daemon that started in between would run with files that are then replaced.
      After: ["network.target", "remote-fs.target", ...units].join(" "),
      StartLimitIntervalSec: 0,
    },
    Service: {
      // No unit waits for it, and so it can start units.
      Type: "exec",
      ExecStart: { command: [...programs, "recover", "--record", `${RECORDS}/boot.record`] },
      RuntimeDirectory: RECORDS.slice("/run/".length),
      RuntimeDirectoryMode: "0700",
      RuntimeDirectoryPreserve: true,
      Restart: "on-abnormal",
      RestartSec: 1,
      OOMScoreAdjust: OOM_SCORE_ADJUST,
      KillMode: "mixed",
      TimeoutStopSec: 900,
    },
    Install: { WantedBy: "multi-user.target" },
  });
}
