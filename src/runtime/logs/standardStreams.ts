import fs from "node:fs";
import type { LoggedExchange } from "../exchange/exchange.js";
import { cutValue, loggedFields } from "./logFormat.js";

/**
 * Standard output and error as logs. All workers share them, and often the master of an upgrade too, so that only one
 * thing keeps two lines apart: the kernel writes up to PIPE_BUF bytes to a pipe at once, or none of them (pipe(7)).
 */

/** Linux's PIPE_BUF. A stream gets whole lines of no more than this in one write. */
export const STREAM_LINE_BYTES_MAX = 4_096;

const DESCRIPTORS = { stdout: 1, stderr: 2 } as const;

/** A stream that a service is started with. */
export type StreamName = keyof typeof DESCRIPTORS;

/**
 * A descriptor to write to. A pipe is opened again, because whether a write may wait is a setting of the open pipe,
 * which other processes share, and Node resets when one of them ends.
 */
export function openStream(name: StreamName): number {
  const fd = DESCRIPTORS[name];
  try {
    if (fs.fstatSync(fd).isFIFO())
      return fs.openSync(`/proc/self/fd/${fd}`, fs.constants.O_WRONLY | fs.constants.O_NONBLOCK);
  } catch {
    // It belongs to another user, or is closed: then the descriptor itself shows the error.
  }
  return fd;
}

/**
 * Whether a write to a stream's descriptor may block: a socket, as systemd passes it, or a pipe of another user cannot
 * be opened again as non-blocking.
 */
export function writesMayWait(fd: number): boolean {
  try {
    return fd <= DESCRIPTORS.stderr && !fs.fstatSync(fd).isFile();
  } catch {
    return false;
  }
}

/** Length of the whole lines that one write may take; all of a text that fits. */
export function wholeLines(lines: Buffer): number {
  if (lines.length <= STREAM_LINE_BYTES_MAX) return lines.length;
  return lines.lastIndexOf(LF, STREAM_LINE_BYTES_MAX - 1) + 1 || STREAM_LINE_BYTES_MAX;
}

const LF = 0x0a;

/** A line of no more bytes than fit; a longer one ends early. */
export function cutLine(line: string, bytesMax: number): string {
  // No character takes more than three bytes for one unit of a string.
  if (line.length * 3 <= bytesMax || Buffer.byteLength(line) <= bytesMax) return line;
  const bytes = Buffer.from(line, "utf8");
  let end = bytesMax - CUT.length - 1;
  // Not in the middle of a character (RFC 3629, 3).
  while ((bytes[end]! & 0xc0) === 0x80) end--;
  return `${bytes.toString("utf8", 0, end)}${CUT}\n`;
}

/** The line of an exchange. If it is too long, values from the client are cut, so that the line keeps its format. */
export function fittingLine(
  format: (exchange: LoggedExchange) => string,
  exchange: LoggedExchange,
  bytesMax: number,
): string {
  let line = format(exchange);
  for (let max = bytesMax / 2; line.length > bytesMax && max >= 1; max /= 2)
    line = format(shortened(exchange, max));
  return line;
}

/** The same exchange, with no more than so many characters of each value that a client sent. */
function shortened(exchange: LoggedExchange, max: number): LoggedExchange {
  const cut = (text: string): string => cutValue(text, max);
  const cutField = (text: string | undefined): string | undefined => text && cut(text);
  const { request } = exchange;
  const { referer, userAgent, authorization } = loggedFields(request);
  return withValues(exchange, {
    request: withValues(request, {
      method: cut(request.method),
      target: cut(request.target),
      requestLine: cut(request.requestLine),
      host: cut(request.host),
      fields: {
        plainLines: undefined,
        referer: cutField(referer),
        userAgent: cutField(userAgent),
        authorization: cutField(authorization),
      },
    }),
  });
}

function withValues<T extends object>(of: T, values: Partial<T>): T {
  return Object.create(of, Object.getOwnPropertyDescriptors(values)) as T;
}

/** Marks where a line was cut. */
const CUT = "...";
