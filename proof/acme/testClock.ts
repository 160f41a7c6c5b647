import type { Clock } from "../../src/runtime/acme/clock.js";
import { systemClock } from "../../src/runtime/acme/clock.js";

/** The real time, which a test sets forward or back; who waits for a time that has come by this goes on at once. */
export class TestClock implements Clock {
  private ahead = 0;
  /** Timers do not follow a clock that is set back. */
  private skipped = 0;
  private readonly sleepers = new Set<() => void>();

  now(): number {
    return Date.now() + this.ahead;
  }

  elapsed(): number {
    return Date.now() + this.skipped;
  }

  async wait(ms: number, signal: AbortSignal): Promise<void> {
    const until = this.elapsed() + ms;
    while (!signal.aborted && this.elapsed() < until) {
      const changed = new AbortController();
      const wake = (): void => changed.abort();
      this.sleepers.add(wake);
      signal.addEventListener("abort", wake);
      await systemClock.wait(until - this.elapsed(), changed.signal);
      signal.removeEventListener("abort", wake);
      this.sleepers.delete(wake);
    }
  }

  /** @param ms negative to go back */
  advance(ms: number): void {
    this.ahead += ms;
    this.skipped += Math.max(0, ms);
    for (const wake of [...this.sleepers]) wake();
  }
}
