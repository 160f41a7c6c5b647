import * as z from "zod";
import { ERROR_PAGE_BYTES_MAX, ERROR_PAGE_STATUSES, PLACEHOLDERS } from "../net/errorPage.js";
import { filePath } from "../schema/fields.js";

const statuses = z
  .array(z.literal(ERROR_PAGE_STATUSES))
  .min(1)
  .meta({
    description: `Statuses of the page: ${ERROR_PAGE_STATUSES.join(", ")}. Each status has at most one page.`,
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
        description: `The page, in UTF-8, up to 32 KiB. Placeholders, whose values are escaped: ${placeholders}.`,
        unit: "characters",
        examples: ["<!doctype html><title>{{status}}</title><p>Back soon. {{requestId}}"],
      }),
  })
  .meta({ title: "html", description: "A page in the config." });

export const errorPageFile = z
  .strictObject({
    statuses,
    file: filePath(
      "File with the page, in UTF-8, up to 32 KiB, with the placeholders of `html`. The file is read " +
        "when the config is loaded; if the file is missing or not a page, the config is not loaded.",
      "/etc/portico/pages/down.html",
    ),
  })
  .meta({ title: "file", description: "A page in a file." });

export const errorPages = z
  .array(z.union([errorPageText, errorPageFile]))
  .default([])
  .describe(
    "Pages in place of the proxy's own error pages, for clients whose `Accept` field lists " +
      "`text/html`, as browsers do; other clients get the proxy's own pages. Responses of upstreams " +
      "and of `respond` stay unchanged.",
  );
