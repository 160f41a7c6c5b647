import type * as z from "zod";
import type { limits as fields } from "../schema/limits.js";

/** How much runs in a limited memory. Quantities are from measurements: docs/limits.md, "Limited memory". */

export const MIB = 1024 * 1024;

/** Memory of the master, and of Node's shared parts. */
export const SHARED_BYTES = 96 * MIB;

/** Memory of a worker under load, with few connections. */
export const WORKER_BYTES = 64 * MIB;

/** How many workers memory has room for. */
export function workersWithin(memoryBytes: number): number {
  return Math.max(1, Math.floor((memoryBytes - SHARED_BYTES) / WORKER_BYTES));
}

type Limits = Readonly<z.output<typeof fields>>;

/** Limits of a worker that follow from memory, unless the config sets them. */
export const LIMITS_BY_MEMORY = [
  "connectionsMax",
  "connectionsPerClientMax",
  "concurrentStreamsMax",
] as const satisfies readonly (keyof Limits)[];

export type LimitsByMemory = Pick<Limits, (typeof LIMITS_BY_MEMORY)[number]>;

/**
 * Limits of each worker, so that memory suffices whatever clients do.
 *
 * @param limits the limits without regard to memory
 * @param given limits that stay as they are, and that the other limits must fit
 */
export function limitsWithin(
  memoryBytes: number,
  workers: number,
  limits: Limits,
  given: Iterable<string>,
): LimitsByMemory {
  const stays = new Set(given);
  const room = roomOf(memoryBytes, workers);
  const number = stays.has("connectionsMax") ? limits.connectionsMax : CONNECTIONS_USEFUL;
  const { headBytesMax } = limits;
  const streams = Math.floor((room / number - CONNECTION_BYTES) / streamBytes(headBytesMax));
  const concurrentStreamsMax = stays.has("concurrentStreamsMax")
    ? limits.concurrentStreamsMax
    : Math.min(Math.max(streams, STREAMS_USEFUL), limits.concurrentStreamsMax);
  if (stays.has("connectionsMax")) return { ...limits, concurrentStreamsMax };
  const connections = connectionsWithin(memoryBytes, workers, { headBytesMax, concurrentStreamsMax });
  const connectionsMax = Math.min(connections, limits.connectionsMax);
  const perClient = Math.min(Math.ceil(connectionsMax / 2), limits.connectionsPerClientMax);
  return {
    connectionsMax,
    connectionsPerClientMax: stays.has("connectionsPerClientMax")
      ? limits.connectionsPerClientMax
      : perClient,
    concurrentStreamsMax,
  };
}

/** How many connections each worker may have, so that memory suffices whatever clients do; one at least. */
export function connectionsWithin(
  memoryBytes: number,
  workers: number,
  { headBytesMax, concurrentStreamsMax }: Pick<Limits, "headBytesMax" | "concurrentStreamsMax">,
): number {
  const stream = streamBytes(headBytesMax);
  const each = Math.max(CONNECTION_BYTES + concurrentStreamsMax * stream, TLS_UPLOAD_BYTES + stream);
  return Math.max(1, Math.floor(roomOf(memoryBytes, workers) / each));
}

/** Memory for all connections of each worker together. */
function roomOf(memoryBytes: number, workers: number): number {
  return ((memoryBytes - AT_REST_BYTES - (workers - 1) * FURTHER_WORKER_BYTES) * USED_SHARE) / workers;
}

/** The head of a request, which is kept while it runs, and a piece of a response that the client does not read. */
const streamBytes = (headBytesMax: number): number => headBytesMax + 32 * 1024;

/** The master and one worker. */
const AT_REST_BYTES = 46 * MIB;
const FURTHER_WORKER_BYTES = 18 * MIB;
/**
 * The rest is for a reload, which runs two generations for a while, for the kernel's socket buffers, and for what an
 * attack leaves in a process that the next attack cannot use (docs/limits.md has the peaks).
 */
const USED_SHARE = 2 / 3;
/** Bodies that an upstream does not take, windows on loan among them. */
const CONNECTION_BYTES = MIB;
/** The same for HTTP/1.1 over TLS, which has no streams: two large buffers (`receiveBuffer.ts`), and what is not deciphered. */
const TLS_UPLOAD_BYTES = 2.125 * MIB;
/** More than a browser asks for at once over HTTP/1.1; further requests wait in the client. */
const STREAMS_USEFUL = 16;
/** Memory that has room for more than so many connections is for more streams first. */
const CONNECTIONS_USEFUL = 1_024;
