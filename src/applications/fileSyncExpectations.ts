import type { DeploymentRow, ExpectationInput, Tree } from "../model/index.js";

/**
 * What the application answers, what others have to be able to read, and why that may fail (service 5.1 and 6). This is
 * data: the host evaluates it as it does that of any other application.
 */

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

/** Where clients find the application. */
export interface FileSyncPlace {
  readonly scheme: "http" | "https";
  /** Name that clients ask for. */
  readonly host: string;
  /** Path of the web application: `/sync`. */
  readonly path: string;
}

/** Expected responses by virtual server and route. */
export type FileSyncExpectations = Readonly<
  Record<
    "default" | "redirect" | "httpRoot" | "web" | "webdav" | "fileServer" | "media",
    readonly ExpectationInput[]
  >
> & { readonly page: false | readonly ExpectationInput[]; readonly avatars: false };

const WRONG_NAME =
  "the server name in the proxy config is not the host address or domain used in the request, or the config is not enabled";

const OWN_404 = {
  evidence: { status: [404], page: "proxy" },
  code: "server-name",
  says: WRONG_NAME,
} as const;

const WEB_DAEMON =
  "the web application daemon and the proxy do not work together: check that the fastcgi start variant is not used in the service unit, and that it runs and listens on {upstream}";

/** @param root whether `/` leads to the application */
export function fileSyncExpectations(place: FileSyncPlace, root: boolean): FileSyncExpectations {
  const { scheme, host } = place;
  const path = `${place.path}/`;
  const leads = {
    host,
    listeners: "each",
    location: { scheme, path },
    fields: [HTML],
    causes: REDIRECT,
  } as const;
  const rootRow = (over: string): ExpectationInput[] => [{ name: `/ over ${over}`, status: 302, ...leads }];
  return {
    default: [DEFAULT_SERVER],
    redirect: [{ name: `redirect to ${scheme}`, path, status: 301, ...leads }],
    httpRoot: rootRow("http"),
    page: root ? rootRow(scheme) : false,
    avatars: false,
    web: webRows({ scheme, host, path }),
    webdav: daemon("WebDAV daemon", host, "; without WebDAV, leave the route out"),
    fileServer: daemon(
      "file server daemon",
      host,
      "; login works but upload or view fails (FILE_SERVER_ROOT, host and port of section fileserver)",
    ),
    media: [{ ...MEDIA, host }],
  };
}

const HTML = { name: "Content-Type", mediaType: "text/html" } as const;

const DEFAULT_SERVER: ExpectationInput = {
  name: "default server",
  host: "unknown",
  status: 200,
  fields: [HTML, { name: "Server", version: true }],
  causes: [
    {
      evidence: { server: "version" },
      says: "the default virtual server answers, but its page is missing",
    },
    {
      evidence: {},
      says: "another virtual server or another program answered: the default virtual server is not enabled on the port",
    },
  ],
};

const restart = (...items: string[]) => ({
  settings: items,
  fix: `Set ${items.join(" and ")} as in /usr/share/portico/application-settings, and restart the web application.`,
});

const UNREADY = [
  OWN_404,
  {
    evidence: { status: [404] },
    code: "web-application",
    says: `the web application has no page at {path}: SITE_ROOT is not set to \`{path}\``,
    ...restart("SITE_ROOT"),
  },
  {
    evidence: { status: [400], page: "other" },
    code: "web-application",
    says: "the web application refuses the name {host}: ALLOWED_HOSTS does not contain it",
    ...restart("ALLOWED_HOSTS"),
  },
  {
    evidence: { statusNot: [302] },
    code: "web-application",
    says: WEB_DAEMON,
    fix: "The daemon has to listen on {upstream} and speak HTTP; see its log.",
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
          says: `the web application redirects to {location}: LOGIN_URL is not set to \`${login}\` (or SITE_ROOT not to \`${path}\`)`,
          because: ["public-urls"],
          ...restart("LOGIN_URL", "SITE_ROOT"),
        },
        {
          evidence: { location: "origin" },
          says: "the web application redirects to {location}: SERVICE_URL is wrong, or the web application does not see the scheme and host of the request (Host, X-Forwarded-Proto)",
          because: ["public-urls"],
          ...restart("SERVICE_URL"),
        },
        ...(scheme === "https"
          ? [{ evidence: { http2: false as const }, says: "the listener does not offer HTTP/2" }]
          : []),
        {
          evidence: {},
          says: "the answer is not the web application's: another program listens on its port",
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
    {
      evidence: { status: [403] },
      code: "media-permissions",
      because: ["avatar"],
      says: "the media file is not world readable, or one of its directories lacks read and execute permission for others; the error log names it",
      fix: "See the path in the proxy's error log, and chmod it.",
    },
    {
      evidence: { status: [404] },
      code: "server-name",
      says: `${WRONG_NAME}, or the media path in the config does not match the installation`,
      fix: "Set `installDirectory` (or `mediaDirectory`) to where the application is installed, and deploy.",
    },
    { evidence: {}, says: "something other than the media route answered" },
  ],
};

const REDIRECT = [
  OWN_404,
  {
    evidence: {},
    says: "the listener is not in TLS mode, or the redirect names another host or port",
  },
] as const;

const LOGIN_FIELDS = [
  { name: "Content-Type", value: "text/html; charset=utf-8" },
  { name: "Vary", includes: ["Accept-Language", "Cookie"] },
  { name: "Content-Language" },
] as const;

function daemon(name: string, host: string, more: string): ExpectationInput[] {
  return [
    {
      name,
      host,
      from: "upstream",
      fields: [{ name: "Server", version: false }],
      causes: [
        { evidence: { status: [404] }, says: WRONG_NAME },
        { evidence: { status: [502, 504] }, says: `the ${name} does not answer on {upstream}${more}` },
        { evidence: {}, says: "something other than the application's virtual server answered" },
      ],
    },
  ];
}
