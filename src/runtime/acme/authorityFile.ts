import { credentials } from "../load/credentials.js";
import { AcmeError } from "./acmeError.js";
import { readState } from "./stateFiles.js";

/**
 * A file that the config of an authority names, where it is now: each reload hands credentials over in a directory of
 * its own.
 *
 * @throws AcmeError `file` if it cannot be read
 */
export async function requiredFile(path: string): Promise<string> {
  const find = await credentials();
  const text = await readState((await find(path)) ?? path);
  if (text === undefined) throw new AcmeError("file", `${path} does not exist`);
  return text;
}
