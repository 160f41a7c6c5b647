import { ChunkDecoder, ChunkError } from "../../src/runtime/codec/http1/chunkDecoder.js";
import { HeadError } from "../../src/runtime/codec/http1/fields.js";
import { HeadReader } from "../../src/runtime/codec/http1/headReader.js";
import { parseRequestHead } from "../../src/runtime/codec/http1/requestHead.js";
import { type Reading, type ReadMessage, readWithLlhttp } from "./llhttp.js";

/**
 * How different parsers read the bytes of one connection. A message is safe to forward if all of them read the same:
 * the strict ones it must pass, and the lenient ones that guess where the rules leave nothing to guess.
 */

/** A parser of requests. */
export interface Reader {
  readonly name: string;
  /** A strict one may not refuse what is forwarded. */
  readonly strict: boolean;
  read(bytes: Buffer): Reading;
}

/** How far a lenient parser goes. Each of these was seen in a server that people run. */
interface Leniency {
  /** A lone LF, or even a lone CR, ends a line. */
  readonly lineEnd: RegExp;
  /** Which of several lengths counts, and whether any counts beside chunks. */
  readonly length: "first" | "last" | "beforeChunks";
  /** Names are compared as CGI variables, in which `_` is `-`, and without what does not print around them. */
  readonly looseNames: boolean;
}

const LF_LINES = /\r?\n/g;
const ANY_LINES = /\r\n|\r|\n/g;

/** Limits far beyond any test's heads. */
const LIMITS = { requestLineBytesMax: 65_536, headerCountMax: 1_000 };

export const READERS: readonly Reader[] = [
  { name: "our own", strict: true, read: readWithOurs },
  { name: "llhttp", strict: true, read: (bytes) => readWithLlhttp(bytes, false) },
  { name: "llhttp, lenient", strict: false, read: (bytes) => readWithLlhttp(bytes, true) },
  lenient("LF lines, first length", { lineEnd: LF_LINES, length: "first", looseNames: false }),
  lenient("CR lines, last length", { lineEnd: ANY_LINES, length: "last", looseNames: false }),
  lenient("length before chunks", { lineEnd: LF_LINES, length: "beforeChunks", looseNames: true }),
];

/** What the readers do not agree on; empty if nothing. The first reader is the measure. */
export function disagreements(bytes: Buffer, readers: readonly Reader[] = READERS): string[] {
  const [first, ...others] = readers.map((reader) => ({ reader, reading: reader.read(bytes) }));
  const complaints: string[] = [];
  if (first!.reading.rest === "refused") complaints.push(`${first!.reader.name} refuses it`);
  for (const { reader, reading } of others) {
    // Who refuses a message does not read it otherwise; a strict parser has no reason to.
    const mayRefuse =
      reading.rest === "refused" && (!reader.strict || first!.reading.messages.some(isStrange));
    const expected = mayRefuse ? beginning(first!.reading, reading.messages.length) : first!.reading;
    if (text(reading) !== text(expected)) {
      complaints.push(`${reader.name} reads ${text(reading)}\n  not ${text(expected)}`);
    }
  }
  return complaints;
}

function beginning({ messages }: Reading, count: number): Reading {
  return { messages: messages.slice(0, count), rest: "refused" };
}

/**
 * llhttp refuses methods that it has not heard of, and targets with bytes above 0x7f. Both go on as they came
 * (decisions 1.3 and 2.7), as they do through nginx.
 */
function isStrange({ method, target }: ReadMessage): boolean {
  return !LLHTTP_METHODS.has(method) || /[\x80-\xff]/.test(target);
}

const LLHTTP_METHODS: ReadonlySet<string> = new Set(
  "GET HEAD POST PUT DELETE OPTIONS PATCH PROPFIND PROPPATCH MKCOL COPY MOVE LOCK UNLOCK SEARCH REPORT".split(
    " ",
  ),
);

function text({ messages, rest }: Reading): string {
  return JSON.stringify({ messages, rest });
}

/** The proxy's own parsers, put together as in a connection. */
function readWithOurs(read: Buffer): Reading {
  // Chunks are moved together where they are, and the other parsers read the same.
  const bytes = Buffer.from(read);
  const messages: ReadMessage[] = [];
  let at = 0;
  try {
    while (at < bytes.length) {
      const reader = new HeadReader(1 << 20, LIMITS.requestLineBytesMax);
      if (!reader.read(bytes, at)) return { messages, rest: "part" };
      const request = parseRequestHead(reader, LIMITS, 0);
      at = reader.next;
      let body = "";
      if (request.bodyLength === -1) {
        const decoder = new ChunkDecoder();
        const onBytes = (chunk: Buffer, from: number, to: number): void => {
          body += chunk.toString("latin1", from, to);
        };
        at = decoder.decode(bytes, at, { onBytes });
        if (!decoder.done) return { messages, rest: "part" };
      } else {
        if (bytes.length - at < request.bodyLength) return { messages, rest: "part" };
        body = bytes.toString("latin1", at, at + request.bodyLength);
        at += request.bodyLength;
      }
      messages.push({ method: request.method, target: request.target, fields: request.headers, body });
    }
  } catch (error) {
    if (!(error instanceof HeadError) && !(error instanceof ChunkError)) throw error;
    return { messages, rest: "refused" };
  }
  return { messages, rest: "none" };
}

/** A parser that makes something of everything. */
function lenient(name: string, leniency: Leniency): Reader {
  return { name, strict: false, read: (bytes) => readLeniently(bytes.toString("latin1"), leniency) };
}

function readLeniently(all: string, leniency: Leniency): Reading {
  const messages: ReadMessage[] = [];
  let at = 0;
  while (at < all.length) {
    const head = lenientHead(all, at, leniency);
    if (head === undefined) return { messages, rest: "part" };
    const { method, target, fields, next } = head;
    const body = lenientBody(all, next, fields, leniency);
    if (body === undefined) return { messages, rest: "part" };
    messages.push({ method, target, fields, body: body.text });
    at = body.next;
  }
  return { messages, rest: "none" };
}

function lenientHead(all: string, from: number, { lineEnd }: Leniency) {
  const fields: string[] = [];
  let first: string | undefined;
  let at = from;
  for (;;) {
    lineEnd.lastIndex = at;
    const end = lineEnd.exec(all);
    if (end === null) return undefined;
    const line = all.slice(at, end.index);
    at = end.index + end[0].length;
    if (first === undefined) {
      // Empty lines before a request are skipped.
      if (line.trim() !== "") first = line;
    } else if (line.trim() === "") break;
    else if (/^[ \t]/.test(line) && fields.length > 0) fields[fields.length - 1] += ` ${line.trim()}`;
    else {
      const colon = line.indexOf(":");
      fields.push(
        colon === -1 ? line : line.slice(0, colon).trimEnd(),
        colon === -1 ? "" : trimmed(line.slice(colon + 1)),
      );
    }
  }
  const [method = "", target = ""] = first.split(/[ \t]+/);
  return { method, target, fields, next: at };
}

const trimmed = (value: string): string => value.replace(/^[ \t]+|[ \t]+$/g, "");

function lenientBody(all: string, at: number, fields: readonly string[], leniency: Leniency) {
  const lengths = valuesOf(fields, "content-length", leniency).map((value) => parseInt(value, 10) || 0);
  const chunked = valuesOf(fields, "transfer-encoding", leniency).some((value) => /chunked/i.test(value));
  const length = leniency.length === "last" ? lengths.at(-1) : lengths[0];
  if (chunked && (leniency.length !== "beforeChunks" || length === undefined))
    return lenientChunks(all, at, leniency);
  const next = at + (length ?? 0);
  return next > all.length ? undefined : { text: all.slice(at, next), next };
}

function valuesOf(fields: readonly string[], wanted: string, { looseNames }: Leniency): string[] {
  const values: string[] = [];
  for (let i = 0; i < fields.length; i += 2) {
    const name = looseNames
      ? fields[i]!.replace(/_/g, "-").replace(/^[\0-\x20\x7f-\xff]+|[\0-\x20\x7f-\xff]+$/g, "")
      : fields[i]!;
    if (name.toLowerCase() === wanted) values.push(fields[i + 1]!);
  }
  return values;
}

function lenientChunks(all: string, from: number, { lineEnd }: Leniency) {
  let body = "";
  let at = from;
  for (;;) {
    lineEnd.lastIndex = at;
    const end = lineEnd.exec(all);
    if (end === null) return undefined;
    const size = parseInt(all.slice(at, end.index), 16) || 0;
    at = end.index + end[0].length;
    if (size === 0) break;
    if (at + size > all.length) return undefined;
    body += all.slice(at, at + size);
    at += size;
    lineEnd.lastIndex = at;
    const after = lineEnd.exec(all);
    if (after === null) return undefined;
    at = after.index + after[0].length;
  }
  // Trailers, up to an empty line.
  for (;;) {
    lineEnd.lastIndex = at;
    const end = lineEnd.exec(all);
    if (end === null) return undefined;
    const empty = end.index === at;
    at = end.index + end[0].length;
    if (empty) return { text: body, next: at };
  }
}
