import { renameSync, rmSync, writeFileSync } from "node:fs";

/**
 * Replaces a file that only its owner reads, in a directory of the service: whatever kills the process, there is the old
 * file or the new one, whole. What must outlive a power cut is written by `acme/stateFiles.ts`.
 *
 * @throws if it cannot be written; the old file stays
 */
export function writeWhole(path: string, text: string): void {
  const draft = `${path}.${process.pid}`;
  try {
    writeFileSync(draft, text, { mode: 0o600 });
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}
