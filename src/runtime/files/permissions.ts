import fs from "node:fs";
import { posix } from "node:path";
import { chmodCommand, fsPath, shown, withMode } from "./pathText.js";

/**
 * Why a file below a directory cannot be read, and the fix (service 2.8): directories need read and execute permission
 * for others, files read permission. The system says only "Permission denied", which may be about any directory on the
 * path.
 *
 * @param path one char a byte
 */
export async function explainDenial(path: string): Promise<string> {
  try {
    return await findDenial(path, LINKS_MAX);
  } catch {
    // It changed in the meantime, or a link is broken: the next request will show it.
    return "the reason is gone";
  }
}

const LINKS_MAX = 8;

/** Walks down from the root. Entries of a directory are reachable only with execute permission on that directory. */
async function findDenial(path: string, linksLeft: number): Promise<string> {
  let parent = "/";
  for (const segment of path.split("/")) {
    const here = posix.join(parent, segment);
    try {
      await fs.promises.stat(fsPath(here));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EACCES") throw error;
      const target = await linkTarget(here);
      if (target === undefined) return advise(parent, "execute", "o+rx");
      if (linksLeft === 0) return `too many symbolic links lead to "${shown(here)}"`;
      return findDenial(posix.resolve(parent, target), linksLeft - 1);
    }
    parent = here;
  }
  const isDirectory = (await fs.promises.stat(fsPath(parent))).isDirectory();
  return advise(parent, "read", isDirectory ? "o+rx" : "o+r");
}

/** The target of a link; undefined if the path is not a link, or cannot be seen. */
async function linkTarget(path: string): Promise<string | undefined> {
  try {
    return (await fs.promises.readlink(fsPath(path), "buffer")).toString("latin1");
  } catch {
    return undefined;
  }
}

async function advise(reached: string, lacks: "read" | "execute", grant: "o+r" | "o+rx"): Promise<string> {
  // `chmod` should name the file itself, not a link to it.
  const path = (await fs.promises.realpath(fsPath(reached), "buffer")).toString("latin1");
  const stats = await fs.promises.stat(fsPath(path));
  const kind = stats.isDirectory() ? "directory" : "file";
  const others = lacks === "read" ? 0o4 : 0o1;
  if ((stats.mode & others) !== 0) {
    const place = `${withMode(kind, path, stats.mode)} allows others to ${lacks}`;
    return `${place}; look at its owner and group, ACLs, and the sandbox of the service`;
  }
  const fix = chmodCommand(grant, path);
  return `${withMode(kind, path, stats.mode)} lacks ${lacks} permission for others; fix it with: ${fix}`;
}
