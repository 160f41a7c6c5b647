import { type OnReadOpts, Socket } from "node:net";
import type { ReceiveBuffer } from "../receiveBuffer.js";
import { doWithout, uses } from "./pieces.js";
import { handleOf, streams } from "./streamHandles.js";

/** What takes the bytes of each read. */
export interface Receiver {
  arrived(chunk: Buffer): void;
}

/** The value of Node's `onread` option, for a receiver of whole reads. */
export function onRead(buffer: ReceiveBuffer, receiver: Receiver): OnReadOpts {
  let read = false;
  return {
    buffer: (): Buffer => {
      // Before its first read, a handle asks for a buffer for each address that is tried.
      if (!read) return buffer.first;
      read = false;
      // Anything that is not a buffer means the same buffer again.
      return buffer.next() as Buffer;
    },
    callback: (bytes: number): boolean => {
      read = true;
      receiver.arrived(buffer.read(bytes));
      // To pause, the socket is paused.
      return true;
    },
  };
}

/**
 * Makes a socket that reads into `buffer` by `onRead` pass on its reads without Node's stream machinery in between. Ends
 * and errors take the usual way.
 * @returns false if that is not possible: nothing has changed
 */
export function readDirectly(socket: Socket, buffer: ReceiveBuffer, receiver: Receiver): boolean {
  const handle = uses.directReads ? handleOf(socket) : undefined;
  if (handle === undefined) return false;
  const { streamBaseState, kReadBytesOrError } = streams!;
  const { onread } = handle;
  handle.onread = function (bytes) {
    const count = streamBaseState[kReadBytesOrError]!;
    if (count <= 0 || socket.destroyed) return onread.call(this, bytes);
    receiver.arrived(buffer.read(count));
    return buffer.next(socket.isPaused());
  };
  return true;
}

/**
 * Makes an accepted socket, or one with TLS, read into `buffer`. Node offers `onread` only to sockets that connect, but
 * reads all sockets by the same code; its settings are kept under symbols, which a probe socket shows.
 * @returns false if that is not possible: the socket is then read as usual
 */
export function readInto(socket: Socket, buffer: ReceiveBuffer, receiver: Receiver): boolean {
  if (!uses.readBuffers) return false;
  const { _handle: handle } = socket as unknown as { _handle: { useUserBuffer?(into: Buffer): void } | null };
  const fields = socket as unknown as Record<symbol, unknown>;
  const [kBuffer, kCallback, kGenerate] = ONREAD_SYMBOLS as [symbol, symbol, symbol];
  if (handle?.useUserBuffer === undefined || !ONREAD_SYMBOLS.every((symbol) => symbol in fields))
    return false;
  // Node asks these two functions for nothing where reads are direct; thousands of connections need none of their own.
  const asked = readDirectly(socket, buffer, receiver) ? UNASKED : onRead(buffer, receiver);
  fields[kBuffer] = buffer.first;
  fields[kCallback] = asked.callback;
  fields[kGenerate] = asked.buffer;
  handle.useUserBuffer(buffer.first);
  return true;
}

const UNASKED: OnReadOpts = { buffer: () => Buffer.alloc(0), callback: () => true };

/**
 * Properties of a socket: its buffer, the function that it calls after a read, and the function that returns the next
 * buffer.
 */
const ONREAD_SYMBOLS = ((): readonly symbol[] => {
  const probe = new Socket({ onread: { buffer: Buffer.alloc(1), callback: () => true } } as object);
  const symbols = Object.getOwnPropertySymbols(probe);
  const found = ["kBuffer", "kBufferCb", "kBufferGen"].flatMap(
    (name) => symbols.find((s) => s.description === name) ?? [],
  );
  if (found.length < 3) doWithout(["readBuffers"]);
  return found;
})();
