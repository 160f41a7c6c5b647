import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";

/**
 * The layer of Node that `net.Socket` itself stands on. Through it a read or a small write costs one call instead of a
 * walk through the stream machinery. It has no public name, so whoever uses it must do without where it is missing:
 * `streams` is undefined in a Node that hides or changes it.
 */
export interface StreamBinding {
  /** What a write is told by when it did not end at once. Good for any number of writes that did. */
  readonly WriteWrap: new () => WriteRequest;
  /** What the last call or callback came to, by the two indices below. */
  readonly streamBaseState: Int32Array;
  readonly kReadBytesOrError: number;
  readonly kLastWriteWasAsync: number;
}

export interface WriteRequest {
  oncomplete?: (status: number) => void;
}

/** A socket's handle: libuv's stream. */
export interface StreamHandle {
  /** Called for every read; what it returns is the buffer for the next one, nothing for the same again. */
  onread: (this: StreamHandle, bytes: ArrayBuffer | undefined) => unknown;
  /** @returns 0, or an error; `streamBaseState` tells whether all was written at once */
  writeLatin1String(request: WriteRequest, text: string): number;
}

export const streams: StreamBinding | undefined = findStreams();

/** The handle of an open socket that is no TLS socket; undefined where it is not what is expected. */
export function handleOf(socket: Socket): StreamHandle | undefined {
  const handle = (socket as unknown as { _handle?: StreamHandle | null })._handle;
  return typeof handle?.writeLatin1String === "function" && typeof handle.onread === "function"
    ? handle
    : undefined;
}

/** The TCP socket below TLS, for which Node has no public name. */
export function tcpSocketOf(socket: TLSSocket): Socket | undefined {
  return (socket as unknown as { _parent?: Socket })._parent;
}

/**
 * Whether the peer is known to have reset the connection. One that is neither read nor written tells nothing by itself;
 * a write of no bytes brings the kernel's error, and past TLS, which swallows it.
 * @returns false as well where nobody can tell
 */
export function wasReset(socket: Socket): boolean {
  const tcp = tcpSocketOf(socket as TLSSocket) ?? socket;
  const handle = streams && handleOf(tcp);
  return handle !== undefined && handle.writeLatin1String(new streams!.WriteWrap(), "") !== 0;
}

function findStreams(): StreamBinding | undefined {
  try {
    const { binding } = process as unknown as { binding(name: string): Partial<StreamBinding> };
    const found = binding("stream_wrap");
    const complete =
      typeof found.WriteWrap === "function" &&
      ArrayBuffer.isView(found.streamBaseState) &&
      typeof found.kReadBytesOrError === "number" &&
      typeof found.kLastWriteWasAsync === "number";
    return complete ? (found as StreamBinding) : undefined;
  } catch {
    // Under Node's permission model there is no such call.
    return undefined;
  }
}
