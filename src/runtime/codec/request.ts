import { type HeaderList, normalisePath, parseHost } from "../../model/serving.js";

/** A request as both codecs read it: its head, where it leads, and which fields it may have only once. */
export interface RequestHead {
  readonly method: string;
  /** Origin-form target as the client sent it, one char a byte. */
  readonly target: string;
  /** Normalised path that routing used (`model/target.ts`). */
  readonly path: string;
  /** Request line for the access log, as the client sent it. */
  readonly requestLine: string;
  readonly headers: HeaderList;
  /** Values that the parser found in `headers`; only if it read them as lines. */
  readonly fields?: ReadFields;
  /** Requested host, port included, as the client wrote it; empty if HTTP/1.0 named none. */
  readonly host: string;
  /** The same normalised: lower case, without port. */
  readonly serverName: string;
  /** Bytes of body that follow; -1 for a body of unknown length; 0 for none. */
  readonly bodyLength: number;
  /** True if the message declared its length (`Content-Length`, also 0); a bodiless GET declares none. */
  readonly lengthDeclared: boolean;
  /** Protocol that the client asks to use after the head, lower case (`websocket`); 101 grants it. */
  readonly upgrade: string | undefined;
  /** Whether it has a log-in that belongs to the connection (`connectionLogin.ts`). */
  readonly connectionLogin: boolean;
  /** When the head was complete, by `performance.now()`: the time of day may jump meanwhile. */
  readonly receivedAt: number;
}

/** Parts of a request that only the access log shows: no action reads them. */
export interface LoggedRequest extends RequestHead {
  readonly version: "1.0" | "1.1" | "2.0";
}

/** Header fields, the common ones known without a search. */
export interface ReadFields {
  /** The lines that pass if no rule concerns one of them, and the blank line after them; undefined if one may. */
  readonly plainLines: string | undefined;
  /** First values of the fields that the access log shows. */
  readonly referer: string | undefined;
  readonly userAgent: string | undefined;
  readonly authorization: string | undefined;
}

/** The host and the path that a request's authority and target name, or the status that refuses them. */
export type Addressed =
  | { readonly host: string; readonly serverName: string; readonly target: string; readonly path: string }
  | { readonly refuse: 400 };

/**
 * Checks host and target of a request, whichever protocol carried it.
 *
 * @param authority requested host and port; empty only if HTTP/1.0 named none
 * @param target origin-form target, one char a byte
 */
export function address(authority: string, target: string): Addressed {
  const host = authority === "" ? NO_HOST : parseHost(authority);
  const path = normalisePath(target);
  if (host === undefined || path === undefined) return { refuse: 400 };
  return { host: authority, serverName: host.serverName, target, path };
}

const NO_HOST = { serverName: "", port: "" };

/** Fields that a request may have only once: peers differ in which of two they read. nginx refuses the same ones. */
export const SINGLE_FIELDS = [
  "authorization",
  "content-range",
  "expect",
  "if-match",
  "if-modified-since",
  "if-none-match",
  "if-range",
  "if-unmodified-since",
];
/** A bit for each of their lengths, modulo 32, so that most names cost no comparison. */
const LENGTHS = SINGLE_FIELDS.reduce((bits, { length }) => bits | (1 << length), 0);

/** The name of a field that occurs twice and must not; undefined if none does. HTTP/1.1 notes it as it parses. */
export function repeatedField(headers: HeaderList): string | undefined {
  let seen = 0;
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!;
    if (((LENGTHS >>> name.length) & 1) === 0) continue;
    const at = SINGLE_FIELDS.indexOf(name.toLowerCase());
    if (at === -1) continue;
    if ((seen & (1 << at)) !== 0) return SINGLE_FIELDS[at];
    seen |= 1 << at;
  }
  return undefined;
}
