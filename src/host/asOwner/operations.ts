import { contentsOf } from "./contents.js";
import { findImage } from "./imageSearch.js";
import { realPathOf, walkTrees } from "./treeWalk.js";
import { changeModes } from "./modes.js";
import { readOwnerFile, replaceOwnerFile, sweepBeside } from "./ownerFile.js";

/** Everything that is done as the owner of a tree. Requests and responses are JSON. */
export const OPERATIONS = {
  read: readOwnerFile,
  replace: replaceOwnerFile,
  sweep: sweepBeside,
  walkTrees,
  realPath: realPathOf,
  changeModes,
  findImage,
  contentsOf,
} as const;

export type Operations = typeof OPERATIONS;
export type Operation = keyof Operations;
