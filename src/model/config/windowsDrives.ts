import type { HeaderList } from "../actions/forwardedRequest.js";
import type { VirtualServerConfig } from "./config.js";

/**
 * Before Windows maps a network drive, it sends `OPTIONS /`, whatever the drive's path, and refuses the drive unless the
 * response is a WebDAV server's (decisions 2.8).
 */

/** `DavClnt` until Windows has started the service WebClient, which then sends the other. */
const WINDOWS = /^(?:DavClnt|Microsoft-WebDAV-MiniRedir)(?:\/|$)/;

/** Whether the virtual server itself responds to a request, because Windows asks whether it may map a drive. */
export function asksForDrives(
  { windowsDrives }: Pick<VirtualServerConfig, "windowsDrives">,
  request: { readonly method: string; readonly path: string; readonly headers: HeaderList },
): boolean {
  // Nearly all requests end here.
  if (request.method !== "OPTIONS" || !windowsDrives || request.path !== "/") return false;
  const { headers } = request;
  for (let i = 0; i < headers.length; i += 2)
    if (headers[i]!.toLowerCase() === "user-agent") return WINDOWS.test(headers[i + 1]!);
  return false;
}

/** Fields of the response: those of a WebDAV server that has locks (RFC 4918, 18.2). */
export const DRIVE_FIELDS = Object.freeze([
  "Allow",
  "OPTIONS, GET, HEAD, PUT, DELETE, PROPFIND, PROPPATCH, MKCOL, COPY, MOVE, LOCK, UNLOCK",
  "DAV",
  "1, 2",
  "MS-Author-Via",
  "DAV",
]) as HeaderList;
