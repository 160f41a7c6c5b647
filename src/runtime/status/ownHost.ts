import { isIP } from "node:net";
import { hostname } from "node:os";
import { NameTable, parseHost } from "../../model/serving.js";

/**
 * Whether a request over plain HTTP may read what the proxy shows of itself: no stranger can own the name that the request
 * was sent to. A stranger's page in a browser could otherwise have its own name lead to the proxy once the page is loaded
 * (DNS rebinding), and would read the response.
 *
 * @param host the `Host` field; empty if there is none, as in no browser
 * @param serverNames of virtual servers, wildcards among them
 */
export function isOwnHost(host: string, serverNames: readonly string[]): boolean {
  if (host === "") return true;
  const name = parseHost(host)?.serverName;
  if (name === undefined) return false;
  if (isIP(name) !== 0 || !name.includes(".") || name.endsWith(".localhost")) return true;
  const own = new NameTable<true>();
  own.add(serverNames, true);
  return name === hostname().toLowerCase() || own.find(name) === true;
}

/** The message for a client that asks for another name. */
export const OTHER_HOST =
  "this name is not the proxy's own: use an address, localhost, a name without a dot, " +
  "or a name of `serverNames` in the config";
