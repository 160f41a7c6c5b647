import { existsSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * A file that takes long to make and is the same for all tests of a run: the first one that needs it makes it. Several
 * that need it at once may each make it; one of theirs is kept.
 *
 * @param make writes it to the path that it is given
 */
export async function sharedFile(name: string, make: (file: string) => unknown): Promise<string> {
  const file = join(runFolder(), name);
  if (!existsSync(file)) {
    const own = `${file}.${process.pid}`;
    await make(own);
    renameSync(own, file);
  }
  return file;
}

/** What the tests of a run share. `__tests__/runFolder.js` makes it; a program that is not a test has one of its own. */
export function runFolder(): string {
  const given = process.env["PORTICO_RUN_FOLDER"];
  if (given !== undefined) return given;
  if (ownFolder === undefined) {
    const made = mkdtempSync(join(tmpdir(), "portico-own-"));
    process.on("exit", () => rmSync(made, { recursive: true, force: true }));
    ownFolder = made;
  }
  return ownFolder;
}

let ownFolder: string | undefined;
