import type { ExpectationInput, Tree } from "../model/index.js";
import type { ApplicationPart, ApplicationRoute, LogIn, PublicPlace } from "./definition.js";
import { mediaCauses, OWN_404 } from "./frontEndExpectations.js";

/** The parts that entries of the table are made from. */

/** A part at its usual address. */
export const partAt = (
  title: string,
  url: string,
  seconds: number,
  liveness?: ApplicationPart["liveness"],
): ApplicationPart => ({
  title,
  url,
  sendTimeoutMs: seconds * 1_000,
  readTimeoutMs: seconds * 1_000,
  liveness,
});

/** A route to a part, whose expected response is that of the part's liveness request. */
export function routeTo<Part extends string>(
  parts: Readonly<Record<string, ApplicationPart | undefined>>,
  upstream: Part,
  path: string,
  { options, ...more }: RouteOptions = {},
): ApplicationRoute<Part> {
  const part = parts[upstream]!;
  return {
    path,
    action: { type: "proxy", upstream, hostHeader: "client", ...options },
    requestBodyBytesMax: 0,
    // A phone that sleeps in the middle of an upload goes on later.
    requestBodyTimeoutMs: part.readTimeoutMs,
    sendTimeoutMs: part.sendTimeoutMs,
    expect: alive(part),
    ...more,
  };
}

interface RouteOptions extends Partial<Omit<ApplicationRoute, "path" | "action">> {
  /** How requests are passed on. */
  readonly options?: object;
}

type Causes = NonNullable<ExpectationInput["causes"]>;

/** The expected response of a part, and why it may not come: by causes of the application first. */
export function alive(part: ApplicationPart, causes: Causes = []): readonly ExpectationInput[] {
  const { title, liveness } = part;
  const name = capital(title);
  if (liveness === undefined) return [{ name, from: "upstream", causes: noResponse(part) }];
  const { path, status } = liveness;
  return [
    {
      name,
      path,
      method: "GET",
      status,
      causes: [
        ...noResponse(part),
        ...causes,
        {
          evidence: {},
          message: `the response is not the ${title}'s: another program listens on {upstream}`,
        },
      ],
    },
  ];
}

/** Why no response of a part comes. */
export const noResponse = ({ title }: ApplicationPart): Causes => [
  OWN_404,
  {
    evidence: { status: [502, 504] },
    message: `the ${title} does not respond at {upstream}`,
    fix: "Start the program, and read its log. If it listens on another address, set that address in `upstreams`.",
  },
];

const capital = (text: string): string => text[0]!.toUpperCase() + text.slice(1);

/** A directory that a static route serves, with the row of `portico doctor` that reports it. */
export const served = (path: string, code: string, fix = false): Tree => ({
  path,
  code,
  message: "a file or one of its directories is not readable by others",
  fix,
});

/** Files of a directory; the check requests one of its images, if there is one. */
export const filesOf = (path: string, directory: string, code?: string): ApplicationRoute<never> => ({
  path,
  action: { type: "staticFiles", directory },
  ...(code === undefined
    ? { expect: false as const }
    : {
        expect: [
          {
            name: "Media file",
            file: "image" as const,
            status: 200,
            causes: mediaCauses(
              { code },
              `the media are not in ${directory}`,
              "Set `directory` of the application to the right path, and deploy.",
            ),
          },
        ],
      }),
});

/** Only where a front end uses it. */
export const when = <T extends object>(used: boolean, make: () => T): Partial<T> => (used ? make() : {});

// Office servers, as parts that any application can have.

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

/** URLs contain the access token of a document. */
const SECRET = { logQuery: "names" } as const;
/** Documents are edited through WebSockets, which end when nothing may be written. */
const EDITS = { writes: "always", ...SECRET } as const;

/** Collabora's paths stay as they are; OnlyOffice does not know its prefix, and gets it in X-Forwarded-Host. */
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
    officePages: routeTo(parts, "office", "/browser", { ...quiet, ...SECRET }),
    officeDiscovery: routeTo(parts, "office", "/hosting/discovery", { ...quiet, match: "exact" }),
    officeCapabilities: routeTo(parts, "office", "/hosting/capabilities", { ...quiet, match: "exact" }),
  };
}

/**
 * The response of SabreDAV, which Nextcloud and ownCloud are made with, in their maintenance mode. Their sync clients end
 * the run and try again later; after another 503 they count a failure of each file, and leave the file out for longer and
 * longer.
 */
export const SYNC_MAINTENANCE = {
  contentType: "application/xml; charset=utf-8",
  body: [
    '<?xml version="1.0" encoding="utf-8"?>',
    '<d:error xmlns:d="DAV:" xmlns:s="http://sabredav.org/ns">',
    "  <s:exception>Sabre\\DAV\\Exception\\ServiceUnavailable</s:exception>",
    "  <s:message>System in maintenance mode.</s:message>",
    "</d:error>",
    "",
  ].join("\n"),
} as const;

/** Requests of Seafile's web interface, below its path, that try a secret. */
export const seahubLogIns = (web: string): readonly LogIn[] => [
  {
    ...{ method: "POST", path: `${web}/accounts/login/`, secret: "body", changing: ["csrfmiddlewaretoken"] },
    ...{ accountField: "login", passwordField: "password", failed: [200] },
  },
  {
    ...{ method: "POST", path: `${web}/api2/auth-token/`, secret: "body" },
    ...{ accountField: "username", passwordField: "password", failed: [400, 403] },
  },
];
