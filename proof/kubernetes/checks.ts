import { setTimeout as sleep } from "node:timers/promises";

export interface Check {
  readonly check: string;
  /** When it began, in milliseconds of Date.now(). */
  readonly at: number;
  readonly seconds: number;
  /** What was seen, or why it failed. */
  readonly seen: string;
  readonly passed: boolean;
}

/** Named checks, one after the other; one that fails does not keep the next from running. */
export class Checks {
  readonly all: Check[] = [];

  /** @param work gives what it saw; throws if that is not what should be seen */
  async run(check: string, work: () => string | Promise<string>): Promise<void> {
    const at = Date.now();
    const judged = await Promise.race([Promise.resolve().then(work), tooLong()]).then(
      (seen) => ({ seen, passed: true }),
      (error: Error) => ({ seen: error.message, passed: false }),
    );
    const seconds = Math.round((Date.now() - at) / 100) / 10;
    this.all.push({ check, at, seconds, ...judged });
    console.log(`${judged.passed ? "ok  " : "FAIL"} ${check} (${seconds} s): ${judged.seen}`);
  }

  get passed(): boolean {
    return this.all.every(({ passed }) => passed);
  }
}

const CHECK_MS_MAX = 150_000;

async function tooLong(): Promise<never> {
  await sleep(CHECK_MS_MAX, undefined, { ref: false });
  throw new Error(`took longer than ${CHECK_MS_MAX / 1000} s`);
}

/** @throws unless it holds */
export function demand(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new Error(otherwise);
}
