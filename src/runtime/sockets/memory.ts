/**
 * Memory that bytes of a peer are in while they pass through. Its owner reads into it again, so a receiver that cannot
 * pass the bytes on at once keeps them, and tells the owner when it is done with them:
 *
 *     owner ──bytes, memory──> receiver: keep ──> ... the kernel has them ... ──> giveBack
 *
 * The owner counts what is kept, and reads into no part of it before that. No rule about pauses, sizes or turns is needed:
 * TLS delivers up to four records of one read although its socket is paused.
 */
export interface Memory {
  /** Whether {@link keep} copies. */
  readonly copies: boolean;
  /** @returns the bytes as long as they are needed: the same until {@link giveBack}, or a copy */
  keep(bytes: Buffer): Buffer;
  /** A piece that was kept is not needed any more. */
  giveBack(): void;
}

/** Bytes that nothing overwrites: of a file in memory, or of a read into memory of its own. */
export const LASTING: Memory = { copies: false, keep: (bytes) => bytes, giveBack: () => undefined };

/** Bytes that change as soon as the receiver returns. */
export const TRANSIENT: Memory = {
  copies: true,
  keep: (bytes) => Buffer.from(bytes),
  giveBack: () => undefined,
};

/** What a receiver has kept, of any number of owners. */
export class Loans {
  private owners: Memory[] | undefined = undefined;

  /** Does the same as {@link Memory.keep}. */
  keep(bytes: Buffer, memory: Memory): Buffer {
    if (memory !== LASTING) {
      (this.owners ??= []).push(memory);
      kept++;
    }
    return memory.keep(bytes);
  }

  /** Gives back all that was kept. */
  giveBack(): void {
    const { owners } = this;
    if (owners === undefined || owners.length === 0) return;
    kept -= owners.length;
    for (const memory of owners) memory.giveBack();
    owners.length = 0;
  }
}

let kept = 0;

/** Pieces that receivers of this worker keep. */
export const keptPieces = (): number => kept;

/**
 * Called with memory that is not needed any more, and that will be used again. With this variable set, the memory is
 * filled with a byte of no text and no frame: a receiver that still uses the memory then shows at once, and not only
 * when two transfers meet. Tests set the variable.
 */
export const spent: (memory: Uint8Array, bytes?: number) => void =
  process.env.PORTICO_FILL_SPENT_MEMORY === undefined
    ? () => undefined
    : (memory, bytes) => void memory.fill(0xdb, 0, bytes);
