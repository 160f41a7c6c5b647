import * as z from "zod";
import type { OutputOf } from "../inferred.js";
import { filePath, line, name } from "../fields.js";
import { CODING_SUFFIXES, type ContentCoding } from "./contentCoding.js";
import type { ActionKind } from "./kind.js";

export const staticFilesFields = z
  .strictObject({
    type: z.literal("staticFiles").describe("Marks this kind of action."),
    directory: filePath(
      "Directory of the files: the part of the path after the route's path names the file.",
      "/srv/www",
    ),
    index: z
      .array(name("A file name.", "index.html"))
      .default([])
      .meta({
        description:
          "File names that stand for a directory; the first that exists is served. Without them, a directory gets " +
          "403: its files are not listed.",
        examples: [["index.html"]],
      }),
    symlinks: z
      .enum(["inside", "anywhere", "never"])
      .default("inside")
      .describe(
        "Symbolic links that are followed. `inside`: links that stay inside the directory. `anywhere`: all " +
          "links, so that everyone who may write there can publish any file. `never`: none.",
      ),
    cacheControl: line(
      "Value of Cache-Control. Without this field, the header field is not sent, and clients revalidate by ETag.",
      "max-age=3600",
    ).optional(),
    precompressed: z
      .array(z.enum(Object.keys(CODING_SUFFIXES) as [ContentCoding, ...ContentCoding[]]))
      .optional()
      .meta({
        description:
          "Codings of encoded files beside the file, `NAME.zst`, `NAME.br` or `NAME.gz`, for clients that accept " +
          "the coding; of codings with equal weight, the first in this list. The build that writes a file has to " +
          "write its encoded files too, with the same permissions: their age is not compared. Only for files that " +
          "are the same for all users. Without this field, only the file itself is served.",
        examples: [["zstd", "br", "gzip"]],
      }),
  })
  .describe("Serves files from a directory, for GET and HEAD.");

/** What `Action.staticFiles` takes beside the directory. */
export const staticFilesOptions = staticFilesFields.omit({ type: true, directory: true });

/** Which file a request names is in `staticPath.ts`. */
export const staticFiles: ActionKind<OutputOf<typeof staticFilesFields>> = {
  upstreams: [],
  directories: ["directory"],
  redirects: undefined,
  problems: () => [],
};
