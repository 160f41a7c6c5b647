import { guarded, type Guarded } from "./guarded.js";

/**
 * A coarse monotonic clock and the deadlines measured by it. Idle timers are re-armed on every read and write of
 * thousands of connections: setting a number costs nothing, and a sweep every quarter second finds what is due.
 */

/** Milliseconds between two sweeps: how late a deadline may be noticed. */
export const SWEEP_MS = 250;

/** An object with deadlines. */
export interface Swept extends Guarded {
  /** Called every {@link SWEEP_MS} with the coarse clock's time. */
  sweep(now: number): void;
}

/** Milliseconds of the coarse clock; never goes back, unrelated to the time of day. */
export function coarseNow(): number {
  return now;
}

/** Calls `sweep` regularly until the returned function is called. */
export function sweepRegularly(item: Swept): () => void {
  items.add(item);
  timer ??= start();
  return () => {
    items.delete(item);
    if (items.size === 0) {
      clearInterval(timer);
      clearImmediate(sweeping);
      timer = undefined;
    }
  };
}

/**
 * Calls `late` after so many milliseconds, and after data that is ready to be read by then, as in a sweep: for the few
 * deadlines that are not swept.
 *
 * @returns a function that cancels it
 */
export function whenLate(ms: number, late: () => void): () => void {
  let last: NodeJS.Immediate | undefined;
  const timer = setTimeout(() => (last = setImmediate(late)), ms);
  return () => {
    clearTimeout(timer);
    clearImmediate(last);
  };
}

/** How many things are swept. */
export const sweptItems = (): number => items.size;

let now = performance.now();
let timer: NodeJS.Timeout | undefined;
let sweeping: NodeJS.Immediate | undefined;
const items = new Set<Swept>();

function start(): NodeJS.Timeout {
  now = performance.now();
  const interval = setInterval(() => {
    now = performance.now();
    // After reads, as nginx expires its timers after its events. Node's timers run before reads: a process that was
    // stopped for longer than a timeout would end every client, although their data have arrived.
    sweeping = setImmediate(sweep);
  }, SWEEP_MS);
  // A sweep alone must not keep the process running.
  return interval.unref();
}

function sweep(): void {
  for (const item of items) guarded(item, item.sweep, now);
}
