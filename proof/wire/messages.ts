/** Reads HTTP/1.1 messages as they are: nothing is refused or changed, so that what a proxy sent can be seen. */

export type Field = readonly [name: string, value: string];

export interface Message {
  readonly startLine: string;
  readonly fields: readonly Field[];
  /** Body without framing. */
  readonly body: Buffer;
  readonly framing: "none" | "length" | "chunked" | "close";
  /** Whether the whole of it has arrived. */
  readonly complete: boolean;
  /** Index of the first byte after it. */
  readonly end: number;
}

/** What the bytes are, as far as framing depends on it (RFC 9112, 6.3). */
export type MessageKind =
  | { readonly type: "request" }
  | {
      readonly type: "response";
      /** Method of the request that it answers. */
      readonly method: string;
      /** Whether the peer has closed the connection. */
      readonly ended: boolean;
    };

/** The message that begins at `from`; undefined until its head is complete. Bytes are chars of latin1. */
export function parseMessage(bytes: Buffer, from: number, kind: MessageKind): Message | undefined {
  const headEnd = bytes.indexOf("\r\n\r\n", from);
  if (headEnd === -1) return undefined;
  const [startLine = "", ...lines] = bytes.toString("latin1", from, headEnd).split("\r\n");
  const fields = lines.map((line): Field => {
    const colon = line.indexOf(":");
    return colon === -1 ? [line, ""] : [line.slice(0, colon), line.slice(colon + 1).trim()];
  });
  const at = headEnd + 4;
  const head = { startLine, fields };
  if (kind.type === "response" && isBodiless(startLine, kind.method)) {
    return { ...head, body: Buffer.alloc(0), framing: "none", complete: true, end: at };
  }
  if (/\bchunked\b/i.test(fieldValue(fields, "transfer-encoding") ?? "")) {
    return { ...head, framing: "chunked", ...parseChunks(bytes, at) };
  }
  const declared = fieldValue(fields, "content-length");
  if (declared !== undefined) {
    const end = at + Number(declared);
    const body = bytes.subarray(at, end);
    return {
      ...head,
      body,
      framing: "length",
      complete: bytes.length >= end,
      end: Math.min(end, bytes.length),
    };
  }
  if (kind.type === "request") {
    return { ...head, body: Buffer.alloc(0), framing: "none", complete: true, end: at };
  }
  return { ...head, body: bytes.subarray(at), framing: "close", complete: kind.ended, end: bytes.length };
}

/** First value of a field; undefined if it is absent. */
export function fieldValue(fields: readonly Field[], lowerCaseName: string): string | undefined {
  return fields.find(([name]) => name.toLowerCase() === lowerCaseName)?.[1];
}

function isBodiless(statusLine: string, method: string): boolean {
  const status = statusLine.split(" ")[1] ?? "";
  return method === "HEAD" || status.startsWith("1") || status === "204" || status === "304";
}

function parseChunks(bytes: Buffer, from: number): { body: Buffer; complete: boolean; end: number } {
  const pieces: Buffer[] = [];
  let at = from;
  for (;;) {
    const lineEnd = bytes.indexOf("\r\n", at);
    const size = lineEnd === -1 ? NaN : parseInt(bytes.toString("latin1", at, lineEnd), 16);
    if (Number.isNaN(size)) return { body: Buffer.concat(pieces), complete: false, end: bytes.length };
    const start = lineEnd + 2;
    if (size === 0) {
      // Trailers end with an empty line, which may follow at once.
      const end = bytes.indexOf("\r\n", start) === start ? start + 2 : bytes.indexOf("\r\n\r\n", start) + 4;
      const complete = end >= start + 2;
      return { body: Buffer.concat(pieces), complete, end: complete ? end : bytes.length };
    }
    pieces.push(bytes.subarray(start, start + size));
    at = start + size + 2;
    if (at > bytes.length) return { body: Buffer.concat(pieces), complete: false, end: bytes.length };
  }
}
