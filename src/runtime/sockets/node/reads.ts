import { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { ReceiveBuffer } from "../receiveBuffer.js";
import { doWithout, uses } from "./pieces.js";
import { handleOf, streams } from "./streamHandles.js";

/** The value of Node's `onread` option, for a receiver of whole reads. */
export function onRead(buffer: ReceiveBuffer, receive: (chunk: Buffer) => void) {
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
      receive(buffer.read(bytes));
      // To pause, the socket is paused.
      return true;
    },
  };
}

/**
 * Makes a socket that reads into `buffer` by `onRead` pass on its reads without Node's stream machinery in between.
 * Does nothing if that is not possible. Ends and errors take the usual way.
 */
export function readDirectly(socket: Socket, buffer: ReceiveBuffer, receive: (chunk: Buffer) => void): void {
  const handle = uses.directReads ? handleOf(socket) : undefined;
  if (handle === undefined) return;
  const { streamBaseState, kReadBytesOrError } = streams!;
  const { onread } = handle;
  handle.onread = function (bytes) {
    const count = streamBaseState[kReadBytesOrError]!;
    if (count <= 0 || socket.destroyed) return onread.call(this, bytes);
    receive(buffer.read(count));
    return buffer.next(socket.isPaused());
  };
}

/**
 * An accepted connection as a socket that reads into `buffer`. Node offers `onread` only to sockets that are made with
 * it, so the accepted socket's handle moves into a new one.
 * @returns undefined if that is not possible: the accepted socket is then read as usual
 */
export function adopt(
  accepted: Socket,
  buffer: ReceiveBuffer,
  receive: (chunk: Buffer) => void,
): Socket | undefined {
  const from = accepted as unknown as AcceptedSocket;
  const handle = from._handle;
  if (!uses.movedSockets || handle == null) return undefined;
  from._handle = null;
  const socket = new Socket({ handle, allowHalfOpen: true, onread: onRead(buffer, receive) } as object);
  // The server counts its connections by this field, and closes when none is left.
  (socket as unknown as AcceptedSocket)._server = from._server;
  from._server = null;
  readDirectly(socket, buffer, receive);
  return socket;
}

/**
 * Makes a TLS socket read into `buffer` too. TLS sockets of a server take no `onread`, but read by the same code; its
 * settings are kept under symbols, which a probe socket shows.
 * @returns false if that is not possible: the socket is then read as usual
 */
export function readInto(
  socket: TLSSocket,
  buffer: ReceiveBuffer,
  receive: (chunk: Buffer) => void,
): boolean {
  if (!uses.tlsReadBuffers) return false;
  const { _handle: handle } = socket as unknown as { _handle: { useUserBuffer?(into: Buffer): void } | null };
  const fields = socket as unknown as Record<symbol, unknown>;
  const [kBuffer, kCallback, kGenerate] = ONREAD_SYMBOLS as [symbol, symbol, symbol];
  if (handle?.useUserBuffer === undefined || !ONREAD_SYMBOLS.every((symbol) => symbol in fields))
    return false;
  const { callback, buffer: generate } = onRead(buffer, receive);
  fields[kBuffer] = generate();
  fields[kCallback] = callback;
  fields[kGenerate] = generate;
  handle.useUserBuffer(buffer.first);
  readDirectly(socket, buffer, receive);
  return true;
}

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
  if (found.length < 3) doWithout(["tlsReadBuffers"]);
  return found;
})();

interface AcceptedSocket {
  _handle: unknown;
  _server: unknown;
}
