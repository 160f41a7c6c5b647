import { CUT_REQUEST, NO_REQUEST, type LineRequest, readLogLine } from "./accessLogLine.js";

/** Parsed lines of access and error logs. Texts are not escaped: code that shows them must do so. */

/** A line of an access log. */
export interface AccessEntry {
  readonly kind: "access";
  /** Milliseconds since 1970; when the response was over. */
  readonly time: number;
  readonly client: string;
  readonly status: number;
  /** The request; undefined if it could not be parsed. */
  readonly request: LineRequest | undefined;
  /** Body bytes that were sent. */
  readonly bytes: number;
  /** All fields of a JSON line; undefined of a combined one. */
  readonly fields: Readonly<Record<string, unknown>> | undefined;
}

/** A line of an error log. */
export interface ErrorEntry {
  readonly kind: "error";
  readonly time: number;
  readonly level: string;
  /** The text after time, level and process. */
  readonly message: string;
  /** Address of the client; undefined if it concerns none. */
  readonly client: string | undefined;
  readonly requestId: string | undefined;
}

export type LogEntry = AccessEntry | ErrorEntry;

/** @returns undefined if it is no line of such a log */
export function readEntry(kind: LogEntry["kind"], line: string): LogEntry | undefined {
  return kind === "error" ? errorEntry(line) : line.startsWith("{") ? jsonEntry(line) : combinedEntry(line);
}

function jsonEntry(line: string): AccessEntry | undefined {
  let fields: Readonly<Record<string, unknown>>;
  try {
    fields = JSON.parse(line) as typeof fields;
  } catch {
    return undefined;
  }
  const time = Date.parse(String(fields["time"]));
  const { status } = fields;
  if (typeof status !== "number" || Number.isNaN(time)) return undefined;
  const request = requestOf(line);
  const client = textOf(fields["remote_addr"]) ?? "";
  return {
    kind: "access",
    time,
    client,
    status,
    request,
    bytes: numberOf(fields["body_bytes_sent"]) ?? 0,
    fields,
  };
}

function combinedEntry(line: string): AccessEntry | undefined {
  const open = line.indexOf(" [");
  const close = line.indexOf('] "', open);
  const time = open < 1 || close === -1 ? NaN : combinedTime(line.slice(open + 2, close));
  if (Number.isNaN(time)) return undefined;
  const request = requestOf(line);
  // The first quote that is not escaped ends an invalid request line: no field before the status has a space.
  const [, status, bytes] = /" (\d{3}) (\d{1,15}|-) "/.exec(line.slice(close + 2)) ?? [];
  if (status === undefined) return undefined;
  const shown = line.slice(0, line.indexOf(" "));
  const client = shown === "-" ? "" : shown;
  return {
    kind: "access",
    time,
    client,
    status: request?.status ?? Number(status),
    request,
    bytes: Number(bytes) || 0,
    fields: undefined,
  };
}

/** `21/Nov/2026:10:01:22 +0000`. */
function combinedTime(text: string): number {
  const [, date, time] = /^(\d\d\/[A-Za-z]{3}\/\d{4}):(\d\d:\d\d:\d\d [+-]\d{4})$/.exec(text) ?? [];
  return date === undefined ? NaN : Date.parse(`${date.replaceAll("/", " ")} ${time}`);
}

function requestOf(line: string): LineRequest | undefined {
  const read = readLogLine(line);
  return read === NO_REQUEST || read === CUT_REQUEST ? undefined : read;
}

function errorEntry(line: string): ErrorEntry | undefined {
  const [start, date, clock, level] =
    /^(\d{4}\/\d\d\/\d\d) (\d\d:\d\d:\d\d) \[([a-z]{1,10})\] \d{1,10}#\d{1,10}: /.exec(line) ?? [];
  if (start === undefined) return undefined;
  // The log is in the time of this host.
  const time = Date.parse(`${date!.replaceAll("/", "-")}T${clock}`);
  if (Number.isNaN(time)) return undefined;
  const message = line.slice(start.length);
  const about = concerned(message);
  return {
    kind: "error",
    time,
    level: level!,
    message,
    client: /^, client: ([0-9A-Fa-f.:]{2,45})/.exec(about)?.[1],
    requestId: /, request id: ([0-9A-Za-z._:+/=-]{1,128})(?:,|$)/.exec(about)?.[1],
  };
}

/**
 * The part of a message that names client, server and request id. Text before that part may quote a client, which may
 * have sent such a part; text after that part is fields in quotes, in which every quote is escaped (`errorLine`).
 */
function concerned(message: string): string {
  let end = message.length;
  while (message[end - 1] === '"') {
    const open = message.lastIndexOf('"', end - 2);
    const field = open < 1 ? undefined : QUOTED_FIELDS.find((one) => message.endsWith(one, open));
    if (field === undefined) break;
    end = open - field.length;
  }
  const begin = message.lastIndexOf(", client: ", end);
  return begin === -1 ? "" : message.slice(begin, end);
}

const QUOTED_FIELDS = [", request: ", ", upstream: ", ", host: ", ", referrer: "];

export const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
export const numberOf = (value: unknown): number | undefined =>
  typeof value === "number" ? value : undefined;
