import { printableValue } from "../../model/printable.js";

/** What somebody has to look at, in words. */
export interface Notice {
  /** What it is about; notices with the same key are the same thing. Names of the config, never what a client sent. */
  readonly key: string;
  /** One line without a full stop. */
  readonly what: string;
  /** What to do about it. */
  readonly fix: string;
}

/** A notice as targets are told it. */
export interface Told extends Notice {
  /** `problem`: it goes on. `resolved`: no more. `event`: it happened, and is over. */
  readonly state: "problem" | "resolved" | "event";
  /** When it began, in milliseconds since 1970. */
  readonly since: number;
}

/** Words of authorities, upstreams and root's commands may contain anything, and be of any length. */
export function cleaned({ key, what, fix }: Notice): Notice {
  return { key: short(key, KEY_MAX), what: short(what, TEXT_MAX), fix: short(fix, TEXT_MAX) };
}

/** A half of a surrogate pair has no place in JSON that others read. */
const short = (text: string, max: number): string => {
  const shown = printableValue(text);
  const cut = shown.length > max ? `${shown.slice(0, max)}…` : shown;
  return Buffer.from(cut).toString();
};

const KEY_MAX = 300;
const TEXT_MAX = 600;
