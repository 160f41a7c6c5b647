import { Application } from "../../src/constructs/index.js";
import type { Random } from "../../testkit/random.js";

/**
 * What the vendors' manuals say that clients ask for, and which server has to get it under which path. It is written
 * from the manuals and not from the entries of `src/applications/`, which are tried against it.
 */

/** Names of servers as the entries have them; `files` is a file below the directory, `redirect` a `Location`. */
type Leads = `${string} /${string}`;

/** `METHOD PATH`, with `WS` for a WebSocket and `*` at the end for any path; where it leads, with the same `*`; status, if not 200. */
export type Ask = readonly [request: `${string} /${string}`, leads: Leads, status?: number];

export interface Manual {
  readonly title: string;
  /** Pages of the vendor. */
  readonly pages: readonly string[];
  readonly application: (directory: string) => Application;
  readonly asks: readonly Ask[];
}

const seafileWeb: readonly Ask[] = [
  ["GET /", "web /"],
  ["GET /api2/ping/", "web /api2/ping/"],
  ["POST /api2/auth-token/", "web /api2/auth-token/"],
  ["GET /api/v2.1/*", "web /api/v2.1/*"],
  ["POST /accounts/login/", "web /accounts/login/"],
  ["GET /library/*", "web /library/*"],
];

/** Of 11 to 14. */
const seafileDaemons: readonly Ask[] = [
  ["GET /notification/ping", "notification /ping"],
  ["WS /notification", "notification /"],
  ["GET /sdoc-server/*", "seadoc /*"],
  ["PUT /sdoc-server/*", "seadoc /*"],
  ["WS /socket.io/*", "seadoc /socket.io/*"],
];

const onHost = (title: string, version: "11" | "12" | "13" | "14", pages: readonly string[]): Manual => ({
  title,
  pages,
  application: (directory) =>
    Application.seafile({
      version,
      layout: "host",
      directory,
      components: { notification: true, seadoc: true },
    }),
  asks: [
    ...seafileWeb,
    ["GET /seafhttp/protocol-version", "fileServer /protocol-version"],
    ["POST /seafhttp/upload-aj/*", "fileServer /upload-aj/*"],
    ["PUT /seafhttp/repo/*", "fileServer /repo/*"],
    ["GET /media/img/a.png", "files /seafile-server-latest/seahub/media/img/a.png"],
    ["GET /media/avatars/a.png", "files /seahub-data/avatars/a.png"],
    ["GET /media/custom/logo.png", "files /seahub-data/custom/logo.png"],
    ["GET /seafdav", "redirect /seafdav/"],
    ["PROPFIND /seafdav/*", "webdav /seafdav/*"],
    ["PUT /seafdav/*", "webdav /seafdav/*"],
    ["GET /:dir_browser/*", "webdav /:dir_browser/*"],
    ...seafileDaemons,
  ],
});

const scale: readonly Ask[] = [
  ["GET /", "web /"],
  ["GET /status.php", "web /status.php"],
  ["GET /.well-known/openid-configuration", "web /.well-known/openid-configuration"],
  ["POST /signin/v1/identifier/_/logon", "web /signin/v1/identifier/_/logon"],
  ["PROPFIND /dav/spaces/*", "web /dav/spaces/*"],
  ["PROPFIND /remote.php/dav/*", "web /remote.php/dav/*"],
  ["GET /ocs/v1.php/cloud/capabilities", "web /ocs/v1.php/cloud/capabilities"],
  ["GET /graph/v1.0/*", "web /graph/v1.0/*"],
  ["PATCH /data/*", "web /data/*"],
  ["GET /s/*", "web /s/*"],
];

const SEAFILE = "manual.seafile.com";
const BINARY = "setup_binary/https_with_nginx";
const EXTENSIONS = ["extension/webdav", "extension/notification-server"];

const thumbnails: readonly Ask[] = [
  ["GET /thumbnail/*", "thumbnail /thumbnail/*"],
  ["GET /thumbnail/ping", "thumbnail /ping"],
];

const inContainers = (version: "12" | "13" | "14", further: readonly Ask[]): Manual => ({
  title: `Seafile ${version} in containers`,
  pages: ["setup/use_other_reverse_proxy", "repo/docker/*.yml"].map(
    (page) => `${SEAFILE}/${version}.0: ${page}`,
  ),
  application: (directory) =>
    Application.seafile({
      version,
      directory,
      components: {
        notification: true,
        seadoc: true,
        office: "onlyOffice",
        ...(further.length === 0 ? {} : { thumbnail: true }),
      },
    }),
  asks: [
    ...seafileWeb,
    ["GET /seafhttp/protocol-version", "web /seafhttp/protocol-version"],
    ["POST /seafhttp/upload-aj/*", "web /seafhttp/upload-aj/*"],
    ["PROPFIND /seafdav/*", "web /seafdav/*"],
    ["GET /media/*", "web /media/*"],
    ...seafileDaemons,
    ...further,
    ["GET /onlyofficeds/*", "office /*"],
    ["WS /onlyofficeds/*", "office /*"],
  ],
});

export const MANUALS = {
  seafile11: onHost(
    "Seafile 11 on a host",
    "11",
    [
      ...["deploy/https_with_nginx", "deploy/notification-server", "extra_setup/setup_seadoc"],
      "extension/webdav",
    ].map((page) => `${SEAFILE}/11.0: ${page}`),
  ),
  seafile12: inContainers("12", []),
  seafile13: inContainers("13", thumbnails),
  seafile14: inContainers("14", thumbnails),
  seafile12Host: onHost(
    "Seafile 12 on a host",
    "12",
    [BINARY, ...EXTENSIONS].map((page) => `${SEAFILE}/12.0: ${page}`),
  ),
  seafile13Host: onHost(
    "Seafile 13 on a host",
    "13",
    [BINARY, ...EXTENSIONS].map((page) => `${SEAFILE}/13.0: ${page}`),
  ),
  seafile14Host: onHost(
    "Seafile 14 on a host",
    "14",
    [BINARY, ...EXTENSIONS].map((page) => `${SEAFILE}/14.0: ${page}`),
  ),
  nextcloud: {
    title: "Nextcloud",
    pages: [
      "docs.nextcloud.com: admin_manual/configuration_server/reverse_proxy_configuration",
      "github.com/nextcloud/all-in-one: reverse-proxy.md",
      "github.com/nextcloud/notify_push: README.md",
      "sdk.collaboraonline.com: installation/Proxy_settings",
    ],
    application: () => Application.nextcloud({ push: true, office: "collabora" }),
    asks: [
      ["GET /status.php", "web /status.php"],
      ["POST /login", "web /login"],
      ["PROPFIND /remote.php/dav/*", "web /remote.php/dav/*"],
      ["MKCOL /remote.php/dav/uploads/*", "web /remote.php/dav/uploads/*"],
      ["GET /ocs/v2.php/*", "web /ocs/v2.php/*"],
      ["GET /index.php/*", "web /index.php/*"],
      ["GET /.well-known/webfinger", "web /.well-known/webfinger"],
      ["GET /.well-known/carddav", "redirect /remote.php/dav/"],
      ["PROPFIND /.well-known/caldav", "redirect /remote.php/dav/"],
      ["GET /push/test/cookie", "push /test/cookie"],
      ["WS /push/ws", "push /ws"],
      ["GET /hosting/discovery", "office /hosting/discovery"],
      ["GET /hosting/capabilities", "office /hosting/capabilities"],
      ["GET /browser/*", "office /browser/*"],
      ["POST /cool/convert-to/*", "office /cool/convert-to/*"],
      [
        "WS /cool/https%3A%2F%2Fcloud%2Fremote.php%2F1/ws",
        "office /cool/https%3A%2F%2Fcloud%2Fremote.php%2F1/ws",
      ],
      ["WS /cool/adminws", "office /cool/adminws"],
    ],
  },
  immich: {
    title: "Immich",
    pages: ["docs.immich.app: administration/reverse-proxy"],
    application: () => Application.immich(),
    asks: [
      ["GET /", "web /"],
      ["GET /api/server/ping", "web /api/server/ping"],
      ["POST /api/assets", "web /api/assets"],
      ["WS /api/socket.io/*", "web /api/socket.io/*"],
      ["GET /.well-known/immich", "web /.well-known/immich"],
      ["GET /share/*", "web /share/*"],
    ],
  },
  openCloud: {
    title: "OpenCloud",
    pages: ["docs.opencloud.eu: admin/getting-started/container/docker-compose/external-proxy"],
    application: (directory) => Application.openCloud({ directory }),
    asks: [...scale, ["POST /wopi/*", "web /wopi/*"], ["GET /collaboration/*", "web /collaboration/*"]],
  },
  infiniteScale: {
    title: "ownCloud Infinite Scale",
    pages: ["github.com/owncloud/ocis: deployments/examples/ocis_full"],
    application: (directory) => Application.infiniteScale({ directory }),
    asks: scale,
  },
  vaultwarden: {
    title: "Vaultwarden",
    pages: ["github.com/dani-garcia/vaultwarden/wiki: Proxy-examples, Using-Docker-Compose"],
    application: (directory) => Application.vaultwarden({ directory }),
    asks: [
      ["GET /", "web /"],
      ["GET /alive", "web /alive"],
      ["POST /identity/connect/token", "web /identity/connect/token"],
      ["GET /api/*", "web /api/*"],
      ["GET /icons/*", "web /icons/*"],
      ["WS /notifications/hub", "web /notifications/hub"],
      ["WS /notifications/anonymous-hub", "web /notifications/anonymous-hub"],
      ["POST /admin", "web /admin"],
    ],
  },
  radicale: {
    title: "Radicale",
    pages: ["radicale.org/v3.html: Reverse Proxy, Clients"],
    application: () => Application.radicale(),
    asks: [
      ["GET /", "web /"],
      ["GET /.web/", "web /.web/"],
      ["GET /.well-known/caldav", "web /.well-known/caldav", 301],
      ["PROPFIND /.well-known/carddav", "web /.well-known/carddav"],
      ["PROPFIND /*", "web /*"],
      ["REPORT /*", "web /*"],
      ["MKCALENDAR /*", "web /*"],
      ["PUT /*", "web /*"],
    ],
  },
  gitea: {
    title: "Gitea",
    pages: ["docs.gitea.com: administration/reverse-proxies, installation/install-on-kubernetes"],
    application: () => Application.gitea(),
    asks: [
      ["GET /", "web /"],
      ["GET /a%2Fb", "web /a%2Fb"],
      ["GET /api/healthz", "web /api/healthz"],
      ["GET /foo/*", "web /foo/*"],
      ["POST /foo/*", "web /foo/*"],
      ["GET /v2/*", "web /v2/*"],
      ["PUT /v2/*", "web /v2/*"],
    ],
  },
} satisfies Record<string, Manual>;

export type ManualName = keyof typeof MANUALS;

/** Pieces of paths that proxies read in ways of their own. */
const PIECES = ["a", "a%20b", "a%2Fb", "%C3%A4", "a+b", "100%25", "(1)", "a;b", "%3Fx", "a:b", "~", "a.b"];
const QUERIES = ["", "?", "?a=1&b=%2F", "?p=/x%20y"];

/** Requests of a row, with the same piece of a path in place of both `*`. */
export function generated(one: Ask, random: Random, count = 3): Ask[] {
  const [request, leads] = one;
  if (!request.endsWith("*")) return [one];
  return Array.from({ length: count }, () => {
    const pieces = Array.from({ length: 1 + random.pick(3) }, () => random.of(...PIECES));
    const rest = pieces.join("/") + random.of("", "/") + random.of(...QUERIES);
    return [request.replace("*", rest), leads.replace("*", rest)] as Ask;
  });
}
