import { headText as message } from "../messages.js";

/** What becomes of a raw request. A canary request is always sent right after it. */
export type Outcome =
  /** Refused with this status (400 and above), the connection closed, nothing of it complete at an upstream. */
  | number
  /** It is one request: it gets its own response, and the canary after it the canary's. */
  | "passes"
  /** It is two requests by every reading: both get a response, then the canary. */
  | "two"
  /** It asks to close: it gets a response, and the canary none. */
  | "last"
  /** By every reading the canary is part of it, and more is to come: no response. */
  | "waits";

/** Bytes of one client (chars of latin1), and what must become of them. */
export interface RequestCase {
  readonly name: string;
  readonly bytes: string;
  readonly outcome: Outcome;
}

export const HOST_LINE = "Host: sync.example";

/** What an attacker wants to be read as a request of its own. */
export const SMUGGLED = `GET /sync/smuggled HTTP/1.1\r\n${HOST_LINE}\r\n\r\n`;

/** A GET with further field lines; in all of these the attack stands in raw bytes. */
export const get = (...lines: readonly string[]): string =>
  message("GET /sync/case HTTP/1.1", HOST_LINE, ...lines);

/** An upload with further field lines, and its body as it stands on the wire. */
export const post = (lines: readonly string[], body = ""): string =>
  message("POST /synchttp/case HTTP/1.1", HOST_LINE, ...lines) + body;

export const hexLength = (text: string): string => text.length.toString(16);

/** Rows whose name is what makes them up. */
export function rows(
  family: string,
  outcome: Outcome,
  bytes: (what: string) => string,
  whats: readonly string[],
): RequestCase[] {
  return whats.map((what) => ({ name: `${family} ${JSON.stringify(what)}`, bytes: bytes(what), outcome }));
}
