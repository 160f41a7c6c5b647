/** The time, as everything here gets it: tests set their own. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Milliseconds that no setting of the time changes: for what may take so long, and no longer. */
  elapsed(): number;
  /** Resolves after a time, or as soon as the signal is given. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  wait: (ms, signal) =>
    new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const done = (): void => {
        clearTimeout(timer);
        signal.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      signal.addEventListener("abort", done);
    }),
};

/** Waits for something that knows no signal. @throws the signal's reason, as soon as it is given */
export async function unlessAborted(done: Promise<void> | undefined, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const waiting = new AbortController();
  const aborted = new Promise<void>((resolve) =>
    signal.addEventListener("abort", () => resolve(), { signal: waiting.signal }),
  );
  await Promise.race([done, aborted]).finally(() => waiting.abort());
  signal.throwIfAborted();
}
