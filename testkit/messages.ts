/**
 * One reader of HTTP/1.1 messages from bytes (RFC 9112) for all tests: either strict, so that violations show, or as they
 * are, so that everything a proxy sent shows. It shares no code with the proxy's own parser: a mistake common to both would
 * not be seen.
 */

export type Field = readonly [name: string, value: string];

export interface MessageHead {
  readonly startLine: string;
  /** As they came; to a strict reader a name that came twice is a violation. */
  readonly fields: readonly Field[];
}

/** Bytes of a body, or what ends it; `raw` for bytes that are not a message any more. */
export type BodyKind = number | "chunked" | "close" | "raw";

export interface MessageSink {
  /** @returns what follows the head; `head` for another head (1xx) */
  head(head: MessageHead): BodyKind | "head";
  body(bytes: Buffer): void;
  /** @returns `stop` if nothing more is to be read */
  end(): void | "stop";
}

/** The peer broke HTTP, or the rules of the case. */
export class Violation extends Error {}

type State =
  | "head"
  | "length"
  | "size"
  | "data"
  | "dataEnd"
  | "trailer"
  | "close"
  | "raw"
  | "broken"
  | "stopped";

const LINE_END = Buffer.from("\r\n");
const HEAD_END = Buffer.from("\r\n\r\n");
/** The limit of a strict reader only. */
const HEAD_BYTES_MAX = 16_384;

export class MessageReader {
  private state: State = "head";
  private rest: Buffer = Buffer.alloc(0);
  private left = 0;

  /** @param rules `strict`: throws a {@link Violation}; `asItIs`: refuses nothing, and stops at a length that it cannot read */
  constructor(
    private readonly sink: MessageSink,
    private readonly rules: "strict" | "asItIs" = "strict",
  ) {}

  /** Whether it stands between messages, with no byte of the next. */
  get between(): boolean {
    return this.state === "head" && this.rest.length === 0;
  }

  /** Bytes of a head that is not there yet. */
  get begun(): Buffer {
    return this.state === "head" ? this.rest : Buffer.alloc(0);
  }

  /** Bytes that were not read yet. */
  get unread(): number {
    return this.rest.length;
  }

  feed(bytes: Buffer): void {
    this.rest = this.rest.length === 0 ? bytes : Buffer.concat([this.rest, bytes]);
    while (this.rest.length > 0 && this.step());
    // What is kept must not change with the next read.
    if (this.rest.length > 0 && this.state !== "stopped") this.rest = Buffer.from(this.rest);
  }

  /** The peer ended its side. @returns false if that is in the midst of a message */
  finish(): boolean {
    if (this.state === "close") this.ended();
    return this.between || this.state === "raw";
  }

  /** @returns false if more bytes are needed */
  private step(): boolean {
    switch (this.state) {
      case "head":
        return this.head();
      case "length":
      case "data":
        return this.counted();
      case "dataEnd": {
        if (this.rest.length < 2) return false;
        if (!this.take(2).equals(LINE_END)) this.refuse("no line end behind a chunk");
        this.state = "size";
        return true;
      }
      case "size":
        return this.size();
      case "trailer": {
        const line = this.line();
        if (line === undefined) return false;
        if (line === "") this.ended();
        return true;
      }
      case "stopped":
        return false;
      case "broken":
        this.take(this.rest.length);
        return false;
      default:
        this.sink.body(this.take(this.rest.length));
        return false;
    }
  }

  private head(): boolean {
    const at = this.rest.indexOf(HEAD_END);
    if (at === -1) {
      if (this.rest.length > HEAD_BYTES_MAX) this.refuse("a head without end");
      return false;
    }
    const text = this.take(at + 4).toString("latin1", 0, at);
    const head = parseHead(text);
    if (this.rules === "strict") checkFields(text, head);
    const kind = this.sink.head(head);
    if (kind === "head") return true;
    if (kind === "chunked") this.state = "size";
    else if (kind === 0) this.ended();
    else if (typeof kind !== "number") this.state = kind;
    else {
      this.left = kind;
      this.state = kind > 0 ? "length" : "broken";
    }
    return true;
  }

  private size(): boolean {
    const line = this.line();
    if (line === undefined) return false;
    if (!/^[0-9a-f]{1,8}$/i.test(line)) this.refuse(`chunk size ${JSON.stringify(line)}`);
    this.left = parseInt(line, 16);
    this.state = this.left === 0 ? "trailer" : this.left > 0 ? "data" : "broken";
    return true;
  }

  private counted(): boolean {
    const piece = this.take(Math.min(this.left, this.rest.length));
    this.left -= piece.length;
    this.sink.body(piece);
    if (this.left > 0) return false;
    if (this.state === "data") this.state = "dataEnd";
    else this.ended();
    return true;
  }

  private ended(): void {
    this.state = "head";
    if (this.sink.end() === "stop") this.state = "stopped";
  }

  private refuse(what: string): void {
    if (this.rules === "strict") throw new Violation(what);
  }

  private line(): string | undefined {
    const at = this.rest.indexOf(LINE_END);
    if (at === -1) return undefined;
    return this.take(at + 2).toString("latin1", 0, at);
  }

  private take(bytes: number): Buffer {
    const taken = this.rest.subarray(0, bytes);
    this.rest = this.rest.subarray(bytes);
    return taken;
  }
}

/** A head without the empty line behind it. */
export function parseHead(text: string): MessageHead {
  const [startLine = "", ...lines] = text.split("\r\n");
  const fields = lines.map((line): Field => {
    const colon = line.indexOf(":");
    return colon === -1
      ? [line, ""]
      : [line.slice(0, colon), line.slice(colon + 1).replace(BLANKS_AROUND, "")];
  });
  return { startLine, fields };
}

const BLANKS_AROUND = /^[ \t]+|[ \t]+$/g;

const FIELD_LINE = /^[!#$%&'*+.^_`|~\w-]+:[ \t]*[\t -~\x80-\xff]*?[ \t]*$/;

function checkFields(text: string, { fields }: MessageHead): void {
  for (const line of text.split("\r\n").slice(1))
    if (!FIELD_LINE.test(line)) throw new Violation(`field line ${JSON.stringify(line)}`);
  const names = new Set<string>();
  for (const [name] of fields) {
    if (names.has(name.toLowerCase())) throw new Violation(`two ${name} fields`);
    names.add(name.toLowerCase());
  }
}

/** First value of a field; undefined if it is absent. */
export function fieldValue(fields: readonly Field[], lowerCaseName: string): string | undefined {
  return fields.find(([name]) => name.toLowerCase() === lowerCaseName)?.[1];
}

/** How a body is framed by its fields; undefined without framing. */
export function framingOf({ fields }: MessageHead): number | "chunked" | undefined {
  const length = fieldValue(fields, "content-length");
  const coding = fieldValue(fields, "transfer-encoding");
  if (coding !== undefined && length !== undefined) throw new Violation("both lengths");
  if (coding !== undefined && coding !== "chunked") throw new Violation(`coding ${coding}`);
  if (coding !== undefined) return "chunked";
  if (length !== undefined && !/^\d{1,15}$/.test(length)) throw new Violation(`length ${length}`);
  return length === undefined ? undefined : Number(length);
}

/** A message, read as it is. */
export interface Message extends MessageHead {
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
      /** Method of its request. */
      readonly method: string;
      /** Whether the peer has closed the connection. */
      readonly ended: boolean;
    };

/** The message that begins at `from`; undefined until its head is complete. Text is latin1: one character a byte. */
export function parseMessage(bytes: Buffer, from: number, kind: MessageKind): Message | undefined {
  let head: (MessageHead & Framed) | undefined;
  let complete = false;
  const pieces: Buffer[] = [];
  const sink: MessageSink = {
    head: (found) => (head = { ...found, ...framed(found, kind) }).kind,
    body: (piece) => void pieces.push(piece),
    end: () => {
      complete = true;
      return "stop";
    },
  };
  const reader = new MessageReader(sink, "asItIs");
  reader.feed(bytes.subarray(from));
  if (kind.type === "response" && kind.ended) reader.finish();
  if (head === undefined) return undefined;
  const { startLine, fields, framing } = head;
  const body = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
  return { startLine, fields, framing, body, complete, end: bytes.length - (complete ? reader.unread : 0) };
}

interface Framed {
  readonly framing: Message["framing"];
  readonly kind: BodyKind;
}

/** How a body is framed, read as it is. */
export function framed({ startLine, fields }: MessageHead, kind: MessageKind): Framed {
  if (kind.type === "response" && isBodiless(startLine, kind.method)) return { framing: "none", kind: 0 };
  if (/\bchunked\b/i.test(fieldValue(fields, "transfer-encoding") ?? ""))
    return { framing: "chunked", kind: "chunked" };
  const declared = fieldValue(fields, "content-length");
  if (declared !== undefined) return { framing: "length", kind: Number(declared) };
  return kind.type === "request" ? { framing: "none", kind: 0 } : { framing: "close", kind: "close" };
}

function isBodiless(statusLine: string, method: string): boolean {
  const status = statusLine.split(" ")[1] ?? "";
  return method === "HEAD" || status.startsWith("1") || status === "204" || status === "304";
}

/** Whole messages one after the other, and how many bytes of another are behind them. */
export function wholeMessages(bytes: Buffer, kind: MessageKind): { messages: Message[]; rest: number } {
  const messages: Message[] = [];
  let at = 0;
  while (at < bytes.length) {
    const message = parseMessage(bytes, at, kind);
    if (message?.complete !== true) break;
    messages.push(message);
    at = message.end;
  }
  return { messages, rest: bytes.length - at };
}

/** A head of these lines; the blank line is added. */
export const headText = (...lines: readonly string[]): string => `${lines.join("\r\n")}\r\n\r\n`;

/** A chunk of the chunked coding, and the last one (RFC 9112, 7.1). */
export const chunk = (bytes: string): string => `${bytes.length.toString(16)}\r\n${bytes}\r\n`;
export const LAST_CHUNK = "0\r\n\r\n";
