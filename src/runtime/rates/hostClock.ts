/** The monotonic clock of the host: the same in all processes, unlike `performance.now()`, and never set. In milliseconds. */
export const hostNow = (): number => performance.now() + offset;

const [seconds, nanoseconds] = process.hrtime();
const offset = seconds * 1_000 + nanoseconds / 1_000_000 - performance.now();
