import { lstatSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { run } from "./command.js";

/** A user, as a process of it is started. */
export interface User {
  readonly uid: number;
  readonly gid: number;
}

/** The user of a process; without one, a user without any rights, as a service with a dynamic user has. */
export function userOfProcess(pid: number): User {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const id = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)![1]);
    return { uid: id("Uid"), gid: id("Gid") };
  } catch {
    return NOBODY;
  }
}

const NOBODY: User = { uid: 65534, gid: 65534 };

/**
 * What keeps a user from reading files: for each file the first directory on its path that the user cannot enter, or
 * the file itself. A process of the user tries it, because mode bits are not all that decides; only if no process of
 * the user can be started, they do. Files that are missing are left out.
 */
export async function closedPaths(files: readonly string[], user: User): Promise<string[]> {
  const directories = [...new Set(files.flatMap(above))].sort();
  const script =
    'for p in "$@"; do case "$p" in d*) test -x "${p#d}";; *) test -r "${p#f}";; esac || echo "$p"; done';
  const asked = [...directories.map((path) => `d${path}`), ...files.map((path) => `f${path}`)];
  const tried = await run(["/bin/sh", "-c", script, "sh", ...asked], TRY_SECONDS, {}, user);
  const said = tried.stdout.split("\n").filter(Boolean);
  const closed = new Set((tried.code === 0 ? said : asked.filter(lacksBit)).map((line) => line.slice(1)));
  const first = files.filter(isThere).flatMap((file) => {
    const found = [...above(file), file].find((path) => closed.has(path));
    return found === undefined ? [] : [found];
  });
  return [...new Set(first)];
}

/** Directories on the way to a path, from `/` on. */
function above(path: string): string[] {
  const parent = dirname(path);
  return parent === path ? [] : [...above(parent), parent];
}

function lacksBit(asked: string): boolean {
  try {
    return (lstatSync(asked.slice(1)).mode & (asked.startsWith("d") ? 0o001 : 0o004)) === 0;
  } catch {
    return false;
  }
}

function isThere(path: string): boolean {
  try {
    return lstatSync(path).isFile();
  } catch {
    return false;
  }
}

const TRY_SECONDS = 20;
