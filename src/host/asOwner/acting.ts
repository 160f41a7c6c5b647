import { execFile } from "node:child_process";
import type { Stats } from "node:fs";
import { lstat, readFile, readlink, realpath, stat } from "node:fs/promises";
import { dirname, posix } from "node:path";
import { promisify } from "node:util";
import { problem, ProblemError } from "../../model/problem.js";
import { fsPath, shown } from "../../runtime/actions/permissions.js";

/**
 * The user who may change the target of a path, and as whom this program therefore acts there. Root follows a path only
 * as long as only root can change every directory on it: a user who may change a directory can replace a checked file
 * with a link, a pipe or another directory, and no check by name prevents that.
 *
 * Paths have one char a byte, so that every file name can be written.
 */
export interface Acting {
  readonly uid: number;
  /** The path, resolved as far as root has followed it. */
  readonly path: string;
}

/** User, group and supplementary groups of a process. */
export interface Identity {
  readonly uid: number;
  readonly gid: number;
  readonly groups: readonly number[];
}

export const ROOT = 0;

/**
 * The user to act on a path. Rejects with a ProblemError if no user can safely. A process that is not root acts as
 * itself.
 */
export async function actingOn(path: string): Promise<Acting> {
  const self = process.geteuid!();
  return self === ROOT ? followAsRoot(path) : { uid: self, path };
}

const LINKS_MAX = 40;

async function followAsRoot(path: string): Promise<Acting> {
  const rest = path.split("/");
  let at = "/";
  let within = directoryOf(at, await stat(at));
  let links = 0;
  for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
    if (name === "" || name === ".") continue;
    const here = posix.join(at, name);
    const remaining = posix.join(here, ...rest);
    const found = await lstat(fsPath(here)).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return undefined;
      throw error;
    });
    if (found === undefined) {
      // Nothing is there; but where everyone may create files, that may change in a moment.
      if (within === "sticky") throw sharedDirectory(at, "every user may put files there");
      return { uid: ROOT, path: remaining };
    }
    const mounter = await mounterOf(found);
    if (mounter !== ROOT) return { uid: mounter, path: remaining };
    if (found.uid !== ROOT && (found.isDirectory() || within === "sticky")) {
      return { uid: found.uid, path: remaining };
    }
    if (found.isSymbolicLink()) {
      if (++links > LINKS_MAX) throw new Error("too many symbolic links");
      const target = (await readlink(fsPath(here), "buffer")).toString("latin1");
      if (target.startsWith("/")) at = "/";
      rest.unshift(...target.split("/"));
    } else if (found.isDirectory()) {
      at = here;
      within = directoryOf(at, found);
    } else {
      return { uid: ROOT, path: remaining };
    }
  }
  return { uid: ROOT, path: at };
}

/**
 * The user whose process provides a file system's content, including owners and modes: a user may mount a FUSE file
 * system on an own directory, and show it to root too (`allow_other`). For every other file system root.
 */
async function mounterOf({ dev }: Stats): Promise<number> {
  const [major, minor] = [(dev >> 8) & 0xfff, (dev & 0xff) | ((dev >> 12) & 0xfff00)];
  // It has no device.
  if (major !== 0) return ROOT;
  const mounts = (await readFile("/proc/self/mountinfo", "utf8")).split("\n").map((line) => line.split(" "));
  const mount = mounts.find(([, , id]) => id === `${major}:${minor}`) ?? [];
  const [type = "", , options = ""] = mount.slice(mount.indexOf("-") + 1);
  return type.startsWith("fuse") ? Number(/(?:^|,)user_id=(\d+)/.exec(options)?.[1] ?? ROOT) : ROOT;
}

/**
 * Undefined if only root can change a directory of root's; `sticky` if everyone can add to it but replace nothing
 * (`/tmp`).
 */
function directoryOf(path: string, found: Stats): "sticky" | undefined {
  const kind = howShared(found);
  if (kind === "shared") throw sharedDirectory(path, "users other than root may change it");
  return kind;
}

/** What users other than the owner can do in a directory; undefined if nothing. */
export function howShared({ mode }: { readonly mode: number | bigint }): "sticky" | "shared" | undefined {
  const bits = Number(mode);
  if ((bits & 0o022) === 0) return undefined;
  return (bits & 0o1000) === 0 ? "shared" : "sticky";
}

function sharedDirectory(path: string, why: string): ProblemError {
  const fix = `Make the application's user the owner of the directory, or remove the permission: chmod go-w ${shown(path)}`;
  return new ProblemError([
    problem(
      "files.shared-directory",
      shown(path),
      `belongs to root, but ${why}: root does not follow the path further`,
      {
        fix,
      },
    ),
  ]);
}

const identities = new Map<number, Promise<Identity>>();

/**
 * The identity of a user, as after a login; for a number that is not a user's, without supplementary groups. Looked up
 * once: the process is a command that soon ends, and may have a hundred things to do as the same user.
 */
export function identityOf(uid: number): Promise<Identity> {
  const known = identities.get(uid) ?? lookUp(uid);
  identities.set(uid, known);
  return known;
}

async function lookUp(uid: number): Promise<Identity> {
  const NOBODY = 65_534;
  try {
    const { stdout } = await promisify(execFile)("id", ["-G", String(uid)], { timeout: 10_000 });
    const groups = stdout.split(" ").map(Number);
    return { uid, gid: groups[0]!, groups };
  } catch {
    // The exit status means that there is no such user.
    return { uid, gid: NOBODY, groups: [] };
  }
}

/** The paths that a user decides about: root's own way there, which follows no one's word, ends with that user. */
export class Realm {
  private readonly directories = new Map<string, Promise<boolean>>();

  constructor(private readonly uid: number) {}

  /** @param path absolute, one char a byte */
  async includes(path: string): Promise<boolean> {
    // By a link of the user's, what root is told to do there would be done elsewhere.
    const real = await realpath(fsPath(path), "buffer").catch(() => undefined);
    if (real?.toString("latin1") !== path) return false;
    const directory = dirname(path);
    const known = this.directories.get(directory) ?? this.endsHere(directory);
    this.directories.set(directory, known);
    // The first directory that is the user's lies in one that is not.
    return (await known) || this.endsHere(path);
  }

  private endsHere(path: string): Promise<boolean> {
    return actingOn(path).then(
      ({ uid }) => uid === this.uid,
      () => false,
    );
  }
}
