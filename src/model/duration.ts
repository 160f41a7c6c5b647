const SECONDS = { s: 1, m: 60, h: 3600 } as const;

/** Seconds of `90s`, `30m` or `10h`; undefined for other texts. */
export function secondsOf(duration: string): number | undefined {
  const [, count, unit] = /^([1-9]\d{0,6})([smh])$/.exec(duration) ?? [];
  return count === undefined ? undefined : Number(count) * SECONDS[unit as keyof typeof SECONDS];
}
