import { type BodyOwner, RequestBody } from "../exchange/requestBody.js";
import { countWork } from "../sockets/turn.js";
import { SMALL_PIECE_BYTES_MAX } from "../sockets/writeBatch.js";
import { ChunkDecoder, type ChunkSink } from "../codec/http1/chunkDecoder.js";

/** A request body as HTTP/1.1 frames it (RFC 9112, 6.3): of a known length, or in chunks. */
export class Http1Body extends RequestBody implements ChunkSink {
  private readonly decoder: ChunkDecoder | undefined;
  private transient = true;

  /**
   * @param length bytes that follow; -1 for chunks, and for a tunnel
   * @param rereads whether the next read of a turn overwrites the last one, as it does without TLS
   */
  constructor(
    owner: BodyOwner,
    length: number,
    private readonly rereads: boolean,
    tunnel = false,
  ) {
    super(owner, length, true);
    this.decoder = length === -1 && !tunnel ? new ChunkDecoder() : undefined;
  }

  /** Whether the bytes that were read contain all of it. */
  get complete(): boolean {
    return this.decoder === undefined ? this.left === 0 : this.decoder.done;
  }

  /**
   * Takes the body's bytes from `chunk[at..]`.
   *
   * @param transient true if the memory is reused as soon as this returns
   * @returns index of the first byte that is not part of the body
   * @throws ChunkError
   */
  read(chunk: Buffer, at: number, transient: boolean): number {
    this.transient = transient;
    if (this.decoder !== undefined) {
      const next = this.decoder.decode(chunk, at, this);
      countWork(1, this.decoder.framingBytes);
      return next;
    }
    countWork(1, 0);
    const to = this.left === -1 ? chunk.length : Math.min(chunk.length, at + this.left);
    this.onBytes(chunk, at, to);
    return to;
  }

  onBytes(chunk: Buffer, from: number, to: number): void {
    // Small pieces wait together to be written: the next read would overwrite them, or, where reads are put one behind
    // another, one that begins anew. That has room for waiting pieces that are most of what they were read with.
    const bytes = to - from;
    const waits = bytes <= SMALL_PIECE_BYTES_MAX;
    const overwritten = this.rereads || bytes * 2 < chunk.length;
    this.data(chunk, from, to, this.transient || (waits && overwritten));
  }
}
