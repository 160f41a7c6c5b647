import type { ProxiedRoute } from "./forwardedRequest.js";

/**
 * Whether a route redirects its path to the path with a slash: only where the upstream cannot do so, because it gets the
 * same path for both.
 */
export function redirectsToSlash({ path, match, action }: Omit<ProxiedRoute, "requestIdField">): boolean {
  const { slashRedirect, strip, rewrite } = action;
  const into = rewrite ?? (strip === "none" ? "" : "/");
  return slashRedirect && match !== "exact" && !path.endsWith("/") && into.endsWith("/");
}
