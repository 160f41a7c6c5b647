import type { Socket } from "node:net";
import { doWithout } from "./pieces.js";

/**
 * The layer of Node that `net.Socket` itself is built on. Through it a read or a small write costs one call instead of
 * a walk through the stream machinery. `streams` is undefined in a Node that hides or changes it.
 */
export interface StreamBinding {
  /**
   * The request that a write reports to if it did not complete at once. It can be reused by any number of writes that
   * did.
   */
  readonly WriteWrap: new () => WriteRequest;
  /** The result of the last call or callback, at the two indices below. */
  readonly streamBaseState: Int32Array;
  readonly kReadBytesOrError: number;
  readonly kLastWriteWasAsync: number;
}

export interface WriteRequest {
  oncomplete?: (status: number) => void;
}

/** A socket's handle: libuv's stream. */
export interface StreamHandle {
  /** Called for every read; returns the buffer for the next one, or nothing for the same again. */
  onread: (this: StreamHandle, bytes: ArrayBuffer | undefined) => unknown;
  /** @returns 0, or an error; `streamBaseState` shows whether all was written at once */
  writeLatin1String(request: WriteRequest, text: string): number;
}

export const streams: StreamBinding | undefined = findStreams();

/** The handle of an open socket that is not a TLS socket; undefined if it is of an unexpected type. */
export function handleOf(socket: Socket): StreamHandle | undefined {
  const handle = (socket as unknown as { _handle?: StreamHandle | null })._handle;
  return typeof handle?.writeLatin1String === "function" && typeof handle.onread === "function"
    ? handle
    : undefined;
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
    if (complete) return found as StreamBinding;
  } catch {
    // Node's permission model does not have this call.
  }
  doWithout(["directReads", "directWrites"]);
  return undefined;
}
