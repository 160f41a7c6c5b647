import type { Exchange } from "./exchange.js";
import type { LogFiles } from "./logs.js";

/** Something whose code runs because a socket, a timer or the end of a turn called it. */
export interface Guarded {
  /** Code of this one threw: ends what it was doing, and nothing else. Must not throw. */
  onFault(error: unknown): void;
}

/**
 * Runs a step of something that the event loop called. Nobody is behind it who could catch: without this an exception would
 * end the worker, and with it every connection it has.
 */
export function guarded<T extends Guarded>(owner: T, step: (this: T) => void): void;
export function guarded<T extends Guarded, A>(
  owner: T,
  step: (this: T, argument: A) => void,
  argument: A,
): void;
export function guarded<T extends Guarded, A>(
  owner: T,
  step: (this: T, argument?: A) => void,
  argument?: A,
): void {
  try {
    step.call(owner, argument);
  } catch (error) {
    owner.onFault(error);
  }
}

/** The faults of a worker: exceptions in its own code, as against what peers do wrong. */
export class Faults {
  /** How many there were since the worker began. */
  count = 0;

  constructor(private readonly logs: LogFiles) {}

  /** Logs an exception as ours, with its stack. @param exchange that it happened in */
  report(error: unknown, exchange?: Exchange): void {
    this.count++;
    const stack = error instanceof Error ? error.stack : String(error);
    const log = exchange?.route?.errorLog ?? this.logs.mainError;
    log.write("crit", `internal fault ${this.count} of this worker: ${stack}`, exchange);
  }

  /**
   * Reports an exception, and ends what it happened in.
   *
   * @param end ends it in good order
   * @param cut ends it if that throws as well
   */
  contain(error: unknown, exchange: Exchange | undefined, end: () => void, cut: () => void): void {
    this.report(error, exchange);
    try {
      end();
    } catch (second) {
      this.report(second, exchange);
      cut();
    }
  }
}
