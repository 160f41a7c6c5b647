import { HeadError } from "./fields.js";
import { HeadReader, type HeadSource, headTooLong } from "./headReader.js";
import { CR, LF } from "./syntax.js";

/** The fields of an upstream that decide how response heads are read. */
export interface ResponseHeads {
  readonly headBytesMax: number;
  readonly bareLineFeeds: boolean;
}

export const responseHeadReader = ({ headBytesMax, bareLineFeeds }: ResponseHeads): HeadSource =>
  bareLineFeeds ? new LineFeedReader(headBytesMax) : new HeadReader(headBytesMax, headBytesMax);

/**
 * Finds the end of response heads whose lines may end with LF alone (RFC 9112, 2.2), and reads them as if each ended with
 * CRLF. Only for upstreams that are known to end lines so: if a program in front of an upstream takes LF for part of a
 * value, a value can become fields here.
 */
export class LineFeedReader implements HeadSource {
  text = "";
  bytes = Buffer.alloc(0);
  readonly at = 0;
  next = 0;
  private held = Buffer.alloc(0);
  private length = 0;
  private lineFrom = 0;

  constructor(private readonly bytesMax: number) {}

  get empty(): boolean {
    return this.length === 0;
  }

  read(chunk: Buffer, from: number): boolean {
    for (let i = from; i < chunk.length; i++) {
      const byte = chunk[i]!;
      if (byte === LF && (this.length === 0 || this.held[this.length - 1] !== CR)) this.push(CR);
      this.push(byte);
      if (byte !== LF) continue;
      const blank = this.length === this.lineFrom + 2;
      if (blank && this.lineFrom === 0) throw new HeadError(400, "empty line before the response");
      this.lineFrom = this.length;
      if (blank) return this.complete(i + 1);
    }
    return false;
  }

  release(): void {
    this.text = "";
    this.bytes = this.held = Buffer.alloc(0);
  }

  private complete(next: number): true {
    this.next = next;
    this.bytes = this.held.subarray(0, this.length);
    this.text = this.bytes.toString("latin1");
    this.length = this.lineFrom = 0;
    return true;
  }

  private push(byte: number): void {
    if (this.length === this.bytesMax) throw headTooLong();
    if (this.length === this.held.length) {
      const grown = Buffer.alloc(Math.min(this.bytesMax, Math.max(1_024, this.length * 2)));
      this.held.copy(grown);
      this.held = grown;
    }
    this.held[this.length++] = byte;
  }
}
