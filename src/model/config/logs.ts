import * as z from "zod";
import { filePath } from "../fields.js";

/** Where requests and errors are logged. */

const logFormat = z
  .enum(["combined", "json"])
  .default("combined")
  .describe(
    "Line format: nginx's `combined`, or one JSON object per line. In JSON, `tls_group` is the key exchange " +
      "group of the TLS connection, such as `X25519MLKEM768`, or null. `request_id` is the id of the request, " +
      "as on its error page; without an id, the member is absent. `request_body_bytes` is the announced length " +
      "of the request body, or null. `upstream` is the upstream of the route, or null. `error` is the failure " +
      "of the request by the names of RFC 9209, which `portico why` explains, or null. `time_to_first_byte_ms` " +
      "is the time to the head of the response, or null. `upstream_server` is the URL of the server that got " +
      "the request, `upstream_connect_ms` the time to establish a new connection to it, and `upstream_wait_ms` " +
      "the time from an established connection to the head of the response; each may be null.",
  );

const logStream = (longer: string) =>
  z.enum(["stdout", "stderr"]).meta({
    description:
      "Standard output or standard error of the process, which a container's engine or the journal collects. A line has " +
      `up to 4096 bytes; ${longer}.`,
    examples: ["stdout"],
  });

const LOG_PATH = "Log file; the user that runs the proxy must be able to write there.";
const LOG_FILE = { title: "file", description: "Lines are appended to a file." };
const LOG_STREAM = { title: "stream", description: "Lines go to a stream of the process." };

export const accessLogFile = z
  .strictObject({ path: filePath(LOG_PATH, "/var/log/portico/access.log"), format: logFormat })
  .meta(LOG_FILE);
export const accessLogStream = z
  .strictObject({ stream: logStream("of a longer one, what the client sent is cut"), format: logFormat })
  .meta(LOG_STREAM);
export const accessLog = z
  .union([z.literal("off"), accessLogFile, accessLogStream])
  .describe("Log of requests, one line each; `off` for no log.");

export const errorLogFile = z
  .strictObject({ path: filePath(LOG_PATH, "/var/log/portico/error.log") })
  .meta(LOG_FILE);
export const errorLogStream = z
  .strictObject({ stream: logStream("a longer one ends early") })
  .meta(LOG_STREAM);
export const errorLog = z
  .union([z.literal("off"), errorLogFile, errorLogStream])
  .describe("Log of errors; `off` for no log.");

export const logs = z
  .strictObject({
    access: accessLog.default("off"),
    error: errorLog
      .default("off")
      .describe("Log of errors; `off` for standard error, which systemd puts into the journal."),
  })
  .prefault({})
  .describe("Main logs, for routes without a log of their own.");
