import type { ApplicationDefinition, PublicPlace, SettingsCommand } from "./definition.js";
import { type Office, officePart, type OfficeRoute, officeRoutes } from "./office.js";
import { partAt, routeTo, when } from "./pieces.js";

/** Nextcloud, by its administration manual ("Reverse proxy") and that of notify_push. */

/** Which Nextcloud it is. */
export interface NextcloudOptions {
  /**
   * Whether `notify_push` (High Performance Backend for files) runs beside it.
   * @default false
   */
  readonly push?: boolean;
  /**
   * Office server.
   * @default - none
   */
  readonly office?: Office;
}

/** Servers of Nextcloud. */
export type NextcloudPart = "web" | "push" | "office";
/** Routes of Nextcloud. */
export type NextcloudRoute = "web" | "push" | "carddav" | "caldav" | OfficeRoute;

export function nextcloud({ push = false, office }: NextcloudOptions = {}): ApplicationDefinition<
  NextcloudPart,
  NextcloudRoute
> {
  const parts = {
    // Apache of All-in-One; other installations give their own URL.
    web: partAt("Nextcloud server", "http://127.0.0.1:11000", 3_600, { path: "/status.php", status: 200 }),
    ...when(push, () => ({ push: partAt("notify_push server", "http://127.0.0.1:7867", 3_600) })),
    ...(office === undefined ? {} : { office: officePart(office) }),
  };
  return {
    name: "nextcloud",
    title: "Nextcloud",
    parts,
    main: "web",
    routes: (place) => ({
      web: routeTo<NextcloudPart>(parts, "web", "/"),
      carddav: toDav("/.well-known/carddav"),
      caldav: toDav("/.well-known/caldav"),
      ...when(push, () => ({
        push: routeTo<NextcloudPart>(parts, "push", "/push", { options: { strip: "raw" }, writes: "never" }),
      })),
      ...(office === undefined ? {} : officeRoutes(office, place)),
    }),
    commands: (place) => commandsAt(place, push),
    clients: {
      builtIn: ["/.well-known/carddav", "/.well-known/caldav"],
      withCredentials: ["/remote.php", "/public.php", "/ocs", "/status.php", "/index.php/login/v2", "/push"],
      logIns: [
        { method: "POST", path: "/login", failed: [303] },
        { method: "PROPFIND", path: "/remote.php/dav/", failed: [401] },
      ],
      sessionCookies: ["nc_session_id", "oc_sessionPassphrase"],
    },
  };
}

const toDav = (path: string) => ({
  path,
  match: "exact" as const,
  action: { type: "redirect" as const, path: "/remote.php/dav/" },
});

function commandsAt({ scheme, host, origin }: PublicPlace, push: boolean): SettingsCommand[] {
  const set = (says: string, name: string, value: string): SettingsCommand => ({
    says,
    command: `occ config:system:set ${name} --value=${value}`,
  });
  return [
    set(
      "The client's address is believed from the proxy only; in containers, name the gateway's.",
      "trusted_proxies 0",
      "127.0.0.1",
    ),
    set("Requests for this name are answered.", "trusted_domains 1", host),
    set("Links have the scheme that clients use.", "overwriteprotocol", scheme),
    set("Links of background jobs.", "overwrite.cli.url", origin),
    ...(push
      ? [{ says: "Where clients find notify_push.", command: `occ notify_push:setup ${origin}/push` }]
      : []),
  ];
}
