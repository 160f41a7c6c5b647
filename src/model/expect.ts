import * as z from "zod";
import type { InputOf, OutputOf } from "./inferred.js";
import { line, name, text } from "./fields.js";

/**
 * Expected responses, as a deployment lists them. A row without a response stands for what the action of its route
 * promises in the config; the host evaluates all rows without knowing any application.
 */

/** Most rows of a deployment. */
export const EXPECTED_MAX = 500;

const METHODS = ["HEAD", "GET", "OPTIONS"] as const;

const requestPath = (description: string) =>
  text(
    "config.bad-redirect-path",
    "a percent-encoded URL path that begins with `/`, with or without a query, without `#`",
    {
      pattern: "^/(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*$",
      lengthMax: 2048,
    },
  ).describe(description);

const status = z.int().min(100).max(599).describe("A status: 100 to 599.");

export const expectedLocation = z.strictObject({
  scheme: z.enum(["http", "https"]).describe("Scheme of the Location."),
  path: requestPath("Path of the Location."),
});

export const expectedField = z.strictObject({
  name: line("Name of the field. With a name alone, the field is there with any value."),
  value: line("Its value.").optional(),
  includes: z
    .array(line("A member."))
    .min(1)
    .max(20)
    .describe("Members of its list, in any order and among others.")
    .optional(),
  mediaType: line("Media type, whatever its parameters; `image/*` for any image.").optional(),
  version: z.boolean().describe("Whether `Server` shows a version.").optional(),
  absent: z.literal(true).describe("The field is not there.").optional(),
});

export const expectedMember = z.strictObject({
  name: line("Name of the member."),
  values: z.array(line("A text.")).min(1).max(20).describe("Texts that are as good."),
});

/** Where the rows say something about a response. */
const response = {
  status: z
    .union([status, z.array(status).min(1).max(20)])
    .describe("Status of the response, or a list of those that are as good. Without it, any.")
    .optional(),
  from: z
    .literal("upstream")
    .describe("`upstream`: the response is no 502, no 504 and no 404 of the proxy.")
    .optional(),
  location: z
    .union([line("A URL, or a path."), expectedLocation, z.array(line("A URL, or a path.")).min(1).max(20)])
    .describe(
      "Where `Location` leads: a URL, a path at the scheme and host that were asked for, a list of those that are as good, or " +
        "a path of another scheme at that host, on the port of the route's redirect.",
    )
    .optional(),
  http2: z
    .literal(true)
    .describe(
      "Whether HTTP/2 is negotiated with a listener that offers it. Without it, either version will do.",
    )
    .optional(),
  fields: z.array(expectedField).max(50).describe("Fields of the response.").optional(),
  members: z
    .array(expectedMember)
    .max(20)
    .describe(
      "Members of the JSON object in the body, of which up to 64 KiB are read. Without a method, GET is sent.",
    )
    .optional(),
};

export const expectedEvidence = z
  .strictObject({
    status: z.array(status).max(20).describe("The status is one of these.").optional(),
    statusNot: z.array(status).max(20).describe("The status is none of these.").optional(),
    page: z.enum(["proxy", "other"]).describe("Whether the body is an error page of the proxy.").optional(),
    server: z.enum(["version", "none"]).describe("Whether `Server` has a version.").optional(),
    location: z
      .enum(["path", "origin"])
      .describe("What is wrong with `Location`: its path, or only its scheme, host or port.")
      .optional(),
    http2: z.literal(false).describe("HTTP/2 was not negotiated.").optional(),
  })
  .describe("What the response has to show, all of it; `{}` for any response.");

export const expectedCause = z.strictObject({
  evidence: expectedEvidence,
  says: line(
    "The cause in words; `{status}`, `{location}`, `{host}`, `{path}` and `{upstream}` stand for what was seen and asked.",
  ),
  code: name(
    "Row of `portico doctor` that fails because of it. Without it, only the row of the response does.",
  ).optional(),
  because: z
    .array(name("A row."))
    .max(10)
    .describe("Rows of `portico doctor` that explain it where they failed. Without it, those of the proxy.")
    .optional(),
  fix: line("What to do about it. Without it, the response is described as it should be.").optional(),
  settings: z
    .array(line("An item."))
    .max(20)
    .describe("Settings of the application that are wrong.")
    .optional(),
});

const EACH = "Whether one listener is asked (`first`), which is the default, or all of them (`each`).";

/** What a route or a virtual server is expected to answer, as users write it. */
export const expectationFields = {
  name: line(
    "Name in messages; each response of a deployment needs its own. Without one, the names of the virtual server and the route.",
  ).optional(),
  path: requestPath("Path to request. Without one, the route's; `/` for a virtual server.").optional(),
  host: z
    .union([z.literal("unknown"), line("A name or an address.")])
    .describe(
      "Name to ask for; `unknown` for one that no virtual server has. Without one, the first name of the virtual server.",
    )
    .optional(),
  method: z.enum(METHODS).describe("Method; others might change something. Without one, HEAD.").optional(),
  listeners: z.enum(["first", "each"]).describe(EACH).optional(),
  file: z
    .literal("image")
    .describe("Adds to the path the name of an image, found in the directory of the route.")
    .optional(),
  ...response,
  causes: z
    .array(expectedCause)
    .max(20)
    .describe(
      "Why the response may be another one; messages name the first that fits. Without it, the causes that any proxy knows.",
    )
    .optional(),
};

export const expectedRow = z.strictObject({
  name: line("Name in messages."),
  request: z
    .strictObject({
      server: name("Virtual server of the config."),
      path: requestPath("Path."),
      host: expectationFields.host,
      method: expectationFields.method,
      listeners: expectationFields.listeners,
      file: expectationFields.file,
    })
    .describe("What is requested: of which virtual server, and how."),
  ...response,
  causes: expectationFields.causes,
});

/** A field of the props of routes and virtual servers; `model/config/parse.ts` reads it. */
export const expectation = z.strictObject(expectationFields);

/** An expected response, as users write it. */
export type ExpectationInput = InputOf<typeof expectation>;
/** A row of a deployment's expected responses. */
export type ExpectedRow = OutputOf<typeof expectedRow>;
export type ExpectedCause = OutputOf<typeof expectedCause>;

interface RoutePlace {
  readonly name: string;
  readonly path: string;
  readonly match?: string | undefined;
}

/** Rows of one route: those that were written, or else the one that its action promises. */
export function rowsOfRoute(
  server: string,
  route: RoutePlace,
  expect: false | readonly ExpectationInput[] = [{}],
): ExpectedRow[] {
  if (expect === false) return [];
  return expect.map((one, i) =>
    rowOf(server, one, `${server} ${route.name}${i === 0 ? "" : ` ${i + 1}`}`, pathIn(route)),
  );
}

/** Rows of a virtual server's own. */
export const rowsOfServer = (server: string, expect: readonly ExpectationInput[]): ExpectedRow[] =>
  expect.map((one, i) => rowOf(server, one, i === 0 ? server : `${server} ${i + 1}`, "/"));

function rowOf(server: string, given: ExpectationInput, named: string, at: string): ExpectedRow {
  const { name: own = named, path = at, host, method, listeners, file, ...rest } = given;
  const request = { server, path, host, method, listeners, file };
  return { name: own, request: defined(request), ...defined(rest) } as ExpectedRow;
}

const defined = (fields: object): object =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

/** A directory's path ends in a slash; one that is matched exactly is as it is. */
function pathIn({ path, match }: Omit<RoutePlace, "name">): string {
  return match === "exact" || path.endsWith("/") ? path : `${path}/`;
}
