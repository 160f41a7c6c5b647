import path from "node:path";
import { actingOn } from "../../asOwner/acting.js";
import { asOwner } from "../../asOwner/asOwner.js";
import {
  directoriesOf,
  type ExpectedRow,
  normalisePath,
  type Problem,
  ProblemError,
  type ProxyConfig,
  Router,
} from "../../../model/index.js";

/** Most directories of other owners that are searched. */
const OWNERS_MAX = 20;

/** Some image for the rows that ask for one. */
export interface FoundImage {
  /** The image's path below the directory, as a URL has it; undefined if there is none, or the directory cannot be read. */
  readonly imagePath?: string;
  /** Why it is unknown whether there is one: a user who can change the directory prevents the check. */
  readonly imageUnseen?: Problem;
}

/** Searches a directory as the user who can change it. */
export async function findImageFile(directory: string): Promise<FoundImage> {
  const top = Buffer.from(path.resolve(directory)).toString("latin1");
  const folders = [""];
  let imageUnseen: Problem | undefined;
  for (let looked = 0; looked < OWNERS_MAX && folders.length > 0; looked++) {
    const folder = folders.shift()!;
    try {
      const acting = await actingOn(path.posix.join(top, folder));
      const { image, handedOver } = await asOwner("findImage", { directory: acting.path }, acting);
      if (image !== null) return { imagePath: urlPath(path.posix.join(folder, image)) };
      folders.push(...handedOver.map((below) => path.posix.join(folder, below)));
    } catch (error) {
      // If there is no image, there is no request, which the row reports.
      if (error instanceof ProblemError)
        imageUnseen ??= error.problems.find(({ code }) => code === "files.no-response");
    }
  }
  return imageUnseen === undefined ? {} : { imageUnseen };
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
): Promise<FoundImage> {
  const directory = imageDirectory(config, expect);
  return directory === undefined ? {} : findImageFile(path.join(root ?? "/", directory));
}

/** The directory of the images that rows ask for. */
export function imageDirectory(
  config: ProxyConfig,
  expect: readonly ExpectedRow[] | undefined,
): string | undefined {
  const router = new Router(config);
  const directories = (expect ?? []).flatMap(({ request: { server: name, path: at, file } }) => {
    const server = config.virtualServers.find((one) => one.name === name);
    const normalised = normalisePath(at);
    if (file === undefined || server === undefined || normalised === undefined) return [];
    const route = router.route(server, normalised);
    return route === undefined ? [] : directoriesOf(route.action);
  });
  return directories[0]?.value;
}

/** Why a request cannot be made. */
export interface NotProbed {
  readonly reason: string;
  readonly fix: string;
  /** Something keeps the question from an answer, and nobody chose that. */
  readonly isUnclear?: true;
}

/** Why no image is requested. */
export const noImage = (directory = "the directory of its route", unseen: Problem | undefined): NotProbed =>
  unseen === undefined
    ? {
        reason: `no image file was found in ${directory}`,
        fix: "put an image file there, or name one to `portico check` or `doctor` with --image-path (--root: the folder above)",
      }
    : { reason: `${unseen.path}: ${unseen.message} [${unseen.code}]`, fix: unseen.fix, isUnclear: true };
