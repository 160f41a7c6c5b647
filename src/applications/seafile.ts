import type { MediaPermissions } from "./fileSync.js";
import type { SettingsFile } from "../model/index.js";
import type { ApplicationDefinition, ApplicationPart, ApplicationRoute, PublicPlace } from "./definition.js";
import {
  filesOf,
  type Office,
  officePart,
  type OfficeRoute,
  officeRoutes,
  partAt,
  routeTo,
  served,
  when,
  seahubLogIns,
} from "./pieces.js";

/**
 * Seafile, by the administrator's manuals of 11.0 to 14.0. On a host its daemons are reached one by one; in containers one
 * server has web interface, file server, WebDAV and media behind its port.
 */

export const SEAFILE_VERSIONS = ["11", "12", "13", "14"] as const;

/** Optional parts of a Seafile installation. */
export interface SeafileComponents {
  /**
   * Whether the WebDAV daemon runs.
   * @default true
   */
  readonly webdav?: boolean;
  /**
   * Whether the notification server runs.
   * @default false
   */
  readonly notification?: boolean;
  /**
   * Whether SeaDoc, the document editor, runs.
   * @default false
   */
  readonly seadoc?: boolean;
  /**
   * Whether the thumbnail server runs; version 13 or later.
   * @default false
   */
  readonly thumbnail?: boolean;
  /**
   * Office server beside Seafile.
   * @default - none
   */
  readonly office?: Office;
}

/** Options of Seafile. */
export interface SeafileOptions extends MediaPermissions {
  /** Major version. */
  readonly version: (typeof SEAFILE_VERSIONS)[number];
  /**
   * Kind of installation: `host` is the package below `directory`, `containers` is the Compose file.
   * @default "containers"; "host" for version 11
   */
  readonly layout?: "host" | "containers";
  /**
   * Installation directory on the host. With `host`, the directory that contains `seafile-server-latest`,
   * `seahub-data` and `conf`; with `containers`, the directory of the Compose file and `.env`. Absolute path.
   * @default "/opt/seafile"
   */
  readonly directory?: string;
  /**
   * Path of the web interface, without a trailing slash; version 11 on a host only. The prefix does not change
   * `/seafhttp`, which clients always request.
   * @default - none: `/`
   */
  readonly prefix?: string;
  /**
   * Parts of the installation.
   * @default - the WebDAV daemon
   */
  readonly components?: SeafileComponents;
}

/** Servers of Seafile. */
export type SeafilePart =
  | "web"
  | "fileServer"
  | "webdav"
  | "notification"
  | "seadoc"
  | "thumbnail"
  | "office";
/** Routes of Seafile. */
export type SeafileRoute =
  | Exclude<SeafilePart, "office">
  | OfficeRoute
  | "media"
  | "avatars"
  | "custom"
  | "webdavRoot"
  | "directoryBrowser"
  | "socketIo"
  | "thumbnailPing";

type SeafileParts = { readonly [part in SeafilePart]?: ApplicationPart };
type Seafile = ApplicationDefinition<SeafilePart, SeafileRoute>;

/** The options with values that follow from them. */
interface Installation {
  readonly version: SeafileOptions["version"];
  readonly onHost: boolean;
  readonly directory: string;
  /** Path of the web interface; empty for `/`. */
  readonly web: string;
  /** Path of the media. */
  readonly media: string;
  readonly components: SeafileComponents;
}

function installationOf({
  version,
  layout,
  directory,
  prefix = "",
  components,
}: SeafileOptions): Installation {
  return {
    version,
    onHost: (layout ?? (version === "11" ? "host" : "containers")) === "host",
    directory: directory ?? "/opt/seafile",
    web: prefix,
    media: prefix === "" ? "/media" : "/seafmedia",
    components: { webdav: true, ...components },
  };
}

export function seafile(options: SeafileOptions): Seafile {
  const { fixMedia = false } = options;
  const installation = installationOf(options);
  const { version, onHost, directory, web } = installation;
  const parts = partsOf(installation);
  return {
    name: "seafile",
    title: `Seafile ${version}`,
    parts,
    main: "web",
    routes: (place) => routesAt(place, installation, parts),
    settings: (place) => settingsAt(place, installation),
    windowsDrives: installation.components.webdav === true,
    ...when(onHost, () => ({
      daemons: [
        { unit: "seafile.service", restartOn: ["seafdav.conf", "env"] },
        { unit: "seahub.service", restartOn: ["seahub_settings.py", "env"], code: "web-application" },
      ],
      trees: [
        served(`${directory}/seafile-server-latest/seahub/media`, "media-permissions", fixMedia),
        served(`${directory}/seahub-data/avatars`, "avatar", fixMedia),
      ],
    })),
    rows: [
      ...(onHost
        ? [
            { code: "media-permissions", title: "No 403 on media" },
            { code: "avatar", title: "No damaged avatar image" },
            { code: "web-application", title: "Web interface" },
          ]
        : []),
      { code: "public-urls", title: "Upload and view work after login" },
    ],
    clients: {
      builtIn: ["/seafhttp", ...(installation.components.notification === true ? ["/notification"] : [])],
      withCredentials: ["/seafhttp", "/seafdav", `${web}/api2`, `${web}/api/v2.1`, "/notification"],
      logIns: [
        ...seahubLogIns(web),
        { path: "/seafdav", match: "segment", secret: "authorization", failed: [401] },
      ],
    },
  };
}

function partsOf({ version, onHost, web, components }: Installation): SeafileParts {
  const { webdav = false, notification = false, seadoc = false, thumbnail = false, office } = components;
  const at = (port: number): string => `http://127.0.0.1:${port}`;
  return {
    // In containers uploads pass here too: the file server's time holds.
    web: partAt("web interface", at(onHost ? 8000 : 8001), onHost ? 1_200 : 36_000, {
      path: `${web}/api2/ping/`,
      status: 200,
    }),
    ...when(onHost, () => ({
      fileServer: partAt("file server", at(8082), 36_000, {
        path: "/seafhttp/protocol-version",
        status: 200,
      }),
    })),
    ...when(onHost && webdav, () => ({ webdav: partAt("WebDAV daemon", at(8080), 1_200) })),
    ...when(notification, () => ({
      notification: partAt("notification server", at(8083), 3_600, {
        path: "/notification/ping",
        status: 200,
      }),
    })),
    ...when(seadoc, () => ({
      seadoc: partAt("SeaDoc server", at(version === "11" ? 7070 : 8888), 36_000),
    })),
    ...when(thumbnail, () => ({
      thumbnail: partAt("thumbnail server", at(8084), 300, { path: "/thumbnail/ping", status: 200 }),
    })),
    ...(office === undefined ? {} : { office: officePart(office) }),
  };
}

function routesAt(
  place: PublicPlace,
  { directory, web, media, components: { office } }: Installation,
  parts: SeafileParts,
): ReturnType<Seafile["routes"]> {
  // These parts have no pages, and the manual's nginx redirects none of them.
  const stripped = { options: { strip: "raw", slashRedirect: false } };
  const quiet = { expect: false as const };
  const to = (part: SeafilePart, path: string, more = {}): ApplicationRoute<SeafilePart> =>
    routeTo<SeafilePart>(parts, part, path, more);
  const has = (part: SeafilePart): boolean => parts[part] !== undefined;
  return {
    // Office servers ask for documents with an access token, and clients log in with one.
    web: to("web", web === "" ? "/" : web, { logQuery: "names" }),
    ...when(has("fileServer"), () => ({
      fileServer: to("fileServer", "/seafhttp", stripped),
      media: filesOf(media, `${directory}/seafile-server-latest/seahub/media`, "media-permissions"),
      // Links out of the media directory, which are not followed.
      avatars: filesOf(`${media}/avatars`, `${directory}/seahub-data/avatars`),
      custom: filesOf(`${media}/custom`, `${directory}/seahub-data/custom`),
    })),
    ...when(has("webdav"), () => ({
      webdav: to("webdav", "/seafdav"),
      webdavRoot: {
        path: "/seafdav",
        match: "exact" as const,
        action: { type: "redirect" as const, path: "/seafdav/" },
      },
      // Icons and style sheets of the pages that the daemon makes of directories.
      directoryBrowser: to("webdav", "/:dir_browser", quiet),
    })),
    // Requests to the notification server announce changes, and make none.
    ...when(has("notification"), () => ({
      notification: to("notification", "/notification", { ...stripped, writes: "never" }),
    })),
    ...when(has("seadoc"), () => ({
      seadoc: to("seadoc", "/sdoc-server", stripped),
      // Documents are edited through it, by WebSocket or by requests of either method.
      socketIo: to("seadoc", "/socket.io", { ...quiet, writes: "always" }),
    })),
    ...when(has("thumbnail"), () => ({
      thumbnail: to("thumbnail", "/thumbnail", quiet),
      thumbnailPing: to("thumbnail", "/thumbnail/ping", { options: { rewrite: "/ping" }, match: "exact" }),
    })),
    ...(office === undefined ? {} : officeRoutes(office, place)),
  };
}

/** Version 11 has its URLs in Python; from 12 on they are in `.env`, whatever the layout. */
function settingsAt(
  { scheme, authority, origin, origins }: PublicPlace,
  { version, onHost, directory, web, media, components }: Installation,
): SettingsFile[] {
  const { webdav, notification, seadoc } = components;
  const conf = `${directory}/conf`;
  const url = (name: string, value: string) => ({ name, value, code: "public-urls" });
  const python: SettingsFile = {
    name: "seahub_settings.py",
    path: `${conf}/seahub_settings.py`,
    kind: "python",
    items: [
      { ...url("SERVICE_URL", origin + web), stored: true },
      { ...url("FILE_SERVER_ROOT", `${origin}/seafhttp`), stored: true },
      { name: "CSRF_TRUSTED_ORIGINS", value: origins },
      ...(web === ""
        ? []
        : [
            { name: "SERVE_STATIC", value: false },
            { name: "MEDIA_URL", value: `${media}/` },
            { name: "SITE_ROOT", value: `${web}/` },
            { name: "LOGIN_URL", value: `${web}/accounts/login/` },
            { name: "COMPRESS_URL", value: `${media}/` },
            { name: "STATIC_URL", value: `${media}/assets/` },
          ]),
    ],
  };
  const env: SettingsFile = {
    name: "env",
    path: onHost ? `${conf}/.env` : `${directory}/.env`,
    kind: "env",
    items: [
      url("SEAFILE_SERVER_HOSTNAME", authority),
      url("SEAFILE_SERVER_PROTOCOL", scheme),
      ...(seadoc === true ? [url("SEADOC_SERVER_URL", `${origin}/sdoc-server`)] : []),
      ...(notification === true ? [url("NOTIFICATION_SERVER_URL", `${origin}/notification`)] : []),
    ],
  };
  const dav: SettingsFile = {
    name: "seafdav.conf",
    path: `${conf}/seafdav.conf`,
    kind: "ini",
    // If the name is missing, every request of a logged-in user is 404.
    items: [{ section: "WEBDAV", name: "share_name", value: "/seafdav" }],
  };
  return [version === "11" ? python : env, ...(onHost && webdav === true ? [dav] : [])];
}
