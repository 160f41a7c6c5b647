import { constants } from "node:fs";
import { open, readlink } from "node:fs/promises";
import { fsPath } from "../../runtime/files/pathText.js";
import { errnoOf, errnoReason } from "./refused.js";

/** A change of the permissions of a file or directory, planned or made. */
export interface ModeChange {
  /** The path, one character a byte. */
  readonly path: string;
  /** Permissions of owner, group and others; bits above them stay as they are. */
  readonly from: number;
  readonly to: number;
  /** The user whose word it is; without one it was seen by the process that carries it out. */
  readonly uid?: number;
}

/** Why permissions stay: the number of a system error, or the difference that was found. */
export type KeptReason = number | "replaced" | "links" | "changed";

export const KEPT_TEXTS = {
  replaced: "it was replaced meanwhile",
  links: "it has other hard links, which may be outside",
  changed: "its permissions were changed meanwhile",
} as const;

export const keptText = (kept: KeptReason): string =>
  typeof kept === "number" ? errnoReason(kept) : KEPT_TEXTS[kept];

/** The bits that a change may set: neither set-user-ID, set-group-ID nor the sticky bit. */
export const PERMISSIONS = 0o777;

export interface ChangeModesRequest {
  readonly changes: readonly ModeChange[];
}

/**
 * Changes permissions that are still as expected; the response has null for each change that was made, or the reason why
 * not. The open file is changed, after a check where it really is: a file may be replaced by a link in the meantime.
 */
export async function changeModes({ changes }: ChangeModesRequest): Promise<(KeptReason | null)[]> {
  const outcomes: (KeptReason | null)[] = [];
  for (const change of changes) outcomes.push(await changeMode(change));
  return outcomes;
}

async function changeMode({ path, from, to }: ModeChange): Promise<KeptReason | null> {
  try {
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;
    const file = await open(fsPath(path), flags);
    try {
      const now = await file.stat();
      const real = (await readlink(`/proc/self/fd/${file.fd}`, "buffer")).toString("latin1");
      if (real !== path || !(now.isDirectory() || now.isFile())) return "replaced";
      if (now.isFile() && now.nlink > 1) return "links";
      if ((now.mode & PERMISSIONS) !== from) return "changed";
      await file.chmod((now.mode & 0o7777 & ~PERMISSIONS) | (to & PERMISSIONS));
      return null;
    } finally {
      await file.close();
    }
  } catch (error) {
    return errnoOf(error);
  }
}
