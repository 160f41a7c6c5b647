import * as z from "zod";
import type { InputOf, OutputOf } from "../schema/inferred.js";
import { line, name, text } from "../schema/fields.js";

/**
 * Expected responses, as a deployment lists them. A row without a response stands for the response that the action of
 * its route guarantees; the host evaluates all rows without knowing any application.
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

export const expectedLocation = z
  .strictObject({
    scheme: z.enum(["http", "https"]).describe("Scheme of `Location`."),
    path: requestPath("Path of `Location`."),
  })
  .describe("A `Location` with another scheme at the requested host, on the port of the route's redirect.");

export const expectedField = z
  .strictObject({
    name: line("Name of the field."),
    value: line("Value of the field.").optional(),
    includes: z
      .array(line("A member."))
      .min(1)
      .max(20)
      .describe("Members of the field's list, in any order; other members are accepted.")
      .optional(),
    mediaType: line("Media type, with any parameters; `image/*` for any image.").optional(),
    version: z.boolean().describe("Whether the value of `Server` contains a version.").optional(),
    absent: z.literal(true).describe("The response must not have the field.").optional(),
  })
  .describe("A header field of the response; with only a name, any value is accepted.");

export const expectedMember = z.strictObject({
  name: line("Name of the member."),
  values: z.array(line("A text.")).min(1).max(20).describe("Accepted texts."),
});

/** The fields of the rows that describe a response. */
const response = {
  status: z
    .union([status, z.array(status).min(1).max(20)])
    .describe("Status of the response, or a list of accepted statuses. Default: any status.")
    .optional(),
  from: z
    .literal("upstream")
    .describe("`upstream`: the response must not be a 502, a 504, or the proxy's own 404 or 503.")
    .optional(),
  location: z
    .union([line("A URL, or a path."), expectedLocation, z.array(line("A URL, or a path.")).min(1).max(20)])
    .describe(
      "Target of `Location`: a URL, a path at the requested scheme and host, a list of accepted targets, or an " +
        "object with another scheme.",
    )
    .optional(),
  http2: z
    .literal(true)
    .describe("Whether a listener that offers HTTP/2 must negotiate it. Default: either version is accepted.")
    .optional(),
  fields: z.array(expectedField).max(50).describe("Expected fields of the response.").optional(),
  members: z
    .array(expectedMember)
    .max(20)
    .describe(
      "Members of the JSON object in the body, of which up to 64 KiB are read. Without `method`, the request " +
        "is a GET.",
    )
    .optional(),
};

export const expectedEvidence = z
  .strictObject({
    status: z.array(status).max(20).describe("The status is one of these.").optional(),
    statusNot: z.array(status).max(20).describe("The status is none of these.").optional(),
    page: z
      .enum(["proxy", "other"])
      .describe("`proxy`: the body is an error page of the proxy; `other`: not.")
      .optional(),
    server: z.enum(["version", "none"]).describe("Whether the `Server` field contains a version.").optional(),
    location: z
      .enum(["path", "origin"])
      .describe("The wrong part of `Location`: its path, or only its scheme, host or port.")
      .optional(),
    http2: z.literal(false).describe("HTTP/2 was not negotiated.").optional(),
  })
  .describe("Conditions that the response must all meet; `{}` for any response.");

export const expectedCause = z.strictObject({
  evidence: expectedEvidence,
  message: line(
    "The cause in words; `{status}`, `{location}`, `{host}`, `{path}` and `{upstream}` stand for values of " +
      "the request and the response.",
  ),
  code: name(
    "Row of `portico doctor` that also fails for this cause. Without this field, only the row of the " +
      "response fails.",
  ).optional(),
  because: z
    .array(name("A row."))
    .max(10)
    .describe(
      "Rows of `portico doctor` that explain the cause if they failed. Default: the rows of the proxy, " +
        "or none with `code`.",
    )
    .optional(),
  fix: line("How to fix the cause. Default: a description of the expected response.").optional(),
  settings: z.array(line("An item.")).max(20).describe("Wrong settings of the application.").optional(),
});

const EACH = "Whether to send the request to one listener (`first`, the default) or to all (`each`).";

/** The response that is expected of a route or a virtual server, as users write it. */
export const expectationFields = {
  name: line(
    "Name in messages, unique in the deployment. Default: the names of the virtual server and the route.",
  ).optional(),
  path: requestPath("Path to request. Default: the route's path; `/` for a virtual server.").optional(),
  host: z
    .union([z.literal("unknown"), line("A name or an address.")])
    .describe(
      "Host to request; `unknown` for a name of no virtual server. Default: the first name of the virtual " +
        "server.",
    )
    .optional(),
  method: z.enum(METHODS).describe("Method; other methods might change data. Default: HEAD.").optional(),
  listeners: z.enum(["first", "each"]).describe(EACH).optional(),
  file: z
    .literal("image")
    .describe("Appends the name of an image, found in the route's directory, to the path.")
    .optional(),
  ...response,
  causes: z
    .array(expectedCause)
    .max(20)
    .describe(
      "Possible causes of another response; messages name the first cause that fits. Default: general causes " +
        "of a proxy.",
    )
    .optional(),
};

export const expectedRow = z.strictObject({
  name: line("Name in messages."),
  request: z
    .strictObject({
      server: name("Name of the virtual server in the config."),
      path: requestPath("Path."),
      host: expectationFields.host,
      method: expectationFields.method,
      listeners: expectationFields.listeners,
      file: expectationFields.file,
    })
    .describe("The request and its virtual server."),
  ...response,
  causes: expectationFields.causes,
});

/** A field of the props of routes and virtual servers; `model/config/parse.ts` reads it. */
export const expectation = z.strictObject(expectationFields);

/** An expected response, as users write it. */
export type ExpectationInput = InputOf<typeof expectation>;
/** A row of a deployment's expected responses. */
export type ExpectedRow = OutputOf<typeof expectedRow>;
export type CauseConfig = OutputOf<typeof expectedCause>;

interface RoutePlace {
  readonly name: string;
  readonly path: string;
  readonly match?: string | undefined;
}

/** Rows of one route: the given ones, or else the one that its action guarantees. */
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

/** Adds a slash to a directory's path; a path that is matched exactly stays as it is. */
function pathIn({ path, match }: Omit<RoutePlace, "name">): string {
  return match === "exact" || path.endsWith("/") ? path : `${path}/`;
}
