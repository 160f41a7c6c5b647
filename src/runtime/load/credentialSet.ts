import { constants } from "node:fs";
import {
  lstat,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  readlink,
  rm,
  symlink,
  unlink,
} from "node:fs/promises";
import { basename, join } from "node:path";
import { type Problem, problem, type Result } from "../../model/serving.js";
import { replace, writeNew } from "../files/durable.js";
import { CURRENT_SET } from "./credentials.js";
import { refusedProblem } from "./files.js";
import { FileRefused, readTrusted } from "../files/trustedFile.js";

/**
 * Fresh copies of TLS files for a running service that may not read the files themselves. systemd passes credentials
 * only when a service starts; later, root copies them on every reload:
 *
 *     DIR/            root 0755: the service cannot write here, so no link that it made is followed
 *       current       link to the set in use, replaced in one step
 *       set-XXXXXX/   root 0711
 *         NAME        owned by the service's user, 0400
 *
 * A set is complete before it becomes the current one; key and certificate change together.
 */
export interface CredentialSet {
  /** The set was accepted: all sets older than the one before it are removed. */
  keep(): Promise<void>;
  /** The set was refused: the one before it becomes current again. */
  takeBack(): Promise<void>;
}

export interface CredentialSource {
  readonly name: string;
  /** The file to copy. */
  readonly file: string;
}

/** Copies the files into a new set and makes it the current one; on failure nothing has changed. */
export async function handOver(
  directory: string,
  sources: readonly CredentialSource[],
  owner: { readonly uid: number; readonly gid: number },
): Promise<Result<CredentialSet>> {
  const unsafe = await prepare(directory);
  if (unsafe !== undefined) return { ok: false, problems: [unsafe] };
  const set = await mkdtemp(join(directory, "set-"));
  const problems: Problem[] = [];
  for (const { name, file } of sources) {
    try {
      await copy(file, join(set, name), owner);
    } catch (error) {
      if (error instanceof FileRefused) problems.push(refusedProblem(file, error));
      else
        problems.push(
          problem("files.unreadable", file, `cannot be passed to the service: ${(error as Error).message}`),
        );
    }
  }
  if (problems.length > 0) {
    await rm(set, { recursive: true, force: true });
    return { ok: false, problems };
  }
  await setMode(set, 0o711);
  const before = await readlink(join(directory, CURRENT_SET)).catch(() => undefined);
  await makeCurrent(directory, basename(set));
  return {
    ok: true,
    value: {
      keep: () => removeSets(directory, [basename(set), before]),
      takeBack: async () => {
        if (before === undefined) await unlink(join(directory, CURRENT_SET));
        else await makeCurrent(directory, before);
        await rm(set, { recursive: true, force: true });
      },
    },
  };
}

/** User and group that a process runs as. */
export async function ownerOf(pid: number): Promise<{ uid: number; gid: number } | undefined> {
  const status = await readFile(`/proc/${pid}/status`, "latin1").catch(() => "");
  const [uid, gid] = ["Uid", "Gid"].map((field) => new RegExp(`^${field}:\\t(\\d+)`, "m").exec(status)?.[1]);
  return uid === undefined || gid === undefined ? undefined : { uid: Number(uid), gid: Number(gid) };
}

/** Secrets are put only where no other user can write. */
async function prepare(directory: string): Promise<Problem | undefined> {
  try {
    await mkdir(directory);
    await setMode(directory, 0o755);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  const found = await lstat(directory);
  if (found.isDirectory() && found.uid === process.geteuid!() && (found.mode & 0o022) === 0) return undefined;
  return problem("files.bad-directory", directory, "is not safe for secrets: other users could write to it", {
    fix: `Remove the directory: rm -rf ${directory}`,
  });
}

async function copy(
  from: string,
  to: string,
  { uid, gid }: { readonly uid: number; readonly gid: number },
): Promise<void> {
  const { bytes } = await readTrusted(from);
  await writeNew(to, bytes, { mode: "0400", uid, gid });
}

/** Sets a mode regardless of the umask, which is strict in the unit. */
async function setMode(directory: string, mode: number): Promise<void> {
  const handle = await open(directory, constants.O_DIRECTORY | constants.O_NOFOLLOW);
  await handle.chmod(mode).finally(() => handle.close());
}

async function makeCurrent(directory: string, set: string): Promise<void> {
  const draft = join(directory, `${CURRENT_SET}.${process.pid}`);
  await replace(join(directory, CURRENT_SET), draft, (at) => symlink(set, at));
}

async function removeSets(directory: string, but: readonly (string | undefined)[]): Promise<void> {
  const names = await readdir(directory);
  const stale = names.filter((name) => name.startsWith("set-") && !but.includes(name));
  await Promise.all(stale.map((name) => rm(join(directory, name), { recursive: true, force: true })));
}
