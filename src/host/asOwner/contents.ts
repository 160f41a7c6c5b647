import { opendir } from "node:fs/promises";
import { fsPath } from "../../runtime/files/pathText.js";

/** Whether something is in a directory; `unseen` if it is missing, or cannot be read. */
export type Contents = "some" | "none" | "unseen";

export async function contentsOf({ directory }: { readonly directory: string }): Promise<Contents> {
  try {
    const entries = await opendir(fsPath(directory));
    try {
      return (await entries.read()) === null ? "none" : "some";
    } finally {
      await entries.close();
    }
  } catch {
    return "unseen";
  }
}
