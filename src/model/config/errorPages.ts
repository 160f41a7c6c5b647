import * as z from "zod";
import { ERROR_PAGE_BYTES_MAX, ERROR_PAGE_STATUSES, PLACEHOLDERS } from "../errorPage.js";
import { filePath } from "../fields.js";

const statuses = z
  .array(z.literal(ERROR_PAGE_STATUSES))
  .min(1)
  .meta({
    description: `Statuses that it is for: ${ERROR_PAGE_STATUSES.join(", ")}. Each has one page at most.`,
    examples: [[502, 503, 504]],
  });

const placeholders = PLACEHOLDERS.map((name) => `\`{{${name}}}\``).join(", ");

export const errorPageText = z
  .strictObject({
    statuses,
    html: z
      .string()
      .min(1)
      .max(ERROR_PAGE_BYTES_MAX)
      .meta({
        description: `The page, in UTF-8 up to 32 KiB. These are filled in, escaped: ${placeholders}.`,
        unit: "characters",
        examples: ["<!doctype html><title>{{status}}</title><p>Back soon. {{requestId}}"],
      }),
  })
  .meta({ title: "html", description: "A page that is in the config." });

export const errorPageFile = z
  .strictObject({
    statuses,
    file: filePath(
      "File with the page, in UTF-8 up to 32 KiB, which is read when the config is loaded; one that is missing, or not a page, keeps the config from being loaded. The placeholders of `html` are filled in.",
      "/etc/portico/pages/down.html",
    ),
  })
  .meta({ title: "file", description: "A page that is in a file." });

export const errorPages = z
  .array(z.union([errorPageText, errorPageFile]))
  .default([])
  .describe(
    "Pages in place of the proxy's own error pages, for clients that accept `text/html` by its name, as browsers do; " +
      "all others get the proxy's own. Responses of upstreams and of `respond` pass as they are.",
  );
