import { guarded, type Guarded } from "./guarded.js";

/**
 * Small writes of one turn of the event loop, postponed to its end. A turn handles the reads of many connections;
 * written one after the other, responses wake each peer once instead of between every two reads, and the pieces of one
 * connection are written together.
 */
export interface Batched extends Guarded {
  /** Writes the postponed data. */
  writeBatched(): void;
}

/** Calls `writeBatched` at the end of this turn; callers keep a flag so that it is called once per turn. */
export function batch(item: Batched): void {
  if (batched.push(item) === 1) setImmediate(writeAll);
}

let batched: Batched[] = [];
let spare: Batched[] = [];

function writeAll(): void {
  const items = batched;
  batched = spare;
  for (let i = 0; i < items.length; i++) guarded(items[i]!, items[i]!.writeBatched);
  items.length = 0;
  spare = items;
}
