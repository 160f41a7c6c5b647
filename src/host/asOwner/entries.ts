import type { Dirent } from "node:fs";
import { opendir } from "node:fs/promises";
import { fsPath } from "../../runtime/actions/permissions.js";

/** A directory may have more names than there is memory: a user who can make files can make any number of them. */
const NAMES_MAX = 200_000;

export interface Entry {
  /** One char a byte. */
  readonly name: string;
  readonly isFile: boolean;
  readonly isDirectory: boolean;
}

/** What is in a directory, in order of names; if there is too much, some of it. */
export async function entriesIn(
  directory: string,
  namesMax = NAMES_MAX,
): Promise<{ entries: Entry[]; isAll: boolean }> {
  const entries: Entry[] = [];
  // Its types do not know of buffers.
  const options = { encoding: "buffer" as BufferEncoding, bufferSize: READ_AT_ONCE };
  let isAll = true;
  for await (const entry of await opendir(fsPath(directory), options)) {
    if (entries.length === namesMax) {
      isAll = false;
      break;
    }
    entries.push(entryOf(entry as unknown as Dirent<Buffer>));
  }
  return { entries: entries.sort((a, b) => (a.name < b.name ? -1 : 1)), isAll };
}

const entryOf = (entry: Dirent<Buffer>): Entry => ({
  name: entry.name.toString("latin1"),
  isFile: entry.isFile(),
  isDirectory: entry.isDirectory(),
});

const READ_AT_ONCE = 1_024;
