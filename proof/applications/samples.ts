import type { ManualName } from "./manuals.js";

/** The vendors' samples for nginx, as facts: which location passes what to whom, and with which fields. */

export interface Location {
  /** As after the word `location`. */
  readonly at: string;
  /** The server, and what stands after its address in `proxy_pass`. */
  readonly pass?: readonly [part: string, uri?: string];
  /** Fields that it sets, of `FIELDS`. */
  readonly fields?: string;
  readonly lines?: readonly string[];
}

export interface Sample {
  readonly title: string;
  readonly manual: ManualName;
  readonly locations: readonly Location[];
}

/** Fields by a letter: of the client, of its request, and of the upgrade. */
export const FIELDS: Readonly<Record<string, string>> = {
  H: "Host $http_host",
  h: "Host $host",
  R: "X-Real-IP $remote_addr",
  F: "X-Forwarded-For $proxy_add_x_forwarded_for",
  N: "X-Forwarded-Host $server_name",
  P: "X-Forwarded-Proto $scheme",
  O: "X-Forwarded-Host $host/onlyofficeds",
  U: 'Upgrade $http_upgrade; proxy_set_header Connection "upgrade"',
};

const CUT = "rewrite ^/seafhttp(.*)$ $1 break;";
const seafileHost = (fileServer: string): Location[] => [
  { at: "/", pass: ["web"], fields: "HRFNP" },
  { at: "/seafhttp", pass: ["fileServer"], fields: "F", lines: [fileServer] },
  { at: "/media", lines: ["root {directory}/seafile-server-latest/seahub;"] },
  { at: "/seafdav", lines: ["rewrite ^/seafdav$ /seafdav/ permanent;"] },
  { at: "/seafdav/", pass: ["webdav", "/seafdav/"], fields: "hRFNP" },
  { at: "/:dir_browser", pass: ["webdav", "/:dir_browser"] },
];
const notification11: Location[] = [
  { at: "/notification/ping", pass: ["notification", "/ping"] },
  { at: "/notification", pass: ["notification", "/"], fields: "U" },
];
const seadoc = (fields = "hRFN"): Location[] => [
  { at: "/sdoc-server/", pass: ["seadoc", "/"], fields },
  { at: "/socket.io", pass: ["seadoc"], fields: "URFH" },
];

/** The page "Use other reverse proxy", with the blocks in which versions differ. */
const containers = (version: "12" | "13" | "14", ...more: Location[]): Sample => ({
  title: `Seafile ${version} in containers`,
  manual: `seafile${version}`,
  locations: [
    { at: "/", pass: ["web"], fields: "hRF" },
    ...seadoc(),
    ...more,
    { at: "/onlyofficeds/", pass: ["office", "/"], fields: "UOPF" },
  ],
});
const since13: Location[] = [
  { at: "/notification", pass: ["notification"], fields: "U" },
  { at: "/thumbnail", pass: ["thumbnail"], fields: "hRFP" },
];
/** The pages of 12 to 14 do not differ. */
const advancedTls = (version: "12" | "13" | "14"): Sample => ({
  title: `Seafile ${version} on a host, advanced TLS`,
  manual: `seafile${version}Host`,
  locations: [...seafileHost("rewrite ^/seafhttp(.*)$1 break;"), ...notification11, ...seadoc("hRFNP")],
});

const one = (title: string, manual: ManualName, fields: string, uri?: string): Sample => ({
  title,
  manual,
  locations: [{ at: "/", pass: ["web", uri], fields }],
});

export const SAMPLES: readonly Sample[] = [
  {
    title: "Seafile 11 on a host",
    manual: "seafile11",
    locations: [...seafileHost(CUT), ...notification11, ...seadoc()],
  },
  ...(["12", "13", "14"] as const).map(advancedTls),
  containers("12", ...notification11),
  containers("13", ...since13),
  containers("14", ...since13),
  {
    title: "Nextcloud All-in-One, notify_push and Collabora",
    manual: "nextcloud",
    locations: [
      { at: "/", pass: ["web", "$request_uri"], fields: "hRFPU" },
      { at: "/.well-known/carddav", lines: ["return 301 $scheme://$host/remote.php/dav;"] },
      { at: "/.well-known/caldav", lines: ["return 301 $scheme://$host/remote.php/dav;"] },
      { at: "/push/", pass: ["push", "/"], fields: "UhF" },
      { at: "^~ /browser", pass: ["office"], fields: "H" },
      { at: "^~ /hosting/discovery", pass: ["office"], fields: "H" },
      { at: "^~ /hosting/capabilities", pass: ["office"], fields: "H" },
      { at: "~ ^/cool/(.*)/ws$", pass: ["office"], fields: "UH" },
      { at: "~ ^/(c|l)ool", pass: ["office"], fields: "H" },
      { at: "^~ /cool/adminws", pass: ["office"], fields: "UH" },
    ],
  },
  one("Immich", "immich", "HRFPU"),
  one("OpenCloud", "openCloud", "hRFP"),
  one("Vaultwarden", "vaultwarden", "hRFPU"),
  {
    title: "Gitea",
    manual: "gitea",
    locations: [
      {
        at: "/",
        pass: ["web"],
        fields: "hRFP",
        lines: ["proxy_set_header Connection $http_connection; proxy_set_header Upgrade $http_upgrade;"],
      },
    ],
  },
];
