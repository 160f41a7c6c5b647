import { randomBytes } from "node:crypto";
import { mkdir, readdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { replace, sync, writeNew } from "../files/durable.js";
import { credentials } from "../load/credentials.js";
import { systemReason } from "../files/systemReason.js";
import { readTrusted } from "../files/trustedFile.js";
import { AcmeError } from "./acmeError.js";

/** The files of the state directory, for its owner alone. */

/** @throws AcmeError `file` if it cannot be written */
export async function writeState(path: string, content: string): Promise<void> {
  const directory = dirname(path);
  // Two may write the same file at a time, and do not know of each other: no draft has a name that another has.
  const draft = join(directory, `.${randomBytes(6).toString("hex")}.tmp`);
  drafts.add(draft);
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await replace(path, draft, (at) => writeNew(at, content));
  } catch (error) {
    throw refused(path, "written", error);
  } finally {
    drafts.delete(draft);
  }
}

/** Files that are being written. */
const drafts = new Set<string>();

/** @throws AcmeError `file` if there is one that cannot be read */
export async function readState(path: string): Promise<string | undefined> {
  try {
    return (await readTrusted(path)).bytes.toString("utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw refused(path, "read", error);
  }
}

/** Does the same as `readState`. Content that is not a JSON object counts as absent: this program did not write it. */
export async function readJson<T extends object>(path: string): Promise<Partial<T> | undefined> {
  const text = await readState(path);
  try {
    const value = JSON.parse(text ?? "null") as unknown;
    return typeof value === "object" && value !== null ? (value as Partial<T>) : undefined;
  } catch {
    return undefined;
  }
}

export const writeJson = (path: string, value: object): Promise<void> =>
  writeState(path, `${JSON.stringify(value, null, 2)}\n`);

export async function removeState(path: string): Promise<void> {
  try {
    await rm(path, { force: true });
    await sync(dirname(path));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw refused(path, "removed", error);
  }
}

/** Names in a directory; none if there is none. */
export const namesIn = (directory: string): Promise<string[]> => readdir(directory).catch(() => []);

/** Removes partly written files that a crash left. */
export async function removeDrafts(directory: string): Promise<void> {
  const found = (await namesIn(directory)).filter((name) => /^\.[0-9a-f]{12}\.tmp$/.test(name));
  const left = found.map((name) => join(directory, name)).filter((path) => !drafts.has(path));
  for (const path of left) await rm(path, { force: true });
}

const refused = (path: string, how: string, error: unknown): AcmeError =>
  new AcmeError("file", `${path} cannot be ${how} ${systemReason(error as Error)}`);

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
