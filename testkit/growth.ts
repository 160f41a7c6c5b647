/** Whether a time grows with the length of what somebody hostile wrote, or with its square. */

/** A hostile text: a beginning, many times the middle, an end on which it fails. */
export const pumped = (begin: string, middle: string, end: string, bytes = 100_000): string =>
  begin + middle.repeat(Math.ceil(bytes / middle.length)) + end;

/** The least processor time of three runs, in milliseconds; a hopeless first one is not repeated. */
export function cpuMs(max: number, work: () => unknown): number {
  let least = Infinity;
  for (let i = 0; i < 3 && least > max; i++) {
    const begin = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(begin);
    least = Math.min(least, (user + system) / 1000);
  }
  return least;
}
