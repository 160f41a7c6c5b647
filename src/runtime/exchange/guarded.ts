/** Something whose code runs because a socket, a timer or the end of a turn called it. */
export interface Guarded {
  /** Code of this one threw: ends what it was doing, and nothing else. Must not throw. */
  onFault(error: unknown): void;
}

/**
 * Runs a step of something that the event loop called. Nothing above it could catch: without this an exception would
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
