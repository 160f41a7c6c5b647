import { ConnectionError, ErrorCode } from "./protocol.js";

/** CONTINUATION frames of one block; honest clients need one for every 16 KiB of a head. */
const CONTINUATIONS_MAX = 32;

/** A field block that is sent in several frames (RFC 9113, 4.3): nothing else may come between them. */
export class FieldBlock {
  /** Stream of the block that is open; 0 if none is. */
  stream = 0;
  flags = 0;
  private bytes = Buffer.alloc(0);
  private length = 0;
  private continuations = 0;

  /** @param bytesMax longest block that is kept; a longer one, or too many frames of one, end the connection */
  constructor(private readonly bytesMax: number) {}

  begin(stream: number, flags: number, bytes: Buffer, from: number, to: number): void {
    this.stream = stream;
    this.flags = flags;
    this.length = 0;
    this.continuations = 0;
    this.append(bytes, from, to);
  }

  /** CVE-2024-27316 and similar attacks: endless frames that never complete a head. */
  append(bytes: Buffer, from: number, to: number): void {
    if (++this.continuations > CONTINUATIONS_MAX || this.length + to - from > this.bytesMax)
      throw new ConnectionError(ErrorCode.EnhanceYourCalm, "field block is too long");
    if (this.length + to - from > this.bytes.length) {
      const grown = Buffer.allocUnsafeSlow((this.length + to - from) * 2);
      this.bytes.copy(grown, 0, 0, this.length);
      this.bytes = grown;
    }
    this.length += bytes.copy(this.bytes, this.length, from, to);
  }

  /** The block is complete; its bytes are valid until the next one begins. */
  end(): Buffer {
    const block = this.bytes.subarray(0, this.length);
    this.stream = 0;
    this.bytes = Buffer.alloc(0);
    return block;
  }
}
