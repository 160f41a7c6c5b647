/** Numbers as people read them; the same on the page and in a terminal. */

/** `0 B`, `999 B`, `1.23 kB`, `45.6 MB`: three digits, by powers of 1000. */
export function bytesText(bytes: number): string {
  let value = Math.max(0, bytes);
  let unit = 0;
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1_000;
    unit++;
  }
  return `${unit === 0 ? Math.round(value) : digits(value)} ${UNITS[unit]}`;
}

const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];

/** `0`, `0.25`, `12.4`, `1 240`: a number of things, or of things a second. */
export function countText(count: number): string {
  if (count >= 999.5) return grouped(Math.round(count));
  return count === 0 || Number.isInteger(count) ? String(count) : digits(count);
}

const digits = (value: number): string => {
  if (value < 0.005) return "0";
  return value < 9.995
    ? trimmed(value.toFixed(2))
    : value < 99.95
      ? trimmed(value.toFixed(1))
      : value.toFixed(0);
};

/** Removes the zeros at the end of a fraction. */
const trimmed = (text: string): string => text.replace(/0{1,2}$/, "").replace(/\.$/, "");

function grouped(count: number): string {
  const rest = String(count % 1_000);
  return count < 1_000 ? rest : `${grouped(Math.floor(count / 1_000))}\u202f${rest.padStart(3, "0")}`;
}

/** `4 s`, `3 min 12 s`, `2 h 5 min`, `3 d 4 h`. */
export function durationText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  const [minutes, hours, days] = [60, 3_600, 86_400].map((length) => Math.floor(seconds / length)) as [
    number,
    number,
    number,
  ];
  if (days > 0) return two(days, "d", hours % 24, "h");
  if (hours > 0) return two(hours, "h", minutes % 60, "min");
  if (minutes > 0) return two(minutes, "min", seconds % 60, "s");
  return `${seconds} s`;
}

const two = (large: number, unit: string, small: number, smallUnit: string): string =>
  small === 0 ? `${large} ${unit}` : `${large} ${unit} ${small} ${smallUnit}`;

/** `1 server`, `2 servers` */
export const plural = (count: number, noun: string): string =>
  `${countText(count)} ${noun}${count === 1 ? "" : "s"}`;

/** `2026-03-01 12:30:05 UTC` */
export const timeText = (at: number): string =>
  `${new Date(at).toISOString().slice(0, 19).replace("T", " ")} UTC`;

/** `in 12 days`, `today`, `3 days ago` */
export function daysText(days: number): string {
  if (days === 0) return "within a day";
  return days > 0 ? `in ${plural(days, "day")}` : `${plural(-days, "day")} ago`;
}
