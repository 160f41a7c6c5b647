import { type Field, headText } from "../../testkit/messages.js";
import { HOST, type Mode } from "./site.js";

/**
 * The wire laboratory. A case is data: one exchange, byte for byte (this file), or a timeline of many (`timeline.ts`).
 * `perform.ts` plays the one and `lane.ts` the other through a real proxy, between raw clients (`talk.ts`;
 * `scriptedClient.ts`) and upstreams (`upstream.ts`, which keeps all that comes; `strictUpstream.ts`, which takes only
 * what was sent). `responses.ts` reads what a client gets. `readers.ts` judges bytes, and `judge.ts` timelines: what
 * came is its own, whole, once; the rest is for each proof. `search.ts` goes through numbered cases and finds the least
 * that fails.
 */
export interface WireCase {
  /** The topic, then the request. */
  readonly name: string;
  /**
   * A request, or what a client does byte for byte. In all texts `{http}`, `{https}`, `{web}`, `{files}` and `{dav}`
   * stand for the ports, and `{etag}` for the entity tag that the proxy gives `media/img/a.png`.
   */
  readonly send: Request | readonly Step[];
  /** What the upstream says, or that there is none; it greets with its name otherwise. */
  readonly response?: string | (ResponseScript & EarlyOrNot) | "refused";
  /** How long to wait for a response, in cases where none is expected. */
  readonly patienceMs?: number;
  /**
   * Counts only requests that reach the upstream whole: of a request that is refused in the middle, the proxy may have
   * sent some, or only be about to.
   */
  readonly wholeRequestsOnly?: true;
}

interface EarlyOrNot {
  /** When it begins: once the whole request is there (default), or its head. */
  readonly after?: "head";
}

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

/** What a client does: writes bytes (chars of latin1), waits, or closes. */
export type Step =
  | string
  /** Waits until the client was told to continue, has a response's head, or upstreams have so many bytes. */
  | { readonly until: Exclude<Awaited, "tunnel"> | { readonly upstreamBytes: number } }
  | { readonly pauseMs: number }
  | { readonly close: Close };

/** What a client waits for, to have been told or given. */
export type Awaited = "continue" | "response" | "tunnel";

/** How a client leaves: closes the sending direction, or the whole connection at once, or resets it. */
export type Close = "half" | "all" | "reset";

/** What an upstream says, raw. A text is written at once, and the connection stays open. */
export type Response = string | ResponseScript;

export interface ResponseScript<Piece = string> {
  /** Pieces are written one after the other, a moment apart; none: no response is ever given. */
  readonly pieces: readonly Piece[];
  /** How long it waits before each but the first, in milliseconds. Default 5. */
  readonly pauseMs?: number;
  /** What becomes of the connection then; it stays open by default. */
  readonly then?: "close" | "reset";
  /** How long it waits before that. Default 0; 5 before a reset, for what was written before to be read before. */
  readonly thenMs?: number;
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
  return [headText(...lines)];
}

/** The same with the application's `Host` after the first line. */
export function line(first: string, ...fields: readonly string[]): Step[] {
  return head(first, `Host: ${HOST}`, ...fields);
}

/** A response of an upstream, from its lines and body. */
export function response(lines: readonly string[], body = ""): string {
  return headText(...lines) + body;
}

/** A short response with fields of interest. */
export function ok(...fields: readonly string[]): string {
  return response(["HTTP/1.1 200 OK", ...fields, "Content-Length: 2"], "ok");
}
