import type { NormalisedPath } from "../net/target.js";

/** A directory as it is written in front of a `/`: empty for the root, the only path that ends in a slash. */
export const belowDirectory = (directory: string): string => (directory === "/" ? "" : directory);

/**
 * The path below the directory of a request's route: empty, or with `/` first. Undefined for a path that a route with
 * `match: prefix` takes without a `/` after the prefix: nginx serves it from a sibling of the directory.
 */
export function restBelow(
  route: { readonly path: string; readonly match: "prefix" | "segment" | "exact" },
  path: NormalisedPath,
): string | undefined {
  const rest = path.slice(route.path.endsWith("/") ? route.path.length - 1 : route.path.length);
  // There is nothing below an exact path that a redirect to its directory could lead to.
  if (route.match === "exact" && rest === "") return "/";
  return rest === "" || rest.startsWith("/") ? rest : undefined;
}

/** Methods of requests for files. */
export const isFileMethod = (method: string): boolean => method === "GET" || method === "HEAD";
