import { configText } from "./configText.js";
import { type Page, page } from "./page.js";

/** `docs/config.md`: every field of `portico.json`, from the field table. */
export async function configPage(): Promise<Page> {
  return page(
    "docs/config.md",
    "the field table, `src/model/config/config.ts` and `src/model/actions/`",
    configText(),
  );
}
