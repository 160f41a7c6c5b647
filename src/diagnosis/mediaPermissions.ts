import { type BigIntStats, constants } from "node:fs";
import { lstat, open, readdir, readlink, realpath } from "node:fs/promises";
import { posix } from "node:path";
import { chmodCommand, fsPath, shown } from "../runtime/actions/permissions.js";
import { systemReason } from "../runtime/systemReason.js";

/**
 * The permissions of what the proxy serves from disk (spec 2.3): every directory on the way, from `/` on, is readable
 * and executable for others, every file is readable. Paths have one char a byte, so that every name is a name.
 */

export interface MediaOptions {
  /** Directory of the static media. */
  readonly directory: string;
  /** Directory of the avatars, the default image among them, if it lies elsewhere; media often has a link to it. */
  readonly avatarDirectory?: string;
  /**
   * Whether missing permissions are given.
   * @default false
   */
  readonly mend?: boolean;
  /**
   * How many files and directories are looked at, at most.
   * @default 200000
   */
  readonly entriesMax?: number;
}

/** A file or directory that others cannot read as they should. */
export interface MediaViolation {
  readonly path: string;
  readonly part: "media" | "avatars";
  readonly kind: "directory" | "file";
  /** Four octal digits. */
  readonly mode: string;
  readonly lacks: "read" | "execute" | "read and execute";
  /** The command that mends it. */
  readonly fix: string;
  /** A link in the tree leads to it, and it lies elsewhere: it is never mended. */
  readonly outside: boolean;
  readonly mended: boolean;
  /** Why it was not mended, where it was to be. */
  readonly notMended?: string;
}

export interface MediaPermissions {
  /** The first thousand. */
  readonly violations: readonly MediaViolation[];
  readonly violationCount: number;
  /** How many files and directories were looked at. */
  readonly looked: number;
  /** False if there are more than may be looked at. */
  readonly complete: boolean;
  /** What could not be looked at, and why; the first thousand. */
  readonly unseen: readonly { readonly path: string; readonly why: string }[];
}

/** Looks at both trees and at the way to them; changes nothing unless `mend` is set. */
export async function checkMediaPermissions(options: MediaOptions): Promise<MediaPermissions> {
  const walk: Walk = {
    mend: options.mend === true,
    left: options.entriesMax ?? ENTRIES_MAX,
    looked: new Set(),
    walked: new Set(),
    roots: [],
    violations: [],
    violationCount: 0,
    unseen: [],
    complete: true,
  };
  const parts: [Part, string | undefined][] = [
    ["media", options.directory],
    ["avatars", options.avatarDirectory],
  ];
  const trees: { at: string; place: Place }[] = [];
  for (const [part, directory] of parts) {
    if (directory === undefined) continue;
    const place = { part, outside: false };
    const at = await wayTo(walk, Buffer.from(directory, "utf8").toString("latin1"), place);
    if (at === undefined) continue;
    trees.push({ at, place });
    walk.roots.push(at);
  }
  // Avatars first: where they lie within the media they are to be called avatars.
  for (const { at, place } of trees.reverse()) await checkTree(walk, at, place);
  const { violations, violationCount, looked, complete, unseen } = walk;
  return { violations, violationCount, looked: looked.size, complete, unseen };
}

const ENTRIES_MAX = 200_000;
const SHOWN_MAX = 1_000;
const LINKS_MAX = 40;
/** Entries of a directory that are looked at at the same time. */
const BATCH = 64;

type Part = MediaViolation["part"];

/** From which tree a path was reached, and whether by a link out of it. */
interface Place {
  readonly part: Part;
  readonly outside: boolean;
}

interface Walk {
  readonly mend: boolean;
  /** How many more may be looked at. */
  left: number;
  /** Real paths that were looked at. */
  readonly looked: Set<string>;
  /** Real paths of directories whose entries were looked at. */
  readonly walked: Set<string>;
  /** Real paths of the trees. */
  readonly roots: string[];
  readonly violations: MediaViolation[];
  violationCount: number;
  readonly unseen: { path: string; why: string }[];
  complete: boolean;
}

/** Looks at every directory on the way to a path, links followed, and at what is there. Its real path, if it is there. */
async function wayTo(walk: Walk, path: string, place: Place): Promise<string | undefined> {
  const rest = path.split("/");
  let at = "/";
  let links = 0;
  try {
    await check(walk, at, await stats(at), place);
    for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
      if (name === "" || name === ".") continue;
      const here = posix.join(at, name);
      const found = await stats(here);
      if (found.isSymbolicLink()) {
        if (++links > LINKS_MAX) throw new Error("too many symbolic links");
        const target = (await readlink(fsPath(here), "buffer")).toString("latin1");
        if (target.startsWith("/")) at = "/";
        rest.unshift(...target.split("/"));
      } else {
        at = here;
        await check(walk, at, found, place);
      }
    }
    return at;
  } catch (error) {
    notSeen(walk, path, error);
    return undefined;
  }
}

/** Looks at everything below a directory that was itself looked at. */
async function checkTree(walk: Walk, directory: string, place: Place): Promise<void> {
  const queue = [directory];
  for (let at = queue.shift(); at !== undefined; at = queue.shift()) {
    if (walk.walked.has(at)) continue;
    walk.walked.add(at);
    const names = await list(walk, at);
    for (let i = 0; i < names.length; i += BATCH) {
      const paths = names.slice(i, i + BATCH).map((name) => posix.join(at!, name));
      const found = await Promise.all(
        paths.map((path) => stats(path).catch((error: unknown) => ({ error }))),
      );
      for (const [j, stat] of found.entries()) {
        const path = paths[j]!;
        if ("error" in stat) notSeen(walk, path, stat.error);
        else if (stat.isSymbolicLink()) await follow(walk, path, place);
        else if ((await check(walk, path, stat, place)) && stat.isDirectory()) queue.push(path);
      }
      if (!walk.complete) return;
    }
  }
}

/** What a link leads to within the trees is looked at there; what lies elsewhere is looked at, and never changed. */
async function follow(walk: Walk, link: string, { part }: Place): Promise<void> {
  let real: string;
  try {
    real = (await realpath(fsPath(link), "buffer")).toString("latin1");
  } catch (error) {
    // A link that leads nowhere is no matter of permissions.
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") notSeen(walk, link, error);
    return;
  }
  if (isWithin(walk.roots, real) || walk.looked.has(real)) return;
  const place = { part, outside: true };
  const at = await wayTo(walk, real, place);
  if (at !== undefined && (await stats(at)).isDirectory()) await checkTree(walk, at, place);
}

function isWithin(roots: readonly string[], path: string): boolean {
  return roots.some((root) => path === root || path.startsWith(root === "/" ? root : `${root}/`));
}

/** Looks at one file or directory; false if no more may be looked at. */
async function check(walk: Walk, path: string, found: BigIntStats, place: Place): Promise<boolean> {
  const isDirectory = found.isDirectory();
  if (walk.looked.has(path) || !(isDirectory || found.isFile())) return true;
  if (walk.left === 0) {
    walk.complete = false;
    return false;
  }
  walk.left--;
  walk.looked.add(path);
  const mode = Number(found.mode & 0o7777n);
  const needed = isDirectory ? READ | EXECUTE : READ;
  const lacking = needed & ~mode;
  if (lacking === 0) return true;
  walk.violationCount++;
  const notMended = walk.mend && !place.outside ? await mend(path, found, needed) : undefined;
  const violation: MediaViolation = {
    path: shown(path),
    ...place,
    kind: isDirectory ? "directory" : "file",
    mode: mode.toString(8).padStart(4, "0"),
    lacks: lacking === READ ? "read" : lacking === EXECUTE ? "execute" : "read and execute",
    fix: chmodCommand(isDirectory ? "o+rx" : "o+r", path),
    mended: walk.mend && !place.outside && notMended === undefined,
    ...(notMended === undefined ? {} : { notMended }),
  };
  if (walk.violations.length < SHOWN_MAX) walk.violations.push(violation);
  return true;
}

const READ = 0o4;
const EXECUTE = 0o1;

/**
 * Gives others what they lack. Whoever owns a directory of the tree could put a link in the place of a file meanwhile:
 * what is changed is the open file, after a look at where it really lies. Undefined if that went well, else why not.
 */
async function mend(path: string, seen: BigIntStats, needed: number): Promise<string | undefined> {
  if (seen.isFile() && seen.nlink > 1n) return "it has other hard links, which may lie outside";
  try {
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;
    const file = await open(fsPath(path), flags);
    try {
      const now = await file.stat({ bigint: true });
      const real = (await readlink(`/proc/self/fd/${file.fd}`, "buffer")).toString("latin1");
      if (real !== path || now.ino !== seen.ino || now.dev !== seen.dev || now.nlink !== seen.nlink) {
        return "it was replaced meanwhile";
      }
      await file.chmod(Number(now.mode & 0o7777n) | needed);
      return undefined;
    } finally {
      await file.close();
    }
  } catch (error) {
    return systemReason(error as Error);
  }
}

async function list(walk: Walk, directory: string): Promise<string[]> {
  try {
    const names = await readdir(fsPath(directory), { encoding: "buffer" });
    return names.map((name) => name.toString("latin1")).sort();
  } catch (error) {
    notSeen(walk, directory, error);
    return [];
  }
}

function notSeen(walk: Walk, path: string, error: unknown): void {
  if (walk.unseen.length < SHOWN_MAX)
    walk.unseen.push({ path: shown(path), why: systemReason(error as Error) });
}

function stats(path: string): Promise<BigIntStats> {
  return lstat(fsPath(path), { bigint: true });
}
