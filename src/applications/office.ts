import type { ApplicationPart, ApplicationRoute, PublicPlace } from "./definition.js";
import { partAt, routeTo } from "./pieces.js";

/** Office servers, as parts that any application can have. */

/** An office server beside the application. */
export type Office = "collabora" | "onlyOffice";

/** Routes of an office server. */
export type OfficeRoute = "officePages" | "officeDiscovery" | "officeCapabilities" | "office";

export const officePart = (office: Office): ApplicationPart =>
  office === "collabora"
    ? partAt("Collabora Online server", "http://127.0.0.1:9980", 36_000, {
        path: "/hosting/capabilities",
        status: 200,
      })
    : partAt("OnlyOffice document server", "http://127.0.0.1:6233", 36_000, {
        path: "/onlyofficeds/healthcheck",
        status: 200,
      });

/** Documents are edited through WebSockets, which end when nothing may be written. */
const EDITS = { writes: "always" } as const;

/** Collabora's paths stay as they are; OnlyOffice does not know its prefix, and is told of it by X-Forwarded-Host. */
export function officeRoutes(
  office: Office,
  { authority }: PublicPlace,
): { readonly [route in OfficeRoute]?: ApplicationRoute<"office"> } {
  const parts = { office: officePart(office) };
  if (office === "onlyOffice") {
    const options = { strip: "raw", setHeaders: { "X-Forwarded-Host": `${authority}/onlyofficeds` } };
    return { office: routeTo(parts, "office", "/onlyofficeds", { options, ...EDITS }) };
  }
  const quiet = { expect: false as const };
  return {
    office: routeTo(parts, "office", "/cool", EDITS),
    officePages: routeTo(parts, "office", "/browser", quiet),
    officeDiscovery: routeTo(parts, "office", "/hosting/discovery", { ...quiet, match: "exact" }),
    officeCapabilities: routeTo(parts, "office", "/hosting/capabilities", { ...quiet, match: "exact" }),
  };
}
