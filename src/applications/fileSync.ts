import type { DeploymentInput, DeploymentRow, Tree } from "../model/index.js";
import { FASTCGI_START } from "../render/index.js";
import type { ApplicationDefinition, ApplicationPart, ApplicationRoute, PublicPlace } from "./definition.js";
import { fileSyncExpectations } from "./fileSyncExpectations.js";
import type { FileSyncPaths } from "./fileSyncSettings.js";

/** The service of the specification: a web application with a file server and a WebDAV daemon. */

export type FileSyncPart = "web" | "webdav" | "fileServer";

/** What its front end gives. */
export interface FileSyncOptions {
  readonly paths: FileSyncPaths;
  readonly media: MediaDirectories;
  /** Whether activation makes media readable by others. */
  readonly fixMedia?: boolean;
  readonly destination?: "path" | "absolute" | "unchanged";
  /** Its units on the host. */
  readonly units?: FileSyncUnits;
}

/** Units of its daemons: full names, ending in `.service`. */
export type FileSyncUnits = { readonly [daemon in "webApplication" | "fileServer" | "webdav"]?: string };

type FileSyncService = ApplicationDefinition<FileSyncPart, FileSyncPart | "media" | "avatars">;

export function fileSyncService(options: FileSyncOptions): FileSyncService {
  const { paths, media, fixMedia = false, units = {} } = options;
  return {
    name: "fileSync",
    title: "File-sync service",
    parts: {
      web: part("web application", 8000),
      webdav: part("WebDAV daemon", 8080),
      fileServer: part("file server", 8082),
    },
    main: "web",
    routes: (place) => routesAt(place, options),
    daemons: daemonsOf(units),
    trees: fileSyncTrees(media, fixMedia),
    rows: FILE_SYNC_ROWS,
    clients: {
      // The word of Seafile's manual, which gives no path of its clients.
      ...(paths.web.startsWith("/seafile") ? { builtIn: ["/seafhttp"] } : {}),
      withCredentials: [paths.fileServer, paths.webdav, `${paths.web}/api2`],
      logIns: [
        { method: "POST", path: `${paths.web}/accounts/login/`, failed: [200] },
        { method: "POST", path: `${paths.web}/api2/auth-token/`, failed: [400, 403] },
        { method: "PROPFIND", path: `${paths.webdav}/`, failed: [401] },
      ],
      sessionCookies: ["sessionid"],
    },
  };
}

function routesAt(
  { scheme, host }: PublicPlace,
  { paths, media, destination }: FileSyncOptions,
): ReturnType<FileSyncService["routes"]> {
  const expect = fileSyncExpectations({ scheme, host, path: paths.web });
  // Only TLS mode sets X-Forwarded-Proto (service 4.2); the client's own is dropped in both.
  const forwarded = { realIp: true, for: true, proto: scheme === "https", host };
  const daemon = (upstream: "web" | "webdav", more: object): ApplicationRoute<FileSyncPart> => ({
    path: paths[upstream],
    match: "prefix",
    action: { type: "proxy", upstream, hostHeader: "client", forwarded, ...more },
    ...PROXIED,
    ownLogs: true,
    expect: expect[upstream],
  });
  return {
    web: daemon("web", {}),
    webdav: daemon("webdav", { destination }),
    fileServer: {
      path: paths.fileServer,
      match: "segment",
      action: {
        type: "proxy",
        upstream: "fileServer",
        strip: "raw",
        hostHeader: "upstream",
        forwarded: { realIp: false, for: false, proto: false },
      },
      ...PROXIED,
      expect: expect.fileServer,
    },
    media: {
      path: paths.media,
      action: { type: "staticFiles", directory: media.directory },
      expect: expect.media,
    },
    ...(media.avatarDirectory === undefined
      ? {}
      : {
          avatars: {
            path: `${paths.media}/avatars`,
            action: { type: "staticFiles", directory: media.avatarDirectory },
            expect: false,
          },
        }),
  };
}

// Service 4.5: connect, read and send timeouts of the proxied routes.
const TEN_HOURS_MS = 36_000_000;
const PROXIED = { sendTimeoutMs: TEN_HOURS_MS, requestBodyBytesMax: 0 };

const part = (title: string, port: number): ApplicationPart => ({
  title,
  url: `http://127.0.0.1:${port}`,
  connectTimeoutMs: TEN_HOURS_MS,
  sendTimeoutMs: TEN_HOURS_MS,
  readTimeoutMs: TEN_HOURS_MS,
});

type Daemons = NonNullable<DeploymentInput["services"]["daemons"]>;

/** Its daemons, in the order in which they start (service 2.5 to 2.7). */
export function daemonsOf({ fileServer, webdav, webApplication }: FileSyncUnits): Daemons {
  const daemon = (unit: string | undefined, more: Omit<Daemons[number], "unit"> = {}): Daemons =>
    unit === undefined ? [] : [{ unit, ...more }];
  return [
    ...daemon(fileServer, { restartOn: ["network-daemon", "file-server"], domainChange: "restart" }),
    ...daemon(webdav),
    ...daemon(webApplication, {
      restartOn: ["network-daemon", "web-application"],
      code: "web-application",
      // Service 2.4.
      command: {
        never: FASTCGI_START,
        says: "the fastcgi start variant is used in the service unit",
        fix: "Make the unit's ExecStart end in `start`, then run systemctl daemon-reload and restart it.",
      },
    }),
  ];
}

/** Rows of `portico doctor` about the application, in the order of the report. */
export const FILE_SYNC_ROWS: readonly DeploymentRow[] = [
  { code: "media-permissions", title: "No 403 on media" },
  { code: "avatar", title: "No damaged avatar image" },
  { code: "web-application", title: "302 from the application path" },
  { code: "public-urls", title: "Upload and view work after login" },
];

/** Directories on the host that the media routes serve. */
export interface MediaDirectories {
  /** Directory of the static media. Absolute path. */
  readonly directory: string;
  /**
   * Directory of avatars.
   * @default - avatars are in the media directory
   */
  readonly avatarDirectory?: string;
}

/** Their permissions (service 2.8). */
export function fileSyncTrees({ directory, avatarDirectory }: MediaDirectories, fix: boolean): Tree[] {
  return [
    {
      path: directory,
      code: "media-permissions",
      says: "the media file or one of its directories is not readable by others",
      fix,
    },
    {
      path: avatarDirectory ?? `${directory}/avatars`,
      code: "avatar",
      says: "the avatar path is not world readable",
      fix,
    },
  ];
}
