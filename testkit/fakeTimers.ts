/** Timeouts and intervals pass when a test says so; processes and sockets, which are real, go on as ever. */
export const ONLY_TIMEOUTS: Parameters<typeof jest.useFakeTimers>[0] = {
  doNotFake: [
    "nextTick",
    "setImmediate",
    "clearImmediate",
    "queueMicrotask",
    "performance",
    "Date",
    "hrtime",
  ],
};

/** Whether a promise is settled, after what is ready now has run. */
export async function isDone(promise: Promise<unknown>): Promise<boolean> {
  let done = false;
  void promise.then(() => (done = true));
  for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve));
  return done;
}
