/** How much runs in a limited memory. Quantities are from measurements: docs/limits.md, "In little memory". */

export const MIB = 1024 * 1024;

/** The master, and what all processes share of Node. */
export const SHARED_BYTES = 96 * MIB;

/** What a worker needs under load, with few connections. */
export const WORKER_BYTES = 64 * MIB;

/** How many workers memory has room for. */
export function workersWithin(memoryBytes: number): number {
  return Math.max(1, Math.floor((memoryBytes - SHARED_BYTES) / WORKER_BYTES));
}

/** How many connections each worker may have, so that memory suffices whatever clients do. */
export function connectionsWithin(memoryBytes: number, workers: number): number {
  const room = (memoryBytes - AT_REST_BYTES - (workers - 1) * FURTHER_WORKER_BYTES) * USED_SHARE;
  return Math.max(1, Math.floor(room / CONNECTION_BYTES / workers));
}

/** The master and one worker. */
const AT_REST_BYTES = 36 * MIB;
const FURTHER_WORKER_BYTES = 16 * MIB;
/** The rest is for a reload, which runs two generations for a while, and for the kernel's socket buffers. */
const USED_SHARE = 0.75;
/** A connection that does its worst, with {@link STREAMS_IN_LITTLE_MEMORY} if it is one of HTTP/2. */
const CONNECTION_BYTES = 1.4 * MIB;

/** Streams of a connection that what a connection costs was measured with. */
export const STREAMS_IN_LITTLE_MEMORY = 16;
