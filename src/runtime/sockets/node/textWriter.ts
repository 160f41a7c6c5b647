import type { Socket } from "node:net";
import { uses } from "./pieces.js";
import { handleOf, streams, type StreamHandle, type WriteRequest } from "./streamHandles.js";
import { writeError } from "./peer.js";

/**
 * Writes text to a socket at once, bypassing Node's stream machinery, if no other data waits to be written; otherwise
 * after that data. Most heads and small responses fit into the kernel's buffer, and then nothing is allocated and no
 * callback is needed.
 */
export class TextWriter {
  /** The last write has not completely reached the kernel. */
  private waiting = false;
  private handle: StreamHandle | undefined = undefined;

  /** @param written called when pending data was written, or could not be */
  constructor(
    private readonly socket: Socket,
    private readonly written: (error?: Error | null) => void,
  ) {}

  /** Allows writes past the stream; for a connected socket without TLS, whose writes never end at once. */
  direct(): void {
    if (uses.directWrites) this.handle = handleOf(this.socket);
  }

  /** True while bytes that were written have not all reached the kernel. */
  get pending(): boolean {
    return this.waiting || this.socket.writableLength > 0;
  }

  /** @param text one char a byte */
  write(text: string): void {
    if (!this.writeDirectly(text)) this.socket.write(text, "latin1", this.written);
  }

  /** @returns false if the text has to be written the usual way */
  private writeDirectly(text: string): boolean {
    const { handle, socket } = this;
    // A destroyed socket's handle is closed; an ended one has announced to the kernel that nothing follows.
    if (handle === undefined || !socket.writable || this.pending) return false;
    const request = (spare ??= new streams!.WriteWrap());
    const status = handle.writeLatin1String(request, text);
    if (status !== 0) {
      // The kernel gives the reason only once: a second attempt would fail with EPIPE, whatever happened.
      socket.emit("error", writeError(status));
      return true;
    }
    if (streams!.streamBaseState[streams!.kLastWriteWasAsync] === 0) return true;
    // The request belongs to this write now; libuv holds the text.
    spare = undefined;
    this.waiting = true;
    request.oncomplete = (status) => this.completed(status);
    return true;
  }

  private completed(status: number): void {
    this.waiting = false;
    // Closing the socket ends its writes.
    if (this.socket.destroyed) return;
    if (status >= 0) return this.written();
    const error = writeError(status);
    this.written(error);
    this.socket.emit("error", error);
  }
}

/** A write request that no write owns; it knows nothing of the writes it served. */
let spare: WriteRequest | undefined = undefined;
