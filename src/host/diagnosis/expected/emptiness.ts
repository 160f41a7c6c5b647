import { readFileSync, statSync } from "node:fs";
import { actingOn } from "../../asOwner/acting.js";
import { asOwner } from "../../asOwner/asOwner.js";
import type { Contents } from "../../asOwner/contents.js";

/** In what way a directory has no files, and what to do; undefined if it has some, or that is not known. */
export async function emptiness(
  path: string,
): Promise<{ readonly what: string; readonly fix: string } | undefined> {
  const what = await lack(path);
  return what === undefined ? undefined : { what, fix: fixFor(path) };
}

async function lack(path: string): Promise<string | undefined> {
  try {
    if (!statSync(path).isDirectory()) return "is not a directory";
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT" ? "does not exist" : "is not a directory";
  }
  return (await contentsAt(path)) === "none" ? "is empty" : undefined;
}

/** Whether there is something in a directory, as its owner sees it. */
export async function contentsAt(path: string): Promise<Contents> {
  try {
    const acting = await actingOn(Buffer.from(path).toString("latin1"));
    return await asOwner("contentsOf", { directory: acting.path }, acting);
  } catch {
    // Who may change it prevents the check, which the row of its permissions says.
    return "unseen";
  }
}

function fixFor(path: string): string {
  const mounts = unmounted(path);
  return mounts.length > 0
    ? mounts.map((at) => `mount ${at}`).join("; ")
    : `Mount its disk, or put the files back; what is mounted there now: findmnt --target ${path}`;
}

/** Places on a path where /etc/fstab has a file system, and none is mounted. */
function unmounted(path: string): string[] {
  const mounted = new Set(linesOf("/proc/self/mounts").map(([, at = ""]) => at));
  return linesOf("/etc/fstab")
    .map(([, at = ""]) => at)
    .filter((at) => at.length > 1 && at.startsWith("/") && `${path}/`.startsWith(`${at}/`))
    .filter((at) => !mounted.has(at));
}

function linesOf(file: string): string[][] {
  try {
    const lines = readFileSync(file, "utf8").split("\n");
    return lines.filter((line) => !line.startsWith("#")).map((line) => line.trim().split(/\s+/));
  } catch {
    return [];
  }
}
