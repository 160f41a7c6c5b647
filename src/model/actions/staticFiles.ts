import * as z from "zod";
import type { OutputOf } from "../schema/inferred.js";
import { filePath, line, name } from "../schema/fields.js";
import { CODING_SUFFIXES, type ContentCoding } from "./contentCoding.js";
import type { ActionKind } from "./kind.js";

export const staticFilesFields = z
  .strictObject({
    type: z.literal("staticFiles").describe("Kind of the action."),
    directory: filePath(
      "Directory in which the rest of the path, after the route's path, is looked up. The proxy sends only files that " +
        "others may read (`o+r`), in directories that others may enter (`o+x`), from this one on; rights of groups " +
        "and access control lists do not count. Nothing is sent from `/proc`, `/sys`, `/dev` and the directories of " +
        "secrets, state and logs that systemd gives the proxy. Otherwise the response is 403, and the error log says " +
        "what is missing. With `symlinks` other than `anywhere`, a symbolic link on the path of the directory is " +
        "followed only if root made the link, and only root can change the directories above the link.",
      "/srv/www",
    ),
    index: z
      .array(name("A file name.", "index.html"))
      .default([])
      .meta({
        description:
          "File names to send for a directory; the first existing file counts. Without any, the response is 403: " +
          "directories are not listed.",
        examples: [["index.html"]],
      }),
    symlinks: z
      .enum(["inside", "anywhere", "never"])
      .default("inside")
      .describe(
        "Symbolic links that the proxy follows. `inside`: links that stay inside the directory. `anywhere`: all " +
          "links, so anyone who can write there can publish any file that others may read. `never`: none.",
      ),
    cacheControl: line(
      "Value of `Cache-Control`. Without this field, `Cache-Control` is not sent, and clients revalidate by " +
        "`ETag`.",
      "max-age=3600",
    ).optional(),
    precompressed: z
      .array(z.enum(Object.keys(CODING_SUFFIXES) as [ContentCoding, ...ContentCoding[]]))
      .optional()
      .meta({
        description:
          "Content codings with an encoded copy next to the file: `NAME.zst`, `NAME.br` or `NAME.gz`. A client " +
          "that accepts the coding gets the copy; at equal weight, the first in this list. The build must write " +
          "file and copies together, with the same permissions: their age is not compared. Only for files that are " +
          "the same for all users. Without this field, no copies are sent.",
        examples: [["zstd", "br", "gzip"]],
      }),
  })
  .describe("Serves files from a directory, for GET and HEAD.");

/** The options of `Action.staticFiles`. */
export const staticFilesOptions = staticFilesFields.omit({ type: true, directory: true });

/** Which file a request names is in `staticPath.ts`. */
export const staticFiles: ActionKind<OutputOf<typeof staticFilesFields>> = {
  upstreams: [],
  directories: ["directory"],
  redirects: undefined,
  problems: () => [],
};
