import { normalisePath, parseHost } from "../../model/serving.js";

/** Where a request's authority and target lead, or the status that refuses them. */
export type Addressed =
  | { readonly host: string; readonly serverName: string; readonly target: string; readonly path: string }
  | { readonly refuse: 400 };

/**
 * Checks host and target of a request, whichever protocol carried it.
 *
 * @param authority requested host and port; empty only if HTTP/1.0 named none
 * @param target origin-form target, one char a byte
 */
export function address(authority: string, target: string): Addressed {
  const host = authority === "" ? NO_HOST : parseHost(authority);
  const path = normalisePath(target);
  if (host === undefined || path === undefined) return { refuse: 400 };
  return { host: authority, serverName: host.serverName, target, path };
}

const NO_HOST = { serverName: "", port: "" };
