/** Pieces of a body in order. Small ones are joined, so that a window full of them takes up no more than a window. */
export class PieceQueue {
  bytes = 0;
  private readonly pieces: Buffer[] = [];
  /** Where small pieces are copied to; the last piece is its beginning, up to `blockAt`, if `blockIsLast`. */
  private block: Buffer = NO_BYTES;
  private blockFrom = 0;
  private blockAt = 0;
  private blockIsLast = false;

  /** @param reused whether the chunk's memory will be reused: then the piece is copied */
  push(chunk: Buffer, from: number, to: number, reused: boolean): void {
    const bytes = to - from;
    this.bytes += bytes;
    // A slice keeps the whole chunk in memory.
    if (!reused && bytes * 2 >= chunk.length && bytes >= JOINED_BYTES) {
      this.blockIsLast = false;
      this.pieces.push(chunk.subarray(from, to));
      return;
    }
    if (this.block.length - this.blockAt < bytes) {
      this.block = Buffer.allocUnsafeSlow(
        Math.max(bytes, Math.min(BLOCK_BYTES_MAX, this.block.length * 2 || 1024)),
      );
      this.blockAt = 0;
      this.blockIsLast = false;
    }
    if (!this.blockIsLast) this.blockFrom = this.blockAt;
    this.blockAt += chunk.copy(this.block, this.blockAt, from, to);
    const piece = this.block.subarray(this.blockFrom, this.blockAt);
    if (this.blockIsLast) this.pieces[this.pieces.length - 1] = piece;
    else this.pieces.push(piece);
    this.blockIsLast = true;
  }

  shift(): Buffer {
    const piece = this.pieces.shift()!;
    this.bytes -= piece.length;
    if (this.pieces.length === 0) this.blockIsLast = false;
    return piece;
  }
}

const NO_BYTES = Buffer.alloc(0);
const JOINED_BYTES = 2_048;
const BLOCK_BYTES_MAX = 16_384;
