import type { ExpectationInput } from "../model/index.js";
import { OWN_404, WRONG_NAME } from "./frontEndExpectations.js";

/**
 * What the file-sync service answers, and why that may fail (service 5.1 and 6). This is data: the host evaluates it as it
 * does that of any other application.
 */

/** Expected responses by route. */
export type FileSyncExpectations = Readonly<
  Record<"web" | "webdav" | "fileServer" | "media", readonly ExpectationInput[]>
>;

/** Where clients find it, and the path of its web application: `/sync`. */
export interface FileSyncPlace {
  readonly scheme: "http" | "https";
  readonly host: string;
  readonly path: string;
}

const WEB_DAEMON =
  "the web application daemon and the proxy do not work together: check that the fastcgi start variant is not used in the service unit, and that it runs and listens on {upstream}";

/** What its routes answer. */
export function fileSyncExpectations(place: FileSyncPlace): FileSyncExpectations {
  const { host } = place;
  return {
    web: webRows({ ...place, path: `${place.path}/` }),
    webdav: daemon("WebDAV daemon", host, "; without WebDAV, leave the route out"),
    fileServer: daemon(
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
          says: "the response is not the web application's: another program listens on its port",
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
      fix: "Read the path in the proxy's error log, and make it readable with chmod.",
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
