import { type Command, InvalidArgumentError } from "commander";
import { secondsOf } from "../model/text/duration.js";

/** The config a command works on: see `sourceOf`. */
export function withSource(command: Command): Command {
  return command
    .argument("[FILE]", "the config; - is standard input")
    .option("--root <DIR>", "directory to use as the host's /, for the default FILE and the config's paths");
}

/** A number for an option, or a usage error. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max) {
      throw new InvalidArgumentError(`Give a whole number from ${min} to ${max}.`);
    }
    return value;
  };
}

/** A length of time for an option, in milliseconds, or a usage error. */
export function duration(maxMs: number): (text: string) => number {
  return (text) => {
    const ms = (secondsOf(text) ?? Infinity) * 1_000;
    if (ms > maxMs)
      throw new InvalidArgumentError("Give a duration of at most a day, such as 90s, 10m or 2h.");
    return ms;
  };
}

/** A moment for an option, in milliseconds since 1970, or a usage error. */
export function moment(text: string): number {
  const time = momentOf(text, new Date());
  if (time !== undefined && time > Date.now()) return time;
  throw new InvalidArgumentError(
    "Give a time of day such as 14:30, a future time such as 2026-05-17T14:30, or a duration such as 30m.",
  );
}

/** A time of day is the next one, today or tomorrow, by the clock of this host. */
function momentOf(text: string, now: Date): number | undefined {
  const length = secondsOf(text);
  if (length !== undefined) return now.getTime() + length * 1_000;
  const [, hours, minutes] = /^([01]?\d|2[0-3]):([0-5]\d)$/.exec(text) ?? [];
  if (hours !== undefined) {
    const day = new Date(now).setHours(Number(hours), Number(minutes), 0, 0);
    return day > now.getTime() ? day : new Date(day).setDate(new Date(day).getDate() + 1);
  }
  if (!/^\d{4}-\d\d-\d\d[T ]\d\d:\d\d/.test(text)) return undefined;
  const time = Date.parse(text);
  return Number.isNaN(time) ? undefined : time;
}
