/** Something whose code runs because a socket, a timer or the end of a turn called it. */
export interface Guarded {
  /** The code threw: ends the current operation, and nothing else. Must not throw. */
  onFault(error: unknown): void;
}

/**
 * Runs a step that the event loop called. No caller could catch an exception: without this it would end the worker, and
 * with it all its connections.
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
