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
