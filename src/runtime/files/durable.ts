import { createHash } from "node:crypto";
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

/*
 * How Portico writes a file that others read, or that a later process needs. Durable means:
 *
 * - At every moment its path leads to the old file or to the new one, complete, with its own mode and owner: it is made
 *   beside its place, as a draft for its owner alone, and renamed (rename(2) is atomic).
 * - Once the function has returned, the new one outlasts a power cut: the bytes are synced before the rename, and the
 *   directory's entry after it.
 *
 * Sockets are no files: each listener renames its own (`ownListener.ts`, `control.ts`).
 */

/** Permissions and owner of a file. */
export interface Ownership {
  /** Four octal digits. */
  readonly mode: string;
  readonly uid: number;
  readonly gid: number;
}

/**
 * Puts a file or a link in place.
 *
 * @param draft its path until it is complete, in the same directory; two that are being made must not have the same
 * @param make makes the draft, and syncs it; if that fails, the old one stays
 */
export async function replace(
  path: string,
  draft: string,
  make: (draft: string) => Promise<void>,
): Promise<void> {
  // Left by a process that was killed; may contain secrets.
  await rm(draft, { force: true });
  try {
    await make(draft);
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true }).catch(() => undefined);
    throw error;
  }
  await sync(dirname(path));
}

/** Makes a file that does not exist; without `ownership`, it is for this process's user alone. */
export async function writeNew(
  path: string,
  content: string | Uint8Array,
  ownership?: Ownership,
): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    await file.writeFile(content);
    await finish(file, ownership);
  } finally {
    await file.close();
  }
}

/** Gives a new file its mode and owner, and syncs it. */
export async function finish(file: FileHandle, ownership?: Ownership): Promise<void> {
  if (ownership !== undefined) {
    await file.chown(ownership.uid, ownership.gid);
    await file.chmod(parseInt(ownership.mode, 8));
  }
  await file.sync();
}

/** Has the disk write what it has not yet: a file's bytes, or the entries of a directory. */
export async function sync(path: string): Promise<void> {
  const file = await open(path, "r");
  await file.sync().finally(() => file.close());
}

/**
 * The path of a draft that is the same each time, so that it is found again after a kill. Daemons that read whole
 * directories skip names that begin with a dot.
 */
export function draftBeside(path: string, prefix: string): string {
  const name = createHash("sha256").update(basename(path)).digest("hex").slice(0, 16);
  return join(dirname(path), prefix + name);
}

/**
 * Replaces a file for its owner alone, not durably: it need not outlast the host, and the event loop of a master must not
 * wait for a disk.
 *
 * @throws if it cannot be written; the old file stays
 */
export function replaceSoon(path: string, text: string): void {
  const draft = `${path}.${process.pid}`;
  try {
    writeFileSync(draft, text, { mode: 0o600 });
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}
