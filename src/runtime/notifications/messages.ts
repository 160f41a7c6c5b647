import { hostname } from "node:os";
import { VERSION } from "../../model/text/version.js";
import type { NotificationSecrets } from "../load/notificationFiles.js";
import type { NotificationTargetConfig } from "../../model/serving.js";
import type { SentNotice } from "./notice.js";

/** A request to a target. All text is in the body, as JSON, so that it cannot add a header field or a line. */
export interface Message {
  readonly method: "GET" | "POST";
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Notices that are sent in one message. */
export interface Digest {
  readonly told: readonly SentNotice[];
  /** Number of further notices that were dropped because a target was unreachable for too long. */
  readonly dropped: number;
  readonly at: number;
}

/** The message of a digest, in the form of the target's kind. */
export function messageOf(
  type: Exclude<NotificationTargetConfig["type"], "healthcheck">,
  { url, token }: NotificationSecrets,
  digest: Digest,
): Message {
  const title = titleOf(digest);
  const text = textOf(digest);
  const urgent = digest.told.some(({ state }) => state === "problem");
  const bearer: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  switch (type) {
    case "webhook":
      return post(url, bearer, documentOf(digest, title, text));
    case "ntfy": {
      // Published as JSON, for which the URL is the server's, and the topic is part of the body.
      const path = url.pathname.replace(/\/$/, "");
      const cut = path.lastIndexOf("/");
      const server = new URL(url);
      server.pathname = path.slice(0, cut + 1);
      const [priority, tags] = urgent ? [4, ["warning"]] : [3, ["white_check_mark"]];
      const topic = path.slice(cut + 1);
      return post(server, bearer, { topic, title, message: cutTo(text, NTFY_BYTES_MAX), priority, tags });
    }
    case "gotify": {
      const server = new URL(url);
      server.pathname = `${url.pathname.replace(/\/$/, "")}/message`;
      const priority = urgent ? 8 : 4;
      return post(server, { "x-gotify-key": token! }, { title, message: text, priority });
    }
  }
}

/** A ping, which means that there are no problems. */
export const pingOf = ({ url }: NotificationSecrets): Message => ({ method: "GET", url, headers: {} });

function post(url: URL, more: Record<string, string>, document: unknown): Message {
  const body = JSON.stringify(document);
  const headers = { "content-type": "application/json", ...more };
  return { method: "POST", url, headers, body };
}

function documentOf({ told, dropped, at }: Digest, title: string, text: string): unknown {
  return {
    source: "portico",
    version: VERSION,
    host: hostname(),
    at: new Date(at).toISOString(),
    title,
    text: `${title}\n${text}`,
    content: cutTo(`${title}\n${text}`, CONTENT_BYTES_MAX),
    events: told.map(({ state, key, what, fix, since }) => ({
      state,
      key,
      what,
      fix,
      since: new Date(since).toISOString(),
    })),
    dropped,
  };
}

function titleOf({ told, dropped }: Digest): string {
  const of = (state: SentNotice["state"]): number => told.filter((one) => one.state === state).length;
  const counted = (count: number, noun: string): string[] =>
    count === 0 ? [] : [`${count} ${noun}${count === 1 ? "" : "s"}`];
  const resolved = of("resolved");
  const parts = [
    ...counted(of("problem"), "problem"),
    ...counted(of("event"), "event"),
    ...(resolved === 0 ? [] : [`${resolved} resolved`]),
    ...(dropped === 0 ? [] : [`${dropped} more`]),
  ];
  return `portico on ${hostname()}: ${parts.join(", ")}`;
}

function textOf({ told, dropped }: Digest): string {
  const shown = told.slice(0, SHOWN_MAX).map(({ state, what, fix, since }) => {
    if (state === "resolved") return `Resolved: ${what}`;
    const time = `${state === "event" ? "at" : "since"} ${new Date(since).toISOString().slice(0, 16).replace("T", " ")} UTC`;
    return `${what} (${time})\nFix: ${fix}`;
  });
  const more = told.length - shown.length + dropped;
  return [...shown, ...(more === 0 ? [] : [`and ${more} more`])].join("\n\n");
}

/** Whole characters, and no more bytes. */
function cutTo(text: string, bytes: number): string {
  if (Buffer.byteLength(text) <= bytes) return text;
  const cut = Buffer.from(text)
    .subarray(0, bytes - 3)
    .toString("utf8")
    .replace(/\ufffd$/, "");
  return `${cut}…`;
}

const SHOWN_MAX = 20;
/** ntfy turns a longer message into an attachment, which not every server accepts. */
const NTFY_BYTES_MAX = 4_000;
/** A field of chat services, which refuse more than 2000 characters. */
const CONTENT_BYTES_MAX = 1_900;
