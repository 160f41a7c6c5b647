import type { ExpectationInput } from "../model/index.js";
import { SERVER_NAME, WRONG_NAME } from "../model/host/rows.js";

/** The expected responses of the virtual servers that every front end has, whatever the application is. */

export const OWN_404 = {
  evidence: { status: [404], page: "proxy" },
  code: SERVER_NAME,
  message: WRONG_NAME,
} as const;

type Cause = NonNullable<ExpectationInput["causes"]>[number];

/** The causes of a media file's 403, which belong to a row, and 404. */
export const mediaCauses = (row: Pick<Cause, "code" | "because">, other: string, fix: string) =>
  [
    {
      evidence: { status: [403] },
      ...row,
      message:
        "the media file is not world readable, or one of its directories lacks read and execute permission for others; the error log names it",
      fix: "Read the path in the proxy's error log, and make it readable with chmod.",
    },
    { evidence: { status: [404] }, code: SERVER_NAME, message: `${WRONG_NAME}, or ${other}`, fix },
  ] as const;

/** Expected responses of the front end's own routes. */
export interface FrontEndExpectations {
  /** From HTTP to HTTPS. */
  readonly redirect: readonly ExpectationInput[];
  /** `/` of the application's names over HTTP, where it leads to the application. */
  readonly httpRoot: readonly ExpectationInput[];
  /** `/` of the application's virtual server: nothing is expected of a page. */
  readonly page: false | readonly ExpectationInput[];
}

/**
 * @param place where users find the application; its path ends in a slash
 * @param root whether `/` leads there
 * @param site name of one of several sites; without it, rows have no site's name
 */
export function frontEndExpectations(
  place: { readonly scheme: "http" | "https"; readonly host: string; readonly path: string },
  root: boolean,
  site?: string,
): FrontEndExpectations {
  const titled = (name: string): string => (site === undefined ? name : `${site}: ${name}`);
  const { scheme, host, path } = place;
  const leads = {
    host,
    listeners: "each",
    location: { scheme, path },
    fields: [HTML],
    causes: REDIRECT,
  } as const;
  const rootRow = (over: string): ExpectationInput[] => [
    { name: titled(`/ over ${over}`), status: 302, ...leads },
  ];
  return {
    redirect: [{ name: titled(`redirect to ${scheme}`), path, status: 301, ...leads }],
    httpRoot: rootRow("http"),
    page: root ? rootRow(scheme) : false,
  };
}

const HTML = { name: "Content-Type", mediaType: "text/html" } as const;

/** The page of the default server. */
export const DEFAULT_SERVER: ExpectationInput = {
  name: "default server",
  host: "unknown",
  status: 200,
  fields: [HTML, { name: "Server", version: true }],
  causes: [
    {
      evidence: { server: "version" },
      message: "the default virtual server responds, but its page is missing",
    },
    {
      evidence: {},
      message:
        "another virtual server or another program responded: the default virtual server is not enabled on the port",
    },
  ],
};

const REDIRECT = [
  OWN_404,
  {
    evidence: {},
    message: "the listener is not in TLS mode, or the redirect names another host or port",
  },
] as const;
