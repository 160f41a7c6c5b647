import { access, realpath } from "node:fs/promises";
import { join } from "node:path";
import { baseName, pathName } from "../../model/credentialName.js";

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
  const directories = [handedOver, env["CREDENTIALS_DIRECTORY"]].filter((directory) => Boolean(directory));
  return async (path) => {
    for (const directory of directories) {
      for (const name of [pathName(path), baseName(path)]) {
        const file = join(directory!, name);
        if (!(await isMissing(access(file)))) return file;
      }
    }
    return undefined;
  };
}

/** The directory that a reload hands credentials over in; the unit names it. */
export const HANDED_OVER = "PORTICO_CREDENTIALS";

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
