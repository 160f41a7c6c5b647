import { type EventEmitter, once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * How tests wait: for something to hold, or for a number to stand still; and how all of the process waits. Plain time
 * is `setTimeout` of `node:timers/promises`.
 */

export interface Waiting {
  /** What was there instead, for the error. Default: nothing. */
  readonly seen?: () => string;
  /** How long at most, in milliseconds. Default 60,000. */
  readonly ms?: number;
  /** How long between two looks, in milliseconds. Default 5. */
  readonly everyMs?: number;
}

/**
 * Waits until something holds.
 *
 * @param what reads on from "waited in vain"; default: the condition itself
 * @throws if it takes too long, with what it waited for and what was there
 */
export async function eventually(
  holds: () => boolean | Promise<boolean>,
  what = `for ${holds}`,
  { seen = () => "", ms = 60_000, everyMs = 5 }: Waiting = {},
): Promise<void> {
  const end = Date.now() + ms;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`waited ${ms} ms in vain ${what}: ${seen()}`);
    await sleep(everyMs);
  }
}

/**
 * Waits for an event of a stream, socket or request, as `once` of `node:events` does.
 *
 * @throws also if the emitter is closed first: a test says so at once, and does not wait until its time is over
 */
export async function nextEvent(emitter: EventEmitter, event: string): Promise<unknown[]> {
  const early = `closed before "${event}"`;
  if ((emitter as { closed?: boolean }).closed) throw new Error(early);
  const settled = new AbortController();
  const { signal } = settled;
  const closed = once(emitter, "close", { signal }).then(() => Promise.reject(new Error(early)));
  try {
    return (await Promise.race([once(emitter, event, { signal }), closed])) as unknown[];
  } finally {
    settled.abort();
  }
}

/** What several wait for: all of them look again whenever something has changed. */
export class Changes {
  private readonly waiting = new Set<() => void>();

  /** Something has changed. */
  tell(): void {
    for (const look of [...this.waiting]) look();
  }

  /**
   * Resolves once something holds.
   *
   * @param ms how long at most. Default: for ever
   * @param seen what was there instead, for the error
   */
  until(holds: () => boolean, ms?: number, seen: () => string = () => ""): Promise<void> {
    return new Promise((resolve, reject) => {
      const late = (): void => {
        this.waiting.delete(look);
        reject(new Error(`nothing such within ${ms} ms${seen()}`));
      };
      const timer = ms === undefined ? undefined : setTimeout(late, ms);
      const look = (): void => {
        if (!holds()) return;
        clearTimeout(timer);
        this.waiting.delete(look);
        resolve();
      };
      this.waiting.add(look);
      look();
    });
  }
}

export interface Standing {
  /** How much it may grow between two looks. Default 0. */
  readonly by?: number;
  /** How many looks in a row find the same. Default 20. */
  readonly looks?: number;
  /** How long between two looks, in milliseconds. Default 10. */
  readonly everyMs?: number;
}

/** Waits until a number has stopped growing. */
export async function settled(
  value: () => number,
  { by = 0, looks = 20, everyMs = 10 }: Standing = {},
): Promise<void> {
  for (let same = 0, last = value(); same < looks;) {
    await sleep(everyMs);
    const now = value();
    same = now - last <= by ? same + 1 : 0;
    last = Math.max(last, now);
  }
}

/** Neither timers nor sockets of this process have their turn for so many milliseconds. */
export function stall(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
