import type { ActionInput, DeploymentInput, DeploymentRow, ExpectationInput, Tree } from "../model/index.js";
import { FASTCGI_START } from "../render/index.js";
import type { ApplicationDefinition, ApplicationPart, ApplicationRoute, PublicPlace } from "./definition.js";
import { seahubLogIns } from "./pieces.js";
import { WRONG_NAME } from "../model/host/rows.js";
import { mediaCauses, OWN_404 } from "./frontEndExpectations.js";
import {
  applicationSettingsFiles,
  type ApplicationSettingsValues,
  type FileSyncPaths,
  type SettingsFilePaths,
} from "./fileSyncSettings.js";

/**
 * The service of the specification: a web application with a file server and a WebDAV daemon. This is data, its expected
 * responses (service 5.1 and 6) among it: the constructs write it into the deployment, and the host evaluates it as it does
 * that of any other application.
 */

export type FileSyncPart = "web" | "webdav" | "fileServer";

/** The options from its front end. */
export interface FileSyncFacts extends MediaPermissions {
  readonly paths: FileSyncPaths;
  readonly media: MediaDirectories;
  readonly destination?: Extract<ActionInput, { readonly type: "proxy" }>["destination"];
  /** The application's units on the host. */
  readonly units?: FileSyncUnits;
  /** The application's settings files on the host, and the values of their items. */
  readonly settings?: {
    readonly files: SettingsFilePaths;
    readonly values: () => ApplicationSettingsValues;
  };
}

/** Units of its daemons: full names, ending in `.service`. */
export type FileSyncUnits = { readonly [daemon in "webApplication" | "fileServer" | "webdav"]?: string };

type FileSyncService = ApplicationDefinition<FileSyncPart, FileSyncPart | "media" | "avatars">;

export function fileSyncService(options: FileSyncFacts): FileSyncService {
  const { paths, media, fixMedia = false, units = {}, settings } = options;
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
    ...(settings && { settings: () => applicationSettingsFiles(settings.values(), settings.files) }),
    daemons: daemonsOf(units),
    windowsDrives: true,
    trees: fileSyncTrees(media, fixMedia),
    rows: FILE_SYNC_ROWS,
    clients: {
      // The word of Seafile's manual, which gives no path of its clients.
      ...(paths.web.startsWith("/seafile") ? { builtIn: ["/seafhttp"] } : {}),
      withCredentials: [paths.fileServer, paths.webdav, `${paths.web}/api2`],
      logIns: [
        ...seahubLogIns(paths.web),
        { path: `${paths.webdav}`, match: "segment", secret: "authorization", failed: [401] },
      ],
    },
  };
}

function routesAt(
  { scheme, host }: PublicPlace,
  { paths, media, destination }: FileSyncFacts,
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
        // Service 4.1: every path is forwarded.
        slashRedirect: false,
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

/** The application's daemons, in the order in which they start (service 2.5 to 2.7). */
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
        message: "the fastcgi start variant is used in the service unit",
        fix: "Make the unit's ExecStart end in `start`, then run systemctl daemon-reload and restart it.",
      },
    }),
  ];
}

export const FILE_SYNC_ROWS: readonly DeploymentRow[] = [
  { code: "media-permissions", title: "No 403 on media" },
  { code: "avatar", title: "No damaged avatar image" },
  { code: "web-application", title: "302 from the application path" },
  { code: "public-urls", title: "Upload and view work after login" },
];

/** Permissions of media on the host. */
export interface MediaPermissions {
  /**
   * Whether the activation makes media files and their directories readable by others. The activation changes
   * permissions as the owner of the directories; a destroy restores the permissions.
   * @default false
   */
  readonly fixMedia?: boolean;
}

/** Directories on the host that the media routes serve. */
export interface MediaDirectories {
  /** Directory of the static media. Absolute path. */
  readonly directory: string;
  /** Directory of avatars; undefined if the media directory contains the avatars. */
  readonly avatarDirectory?: string;
}

/** Their permissions (service 2.8). */
export function fileSyncTrees({ directory, avatarDirectory }: MediaDirectories, fix: boolean): Tree[] {
  return [
    {
      path: directory,
      code: "media-permissions",
      message: "the media file or one of its directories is not readable by others",
      fix,
    },
    {
      path: avatarDirectory ?? `${directory}/avatars`,
      code: "avatar",
      message: "the avatar path is not world readable",
      fix,
    },
  ];
}

/** Expected responses by route. */
export type FileSyncExpectations = Readonly<
  Record<"web" | "webdav" | "fileServer" | "media", readonly ExpectationInput[]>
>;

/** The place at which clients find the application, and the path of its web application: `/sync`. */
export interface FileSyncPlace {
  readonly scheme: "http" | "https";
  readonly host: string;
  readonly path: string;
}

const WEB_DAEMON =
  "the web application daemon and the proxy do not work together: check that the fastcgi start variant is not used in the service unit, and that it runs and listens on {upstream}";

/** The expected responses of its routes. */
export function fileSyncExpectations(place: FileSyncPlace): FileSyncExpectations {
  const { host } = place;
  return {
    web: webRows({ ...place, path: `${place.path}/` }),
    webdav: daemonRows("WebDAV daemon", host, "; without WebDAV, leave the route out"),
    fileServer: daemonRows(
      "file server daemon",
      host,
      "; login works but upload or view fails (FILE_SERVER_ROOT, host and port of section fileserver)",
    ),
    media: [{ ...MEDIA, host }],
  };
}

const restart = (...items: string[]) => ({
  settings: items,
  fix: `Set ${items.join(" and ")} as in /usr/share/portico/application-settings, and restart the web application.`,
});

const UNREADY = [
  OWN_404,
  {
    evidence: { status: [404] },
    code: "web-application",
    message: `the web application has no page at {path}: SITE_ROOT is not set to \`{path}\``,
    ...restart("SITE_ROOT"),
  },
  {
    evidence: { status: [400], page: "other" },
    code: "web-application",
    message: "the web application refuses the name {host}: ALLOWED_HOSTS does not contain it",
    ...restart("ALLOWED_HOSTS"),
  },
  {
    evidence: { statusNot: [302] },
    code: "web-application",
    message: WEB_DAEMON,
    fix: "Make the daemon listen on {upstream} and speak HTTP; its log has the details.",
  },
] as const;

function webRows({ scheme, host, path }: FileSyncPlace): ExpectationInput[] {
  const login = `${path}accounts/login/`;
  return [
    {
      name: `application over ${scheme}`,
      host,
      path,
      listeners: "each",
      ...(scheme === "https" ? { http2: true } : {}),
      status: 302,
      location: `${login}?next=${path}`,
      // Service 5.1 lists these for plain mode only.
      ...(scheme === "https" ? {} : { fields: LOGIN_FIELDS }),
      causes: [
        ...UNREADY,
        {
          evidence: { location: "path" },
          message: `the web application redirects to {location}: LOGIN_URL is not set to \`${login}\` (or SITE_ROOT not to \`${path}\`)`,
          because: ["public-urls"],
          ...restart("LOGIN_URL", "SITE_ROOT"),
        },
        {
          evidence: { location: "origin" },
          message:
            "the web application redirects to {location}: SERVICE_URL is wrong, or the web application does not see the scheme and host of the request (Host, X-Forwarded-Proto)",
          because: ["public-urls"],
          ...restart("SERVICE_URL"),
        },
        ...(scheme === "https"
          ? [{ evidence: { http2: false as const }, message: "the listener does not offer HTTP/2" }]
          : []),
        {
          evidence: {},
          message: "the response is not the web application's: another program listens on its port",
          because: ["public-urls"],
        },
      ],
    },
    {
      name: "application's Server field",
      host,
      path,
      fields: [{ name: "Server", version: false }],
      causes: UNREADY,
    },
  ];
}

const MEDIA: ExpectationInput = {
  name: "media file",
  file: "image",
  status: 200,
  fields: [
    { name: "Content-Type", mediaType: "image/*" },
    ...["Content-Length", "Last-Modified", "ETag"].map((name) => ({ name })),
    { name: "Accept-Ranges", value: "bytes" },
  ],
  causes: [
    ...mediaCauses(
      { code: "media-permissions", because: ["avatar"] },
      "the media path in the config does not match the installation",
      "Set `installDirectory` (or `mediaDirectory`) to where the application is installed, and deploy.",
    ),
    { evidence: {}, message: "the response is not from the media route" },
  ],
};

const LOGIN_FIELDS = [
  { name: "Content-Type", value: "text/html; charset=utf-8" },
  { name: "Vary", includes: ["Accept-Language", "Cookie"] },
  { name: "Content-Language" },
] as const;

function daemonRows(name: string, host: string, more: string): ExpectationInput[] {
  return [
    {
      name,
      host,
      from: "upstream",
      fields: [{ name: "Server", version: false }],
      causes: [
        { evidence: { status: [404] }, message: WRONG_NAME },
        { evidence: { status: [502, 504] }, message: `the ${name} does not respond at {upstream}${more}` },
        { evidence: {}, message: "the response is not from the application's virtual server" },
      ],
    },
  ];
}
