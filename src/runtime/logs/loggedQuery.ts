import type { RouteConfig } from "../../model/config/config.js";

/** The queries of a request line or a URL as `logQuery` of the route shows them. */
export function loggedQuery(text: string, how: RouteConfig["logQuery"] | undefined): string {
  if (how === undefined || how === "whole") return text;
  const at = text.indexOf("?");
  if (at === -1) return text;
  // A `Referer` may have a blank in its query, and a request line has its version behind the last one.
  const version = text.lastIndexOf(" HTTP/");
  const end = version > at ? version : text.length;
  const shown = how === "none" ? "" : text.slice(at, end).replace(/=[^&;]*/g, "=*");
  return text.slice(0, at) + shown + text.slice(end);
}
