import { existsSync, readdirSync, readFileSync, readlinkSync, type Stats, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { ProxyConfig } from "../../model/index.js";
import { logPaths } from "../../runtime/load/loadConfig.js";
import type { Finding } from "./evidence.js";

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

/** The service's user can make of what is in a directory of his what he likes, such as a link to itself. */
export function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}

/** What keeps lines from the log files of a config, as root sees it. */
export function logFindings(config: ProxyConfig, pid: number, unit: string): Finding[] {
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

function fileFindings(at: string, { pid, user }: LogWriter, unit: string): Finding[] {
  const found = statsOf(at);
  if (found === undefined)
    return user === undefined ? [] : [{ at, what: "does not exist", fix: reopen(unit) }];
  if (found.isDirectory()) {
    const fix = `Move it away, then ${reopen(unit)}`;
    return [{ at, what: "is a directory", fix }];
  }
  if (user === undefined || !found.isFile()) return [];
  const owner = ownerSeenBy(pid, at, found.uid);
  if (owner === user) return [];
  const what = `belongs to user ${owner}, but the proxy runs as user ${user}`;
  return [{ at, what, fix: `${reopen(unit)} (the file is set aside)` }];
}

/**
 * Whom a file belongs to as a process sees it. From version 257 on, systemd leaves the directories of a service with a
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
function stillWritten(paths: readonly string[], pid: number, unit: string): Finding[] {
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
