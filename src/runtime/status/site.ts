import type { AskedStatus, StatusResponse } from "./asked.js";
import { limited, type Overview } from "./overview.js";
import { statusPage } from "./page.js";
import { SCRIPT } from "./script.js";
import { STYLE } from "./style.js";

/** The page's own files are at its own address, with a query: so they are found at any path. */
const LINKS = { script: "?script", style: "?style" };

/** The part that somebody asks for. */
export async function statusResponse(
  asked: AskedStatus,
  now: () => Promise<Overview>,
): Promise<StatusResponse> {
  switch (asked.part) {
    case "script":
      return { contentType: "text/javascript; charset=utf-8", body: SCRIPT };
    case "style":
      return { contentType: "text/css; charset=utf-8", body: STYLE };
    case "json":
      return {
        contentType: "application/json; charset=utf-8",
        body: `${JSON.stringify(limited(await now(), asked))}\n`,
      };
    case "page":
      return {
        contentType: "text/html; charset=utf-8",
        body: statusPage(limited(await now(), asked), LINKS),
      };
  }
}
