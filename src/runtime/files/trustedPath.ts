import { lstatSync, readFileSync, readlinkSync, type Stats } from "node:fs";
import { lstat, readlink } from "node:fs/promises";
import { posix } from "node:path";
import { fsPath } from "./pathText.js";

/**
 * Who may change a path. A user who may change a directory can replace a checked file with a link, a pipe or another
 * directory, and no check by name prevents that. So every directory and link of a path has to belong to root or to the
 * user of this process, and only the owner may write to a directory; where others may write too, the directory has to
 * be sticky (`/tmp`), and the next component has to belong to root or to the user of this process.
 *
 * Paths have one char a byte, so that every file name can be written.
 */

/** A component that a user may change who is neither root nor the user of this process. */
export interface ChangeableComponent {
  readonly at: string;
  readonly owner: number;
  readonly mode: number;
  /** `mount`: a process of the user provides the file system. `shared`: several users may write to the directory. */
  readonly why: "owner" | "link" | "mount" | "shared";
  /** The user; for `shared` the owner. */
  readonly by: number;
}

/** A path as far as it was followed. */
export interface ResolvedWay {
  /** The resolved part, and the rest as it was named. */
  readonly path: string;
  /** The object at the end; undefined if there is none, or if the way stopped. */
  readonly found?: Stats;
  /** The first component that another user may change; for a way that stopped, where it did. */
  readonly change?: ChangeableComponent;
  /** Whether the way was not followed to its end: it leads on only by the word of another user. */
  readonly stopped: boolean;
  /** The link that stopped the way. */
  readonly link?: string;
  /** The sticky directory in which the next component is missing: every user may create it. */
  readonly missingIn?: string;
}

/**
 * What stops the way. `change`: every component that another user may change. `moved-link`: a link that another user
 * made, or may have moved there. `foreign`: a link of another user's, or a file system of another user's process.
 */
export type Stop = "change" | "moved-link" | "foreign";

/** Follows a path. */
export async function wayTo(path: string, stop: Stop = "foreign"): Promise<ResolvedWay> {
  const steps = walk(path, stop);
  for (let step = steps.next(); ; step = steps.next(await look(step.value))) if (step.done) return step.value;
}

/** The same for code that cannot wait. */
export function wayToSync(path: string): ResolvedWay {
  const steps = walk(path, "foreign");
  for (let step = steps.next(); ; step = steps.next(lookSync(step.value))) if (step.done) return step.value;
}

interface SeenComponent {
  readonly stats: Stats;
  /** The target of a link. */
  readonly target?: string;
}

interface PathDirectory {
  readonly path: string;
  readonly sticky: boolean;
  readonly dev: number | undefined;
}

const LINKS_MAX = 40;

function* walk(path: string, stop: Stop): Generator<string, ResolvedWay, SeenComponent | undefined> {
  const rest = path.split("/").filter(isName);
  let top: PathDirectory = { path: "/", sticky: false, dev: undefined };
  let within = top;
  // The top itself is looked at first.
  rest.unshift(top.path);
  let links = 0;
  let change: ChangeableComponent | undefined;
  for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
    const here = posix.join(within.path, name);
    const remaining = { path: posix.join(here, ...rest), stopped: false, ...changed(change) };
    const seen = yield here;
    if (seen === undefined) return { ...remaining, ...(within.sticky ? { missingIn: within.path } : {}) };
    const { stats, target } = seen;
    const found = changeOf(here, stats, within);
    // In a directory that only root can write to, root left the link: the link's target decides which user to act as.
    const next = stop === "change" && found?.why === "link" && !within.sticky ? undefined : found;
    const first = change ?? next;
    if (isStopped(stop, next, first, target !== undefined)) {
      const link = target === undefined ? {} : { link: here };
      return { ...remaining, stopped: true, change: next ?? first!, ...link };
    }
    change = first;
    if (target !== undefined) {
      if (++links > LINKS_MAX) throw new Error("too many symbolic links");
      if (target.startsWith("/")) within = top;
      rest.unshift(...target.split("/").filter(isName));
    } else if (stats.isDirectory()) {
      within = { path: here, sticky: howShared(stats) === "sticky", dev: stats.dev };
      if (here === top.path) top = within;
      if (rest.length === 0) return { path: here, found: stats, stopped: false, ...changed(change) };
    } else {
      // Below a file there is nothing.
      const found = rest.length === 0 ? { found: stats } : {};
      return { ...remaining, ...found, ...changed(change) };
    }
  }
  // A link to the directory that it is in.
  return { path: within.path, stopped: false, ...changed(change) };
}

function isStopped(
  stop: Stop,
  here: ChangeableComponent | undefined,
  first: ChangeableComponent | undefined,
  isLink: boolean,
): boolean {
  if (stop === "change") return here !== undefined;
  if (stop === "moved-link") return isLink && first !== undefined;
  return here?.why === "link" || here?.why === "mount";
}

const isName = (name: string): boolean => name !== "" && name !== ".";
const changed = (change: ChangeableComponent | undefined): { change?: ChangeableComponent } =>
  change === undefined ? {} : { change };

function changeOf(at: string, stats: Stats, within: PathDirectory): ChangeableComponent | undefined {
  const { uid: owner, mode } = stats;
  const change = { at, owner, mode: mode & 0o7777 };
  const mounter = stats.dev === within.dev ? ROOT : mounterOf(stats);
  if (!isTrusted(mounter)) return { ...change, why: "mount", by: mounter };
  if (!isTrusted(owner) && stats.isSymbolicLink()) return { ...change, why: "link", by: owner };
  if (!isTrusted(owner) && (stats.isDirectory() || within.sticky))
    return { ...change, why: "owner", by: owner };
  if (stats.isDirectory() && howShared(stats) === "shared") return { ...change, why: "shared", by: owner };
  return undefined;
}

const ROOT = 0;

/** Whether a user can do no more by a path than this process lets the user do anyway. */
export const isTrusted = (uid: number): boolean => uid === ROOT || uid === process.geteuid?.();

/** What users other than the owner can do in a directory; undefined if nothing. */
export function howShared({ mode }: { readonly mode: number | bigint }): "sticky" | "shared" | undefined {
  const bits = Number(mode);
  if ((bits & 0o022) === 0) return undefined;
  return (bits & 0o1000) === 0 ? "shared" : "sticky";
}

/**
 * The user whose process provides a file system's content, including owners and modes: a user may mount a FUSE file
 * system on an own directory, and show it to root too (`allow_other`). For every other file system root.
 */
function mounterOf({ dev }: Stats): number {
  const [major, minor] = [(dev >> 8) & 0xfff, (dev & 0xff) | ((dev >> 12) & 0xfff00)];
  // It has no device.
  if (major !== 0) return ROOT;
  const mounts = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" "));
  const mount = mounts.find(([, , id]) => id === `${major}:${minor}`) ?? [];
  const [type = "", , options = ""] = mount.slice(mount.indexOf("-") + 1);
  const user = options.split(",").find((option) => option.startsWith("user_id="));
  return type.startsWith("fuse") && user !== undefined ? Number(user.slice("user_id=".length)) : ROOT;
}

async function look(path: string): Promise<SeenComponent | undefined> {
  for (;;) {
    try {
      const stats = await lstat(fsPath(path));
      if (!stats.isSymbolicLink()) return { stats };
      return { stats, target: (await readlink(fsPath(path), "buffer")).toString("latin1") };
    } catch (error) {
      if (!isReplaced(error)) return undefined;
    }
  }
}

function lookSync(path: string): SeenComponent | undefined {
  for (;;) {
    try {
      const stats = lstatSync(fsPath(path));
      if (!stats.isSymbolicLink()) return { stats };
      return { stats, target: readlinkSync(fsPath(path), "buffer").toString("latin1") };
    } catch (error) {
      if (!isReplaced(error)) return undefined;
    }
  }
}

/** Whether a link was replaced by something else in between; false if nothing is there. */
function isReplaced(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  if (code !== "ENOENT" && code !== "EINVAL") throw error;
  return code === "EINVAL";
}
