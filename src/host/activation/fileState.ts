import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { lstat, open, readlink, stat } from "node:fs/promises";
import { dirname } from "node:path";

/** The state of a path, as far as it can be restored. */
export type FileState =
  | { readonly kind: "absent" }
  | { readonly kind: "link"; readonly target: string }
  | {
      readonly kind: "file";
      readonly sha256: string;
      /** Four octal digits. */
      readonly mode: string;
      readonly uid: number;
      readonly gid: number;
    };

export const ABSENT: FileState = { kind: "absent" };

/** Reads the state of a path; `unfit` for anything that is neither file nor link, such as a directory. */
export async function observe(path: string): Promise<FileState | "unfit"> {
  try {
    const found = await lstat(path);
    if (found.isSymbolicLink()) return { kind: "link", target: await readlink(path) };
    if (!found.isFile()) return "unfit";
    const mode = (found.mode & 0o7777).toString(8).padStart(4, "0");
    return { kind: "file", sha256: await hashOf(path), mode, uid: found.uid, gid: found.gid };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return ABSENT;
    if (isLacking(error)) return "unfit";
    throw error;
  }
}

/** Whether an error says that nothing is at a path, or that something above is no directory, such as a link to itself. */
export const isLacking = (error: unknown): boolean =>
  ["ENOENT", "ENOTDIR", "ELOOP"].includes((error as NodeJS.ErrnoException).code ?? "");

/** What is in the way of a file at an unfit path: the first thing above the path that is no directory, or the path. */
export async function obstacleTo(path: string): Promise<string> {
  const parent = dirname(path);
  if (parent === path) return path;
  const above = await obstacleTo(parent);
  const isOpen = await stat(above).then(
    (found) => found.isDirectory(),
    ({ code }: NodeJS.ErrnoException) => code === "ENOENT",
  );
  return isOpen ? path : above;
}

/** SHA-256 of a file's content, without holding it in memory. */
export async function hashOf(path: string): Promise<string> {
  const hash = createHash("sha256");
  // The file may have been replaced by a pipe without a writer, which would block.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const found = await file.stat();
    if (!found.isFile()) throw new Error("it is not a regular file");
    const { size } = found;
    // Most files are small, and a deployment has many. Files of the kernel report no size.
    const buffer = Buffer.allocUnsafe(Math.min(Math.max(size, 4096), 1 << 20));
    for (;;) {
      const { bytesRead } = await file.read(buffer);
      if (bytesRead === 0) return hash.digest("hex");
      hash.update(buffer.subarray(0, bytesRead));
    }
  } finally {
    await file.close();
  }
}

export function sameState(a: FileState, b: FileState): boolean {
  return differences(a, b).length === 0;
}

/** In which respects two states differ, in words. */
export function differences(a: FileState, b: FileState): string[] {
  if (a.kind !== b.kind) return [`${nameOf(a)} instead of ${nameOf(b)}`];
  if (a.kind === "link" && b.kind === "link") return a.target === b.target ? [] : ["target"];
  if (a.kind !== "file" || b.kind !== "file") return [];
  return [
    ...(a.sha256 === b.sha256 ? [] : ["content"]),
    ...(a.mode === b.mode ? [] : [`mode ${a.mode} instead of ${b.mode}`]),
    ...(a.uid === b.uid && a.gid === b.gid ? [] : [`owner ${a.uid}:${a.gid} instead of ${b.uid}:${b.gid}`]),
  ];
}

function nameOf(state: FileState): string {
  return state.kind === "absent" ? "nothing" : `a ${state.kind}`;
}
