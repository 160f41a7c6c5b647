import {
  type AccessEntry,
  type ErrorEntry,
  type LogEntry,
  numberOf,
  textOf,
} from "../host/diagnosis/logs/logEntry.js";
import type { ConfigLog } from "../host/diagnosis/logs/configLogs.js";
import { hiddenQuery, shownText } from "../host/diagnosis/replay/replayTexts.js";

/** A line of a log as a person reads it; the start of the line has its colour from `output.ts`. */
export function entryText(entry: LogEntry, secrets: boolean): string {
  const time = clockOf(entry.time);
  return entry.kind === "error"
    ? `${time} ${errorText(entry, secrets)}\n`
    : `${time} ${accessText(entry, secrets)}\n`;
}

/** The same as one line of JSON. */
export function entryJson(entry: LogEntry, log: ConfigLog, secrets: boolean): string {
  const at = { log: log.path, kind: entry.kind };
  const value =
    entry.kind === "error"
      ? {
          ...at,
          time: isoOf(entry.time),
          level: entry.level,
          message: shownMessage(entry.message, secrets),
          remote_addr: entry.client,
          request_id: entry.requestId,
        }
      : { ...at, ...accessFields(entry, secrets) };
  return `${JSON.stringify(value).replace(BEYOND_ASCII, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`)}\n`;
}

const BEYOND_ASCII = /[^ -~]/g;

function accessFields(entry: AccessEntry, secrets: boolean): object {
  const { fields, request, client, status, bytes } = entry;
  const target = request === undefined ? null : shownTarget(request.target, secrets);
  if (fields !== undefined) {
    const referer = textOf(fields["referer"]);
    return {
      ...fields,
      target: target ?? shownTarget(textOf(fields["target"]) ?? "", secrets),
      ...(referer === undefined ? {} : { referer: shownTarget(referer, secrets) }),
    };
  }
  return {
    time: isoOf(entry.time),
    remote_addr: client,
    method: request?.method ?? null,
    target,
    status,
    body_bytes_sent: bytes,
  };
}

function accessText(entry: AccessEntry, secrets: boolean): string {
  const { fields = {}, request, client, status, bytes } = entry;
  const what =
    request === undefined
      ? "(no request)"
      : `${request.method} ${shownText(request.host ?? "", true)}${shownTarget(request.target, secrets)}`;
  const ms = numberOf(fields["request_time_ms"]);
  const place = [textOf(fields["server"]), textOf(fields["route"])]
    .filter((one) => one !== undefined)
    .join("/");
  const parts = [
    what,
    `${bytes} B`,
    ...(ms === undefined ? [] : [`${ms} ms`]),
    client,
    ...(place === "" ? [] : [place]),
    ...[textOf(fields["upstream_server"]), textOf(fields["error"]), textOf(fields["request_id"])].filter(
      (one) => one !== undefined,
    ),
  ];
  return `${status} ${parts.map((part) => (part === what ? part : shownText(part, true))).join("  ")}`;
}

const errorText = ({ level, message }: ErrorEntry, secrets: boolean): string =>
  `${level.padEnd(5)} ${shownMessage(message, secrets)}`;

/** Removes the query from request lines and URLs that a message quotes. */
function shownMessage(message: string, secrets: boolean): string {
  if (secrets) return longText(message, true);
  return longText(message.replace(QUOTED_QUERY, "?..."), false);
}

const QUOTED_QUERY = /\?[^ "]+/g;

/** Messages may be longer than the part of a path that a line shows. */
function longText(text: string, secrets: boolean): string {
  return text
    .slice(0, 2_000)
    .split(" ")
    .map((word) => shownText(word, secrets))
    .join(" ");
}

export const shownTarget = (target: string, secrets: boolean): string =>
  shownText(secrets ? target : hiddenQuery(target), secrets);

const isoOf = (time: number): string => new Date(time).toISOString();

const two = (n: number): string => String(n).padStart(2, "0");

/** The time by the clock of this host; with the day if that is not today. */
function clockOf(time: number): string {
  const date = new Date(time);
  const clock = [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
  if (date.toDateString() === new Date().toDateString()) return clock;
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock}`;
}
