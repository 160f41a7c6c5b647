import type { Socket } from "node:net";
import { getSystemErrorName } from "node:util";

type WriteDone = (error?: Error | null) => void;

/**
 * Node destroys a socket when a write fails, and with it an answer that is already in the receive buffer: the 413 of an
 * upstream that closed early would become 502 (nodejs/node#54366). Here the stream does not see the failure: the error
 * is emitted, the write counts as done, and reading continues.
 */
export function keepReadableAfterWriteErrors(socket: Socket): void {
  const { _write, _writev } = socket;
  const reporting =
    (done: WriteDone): WriteDone =>
    (error) => {
      if (error == null || (error as NodeJS.ErrnoException).syscall !== "write") return done(error);
      socket.emit("error", error);
      done();
    };
  // The method that every writable stream implements (stream.Writable, "Implementing a writable stream").
  socket._write = (chunk, encoding, done) => _write.call(socket, chunk, encoding, reporting(done));
  socket._writev = (chunks, done) => _writev!.call(socket, chunks, reporting(done));
}

/** The error that Node reports for a failed write, for one that bypassed its streams. */
export function writeError(errno: number): Error {
  const code = getSystemErrorName(errno);
  return Object.assign(new Error(`write ${code}`), { errno, code, syscall: "write" });
}
