import { existsSync, readdirSync, readFileSync, readlinkSync, type Stats, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Deployment, ProxyConfig } from "../../model/index.js";
import { ROTATION_DIRECTORY } from "../../render/logRotation.js";
import { logPaths } from "../../runtime/load/loadConfig.js";
import { brokenProgram } from "./system/brokenPrograms.js";
import type { EvidenceFinding } from "./evidence.js";
import { hasStartLinks, showUnits } from "./system/shownUnits.js";

/**
 * Directories of logs that are gone, or that the running proxy no longer sees: a service keeps the directory it was
 * started with, even if that was removed or created again since.
 *
 * @param pid the proxy's main process; 0, of which procfs has nothing, if it does not run
 */
export function lostLogDirectories(config: ProxyConfig, pid: number): string[] {
  const directories = new Set(logPaths(config).map((path) => dirname(path)));
  return [...directories].filter((directory) => {
    const [here, seen] = [directory, `/proc/${pid}/root${directory}`].map(statsOf);
    return here === undefined || (seen !== undefined && seen.ino !== here.ino);
  });
}

/** The service's user can put anything into the log directory, such as a link to itself. */
export function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}

/** Reasons why lines do not reach the log files of a config, as root sees them. */
export function logFindings(config: ProxyConfig, pid: number, unit: string): EvidenceFinding[] {
  const lost = lostLogDirectories(config, pid);
  const restart = `systemctl restart ${unit} (systemd creates the directory again)`;
  const directories = lost.map((at) => {
    const what = existsSync(at) ? "was created again after the proxy started" : "does not exist";
    return { at, what, fix: restart };
  });
  const paths = logPaths(config).filter((path) => !lost.includes(dirname(path)));
  const user = userOf(pid);
  return [
    ...directories,
    ...paths.flatMap((path) => fileFindings(path, { pid, user }, unit)),
    ...stillWritten(paths, pid, unit),
  ];
}

const reopen = (unit: string): string => `systemctl kill --kill-who=main --signal=SIGUSR1 ${unit}`;

interface LogWriter {
  readonly pid: number;
  /** Undefined if it does not run. */
  readonly user: number | undefined;
}

function fileFindings(at: string, { pid, user }: LogWriter, unit: string): EvidenceFinding[] {
  const found = statsOf(at);
  if (found === undefined)
    return user === undefined ? [] : [{ at, what: "does not exist", fix: reopen(unit) }];
  if (found.isDirectory()) {
    const fix = `Move ${at} away, then ${reopen(unit)}`;
    return [{ at, what: "is a directory", fix }];
  }
  if (user === undefined || !found.isFile()) return [];
  const owner = ownerSeenBy(pid, at, found.uid);
  if (owner === user) return [];
  const what = `belongs to user ${owner}, but the proxy runs as user ${user}`;
  return [{ at, what, fix: `${reopen(unit)} (the file is set aside)` }];
}

/**
 * The owner of a file as a process sees it. From version 257 on, systemd leaves the directories of a service with a
 * dynamic user to user 65534, and maps that user to the service's in the mounts of the service alone.
 */
function ownerSeenBy(pid: number, at: string, otherwise: number): number {
  return statsOf(`/proc/${pid}/root${at}`)?.uid ?? otherwise;
}

function userOf(pid: number): number | undefined {
  const status = readOr(`/proc/${pid}/status`);
  const uid = /^Uid:\s+(\d+)/m.exec(status)?.[1];
  return uid === undefined ? undefined : Number(uid);
}

/** Files next to the logs that the proxy still has open: they were rotated or removed without a signal to it. */
function stillWritten(paths: readonly string[], pid: number, unit: string): EvidenceFinding[] {
  const workers = readOr(`/proc/${pid}/task/${pid}/children`).split(" ").map(Number);
  const held = new Set([pid, ...workers].flatMap(openFiles));
  const names = paths.map((path) => path.slice(path.lastIndexOf("/") + 1));
  return [...held].flatMap((file) => {
    const name = file.slice(file.lastIndexOf("/") + 1);
    const of = names.findIndex((log) => name.startsWith(log) && name !== log);
    if (of === -1) return [];
    return [{ at: paths[of]!, what: `is written as ${name}`, fix: reopen(unit) }];
  });
}

function openFiles(pid: number): string[] {
  try {
    const folder = `/proc/${pid}/fd`;
    return readdirSync(folder).flatMap((fd) => {
      try {
        return [readlinkSync(join(folder, fd))];
      } catch {
        return [];
      }
    });
  } catch {
    // It has ended, or belongs to another user.
    return [];
  }
}

function readOr(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

const PROGRAM = "/usr/sbin/logrotate";
const TIMER = "logrotate.timer";
const SERVICE = "logrotate.service";

/**
 * Reasons why the logs of a deployment are not rotated: its file for logrotate needs the program and a timer.
 *
 * @returns undefined if the deployment has no such file, or systemd does not respond
 */
export async function rotationFindings({ files }: Deployment): Promise<EvidenceFinding[] | undefined> {
  const own = files.find(({ path }) => path.startsWith(ROTATION_DIRECTORY));
  if (own === undefined) return undefined;
  const broken = brokenProgram(PROGRAM);
  if (broken !== undefined) return [{ at: PROGRAM, ...broken }];
  const shown = await showUnits([TIMER, SERVICE], SHOW_SECONDS);
  if ("code" in shown) return undefined;
  const [timer, service] = shown;
  if (service!.active === "failed") {
    const fix = `Correct what its journal names (journalctl -u ${SERVICE}), then systemctl restart ${SERVICE}`;
    return [{ at: SERVICE, what: "has failed: its last run did not rotate every log", fix }];
  }
  if (timer!.load === "not-found" && existsSync("/etc/cron.daily/logrotate")) return [];
  const fix = `systemctl unmask ${TIMER}; systemctl enable --now ${TIMER}`;
  if (timer!.active !== "active")
    return [{ at: TIMER, what: `is ${timer!.active}: nothing starts logrotate`, fix }];
  if (!hasStartLinks(timer!.startLinks)) return [{ at: TIMER, what: "does not start with the host", fix }];
  return [];
}

const SHOW_SECONDS = 10;

/** Less than this is not enough for a deployment, or for a day of logs. */
const FREE_BYTES_MIN = 32 << 20;
const FREE_FILES_MIN = 500;

/** File systems with little space left, each reported once, with the first directory on it. */
export async function scarceSpace(directories: readonly string[]): Promise<EvidenceFinding[]> {
  const seen = new Set<number>();
  const findings: EvidenceFinding[] = [];
  for (const at of directories) {
    const found = statsOf(at);
    if (found === undefined || seen.has(found.dev)) continue;
    seen.add(found.dev);
    const { bavail, bsize, files, ffree } = await statfs(at);
    const fix = `Free space; this shows large directories: du -xh --max-depth=2 ${at} | sort -h`;
    const megabytes = Math.floor((bavail * bsize) / 2 ** 20);
    if (bavail * bsize < FREE_BYTES_MIN) findings.push({ at, what: `${megabytes} MiB are left`, fix });
    else if (files > 0 && ffree < FREE_FILES_MIN)
      findings.push({ at, what: `${ffree} more files can be created`, fix });
  }
  return findings;
}
