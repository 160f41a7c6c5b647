import * as z from "zod";
import type { OutputOf } from "../inferred.js";
import { filePath, line, name } from "../fields.js";
import { CODING_SUFFIXES, type ContentCoding } from "./contentCoding.js";
import type { ActionKind } from "./kind.js";

export const staticFilesFields = z
  .strictObject({
    type: z.literal("staticFiles").describe("Marks this kind of action."),
    directory: filePath(
      "Directory in which the part of the path after the route's path is looked up.",
      "/srv/www",
    ),
    index: z
      .array(name("A file name.", "index.html"))
      .default([])
      .meta({
        description:
          "File names that answer for a directory, first match wins. Without one, a directory gets 403: its files are " +
          "not listed.",
        examples: [["index.html"]],
      }),
    symlinks: z
      .enum(["inside", "anywhere", "never"])
      .default("inside")
      .describe(
        "Symbolic links that are followed: `inside`: those that stay inside the directory; `anywhere`: all, which " +
          "lets anyone who may write there publish any file; `never`: none.",
      ),
    cacheControl: line(
      "Value of Cache-Control. Without it, the field is not sent, and clients revalidate by ETag.",
      "max-age=3600",
    ).optional(),
    precompressed: z
      .array(z.enum(Object.keys(CODING_SUFFIXES) as [ContentCoding, ...ContentCoding[]]))
      .optional()
      .meta({
        description:
          "Codings for which an encoded file beside the file, `NAME.zst`, `NAME.br` or `NAME.gz`, is sent to clients that accept them; of those accepted with equal weight, the first. The build that writes a file has to write these too, readable as it is: their age is not compared. Only for files that are the same for everybody. Without it, no other file is looked for.",
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
