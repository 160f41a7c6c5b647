import type { Case } from "../deviations.js";
import { ask, get, line } from "../../wire/case.js";
import type { Field } from "../../../testkit/messages.js";
import { TYPED_FILES } from "../../wire/site.js";

const FILE = "/syncmedia/img/a.png";
/** Files whose type differs. */
const OTHER_TYPES = ["a.js", "a.mjs", "a.map", "a.ttf", "a.otf", "a.gz", "a.md"];
const MODIFIED = "Tue, 02 Jan 2024 03:04:05 GMT";
const LATER = "Wed, 03 Jan 2024 03:04:05 GMT";
const EARLIER = "Mon, 01 Jan 2024 03:04:05 GMT";
const ETAG = "{etag}";

const asked = (status: number, ...fields: readonly Field[]): Case => askedBy([], status, ...fields);

const askedBy = (rules: Case["rules"], status: number, ...fields: readonly Field[]): Case => ({
  name: `file: ${fields.map((field) => field.join(": ")).join(", ")}`,
  send: get(FILE, fields),
  status,
  rules,
});

/** Conditional and partial requests (decisions 6.4 and 6.5). */
export const CONDITIONAL_CASES: readonly Case[] = [
  asked(304, ["If-None-Match", ETAG]),
  asked(304, ["If-None-Match", `W/${ETAG}`]),
  asked(304, ["If-None-Match", `"x", ${ETAG}`]),
  asked(304, ["If-None-Match", "*"]),
  asked(200, ["If-None-Match", '"x"']),
  asked(200, ["If-None-Match", '"x"'], ["If-Modified-Since", MODIFIED]),
  asked(304, ["If-Modified-Since", MODIFIED]),
  asked(200, ["If-Modified-Since", EARLIER]),
  askedBy(["dateConditions"], 200, ["If-Modified-Since", LATER]),
  asked(200, ["If-Modified-Since", "bad"]),
  askedBy(["preconditionKeepsConnection"], 412, ["If-Unmodified-Since", EARLIER]),
  asked(200, ["If-Unmodified-Since", MODIFIED]),
  asked(200, ["If-Unmodified-Since", LATER]),
  asked(200, ["If-Match", ETAG]),
  asked(200, ["If-Match", "*"]),
  askedBy(["preconditionKeepsConnection"], 412, ["If-Match", '"x"']),
  askedBy(["preconditionKeepsConnection"], 412, ["If-Match", `W/${ETAG}`]),
  ...["0-3", "5-", "-4", "40-999", "-999", "0-0", "44-44", " 0 - 3", "0-44"].map((range) => asked(206, [
    "Range", `bytes=${range}`,
  ])),
  asked(206, ["Range", "Bytes=0-3"]),
  ...["-0", "100-", "3-1", "a-b", "45-"].map((range) => asked(416, ["Range", `bytes=${range}`])),
  askedBy([], 200, ["Range", "bytes="]),
  asked(200, ["Range", "lines=0-3"]),
  asked(206, ["Range", "bytes=0-1,4-5"]),
  asked(206, ["Range", "bytes=0-1, 1-5,-2"]),
  asked(206, ["Range", "bytes=0-1,100-200"]),
  asked(416, ["Range", "bytes=100-,200-"]),
  asked(200, ["Range", "bytes=0-,0-,0-"]),
  asked(206, ["Range", "bytes=0-3"], ["If-Range", ETAG]),
  asked(206, ["Range", "bytes=0-3"], ["If-Range", MODIFIED]),
  asked(200, ["Range", "bytes=0-3"], ["If-Range", `W/${ETAG}`]),
  asked(200, ["Range", "bytes=0-3"], ["If-Range", LATER]),
  asked(200, ["Range", "bytes=0-3"], ["If-Range", '"x"']),
  asked(304, ["Range", "bytes=0-3"], ["If-None-Match", ETAG]),
  { name: "file: HEAD with Range", send: ask("HEAD", FILE, [["Range", "bytes=0-3"]]), status: 206,
    rules: ["headHasNoRanges"] },
  { name: "file: HEAD with several ranges", send: ask("HEAD", FILE, [["Range", "bytes=0-1,4-5"]]), status: 206,
    rules: ["headHasNoRanges"] },
  { name: "file: HEAD with a range that cannot be satisfied", send: ask("HEAD", FILE, [["Range", "bytes=100-"]]),
    status: 416, rules: ["headHasNoRanges"] },
  { name: "file: Range in HTTP/1.0", send: line(`GET ${FILE} HTTP/1.0`, "Range: bytes=0-3"), status: 206 },
  { name: "file: Range of an empty file", send: get("/syncmedia/empty.txt", [["Range", "bytes=0-"]]), status: 200 },
  { name: "file: Range of a large file", send: get("/syncmedia/large.bin", [["Range", "bytes=100000-499999"]]),
    status: 206 },
  { name: "file: several ranges of a large file",
    send: get("/syncmedia/large.bin", [["Range", "bytes=0-9,300000-300009"]]), status: 206 },
];

/** Files and directories (decisions 6). */
export const FILE_CASES: readonly Case[] = [
  { name: "file: a file", send: get(FILE), status: 200 },
  { name: "file: a large file", send: get("/syncmedia/large.bin"), status: 200 },
  { name: "file: an empty file", send: get("/syncmedia/empty.txt"), status: 200 },
  { name: "file: a query does not matter", send: get(`${FILE}?v=1.2`), status: 200 },
  { name: "file: encoded space", send: get("/syncmedia/img/a%20b.png"), status: 200 },
  { name: "file: encoded slash", send: get("/syncmedia/img%2Fa.png"), status: 200 },
  { name: "file: doubled slashes", send: get("//syncmedia//img//a.png"), status: 200 },
  { name: "file: dot segments inside", send: get("/syncmedia/x/../img/./a.png"), status: 200 },
  { name: "file: dot segments that leave the folder", send: get("/syncmedia/../media/img/a.png"), status: 404 },
  { name: "file: encoded dot segments that leave the folder", send: get("/syncmedia/%2e%2e/media-old/secret.txt"),
    status: 404 },
  { name: "file: encoded slashes that leave the folder", send: get("/syncmedia/..%2Fmedia-old/secret.txt"),
    status: 404 },
  { name: "file: a name in other case", send: get("/syncmedia/img/A.png"), status: 404 },
  { name: "file: a missing file", send: get("/syncmedia/img/none.png"), status: 404 },
  { name: "file: HEAD of a missing file", send: ask("HEAD", "/syncmedia/img/none.png"), status: 404 },
  { name: "file: a file with a slash behind it", send: get(`${FILE}/`), status: 404 },
  { name: "file: a child of a file", send: get(`${FILE}/b`), status: 404 },
  { name: "file: a name that is too long", send: get(`/syncmedia/${"x".repeat(300)}`), status: 404 },
  { name: "file: a file that nobody may read", send: get("/syncmedia/locked.txt"), status: 403 },
  { name: "file: a file in a folder that nobody may enter", send: get("/syncmedia/closed/inside.txt"), status: 403 },
  { name: "file: a dot file", send: get("/syncmedia/img/.hidden"), status: 200 },
  { name: "file: a link that stays inside", send: get("/syncmedia/img/link-inside.png"), status: 200 },
  { name: "file: a link that leads out", send: get("/syncmedia/img/link-outside.txt"), status: 200,
    rules: ["linksInside"] },
  { name: "file: a directory", send: get("/syncmedia/img/"), status: 403 },
  { name: "file: the media directory", send: get("/syncmedia/"), status: 403 },
  { name: "file: a directory without its slash", send: get("/syncmedia/img?x=1"), status: 301,
    rules: ["directoryRedirect"] },
  { name: "file: the media directory without its slash", send: get("/syncmedia"), status: 301,
    rules: ["directoryRedirect"] },
  { name: "file: a directory that has an index file", send: get("/syncmedia/withindex/"), status: 404,
    rules: ["noListing"] },
  { name: "file: /syncmediax is not below /syncmedia", send: get("/syncmediax"), status: 200,
    rules: ["segmentBoundary"] },
  { name: "file: /syncmedia-old is not below /syncmedia", send: get("/syncmedia-old/secret.txt"), status: 200,
    rules: ["segmentBoundary"] },
  ...["OPTIONS", "PUT", "DELETE", "PROPFIND", "FOO"].map((method): Case => ({ name: `file: ${method} of a file`,
    send: ask(method, FILE), status: 405, rules: ["readOnlyFiles"] })),
  { name: "file: DELETE of a missing file", send: ask("DELETE", "/syncmedia/none"), status: 405,
    rules: ["readOnlyFiles"] },
  { name: "file: POST of a missing file", send: ask("POST", "/syncmedia/none"), status: 404,
    rules: ["readOnlyFiles"] },
  { name: "file: POST of a file", send: ask("POST", FILE), status: 405, rules: ["readOnlyFiles"] },
  { name: "file: PUT of a directory", send: ask("PUT", "/syncmedia/img/"), status: 405, rules: ["readOnlyFiles"] },
  { name: "file: Accept-Encoding: nothing is compressed",
    send: get("/syncmedia/types/a.html", [["Accept-Encoding", "gzip"]]), status: 200 },
  ...TYPED_FILES.map((name): Case => ({ name: `file: type of ${name}`, over: ["http"],
    send: get(`/syncmedia/types/${name}`), status: 200, rules: OTHER_TYPES.includes(name) ? ["mediaTypes"] : [] })),
  { name: "file: type of an extension in capitals", send: get("/syncmedia/img/UPPER.PNG"), status: 200 },
];
