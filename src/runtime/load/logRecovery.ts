import fs from "node:fs";

/**
 * Makes room for log files of our own where a file of another user is, as a rotation that creates files leaves it:
 * an empty one goes, any other keeps its lines under the name `access.log.1763800000`. It takes no privileges but those
 * that the owner of a directory has. What cannot be helped stays, and is reported when it is opened.
 *
 * Only the master does it, before its workers open the files: two at once would set each other's files aside.
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
