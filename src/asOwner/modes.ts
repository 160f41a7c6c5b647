import { constants } from "node:fs";
import { open, readlink } from "node:fs/promises";
import { fsPath } from "../runtime/actions/permissions.js";
import { systemReason } from "../runtime/load/systemReason.js";

/** A change of the permissions of a file or directory, planned or made. */
export interface ModeChange {
  /** One char a byte. */
  readonly path: string;
  readonly from: number;
  readonly to: number;
}

export interface ChangeModesRequest {
  readonly changes: readonly ModeChange[];
}

/**
 * Changes permissions that are still as expected; the answer has null for each change that was made, or the reason why
 * not. The open file is changed, after a check where it really is: a file may be replaced by a link in the meantime.
 */
export async function changeModes({ changes }: ChangeModesRequest): Promise<(string | null)[]> {
  const outcomes: (string | null)[] = [];
  for (const change of changes) outcomes.push(await changeMode(change));
  return outcomes;
}

async function changeMode({ path, from, to }: ModeChange): Promise<string | null> {
  try {
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;
    const file = await open(fsPath(path), flags);
    try {
      const now = await file.stat();
      const real = (await readlink(`/proc/self/fd/${file.fd}`, "buffer")).toString("latin1");
      if (real !== path || !(now.isDirectory() || now.isFile())) return "it was replaced meanwhile";
      if (now.isFile() && now.nlink > 1) return "it has other hard links, which may be outside";
      if ((now.mode & 0o7777) !== from) return "its permissions were changed meanwhile";
      await file.chmod(to);
      return null;
    } finally {
      await file.close();
    }
  } catch (error) {
    return systemReason(error as Error);
  }
}
