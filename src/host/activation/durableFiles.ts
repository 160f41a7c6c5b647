import { createHash } from "node:crypto";
import { constants } from "node:fs";
import {
  chmod,
  copyFile,
  lstat,
  mkdir,
  open,
  realpath,
  rename,
  rm,
  rmdir,
  stat,
  symlink,
  unlink,
  writeFile,
} from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { problem, ProblemError } from "../../model/index.js";
import { systemReason } from "../../runtime/files/systemReason.js";

/**
 * Changes to the disk that survive a power failure. At every moment a path has either its old state or its complete new
 * one; and once a function has returned, the new one stays. (rename(2) is atomic; a file's bytes and its directory's
 * entry each need a separate fsync.)
 */

/** Permissions and owner of a file. */
export interface Ownership {
  /** Four octal digits. */
  readonly mode: string;
  readonly uid: number;
  readonly gid: number;
}

/** Puts a copy of a file in place. */
export function placeCopy(source: string, path: string, ownership: Ownership): Promise<void> {
  return place(path, async (temporary) => {
    // The copy is as private as the source until it has its own mode.
    await copyFile(source, temporary, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
    await finish(temporary, ownership);
  });
}

/** Puts bytes in place. */
export function placeBytes(path: string, bytes: Buffer, ownership: Ownership): Promise<void> {
  return place(path, async (temporary) => {
    await writeFile(temporary, bytes, { mode: 0o600, flag: "wx" });
    await finish(temporary, ownership);
  });
}

/** Puts a text in place, readable for its owner only. */
export function placeText(path: string, text: string): Promise<void> {
  return placeBytes(path, Buffer.from(text), { mode: "0600", ...currentUser() });
}

async function finish(temporary: string, { mode, uid, gid }: Ownership): Promise<void> {
  const file = await open(temporary, constants.O_RDWR | constants.O_NOFOLLOW);
  try {
    await file.chown(uid, gid);
    await file.chmod(parseInt(mode, 8));
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Puts a symbolic link in place. */
export function placeLink(path: string, target: string): Promise<void> {
  return place(path, (temporary) => symlink(target, temporary));
}

/**
 * Name that a file has until it is complete: the same each time, so that a file left by a killed activation is found.
 * Daemons that read whole directories skip names that begin with a dot.
 */
export function temporaryOf(path: string): string {
  const name = createHash("sha256").update(basename(path)).digest("hex").slice(0, 16);
  return join(dirname(path), TEMPORARY + name);
}

export function isTemporary(name: string): boolean {
  return name.startsWith(TEMPORARY);
}

const TEMPORARY = ".portico-new-";

async function place(path: string, make: (temporary: string) => Promise<void>): Promise<void> {
  const temporary = temporaryOf(path);
  await explained(path, "cannot be written", async () => {
    // A file that an activation may have left when it was killed.
    await rm(temporary, { force: true });
    try {
      await make(temporary);
      await rename(temporary, path);
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
    await syncDirectory(dirname(path));
  });
}

/** Removes a file; it may already be gone. */
export async function removeFile(path: string): Promise<void> {
  await explained(path, "cannot be removed", async () => {
    try {
      // A read-only file system refuses to remove even a path that does not exist.
      await lstat(path);
      // Not rm(), which turns the EPERM of a file with `chattr +a` or `+i` into ENOTDIR.
      await unlink(path);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENOENT" || code === "ENOTDIR") return;
      throw error;
    }
    await syncDirectory(dirname(path));
  });
}

/** Removes a directory with everything in it, links not followed; false if there was none. */
export async function removeTree(path: string): Promise<boolean> {
  let found = false;
  await explained(path, "cannot be removed", async () => {
    found = await lstat(path).then(
      () => true,
      () => false,
    );
    if (!found) return;
    await rm(path, { recursive: true });
    await syncDirectory(dirname(path));
  });
  return found;
}

/** Makes a directory; it may already exist. Its parent must exist. */
export async function makeDirectory(path: string, mode = "0755"): Promise<void> {
  const bits = parseInt(mode, 8);
  await explained(path, "cannot be made", async () => {
    try {
      await mkdir(path, { mode: bits });
      // mkdir applied the umask.
      await chmod(path, bits);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST" && (await stat(path)).isDirectory()) return;
      throw error;
    }
    await syncDirectory(dirname(path));
  });
}

/** Removes a directory if nothing is in it; false if it stays. */
export async function removeIfEmpty(path: string): Promise<boolean> {
  try {
    await rmdir(path);
    await syncDirectory(dirname(path));
    return true;
  } catch {
    return false;
  }
}

/**
 * The same for a directory that systemd made. With `DynamicUser=` it is in `private/`, with a link to it, which is
 * removed when it is dangling.
 */
export async function removeLinkedIfEmpty(path: string): Promise<void> {
  const gone = await realpath(path).then(
    removeIfEmpty,
    ({ code }: NodeJS.ErrnoException) => code === "ENOENT",
  );
  if (gone) await removeFile(path);
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r");
  await directory.sync().finally(() => directory.close());
}

/** Owner of files that this process makes. */
export function currentUser(): { uid: number; gid: number } {
  return { uid: process.geteuid!(), gid: process.getegid!() };
}

async function explained(path: string, what: string, act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    if (error instanceof ProblemError) throw error;
    throw new ProblemError([
      problem("activation.file-failed", path, `${what} ${systemReason(error as Error)}`),
    ]);
  }
}
