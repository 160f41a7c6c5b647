import type { Rule } from "./deviations.js";

/**
 * Differences that no design decision allows yet. Each waits to be mended or decided; the suite stays red until the
 * list is empty, and says so itself when one of them is gone.
 */
export const OPEN = {
  upstreamErrorCloses: {
    allowedBy: "nothing",
    why: "an upstream's 400, 500 or 501 closes the client's connection; nginx closes only behind its own",
    explains: ({ fact }, { portico }) => fact === "connection" && portico["connection"] === "closed",
  },
  refusedByTheDefaultServer: {
    allowedBy: "nothing",
    why: "a refused request whose host is known is answered in the default server's name (design 5.12)",
    explains: ({ fact, portico }) => fact === "server" && portico === "with version",
  },
  noLengthOf204: {
    allowedBy: "nothing",
    why: "Content-Length: 0 of a 204 does not pass; RFC 9110, 8.6 forbids it, nginx passes it",
    explains: ({ fact }, { portico }) => fact === "field content-length" && portico["status"] === "204",
  },
  redirectTakesAnyBody: {
    allowedBy: "nothing",
    why: "a body above 1 MiB for the redirect is 413 in nginx",
    explains: (_, { nginx, portico }) => nginx["status"] === "413" && portico["status"] === "301",
  },
  missingBeforeMethod: {
    allowedBy: "nothing",
    why: "static files say 404 or 403 to a method that they do not know at all; nginx and design 5.11 say 405",
    explains: (_, { nginx, portico }) =>
      nginx["status"] === "405" && ["403", "404"].includes(portico["status"] ?? ""),
  },
  mediaTypes: {
    allowedBy: "nothing",
    why: "types of files are not those of nginx's mime.types",
    explains: ({ fact }) => fact === "field content-type",
  },
  emptyRange: {
    allowedBy: "nothing",
    why: "`Range: bytes=` is ignored by nginx",
    explains: (_, { nginx, portico }) => nginx["status"] === "200" && portico["status"] === "416",
  },
  pagePadding: {
    allowedBy: "nothing",
    why: "nginx pads error pages for browsers with comments",
    explains: ({ fact, nginx = "" }) =>
      fact === "field content-length" || nginx.includes("a padding to disable MSIE"),
  },
  longFieldLine: {
    allowedBy: "nothing",
    why: "a field line above 8 KiB is 400 in nginx; Portico limits the whole head to 32 KiB",
    explains: (_, { nginx, portico }) => nginx["status"] === "400" && portico["status"] === "200",
  },
  manyFields: {
    allowedBy: "nothing",
    why: "more than 200 fields are 400; nginx counts only bytes",
    explains: (_, { nginx, portico }) => nginx["status"] === "200" && portico["status"] === "400",
  },
  longAnswerHead: {
    allowedBy: "nothing",
    why: "an answer head above 4 KiB is 502 in nginx; Portico takes 64 KiB",
    explains: (_, { nginx, portico }) => nginx["status"] === "502" && portico["status"] === "200",
  },
} as const satisfies Record<string, Rule>;
