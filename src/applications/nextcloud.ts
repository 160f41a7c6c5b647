import type { ExpectationInput } from "../model/index.js";
import type {
  ApplicationDefinition,
  ApplicationPart,
  LogIn,
  PublicPlace,
  SettingsCommand,
} from "./definition.js";
import {
  alive,
  noResponse,
  type Office,
  officePart,
  type OfficeRoute,
  officeRoutes,
  partAt,
  routeTo,
  when,
  SYNC_MAINTENANCE,
} from "./pieces.js";

/** Nextcloud, by its administration manual ("Reverse proxy") and that of notify_push. */

/** Options of Nextcloud. */
export interface NextcloudOptions {
  /**
   * Whether `notify_push` (High Performance Backend for files) runs beside Nextcloud.
   * @default false
   */
  readonly push?: boolean;
  /**
   * Office server beside Nextcloud.
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
    pauseResponse: { ...SYNC_MAINTENANCE, headers: { "X-Nextcloud-Maintenance-Mode": "1" } },
    routes: (place) => ({
      web: routeTo<NextcloudPart>(parts, "web", "/", {
        // Office servers ask for documents with an access token; log-ins and notifications have tokens.
        logQuery: "names",
        expect: [...alive(parts.web, [untrusted(place)]), toLogIn(parts.web, place)],
      }),
      carddav: toDav("/.well-known/carddav"),
      caldav: toDav("/.well-known/caldav"),
      ...when(push, () => ({
        push: routeTo<NextcloudPart>(parts, "push", "/push", { options: { strip: "raw" }, writes: "never" }),
      })),
      ...(office === undefined ? {} : officeRoutes(office, place)),
    }),
    commands: (place) => commandsAt(place, push),
    rows: [{ code: "public-urls", title: "Nextcloud knows its public name" }],
    // Seen on Nextcloud 27.
    clients: {
      builtIn: ["/.well-known/carddav", "/.well-known/caldav"],
      withCredentials: [
        "/remote.php",
        "/public.php",
        "/ocs",
        "/status.php",
        "/login/v2",
        "/index.php/login/v2",
        "/push",
      ],
      // With and without pretty URLs.
      logIns: [
        ...["", "/index.php"].flatMap(pagesWithSecrets),
        // Every page takes `Authorization`, and leads to the log-in page where it is wrong.
        {
          ...{ path: "/", match: "segment", secret: "authorization" },
          ...{ failed: [401, 302, 303], failedLocation: "/login" },
        },
      ],
    },
  };
}

/** The log-in page, second factors, and links that have a password; successes are 303 as well, to other paths. */
const pagesWithSecrets = (at: string): readonly LogIn[] => [
  {
    ...{ method: "POST", path: `${at}/login`, secret: "body" },
    changing: ["requesttoken", "timezone", "timezone_offset", "redirect_url", "direct", "clear"],
    ...{ accountField: "user", passwordField: "password", failed: [303], failedLocation: "/login" },
  },
  ...["totp", "backup_codes"].map((provider): LogIn => {
    const failedLocation = `/login/challenge/${provider}`;
    return {
      ...{ method: "POST", path: `${at}${failedLocation}`, secret: "body" },
      ...{ changing: ["requesttoken"], failed: [303], failedLocation },
    };
  }),
  {
    ...{ method: "POST", path: `${at}/s`, match: "segment", secret: "body" },
    ...{ changing: ["requesttoken", "sharingToken", "sharingType"], failed: [200] },
  },
];

/** Nextcloud's `status.php` responds with 400 to a name that is not among its trusted domains. */
const untrusted = (place: PublicPlace) => ({
  evidence: { status: [400] },
  code: "public-urls",
  settings: ["trusted_domains"],
  message: "{host} is not among the trusted domains of Nextcloud",
  fix: `Run, with an unused index: ${trustedDomain(place).command}`,
});

/**
 * Nextcloud's `lib/base.php` leads from `/` to the log-in page by a whole URL, made of `overwriteprotocol` and
 * `overwritehost`, and of forwarding fields only if it trusts the proxy. Responses without a log-in do not show
 * `overwrite.cli.url`.
 */
const toLogIn = (web: ApplicationPart, { scheme, host }: PublicPlace): ExpectationInput => ({
  name: "Nextcloud's log-in page",
  path: "/",
  method: "GET",
  status: [302, 303],
  location: ["/login", "/index.php/login"],
  causes: [
    ...noResponse(web),
    {
      evidence: { status: [503] },
      settings: ["maintenance"],
      message: "Nextcloud is in maintenance mode or has to be upgraded",
      fix: "Run: occ upgrade, then occ maintenance:mode --off",
    },
    {
      evidence: { location: "origin" },
      code: "public-urls",
      settings: ["overwriteprotocol", "overwritehost"],
      message: "Nextcloud redirects clients to {location}, not to the requested scheme and host",
      fix: `Run: ${protocol(scheme).command}; if the name is wrong: occ config:system:set overwritehost --value=${host}`,
    },
    {
      evidence: {},
      settings: ["overwritewebroot"],
      message: "Nextcloud does not redirect / to its log-in page",
      fix: "Check which program responds there; `overwritewebroot` must be empty for Nextcloud at /.",
    },
  ],
});

const setting = (purpose: string, name: string, value: string): SettingsCommand => ({
  purpose,
  command: `occ config:system:set ${name} --value=${value}`,
});

const protocol = (scheme: string): SettingsCommand =>
  setting("Links have the scheme that clients use.", "overwriteprotocol", scheme);

const trustedDomain = ({ host }: PublicPlace): SettingsCommand =>
  setting("Nextcloud accepts requests for this name.", "trusted_domains 1", host);

const toDav = (path: string) => ({
  path,
  match: "exact" as const,
  action: { type: "redirect" as const, path: "/remote.php/dav/" },
});

function commandsAt(place: PublicPlace, push: boolean): SettingsCommand[] {
  const { scheme, origin } = place;
  return [
    setting(
      "Nextcloud accepts the client's address only from the proxy; in containers, give the gateway's address.",
      "trusted_proxies 0",
      "127.0.0.1",
    ),
    trustedDomain(place),
    protocol(scheme),
    setting("Links of background jobs.", "overwrite.cli.url", origin),
    ...(push
      ? [{ purpose: "Where clients find notify_push.", command: `occ notify_push:setup ${origin}/push` }]
      : []),
  ];
}
