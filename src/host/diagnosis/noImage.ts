import type { Problem } from "../../model/index.js";

/** Why a request cannot be made. */
export interface NotProbed {
  readonly reason: string;
  readonly fix: string;
  /** A user who can change the files keeps them from being looked at. */
  readonly unseen?: true;
}

/** Why no image is asked for. */
export const noImage = (directory = "the directory of its route", unseen: Problem | undefined): NotProbed =>
  unseen === undefined
    ? {
        reason: `no image file was found in ${directory}`,
        fix: "set the path of an image with --image-path, or use --root if the files are below a folder",
      }
    : { reason: `${unseen.path}: ${unseen.message} [${unseen.code}]`, fix: unseen.fix, unseen: true };
