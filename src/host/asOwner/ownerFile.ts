import { execFile } from "node:child_process";
import { type BigIntStats, constants } from "node:fs";
import { type FileHandle, open, realpath, rm, stat } from "node:fs/promises";
import { promisify } from "node:util";
import { draftBeside, finish, replace } from "../../runtime/files/durable.js";
import { fsPath } from "../../runtime/files/pathText.js";
import { type Doing, errnoOf, type OwnerRefusal, OwnerRefused, SETTINGS_BYTES_MAX } from "./refused.js";

/* Reads and replaces one small file, with the rights of the user who runs it: see `asOwner.ts`. */

export interface ReadRequest {
  readonly path: string;
  /** The path as it was named, for messages. */
  readonly label: string;
}

/** A file as it was found. */
export interface ReadResponse {
  /** The file itself, if the path leads through symbolic links. */
  readonly target: string;
  /** Base64. */
  readonly content: string;
  /** Differs after any change to the file. */
  readonly version: string;
  readonly uid: number;
  readonly links: number;
}

/** How `readOwnerFile` opens a file: without blocking, and without following a link in its place. */
const CAREFULLY = constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;

export async function readOwnerFile({ path, label }: ReadRequest): Promise<ReadResponse> {
  return explained("read", label, async () => {
    const target = await realpath(fsPath(path), "buffer");
    const file = await open(target, constants.O_RDONLY | CAREFULLY);
    try {
      const found = await file.stat({ bigint: true });
      if (!found.isFile()) throw refused({ why: "not-regular" }, "read", label);
      const content = await readUpTo(file, SETTINGS_BYTES_MAX);
      if (content === undefined) throw refused({ why: "too-large" }, "read", label);
      return {
        target: target.toString("latin1"),
        content: content.toString("base64"),
        version: versionOf(found),
        uid: Number(found.uid),
        links: Number(found.nlink),
      };
    } finally {
      await file.close();
    }
  });
}

/** The whole content, whatever the size the file reports (files in `/proc` report 0); undefined if it is too long. */
async function readUpTo(file: FileHandle, bytesMax: number): Promise<Buffer | undefined> {
  const pieces: Buffer[] = [];
  for (let left = bytesMax; ;) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(64 * 1024));
    if (bytesRead === 0) return Buffer.concat(pieces);
    left -= bytesRead;
    if (left < 0) return undefined;
    pieces.push(buffer.subarray(0, bytesRead));
  }
}

const refused = (refusal: OwnerRefusal, doing: Doing, label: string): OwnerRefused =>
  new OwnerRefused(refusal, doing, label, process.geteuid!());

export interface ReplaceRequest {
  readonly label: string;
  readonly target: string;
  /** The version that was read. */
  readonly version: string;
  /** Base64. */
  readonly content: string;
}

/** Replaces a file; the new one has the same owner and mode. */
export async function replaceOwnerFile(request: ReplaceRequest): Promise<{ version: string }> {
  const { label, version } = request;
  const target = fsPath(request.target).toString();
  return explained("write", label, async () => {
    const now = await stat(target, { bigint: true });
    refuseChanged(label, now, version);
    refuseForeign(label, now);
    // Kept open: its version counts once it is in place.
    const made: FileHandle[] = [];
    try {
      await replace(target, temporaryBeside(target), async (draft) => {
        const file = await open(draft, "wx", 0o600);
        made.push(file);
        await copyAttributes({ label, target, stats: now }, draft, file);
        await file.writeFile(Buffer.from(request.content, "base64"));
        await finish(file);
        refuseChanged(label, await stat(target, { bigint: true }), version);
      });
      return { version: versionOf(await made[0]!.stat({ bigint: true })) };
    } finally {
      for (const file of made) await file.close();
    }
  });
}

/** Removes a copy that an interrupted replacement has left next to a file. */
export async function sweepBeside({ path }: ReadRequest): Promise<null> {
  const target = await realpath(fsPath(path)).catch(() => fsPath(path).toString());
  await rm(temporaryBeside(target), { force: true });
  return null;
}

/** Root runs one change of a file at a time. */
export const temporaryBeside = (target: string): string => draftBeside(target, ".portico-settings-");

function versionOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return [dev, ino, size, mtimeNs, ctimeNs].join(":");
}

function refuseChanged(label: string, now: BigIntStats, version: string): void {
  if (versionOf(now) !== version) throw refused({ why: "changed" }, "write", label);
}

/**
 * A user who cannot give the new file the same owner must not replace the old one. Root can, but acts only where no
 * other user can interfere.
 */
function refuseForeign(label: string, { uid }: BigIntStats): void {
  const self = process.geteuid!();
  if (self !== 0 && Number(uid) !== self) throw refused({ why: "foreign", uid: Number(uid) }, "write", label);
}

interface OpenedTarget {
  readonly label: string;
  readonly target: string;
  readonly stats: BigIntStats;
}

async function copyAttributes(
  { label, target, stats }: OpenedTarget,
  temporary: string,
  file: FileHandle,
): Promise<void> {
  const { uid, gid, mode } = stats;
  // If that is not permitted, the check of the result below reports it.
  await file.chown(Number(uid), Number(gid)).catch(() => undefined);
  await file.chmod(Number(mode & 0o7777n));
  // Access lists and labels, which Node does not support.
  const copy = ["--attributes-only", "--preserve=all", "--", target, temporary];
  await promisify(execFile)("cp", copy, { env: { PATH: process.env["PATH"] } }).catch(() => undefined);
  const now = await file.stat({ bigint: true });
  // A group with the same permissions as everyone makes no difference.
  const groupMatters = ((mode >> 3n) & 7n) !== (mode & 7n);
  if (now.uid === uid && now.mode === mode && (now.gid === gid || !groupMatters)) return;
  throw refused({ why: "attributes", uid: Number(uid), gid: Number(gid) }, "write", label);
}

async function explained<T>(doing: Doing, label: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof OwnerRefused) throw error;
    throw refused({ why: "system", errno: errnoOf(error) }, doing, label);
  }
}
