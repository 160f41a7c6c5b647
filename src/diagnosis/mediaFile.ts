import path from "node:path";
import { actingOn } from "../asOwner/acting.js";
import { asOwner } from "../asOwner/asOwner.js";
import { directoriesOf, type ExpectedRow, normalisePath, type ProxyConfig, Router } from "../model/index.js";

/** Most directories of other owners that are searched. */
const OWNERS_MAX = 20;

/**
 * Path of some image below a directory, with `/` between segments; undefined if there is none or the directory cannot
 * be read. The search runs as the user who can change the directory.
 */
export async function findMediaFile(directory: string): Promise<string | undefined> {
  const found = await imageIn(Buffer.from(path.resolve(directory)).toString("latin1"));
  return found === undefined ? undefined : urlPath(found);
}

/** One char a byte. */
async function imageIn(directory: string): Promise<string | undefined> {
  const folders = [""];
  for (let looked = 0; looked < OWNERS_MAX && folders.length > 0; looked++) {
    const folder = folders.shift()!;
    try {
      const acting = await actingOn(path.posix.join(directory, folder));
      const { image, handedOver } = await asOwner("findImage", { directory: acting.path }, acting);
      if (image !== null) return path.posix.join(folder, image);
      folders.push(...handedOver.map((below) => path.posix.join(folder, below)));
    } catch {
      // Without an image there is no request, and the row says so.
    }
  }
  return undefined;
}

function urlPath(file: string): string {
  return file
    .split("/")
    .map((name) => encodeURIComponent(Buffer.from(name, "latin1").toString("utf8")))
    .join("/");
}

/** An image for the rows that ask for one, if this machine has their directory and may read it. */
export async function imageFor(
  config: ProxyConfig,
  expect: readonly ExpectedRow[] | undefined,
  root: string | undefined,
): Promise<string | undefined> {
  const router = new Router(config);
  const directories = (expect ?? []).flatMap(({ request: { server: name, path: at, file } }) => {
    const server = config.virtualServers.find((one) => one.name === name);
    const normalised = normalisePath(at);
    if (file === undefined || server === undefined || normalised === undefined) return [];
    const route = router.route(server, normalised);
    return route === undefined ? [] : directoriesOf(route.action);
  });
  const [directory] = directories;
  return directory === undefined ? undefined : findMediaFile(path.join(root ?? "/", directory.value));
}
