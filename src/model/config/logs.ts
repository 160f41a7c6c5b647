import * as z from "zod";
import { text } from "../schema/fields.js";
import { FILE_PATH } from "../text/textRule.js";

/** The logs of requests and errors. */

const logFormat = z
  .enum(["combined", "json"])
  .default("combined")
  .describe(
    "Line format: nginx's `combined`, or one JSON object per line. JSON fields: `tls_group` is the key " +
      "exchange group of the TLS connection, such as `X25519MLKEM768`; `request_body_bytes` is the announced " +
      "length of the request body; `upstream` is the route's upstream; `error` is the failure, by its name in " +
      "RFC 9209, which `portico why` explains; `time_to_first_byte_ms` is the time to the response head; " +
      "`upstream_server` is the URL of the server that got the request; `upstream_connect_ms` is the time to " +
      "open a new connection to it; `upstream_wait_ms` is the time from an open connection to the response " +
      "head. Each is null if there is no such value. `request_id` is the request's id; absent if the request " +
      "has no id.",
  );

const logStream = (longer: string) =>
  z.enum(["stdout", "stderr"]).meta({
    description:
      "Standard output or standard error of the process, collected by the container engine or the journal. A " +
      `line has up to 4096 bytes; ${longer}.`,
    examples: ["stdout"],
  });

/** `/dev/stdout` may be a socket, which cannot be opened, and is never to be opened again after a rotation. */
const logPath = (name: string) =>
  text(
    "config.bad-file-path",
    "an absolute path of a file, without `//`, `.` or `..` segments, control characters or a slash at its end; for standard " +
      "output, use `stream`",
    { ...FILE_PATH, never: `${FILE_PATH.never}|/$|^/(?:dev/(?:std|fd/)|proc/)` },
  ).meta({
    description: "Log file; the user that runs the proxy must be able to write there.",
    examples: [`/var/log/portico/${name}`],
  });
const LOG_FILE = { title: "file", description: "A log file." };
const LOG_STREAM = { title: "stream", description: "A stream of the process." };

export const accessLogFile = z
  .strictObject({ path: logPath("access.log"), format: logFormat })
  .meta(LOG_FILE);
export const accessLogStream = z
  .strictObject({ stream: logStream("in a longer line, text from the client is cut"), format: logFormat })
  .meta(LOG_STREAM);
export const accessLog = z
  .union([z.literal("off"), accessLogFile, accessLogStream])
  .describe("Where requests are logged, one line each; `off` for no log.");

export const errorLogFile = z.strictObject({ path: logPath("error.log") }).meta(LOG_FILE);
export const errorLogStream = z
  .strictObject({ stream: logStream("a longer line is cut at its end") })
  .meta(LOG_STREAM);
export const errorLog = z
  .union([z.literal("off"), errorLogFile, errorLogStream])
  .describe("Where errors are logged; `off` for no log.");

export const logs = z
  .strictObject({
    access: accessLog.default("off"),
    error: errorLog
      .default("off")
      .describe("Where errors are logged; `off` for standard error, which systemd writes to the journal."),
    clientAddress: z
      .enum(["full", "network", "none"])
      .default("full")
      .describe(
        "How all logs, also those of routes, show the addresses of clients. `full`: the address. `network`: with zeros " +
          "after the /24 network of an IPv4 address, and after the /48 network of an IPv6 address. `none`: `-`, and null " +
          "in JSON. For laws that forbid to keep addresses. Programs that ban clients by these logs need the address.",
      ),
  })
  .prefault({})
  .describe("Main logs, for routes without their own logs.");
