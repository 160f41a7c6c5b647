import { coarseNow } from "../sockets/deadlines.js";

/** How long a client that has read all may take to close a connection that has ended. */
const CLOSE_MS = 5_000;
/** Longest wait for a slow client to read what is still in the kernel's buffer. */
const LINGER_TOTAL_MS = 600_000;

/**
 * How long a connection that has ended waits for its client to read and to close. After a close, the client's next frame
 * (most likely a WINDOW_UPDATE) would cause a reset, which discards data that the client has not read.
 */
export class Linger {
  /** When the socket is destroyed, on the coarse clock. */
  deadline = Infinity;
  private until = Infinity;

  /** Whether everything is in the kernel, the end included, and the client gets time to read it. */
  get begun(): boolean {
    return this.until !== Infinity;
  }

  /** A client that broke the rules gets no more time. */
  refuse(): void {
    this.deadline = coarseNow() + CLOSE_MS;
  }

  /** Everything is in the kernel. @param hasRead whether the client has read all of it long ago */
  begin(hasRead: boolean, sendTimeoutMs: number): void {
    const now = coarseNow();
    this.until = now + LINGER_TOTAL_MS;
    this.deadline = now + (hasRead ? CLOSE_MS : Math.max(CLOSE_MS, sendTimeoutMs));
  }

  /** The client is still active. */
  extend(sendTimeoutMs: number): void {
    if (!this.begun) return;
    const until = Math.min(this.until, coarseNow() + sendTimeoutMs);
    this.deadline = Math.max(this.deadline, until);
  }
}
