import { lstat } from "node:fs/promises";
import { posix } from "node:path";
import { fsPath } from "../../runtime/files/pathText.js";
import { howShared } from "../../runtime/files/trustedPath.js";
import { ROOT } from "./acting.js";
import { type DirectoryEntry, entriesIn } from "./treeWalk.js";

export interface ImageResponse {
  /** Path of an image below the directory. */
  readonly image: string | null;
  /** Directories below it that another user has to search. */
  readonly handedOver: readonly string[];
}

/** Looks for some image, breadth first and in order of names, so that the same tree gives the same file. */
export async function findImage({ directory }: { readonly directory: string }): Promise<ImageResponse> {
  const folders = [""];
  const handedOver: string[] = [];
  for (let visited = 0; visited < FOLDERS_MAX && folders.length > 0; visited++) {
    const folder = folders.shift()!;
    const entries = await list(posix.join(directory, folder));
    const image = entries.find((entry) => entry.isFile && IMAGE.test(entry.name));
    if (image !== undefined) {
      return { image: posix.join(folder, image.name), handedOver };
    }
    for (const entry of entries.filter((e) => e.isDirectory)) {
      const below = posix.join(folder, entry.name);
      ((await mayEnter(posix.join(directory, below))) ? folders : handedOver).push(below);
    }
  }
  return { image: null, handedOver };
}

/** An installation has its icons near the top; searching everything would take long and find no more. */
const FOLDERS_MAX = 500;

export const IMAGE = /\.(?:png|svg|gif|jpe?g|ico|webp)$/i;

async function list(folder: string): Promise<readonly DirectoryEntry[]> {
  return entriesIn(folder).then(
    ({ entries }) => entries,
    () => [],
  );
}

async function mayEnter(path: string): Promise<boolean> {
  if (process.geteuid!() !== ROOT) return true;
  const found = await lstat(fsPath(path)).catch(() => undefined);
  return found?.uid === ROOT && howShared(found) !== "shared";
}
