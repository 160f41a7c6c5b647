import { constants } from "node:fs";
import {
  chmod,
  copyFile,
  lstat,
  mkdir,
  open,
  realpath,
  rm,
  rmdir,
  stat,
  symlink,
  unlink,
} from "node:fs/promises";
import { dirname } from "node:path";
import { problem, ProblemError } from "../../model/index.js";
import { draftBeside, finish, type Ownership, replace, sync, writeNew } from "../../runtime/files/durable.js";
import { systemReason } from "../../runtime/files/systemReason.js";

/** Durable changes of an activation (`runtime/files/durable.ts`), whose failures are problems of it. */

/** Puts a copy of a file in place. */
export function placeCopy(source: string, path: string, ownership: Ownership): Promise<void> {
  return place(path, async (temporary) => {
    // The copy is as private as the source until it has its own mode.
    await copyFile(source, temporary, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
    const file = await open(temporary, constants.O_RDWR | constants.O_NOFOLLOW);
    await finish(file, ownership).finally(() => file.close());
  });
}

/** Puts bytes in place. */
export function placeBytes(path: string, bytes: Buffer, ownership: Ownership): Promise<void> {
  return place(path, (temporary) => writeNew(temporary, bytes, ownership));
}

/** Puts a text in place, readable for its owner only. */
export function placeText(path: string, text: string): Promise<void> {
  return placeBytes(path, Buffer.from(text), { mode: "0600", ...currentUser() });
}

/** Puts a symbolic link in place. */
export function placeLink(path: string, target: string): Promise<void> {
  return place(path, (temporary) => symlink(target, temporary));
}

/** Name that a file has until it is complete; the lock keeps a second activation away. */
export const temporaryOf = (path: string): string => draftBeside(path, TEMPORARY);

export function isTemporary(name: string): boolean {
  return name.startsWith(TEMPORARY);
}

const TEMPORARY = ".portico-new-";

const place = (path: string, make: (temporary: string) => Promise<void>): Promise<void> =>
  explained(path, "cannot be written", () => replace(path, temporaryOf(path), make));

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
    await sync(dirname(path));
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
    await sync(dirname(path));
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
    await sync(dirname(path));
  });
}

/** Removes a directory if nothing is in it; false if it stays. */
export async function removeIfEmpty(path: string): Promise<boolean> {
  try {
    await rmdir(path);
    await sync(dirname(path));
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
