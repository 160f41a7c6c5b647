import type { Facts } from "./facts.js";
import type { Step } from "../wire/talk.js";
import type { Field } from "../../testkit/messages.js";
import { HOST, type Mode } from "../wire/site.js";
import type { ResponseScript } from "../wire/upstream.js";

/** How a request reaches a proxy. */
export type Channel =
  /** Plain mode, HTTP/1.1 (service 4.1). */
  | "http"
  /** TLS mode, HTTP/1.1 on the TLS port (service 4.3). */
  | "https"
  /** TLS mode, HTTP/2. */
  | "h2"
  /** TLS mode, HTTP/1.1 on the plain port, which redirects. */
  | "redirect"
  /** TLS mode, HTTP/1.1 without TLS on the TLS port. */
  | "clear";

export const MODE_OF: Readonly<Record<Channel, Mode>> = {
  http: "plain",
  https: "tls",
  h2: "tls",
  redirect: "tls",
  clear: "tls",
};

/** One row of the table: a request, and where it may be answered otherwise than by nginx. */
export interface CaseOf<RuleName extends string> {
  /** What it is about, then what is asked. */
  readonly name: string;
  /** All three ways to the application unless said otherwise; `http` and `https` for steps. */
  readonly over?: readonly Channel[];
  /**
   * A request, or what a client does byte for byte. In all texts `{http}`, `{https}`, `{web}`, `{files}` and `{dav}`
   * stand for the ports, and `{etag}` for the entity tag that the proxy gives `media/img/a.png`.
   */
  readonly send: Request | readonly Step[];
  /** What the upstream says, or that there is none; it greets with its name otherwise. */
  readonly response?: string | (ResponseScript & EarlyOrNot) | "refused";
  /** Status that nginx gives: proves that the case meets what it is about. 0 for none. */
  readonly status: number;
  /** Further facts that both must show, for what the service requires of every proxy. */
  readonly expect?: Facts;
  /** How long to wait for a response, where one of the two is known to give none. */
  readonly patienceMs?: number;
  /**
   * Counts only requests that reach the upstream whole: of a request that is refused in the middle, the proxy may have
   * sent some, or only be about to.
   */
  readonly wholeRequestsOnly?: true;
  /** Rules by which Portico deviates here. Each must explain a difference, on one channel at least. */
  readonly rules?: readonly RuleName[];
}

interface EarlyOrNot {
  /** When it begins: once the whole request is there (default), or its head. */
  readonly after?: "head";
}

/** A well-formed request, sent in the terms of its channel. */
export interface Request {
  readonly method?: string;
  readonly target: string;
  /** `Host`, or `:authority`; the application's by default, undefined for none. */
  readonly host?: string | undefined;
  readonly fields?: readonly Field[];
  /** Pieces of the body: each a chunk, or a frame of HTTP/2. */
  readonly body?: readonly string[];
  /** How the body is framed: by length (default), in chunks, or not at all. HTTP/2 frames it itself. */
  readonly framing?: "length" | "chunked" | "none";
  readonly version?: string;
}

export const ALL: readonly Channel[] = ["http", "https", "h2"];
export const HTTP1: readonly Channel[] = ["http", "https"];

export function get(target: string, fields: readonly Field[] = []): Request {
  return { target, fields };
}

export function ask(method: string, target: string, fields: readonly Field[] = []): Request {
  return { method, target, fields };
}

export function post(target: string, body: readonly string[], fields: readonly Field[] = []): Request {
  return { method: "POST", target, body, fields };
}

/** A head byte for byte: lines, `Host` included; the blank line is added. */
export function head(...lines: readonly string[]): Step[] {
  return [`${lines.join("\r\n")}\r\n\r\n`];
}

/** The same with the application's `Host` after the first line. */
export function line(first: string, ...fields: readonly string[]): Step[] {
  return head(first, `Host: ${HOST}`, ...fields);
}

/** A response of an upstream, from its lines and body. */
export function response(lines: readonly string[], body = ""): string {
  return `${lines.join("\r\n")}\r\n\r\n${body}`;
}

/** A short response with fields of interest. */
export function ok(...fields: readonly string[]): string {
  return response(["HTTP/1.1 200 OK", ...fields, "Content-Length: 2"], "ok");
}

/** What both proxies did with one request. */
export interface Pair {
  readonly row: CaseOf<string>;
  readonly nginx: Facts;
  readonly portico: Facts;
  readonly channel: Channel;
}

/** A fact that is not the same; undefined where one side has no such fact. */
export interface Difference {
  readonly fact: string;
  readonly nginx: string | undefined;
  readonly portico: string | undefined;
}
