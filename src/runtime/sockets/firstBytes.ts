import type { Socket } from "node:net";
import { whenLate } from "./deadlines.js";

/** How the first bytes of a connection are read. */
export interface FirstBytes<T> {
  /** Parses the bytes; undefined while some are missing. Must not throw. */
  readonly parse: (bytes: Buffer) => T | undefined;
  readonly timeoutMs: number;
  /** Gets all bytes that arrived. The socket is paused; the callback puts back bytes that it does not use. */
  readonly found: (said: T, bytes: Buffer) => void;
  /** They did not come in time, or the connection ended before; it is closed afterwards. */
  readonly failed: (why: "late" | "ended", bytes: Buffer) => void;
}

/** Reads from a connection before anything else does, until its first bytes say enough. */
export function readFirst<T>(socket: Socket, { parse, timeoutMs, found, failed }: FirstBytes<T>): void {
  let bytes: Buffer = EMPTY;
  const fail = (why: "late" | "ended"): void => {
    failed(why, bytes);
    socket.destroy();
  };
  const stop = whenLate(timeoutMs, () => fail("late"));
  const ended = (): void => fail("ended");
  const take = (chunk: Buffer): void => {
    bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
    const said = parse(bytes);
    if (said === undefined) return;
    stop();
    socket.off("data", take).off("end", ended).off("close", stop).pause();
    found(said, bytes);
  };
  // The peer went away; later its TLS socket reports it as well.
  socket.on("error", () => socket.destroy());
  // After a pause, reading has to be resumed explicitly.
  socket.on("close", stop).on("end", ended).on("data", take).resume();
}

const EMPTY = Buffer.alloc(0);
