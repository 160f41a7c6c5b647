import type { RouteConfig } from "./config.js";

/** Safe methods: RFC 9110, 9.2.1; PROPFIND (RFC 4918, 9.1), REPORT (RFC 3253, 3.6), SEARCH (RFC 5323, 2.1). */
const SAFE = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "REPORT", "SEARCH"]);

/** Whether a request can change something in what is behind its route; only what is proxied can. */
export function isWrite(route: RouteConfig, method: string, upgrade: boolean): boolean {
  if (route.action.type !== "proxy" || route.writes === "never") return false;
  // Over HTTP/2 a WebSocket is a CONNECT (RFC 8441), over HTTP/1.1 a GET.
  return route.writes === "always" || !(upgrade || SAFE.has(method));
}
