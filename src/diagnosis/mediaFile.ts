import { readdir } from "node:fs/promises";
import path from "node:path";
import type { ProxyConfig } from "../model/index.js";

/**
 * Path of some image below a directory, with `/` between segments; undefined if there is none or the directory cannot
 * be read. Breadth first and in order of names, so that the same tree gives the same file.
 */
export async function findMediaFile(directory: string): Promise<string | undefined> {
  const folders = [""];
  for (let visited = 0; visited < FOLDERS_MAX && folders.length > 0; visited++) {
    const folder = folders.shift()!;
    const entries = await list(path.join(directory, folder));
    const image = entries.find((e) => e.isFile() && IMAGE.test(e.name));
    if (image !== undefined) return urlPath(path.posix.join(folder, image.name));
    folders.push(...entries.filter((e) => e.isDirectory()).map((e) => path.posix.join(folder, e.name)));
  }
  return undefined;
}

/** An installation has its icons near the top; a search through everything would take long and find no more. */
const FOLDERS_MAX = 500;

const IMAGE = /\.(?:png|svg|gif|jpe?g|ico|webp)$/i;

async function list(folder: string) {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch {
    return [];
  }
}

function urlPath(file: string): string {
  return file.split("/").map(encodeURIComponent).join("/");
}

/** An image below the media route's directory, if this machine has the directory and may read it. */
export async function mediaFileOf(
  config: ProxyConfig,
  root: string | undefined,
): Promise<string | undefined> {
  const application = config.virtualServers.find((v) => v.name === "application");
  const action = application?.routes.find((r) => r.name === "media")?.action;
  if (action?.type !== "staticFiles") return undefined;
  return findMediaFile(path.join(root ?? "/", action.directory));
}
