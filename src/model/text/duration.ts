export const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

const SECONDS = { s: 1, m: 60, h: 3600 } as const;

/** Seconds of `90s`, `30m` or `10h`; undefined for other texts. */
export function secondsOf(duration: string): number | undefined {
  const [, count, unit] = /^([1-9]\d{0,6})([smh])$/.exec(duration) ?? [];
  return count === undefined ? undefined : Number(count) * SECONDS[unit as keyof typeof SECONDS];
}
