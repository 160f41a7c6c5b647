import { chmodSync, mkdtempSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A new folder that every user may enter, as one must be from which the proxy serves files; the caller removes it. */
export function publicFolder(prefix: string, parent = tmpdir()): string {
  const folder = realpathSync(mkdtempSync(join(parent, prefix)));
  chmodSync(folder, 0o755);
  return folder;
}
