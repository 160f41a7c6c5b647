import type { BigIntStats, Dirent } from "node:fs";
import { lstat, opendir, readlink, realpath } from "node:fs/promises";
import { posix } from "node:path";
import { fsPath } from "../../runtime/files/pathText.js";
import { howShared } from "../../runtime/files/trustedPath.js";
import { ROOT } from "./acting.js";
import { errnoOf } from "./refused.js";

/*
 * Checks trees that others should be able to read, with the rights of the user who runs the check: see `asOwner.ts`. Root
 * enters no directory that others can change; its owner has to check it. Paths have one char a byte.
 */

/** A file or directory that others cannot read as they should. */
export interface TreeFinding {
  readonly path: string;
  /** The code of the tree. */
  readonly code: string;
  readonly kind: "directory" | "file";
  readonly mode: number;
  /** It is outside the tree, and a link in the tree leads to it: it is never changed. */
  readonly outside: boolean;
  /** Why activation would not fix it itself: it has other hard links, or this other user owns it. */
  readonly held?: "links" | number;
}

/** The path to check: the root of a tree, a path below one, or a link in one that leads elsewhere. */
export interface TreeTask {
  readonly path: string;
  /** Code of the row that reports the findings. */
  readonly code: string;
  readonly kind: "tree" | "below" | "link";
  readonly outside: boolean;
}

export interface WalkRequest {
  readonly tasks: readonly TreeTask[];
  /** Real paths of trees that are checked besides those of the tasks. */
  readonly roots: readonly string[];
  readonly entriesMax: number;
}

/** In codes and numbers: `treeFindings.ts` has the words. */
export interface Walked {
  readonly findings: readonly TreeFinding[];
  readonly looked: number;
  readonly complete: boolean;
  /** Paths that could not be checked, with the number of the system error; the first thousand. */
  readonly unseen: readonly { readonly path: string; readonly why: number | "links" }[];
  /** Paths that another user has to check. */
  readonly handedOver: readonly TreeTask[];
}

export const SHOWN_MAX = 1_000;
const LINKS_MAX = 40;
/** Entries of a directory that are checked at the same time. */
const BATCH = 64;

/** From which tree a path was reached, and whether by a link out of it. */
type TreePlace = Pick<TreeTask, "code" | "outside">;

/** The findings of a walk, as they grow. */
class Walk {
  readonly looked = new Set<string>();
  readonly walked = new Set<string>();
  readonly roots: string[];
  readonly findings: TreeFinding[] = [];
  readonly unseen: { path: string; why: number | "links" }[] = [];
  readonly handedOver: TreeTask[] = [];
  complete = true;
  private readonly self = process.geteuid!();

  constructor(
    roots: readonly string[],
    private left: number,
  ) {
    this.roots = [...roots];
  }

  /** Whether this process can enter a directory without being redirected elsewhere. */
  mayEnter({ uid, mode }: BigIntStats): boolean {
    return this.self !== ROOT || (Number(uid) === ROOT && howShared({ mode }) !== "shared");
  }

  /** Whether a link on the way is one that this process follows: in `/tmp`, everyone can make one. */
  mayBeLed({ uid }: BigIntStats): boolean {
    return this.self !== ROOT || Number(uid) === ROOT;
  }

  isWithin(path: string): boolean {
    return this.roots.some((root) => path === root || path.startsWith(root === "/" ? root : `${root}/`));
  }

  notSeen(path: string, error: unknown): void {
    if (this.unseen.length < SHOWN_MAX)
      this.unseen.push({ path, why: error instanceof TooManyLinks ? "links" : errnoOf(error) });
  }

  /** Checks one file or directory; false if the limit is reached. */
  check(path: string, found: BigIntStats, place: TreePlace): boolean {
    const isDirectory = found.isDirectory();
    if (this.looked.has(path) || !(isDirectory || found.isFile())) return true;
    if (this.left === 0) {
      this.complete = false;
      return false;
    }
    this.left--;
    this.looked.add(path);
    const mode = Number(found.mode & 0o7777n);
    const kind = isDirectory ? "directory" : "file";
    if ((NEEDED[kind] & ~mode) === 0) return true;
    const held = place.outside ? undefined : this.held(found);
    this.findings.push({ path, ...place, kind, mode, held });
    return true;
  }

  private held(found: BigIntStats): TreeFinding["held"] {
    if (found.isFile() && found.nlink > 1n) return "links";
    return this.self !== ROOT && Number(found.uid) !== this.self ? Number(found.uid) : undefined;
  }
}

class TooManyLinks extends Error {}

/** The permissions that other users need: to read, and to search directories. */
export const NEEDED = { directory: 0o5, file: 0o4 } as const;

/** Checks trees, the paths to them and the targets of their links; changes nothing. */
export async function walkTrees({ tasks, roots, entriesMax }: WalkRequest): Promise<Walked> {
  const walk = new Walk(roots, entriesMax);
  const trees: { at: string; task: TreeTask }[] = [];
  for (const task of tasks.filter(({ kind }) => kind === "tree")) {
    const at = await walkTo(walk, task.path, task);
    if (at === undefined) continue;
    trees.push({ at, task });
    walk.roots.push(at);
  }
  // A tree inside another one comes later and is checked first, so that its files get its code.
  for (const { at, task } of trees.reverse()) await checkTree(walk, at, task);
  for (const task of tasks) {
    if (task.kind === "below") await checkTree(walk, task.path, task);
    if (task.kind === "link") await follow(walk, task.path, task);
  }
  const { findings, looked, complete, unseen, handedOver } = walk;
  return { findings, looked: looked.size, complete, unseen, handedOver };
}

/** The real path of a tree, if it is there. */
export async function realPathOf({ path }: { readonly path: string }): Promise<string | null> {
  return realpath(fsPath(path), "buffer").then(
    (real) => real.toString("latin1"),
    () => null,
  );
}

/**
 * Checks every directory on the way to a path, following links, and the target. Returns the real path, if it exists.
 */
async function walkTo(walk: Walk, path: string, { code, outside }: TreePlace): Promise<string | undefined> {
  const place = { code, outside };
  const rest = path.split("/");
  let at = "/";
  let links = 0;
  try {
    walk.check(at, await stats(at), place);
    for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
      if (name === "" || name === ".") continue;
      const here = posix.join(at, name);
      const found = await stats(here);
      if (found.isSymbolicLink() && walk.mayBeLed(found)) {
        if (++links > LINKS_MAX) throw new TooManyLinks();
        const target = (await readlink(fsPath(here), "buffer")).toString("latin1");
        if (target.startsWith("/")) at = "/";
        rest.unshift(...target.split("/"));
      } else {
        at = here;
        walk.check(at, found, place);
        if (!found.isSymbolicLink() && (!found.isDirectory() || walk.mayEnter(found))) continue;
        const kind = outside ? "link" : "below";
        walk.handedOver.push({ path: posix.join(at, ...rest), code, kind, outside });
        return undefined;
      }
    }
    return at;
  } catch (error) {
    walk.notSeen(path, error);
    return undefined;
  }
}

/** Checks everything below a directory that was itself checked. */
async function checkTree(walk: Walk, directory: string, { code, outside }: TreePlace): Promise<void> {
  const place = { code, outside };
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
        if ("error" in stat) walk.notSeen(path, stat.error);
        else if (stat.isSymbolicLink() && walk.mayBeLed(stat)) await follow(walk, path, place);
        else if (stat.isSymbolicLink()) walk.handedOver.push({ path, code, kind: "link", outside });
        else if (walk.check(path, stat, place) && stat.isDirectory()) {
          if (walk.mayEnter(stat)) queue.push(path);
          else walk.handedOver.push({ path, code, kind: "below", outside });
        }
      }
      if (!walk.complete) return;
    }
  }
}

/** The target of a link within the trees is checked there; a target elsewhere is checked here, and never changed. */
async function follow(walk: Walk, link: string, { code }: TreePlace): Promise<void> {
  let real: string;
  try {
    real = (await realpath(fsPath(link), "buffer")).toString("latin1");
  } catch (error) {
    // A link that leads nowhere is not a question of permissions.
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") walk.notSeen(link, error);
    return;
  }
  if (walk.isWithin(real) || walk.looked.has(real)) return;
  const place = { code, outside: true };
  const at = await walkTo(walk, real, place);
  if (at === undefined) return;
  const found = await stats(at);
  if (found.isDirectory()) await checkTree(walk, at, place);
}

async function list(walk: Walk, directory: string): Promise<string[]> {
  try {
    const { entries, isAll } = await entriesIn(directory);
    if (!isAll) walk.complete = false;
    return entries.map(({ name }) => name);
  } catch (error) {
    walk.notSeen(directory, error);
    return [];
  }
}

function stats(path: string): Promise<BigIntStats> {
  return lstat(fsPath(path), { bigint: true });
}

/** A directory may have more names than there is memory: a user who can make files can make any number of them. */
const NAMES_MAX = 200_000;

export interface DirectoryEntry {
  /** The name, one character a byte. */
  readonly name: string;
  readonly isFile: boolean;
  readonly isDirectory: boolean;
}

/** The entries of a directory, by name; if there are too many, only some. */
export async function entriesIn(
  directory: string,
  namesMax = NAMES_MAX,
): Promise<{ entries: DirectoryEntry[]; isAll: boolean }> {
  const entries: DirectoryEntry[] = [];
  // The types of `opendir` do not know of buffers.
  const options = { encoding: "buffer" as BufferEncoding, bufferSize: READ_AT_ONCE };
  let isAll = true;
  for await (const entry of await opendir(fsPath(directory), options)) {
    if (entries.length === namesMax) {
      isAll = false;
      break;
    }
    entries.push(entryOf(entry as unknown as Dirent<Buffer>));
  }
  return { entries: entries.sort((a, b) => (a.name < b.name ? -1 : 1)), isAll };
}

const entryOf = (entry: Dirent<Buffer>): DirectoryEntry => ({
  name: entry.name.toString("latin1"),
  isFile: entry.isFile(),
  isDirectory: entry.isDirectory(),
});

const READ_AT_ONCE = 1_024;
