/**
 * A strict reader of HTTP/1.1 messages from bytes (RFC 9112), for both ends of the proxy. It shares nothing with the
 * proxy's own: what both got wrong would not be seen.
 */
export interface MessageHead {
  readonly startLine: string;
  /** Values by lower-case name; a name that came twice is a violation. */
  readonly fields: ReadonlyMap<string, string>;
}

/** Bytes of a body, or what ends it; `raw` for bytes that are not a message any more. */
export type BodyKind = number | "chunked" | "close" | "raw";

export interface MessageSink {
  /** @returns what follows the head; `head` for another head (1xx) */
  head(head: MessageHead): BodyKind | "head";
  body(bytes: Buffer): void;
  end(): void;
}

/** The peer broke HTTP, or the rules of the case. */
export class Violation extends Error {}

type State = "head" | "length" | "size" | "data" | "dataEnd" | "trailer" | "close" | "raw";

const LINE_END = Buffer.from("\r\n");
const HEAD_END = Buffer.from("\r\n\r\n");

export class MessageReader {
  private state: State = "head";
  private rest: Buffer = Buffer.alloc(0);
  private left = 0;

  constructor(private readonly sink: MessageSink) {}

  /** Whether it stands between messages, with no byte of the next. */
  get between(): boolean {
    return this.state === "head" && this.rest.length === 0;
  }

  /** Bytes of a head that is not there yet. */
  get begun(): Buffer {
    return this.state === "head" ? this.rest : Buffer.alloc(0);
  }

  feed(bytes: Buffer): void {
    this.rest = this.rest.length === 0 ? bytes : Buffer.concat([this.rest, bytes]);
    while (this.rest.length > 0 && this.step());
    // What is kept must not change with the next read.
    if (this.rest.length > 0) this.rest = Buffer.from(this.rest);
  }

  /** The peer ended its side. @returns false if that is in the midst of a message */
  finish(): boolean {
    if (this.state === "close") {
      this.state = "head";
      this.sink.end();
    }
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
        if (!this.take(2).equals(LINE_END)) throw new Violation("no line end behind a chunk");
        this.state = "size";
        return true;
      }
      case "size": {
        const line = this.line();
        if (line === undefined) return false;
        if (!/^[0-9a-f]{1,8}$/i.test(line)) throw new Violation(`chunk size ${JSON.stringify(line)}`);
        this.left = parseInt(line, 16);
        this.state = this.left === 0 ? "trailer" : "data";
        return true;
      }
      case "trailer": {
        const line = this.line();
        if (line === undefined) return false;
        if (line === "") this.ended();
        return true;
      }
      default:
        this.sink.body(this.take(this.rest.length));
        return false;
    }
  }

  private head(): boolean {
    const at = this.rest.indexOf(HEAD_END);
    if (at === -1) {
      if (this.rest.length > 16_384) throw new Violation("a head without end");
      return false;
    }
    const [startLine = "", ...lines] = this.take(at + 4)
      .subarray(0, -4)
      .toString("latin1")
      .split("\r\n");
    const fields = new Map<string, string>();
    for (const line of lines) {
      const [, name, value] = /^([!#$%&'*+.^_`|~\w-]+):[ \t]*([\t -~\x80-\xff]*?)[ \t]*$/.exec(line) ?? [];
      if (name === undefined) throw new Violation(`field line ${JSON.stringify(line)}`);
      if (fields.has(name.toLowerCase())) throw new Violation(`two ${name} fields`);
      fields.set(name.toLowerCase(), value!);
    }
    const kind = this.sink.head({ startLine, fields });
    if (kind === "head") return true;
    if (kind === "chunked") this.state = "size";
    else if (kind === 0) this.ended();
    else if (typeof kind === "number") {
      this.left = kind;
      this.state = "length";
    } else this.state = kind;
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
    this.sink.end();
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

/** How a body is framed by its fields; undefined without framing. */
export function framingOf({ fields }: MessageHead): number | "chunked" | undefined {
  const length = fields.get("content-length");
  const coding = fields.get("transfer-encoding");
  if (coding !== undefined && length !== undefined) throw new Violation("both lengths");
  if (coding !== undefined && coding !== "chunked") throw new Violation(`coding ${coding}`);
  if (coding !== undefined) return "chunked";
  if (length !== undefined && !/^\d{1,15}$/.test(length)) throw new Violation(`length ${length}`);
  return length === undefined ? undefined : Number(length);
}
