import { type Problem, problem, ProblemError } from "../../model/text/problem.js";
import { systemReason } from "../../runtime/files/systemReason.js";

/*
 * Why something was not done as the owner of a tree. A child reports a reason and numbers; root makes the words from them
 * (`responses.ts` checks both), because a user's text in a message of root would be believed, and its commands pasted.
 */

export type OwnerRefusal =
  | { readonly why: "system"; readonly errno: number }
  | { readonly why: "not-regular" | "too-large" | "changed" }
  | { readonly why: "foreign"; readonly uid: number }
  | { readonly why: "attributes"; readonly uid: number; readonly gid: number };

/** The operation on a settings file. */
export type Doing = "read" | "write";

/** A refusal in words, of the file that has this label. */
export class OwnerRefused extends ProblemError {
  /** @param self the user who acted */
  constructor(
    readonly refusal: OwnerRefusal,
    doing: Doing,
    label: string,
    self: number,
  ) {
    super([problemOf(refusal, doing, label, self)]);
    this.name = "Refused";
  }
}

/** A settings file is small; anything larger is something else. */
export const SETTINGS_BYTES_MAX = 4 * 1024 * 1024;

function problemOf(refusal: OwnerRefusal, doing: Doing, label: string, self: number): Problem {
  const code = doing === "read" ? "files.unreadable" : "settings.write-failed";
  switch (refusal.why) {
    case "system": {
      const what = doing === "read" ? "cannot be read" : "cannot be written";
      return problem(code, label, `${what} ${errnoReason(refusal.errno)}`);
    }
    case "not-regular":
      return problem(code, label, "is not a regular file", { fix: "Use the path of a file." });
    case "too-large": {
      const fix = "Use the path of a settings file.";
      return problem(code, label, `is larger than ${SETTINGS_BYTES_MAX} bytes`, { fix });
    }
    case "changed":
      return problem("settings.changed-meanwhile", label, "was changed by another process meanwhile");
    case "foreign":
      return foreignOwner(label, refusal.uid, self);
    case "attributes": {
      const { uid, gid } = refusal;
      const fix = `Make user ${uid} a member of group ${gid}, or change the group: chgrp $(id -g ${uid}) ${label}`;
      return problem(code, label, "would not keep its owner, group and mode", { fix });
    }
  }
}

export function foreignOwner(label: string, uid: number, directoryUid: number): Problem {
  const message = `belongs to user ${uid}, but its directory belongs to user ${directoryUid}`;
  const fix = `Make the same user the owner of both, for example: chown ${directoryUid} ${label}`;
  return problem("files.foreign-owner", label, message, { fix });
}

/** A system error's number in words. */
export function errnoReason(errno: number): string {
  return systemReason(Object.assign(new Error(`error ${-errno}`), { errno }));
}

/** The number of a system error; another error is thrown again. */
export function errnoOf(error: unknown): number {
  const { errno } = error as NodeJS.ErrnoException;
  if (errno === undefined) throw error;
  return errno;
}
