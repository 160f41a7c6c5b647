import fs from "node:fs";

/**
 * Moves log files of other users out of the way, such as those that a rotation created: an empty file is removed, any
 * other is renamed to `access.log.1763800000`. This needs only the rights of the directory's owner. A file that cannot
 * be moved stays, and is reported when it is opened.
 *
 * Only the master does this, before its workers open the files: two processes would move each other's files away.
 */
export function recoverLogs(paths: readonly string[]): void {
  for (const path of paths) {
    try {
      const { size } = foreignFile(path) ?? {};
      if (size === 0) fs.unlinkSync(path);
      else if (size !== undefined) fs.renameSync(path, `${path}.${Math.floor(Date.now() / 1000)}`);
    } catch {
      // Reported when the file is opened.
    }
  }
}

/** A regular file that this process may not write; undefined for everything else. */
function foreignFile(path: string): fs.Stats | undefined {
  const found = fs.lstatSync(path, { throwIfNoEntry: false });
  if (found?.isFile() !== true || found.uid === process.geteuid!()) return undefined;
  try {
    fs.accessSync(path, fs.constants.W_OK);
    return undefined;
  } catch {
    return found;
  }
}
