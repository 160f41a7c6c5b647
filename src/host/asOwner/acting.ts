import { execFile } from "node:child_process";
import { realpath } from "node:fs/promises";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { problem, ProblemError } from "../../model/text/problem.js";
import { fsPath, shown } from "../../runtime/files/pathText.js";
import { wayTo } from "../../runtime/files/trustedPath.js";

/**
 * The user who may change the target of a path, and as whom this program therefore acts there. Root follows a path only
 * as long as only root can change every directory on it (`trustedPath.ts`).
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

async function followAsRoot(path: string): Promise<Acting> {
  const { path: resolved, change, missingIn } = await wayTo(path, "change");
  // Nothing is there; but where everyone may create files, that may change in a moment.
  if (missingIn !== undefined) throw sharedDirectory(missingIn, "every user may put files there");
  if (change?.why === "shared") throw sharedDirectory(change.at, "users other than root may change it");
  return { uid: change?.by ?? ROOT, path: resolved };
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
    // If a link of the user's is on the path, what root is told to do there would be done elsewhere.
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
