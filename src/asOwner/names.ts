import { opendir } from "node:fs/promises";
import { fsPath } from "../runtime/actions/permissions.js";

/** A directory may have more names than there is memory: whoever can make files can make any number of them. */
const NAMES_MAX = 200_000;

/** Names in a directory, one char a byte and in order; if there are too many, some of them. */
export async function namesIn(
  directory: string,
  namesMax = NAMES_MAX,
): Promise<{ names: string[]; isAll: boolean }> {
  const names: string[] = [];
  // Its types do not know of buffers.
  const options = { encoding: "buffer" as BufferEncoding, bufferSize: READ_AT_ONCE };
  const opened = await opendir(fsPath(directory), options);
  let isAll = true;
  for await (const { name } of opened) {
    if (names.length === namesMax) {
      isAll = false;
      break;
    }
    names.push((name as unknown as Buffer).toString("latin1"));
  }
  return { names: names.sort(), isAll };
}

const READ_AT_ONCE = 1_024;
