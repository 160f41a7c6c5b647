import { COLON, CR, IS_TOKEN, latin1, LF } from "./syntax.js";
import { type MessageHead, HeadError } from "./fields.js";

/** Bytes of a refused request line that are worth a log line. */
const LOGGED_BYTES_MAX = 2048;

/** Most heads are shorter; no more bytes after them are read. */
const USUAL_BYTES_MAX = 4096;

export const headTooLong = (): HeadError =>
  new HeadError(400, "request head too long", "Request Header Or Cookie Too Large");

const NO_BYTES = new Uint8Array(0);
const END_OF_HEAD = "\r\n\r\n";

/** Finds the end of message heads in a stream of buffers. */
export interface HeadSource extends MessageHead {
  /** True between heads and before the first byte of one. */
  readonly empty: boolean;
  /** After `read` returned a head: index in the given buffer of the first byte after it. */
  readonly next: number;
  /**
   * @returns whether there is a head now; else more bytes are needed
   * @throws HeadError if no more bytes can make it a head
   */
  read(chunk: Buffer, from: number): boolean;
  /** Releases the head that was found: its bytes may be part of a large buffer. */
  release(): void;
}

/**
 * Finds the end of message heads whose lines end with CRLF. A head that arrives complete is sliced from the buffer it came
 * in; only a split one is copied.
 */
export class HeadReader implements HeadSource {
  /** The head that `read` found last. */
  text = "";
  bytes: Uint8Array = NO_BYTES;
  at = 0;
  private partial: Buffer | undefined;
  private length = 0;
  /** The first half of an empty line before a head has arrived. */
  private cr = false;
  next = 0;

  constructor(
    private readonly bytesMax: number,
    private readonly lineBytesMax: number,
  ) {}

  get empty(): boolean {
    return this.length === 0;
  }

  read(chunk: Buffer, from: number): boolean {
    if (this.length > 0) return this.readOn(chunk, from);
    if (this.cr) {
      this.cr = false;
      if (chunk[from] !== LF) throw new HeadError(400, "bare CR");
      from++;
    }
    // RFC 9112, 2.2: empty lines before a request line are ignored.
    while (chunk[from] === CR && chunk[from + 1] === LF) from += 2;
    if (chunk[from] === CR && from + 1 === chunk.length) {
      this.cr = true;
      return false;
    }
    // The head is text at once: searching a string costs less than searching a buffer, and a head becomes text anyway.
    const to = Math.min(chunk.length, from + this.bytesMax);
    let text = latin1(chunk, from, Math.min(to, from + USUAL_BYTES_MAX));
    let end = text.indexOf(END_OF_HEAD);
    if (end === -1 && from + text.length < to) {
      text = latin1(chunk, from, to);
      end = text.indexOf(END_OF_HEAD);
    }
    if (end === -1) {
      this.keep(chunk, from);
      return false;
    }
    this.next = from + end + 4;
    // A slice keeps the text it was cut from, and fields of a head live as long as its response: so it must not include
    // the beginning of a body.
    const much = text.length - end > USUAL_BYTES_MAX;
    this.text = much ? latin1(chunk, from, this.next) : text.slice(0, end + 4);
    this.bytes = chunk;
    this.at = from;
    return true;
  }

  release(): void {
    this.text = "";
    this.bytes = NO_BYTES;
  }

  /** The first line of the buffered bytes, for the log of a refused request. */
  firstLine(): string {
    const held = this.partial?.subarray(0, this.length) ?? Buffer.alloc(0);
    const end = held.findIndex((byte) => byte === CR || byte === LF);
    return held.toString("latin1", 0, Math.min(end === -1 ? held.length : end, LOGGED_BYTES_MAX));
  }

  reset(): void {
    this.partial = undefined;
    this.length = 0;
  }

  private readOn(chunk: Buffer, from: number): boolean {
    const before = this.length;
    this.keep(chunk, from);
    const held = this.partial!.subarray(0, this.length);
    const end = held.indexOf(END_OF_HEAD, Math.max(0, before - 3), "latin1");
    if (end === -1) return false;
    if (end + 4 > this.bytesMax) throw headTooLong();
    this.next = from + (end + 4 - before);
    this.text = latin1(held, 0, end + 4);
    this.bytes = held;
    this.at = 0;
    this.reset();
    return true;
  }

  /** Copies bytes of an unfinished head, but only a few more than the limit allows. */
  private keep(chunk: Buffer, from: number): void {
    if (from >= chunk.length) return;
    const bytes = chunk.subarray(from, from + this.bytesMax + 4);
    const needed = this.length + bytes.length;
    if (this.partial === undefined || this.partial.length < needed) {
      const grown = Buffer.allocUnsafeSlow(Math.max(1024, needed * 2));
      this.partial?.copy(grown, 0, 0, this.length);
      this.partial = grown;
    }
    const checked = this.length;
    bytes.copy(this.partial, this.length);
    this.length = needed;
    this.refuseEarly(checked);
  }

  /** Bytes that can never become a head are refused at once, not when the client's time is up. */
  private refuseEarly(checked: number): void {
    const held = this.partial!.subarray(0, this.length);
    for (let at = held.indexOf(LF, checked); at !== -1; at = held.indexOf(LF, at + 1)) {
      if (held[at - 1] !== CR) throw bareLf(held, at);
      if (held[at - 2] === LF) {
        if (at + 1 > this.bytesMax) throw headTooLong();
        return;
      }
    }
    if (IS_TOKEN[held[0]!] !== 1) throw new HeadError(400, "method is not a token");
    // The line's CR may be there already.
    if (!held.includes(LF) && this.length > this.lineBytesMax + 1)
      throw new HeadError(414, "request line too long");
    if (this.length > this.bytesMax) throw headTooLong();
  }
}

/** @param at where the LF is */
function bareLf(head: Buffer, at: number): HeadError {
  const begin = head.lastIndexOf(LF, at - 1) + 1;
  const colon = head.subarray(begin, Math.min(at, begin + NAME_BYTES_MAX)).indexOf(COLON);
  const name = head.toString("latin1", begin, begin + Math.max(0, colon));
  const field = begin > 0 && /^[!-~]+$/.test(name) ? name : undefined;
  return Object.assign(new HeadError(400, "bare LF"), { field, bareLineFeed: true });
}

/** Longer names are not worth a log line. */
const NAME_BYTES_MAX = 64;
