import { findImage } from "./mediaImage.js";
import { realPathOf, walkMedia } from "./mediaWalk.js";
import { changeModes } from "./modes.js";
import { readOwnerFile, replaceOwnerFile, sweepBeside } from "./ownerFile.js";

/** Everything that is done as the owner of a tree. Requests and answers are JSON. */
export const OPERATIONS = {
  read: readOwnerFile,
  replace: replaceOwnerFile,
  sweep: sweepBeside,
  walkMedia,
  realPath: realPathOf,
  changeModes,
  findImage,
} as const;

export type Operations = typeof OPERATIONS;
export type Operation = keyof Operations;
