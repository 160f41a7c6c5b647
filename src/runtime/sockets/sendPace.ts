import { coarseNow } from "./deadlines.js";

/**
 * How much of a response is sent to a client in one piece. Data that a client does not read waits in memory, so a
 * client starts with small pieces. Large pieces, which cost less processor time per byte, are for clients that have
 * shown that they read.
 *
 *     small ──taken: a little──> on trial ──taken: more than kernels hold──> large
 *       └<────────────────a piece waited too long────────────────────────────┘
 *
 * A write that ends at once proves nothing: the kernels of both sides take megabytes even if the client reads nothing.
 * And a client that has read may stop at any time, while a large piece is being written. So large pieces are on loan: a
 * worker lends at most {@link LENT_BYTES_MAX}, and when none are left, clients continue with small ones. Where small
 * pieces are very small, there is a trial in between: a few clients at a time need not wait a turn of the event loop
 * for each piece.
 */
export class SendPace {
  /** Whether the client keeps reading, and has borrowed memory for large pieces. */
  fast = false;
  /** Whether it has borrowed memory for pieces of the size in between, and has to show that it reads. */
  onTrial = false;
  /** Bytes that were taken since the last piece that waited too long. */
  private taken = 0;
  private loan: Loan | undefined = undefined;
  /** When the write in progress began; Infinity if there is none. */
  private waitsSince = Infinity;
  /** Bytes of the last write. */
  private last = 0;
  /** The response is complete: nothing more is borrowed before the next one. */
  private resting = false;

  /**
   * @param small bytes of a small piece
   * @param copies how often a piece is in memory while it is written: twice if TLS encrypts it
   * @param trialBytes memory that a trial borrows; 0 for no trial
   */
  constructor(
    private readonly small: number,
    private readonly copies: 1 | 2,
    private readonly trialBytes = 0,
  ) {}

  /** Bytes that a piece may have now. */
  get pieceBytesMax(): number {
    return this.fast ? LARGE_BYTES : this.small;
  }

  /** A piece was written. @param waits whether the kernel has not taken all of it yet */
  wrote(bytes: number, waits: boolean): void {
    this.last = bytes;
    this.taken += bytes;
    if (!waits) this.judge();
    else if (this.waitsSince === Infinity) this.waitsSince = coarseNow();
  }

  /** The kernel has taken everything that was written. */
  written(): void {
    if (coarseNow() - this.waitsSince >= SLOW_MS) {
      this.taken = 0;
      this.fast = this.onTrial = false;
    }
    this.waitsSince = Infinity;
    this.judge();
  }

  /** A response begins. */
  begin(): void {
    this.resting = false;
  }

  /** The response is complete; the last of it may still be waiting. */
  rest(): void {
    this.fast = this.onTrial = false;
    this.resting = true;
    if (this.waitsSince === Infinity) this.giveBack();
  }

  /** The connection is closed. */
  close(): void {
    this.fast = this.onTrial = false;
    this.giveBack();
  }

  private judge(): void {
    if (this.fast) return;
    if (this.resting) return this.giveBack();
    // A second large piece may already have been read; the piece after it is small.
    if (this.loan !== undefined && !this.onTrial) {
      if (this.last <= this.small) this.giveBack();
      return;
    }
    if (this.taken >= PROOF_BYTES && this.borrow(LARGE, LARGE_BYTES * this.copies)) {
      this.fast = true;
      this.onTrial = false;
    } else if (!this.onTrial && this.trialBytes > 0 && this.taken >= TRIAL_FROM_BYTES)
      this.onTrial = this.borrow(TRIAL, this.trialBytes);
  }

  /** @returns false if not enough is left; otherwise the previous loan is given back */
  private borrow(from: Lender, bytes: number): boolean {
    if (from.left < bytes) return false;
    this.giveBack();
    from.left -= bytes;
    this.loan = { from, bytes };
    return true;
  }

  private giveBack(): void {
    if (this.loan === undefined) return;
    this.loan.from.left += this.loan.bytes;
    this.loan = undefined;
  }
}

/** How much the transfers of this worker may still borrow beyond small pieces. */
interface Lender {
  left: number;
}

interface Loan {
  readonly from: Lender;
  readonly bytes: number;
}

/** With more than this unread, a client gets no informational responses. */
export const HELD_UP_BYTES = 65_536;

/** Measured best for proxied responses: the fewer reads, the fewer times the upstream is woken. */
export const LARGE_BYTES = 1024 * 1024;
const LENT_BYTES_MAX = 32 * LARGE_BYTES;
/** The loan of eight clients over HTTP/2: more at a time would not be faster, as they share the turns. */
const TRIAL_BYTES_MAX = 4 * LARGE_BYTES;
const LARGE: Lender = { left: LENT_BYTES_MAX };
const TRIAL: Lender = { left: TRIAL_BYTES_MAX };

/** Bytes that transfers of this worker have borrowed. */
export const lentBytes = (): number => LENT_BYTES_MAX - LARGE.left + TRIAL_BYTES_MAX - TRIAL.left;

/** Most responses are shorter, and borrow nothing. */
const TRIAL_FROM_BYTES = 128 * 1024;
/** More than the buffers of two kernels hold by default (tcp_wmem, and the part of tcp_rmem that holds data). */
const PROOF_BYTES = 8 * 1024 * 1024;
/** In this time a client that reads at a few megabytes a second has made room in the kernel for the next piece. */
const SLOW_MS = 500;
