import { access, realpath } from "node:fs/promises";
import { join } from "node:path";
import { baseName, pathName } from "../../model/host/credentialName.js";
import { HANDED_OVER } from "../files/openToOthers.js";
import { checkForRoot, FileRefused } from "../files/trustedFile.js";

/** Finds the credential to read in place of a file that a config names, if there is one. */
export type FindCredential = (path: string) => Promise<string | undefined>;

/**
 * TLS files as credentials, by their path or its base name (`credentialName.ts`): those that a reload handed over (`credentialSet.ts`), or
 * else those that systemd's `LoadCredential=` passed at the start.
 *
 * Which set is the current one is looked up once, so that all files found are of the same set: a key and a certificate
 * that were renewed together are read together.
 */
export async function credentials(env: NodeJS.ProcessEnv = process.env): Promise<FindCredential> {
  const handedOver = env[HANDED_OVER] === undefined ? undefined : await currentSet(env[HANDED_OVER]);
  const passed = env["CREDENTIALS_DIRECTORY"];
  return async (path) => {
    const copy = handedOver && (await fileIn(handedOver, path));
    if (copy) return copy;
    const file = passed && (await fileIn(passed, path));
    return file && !(await ledElsewhere(path)) ? file : undefined;
  };
}

async function fileIn(directory: string, path: string): Promise<string | undefined> {
  for (const name of [pathName(path), baseName(path)]) {
    const file = join(directory, name);
    if (!(await isMissing(access(file)))) return file;
  }
  return undefined;
}

/**
 * Whether another user may choose which file the path leads to. systemd opens the path as root and follows every link, so
 * what it read there is not used: the path is opened again with this process's rights, or refused with the reason. A
 * command that hands over credentials has looked before it opened them.
 */
function ledElsewhere(path: string): Promise<boolean> {
  return checkForRoot(path).then(
    () => false,
    // A directory that this process may not enter is one where others may not either.
    (error: Error) => error instanceof FileRefused && error.code === "files.untrusted-path",
  );
}

/** The link to the current set in that directory. */
export const CURRENT_SET = "current";

async function currentSet(directory: string): Promise<string | undefined> {
  const link = join(directory, CURRENT_SET);
  const found = realpath(link);
  // A file that may not be read is not skipped in favour of an older one: reading it shows why.
  return (await isMissing(found)) ? undefined : found.catch(() => link);
}

function isMissing(found: Promise<unknown>): Promise<boolean> {
  return found.then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === "ENOENT",
  );
}
