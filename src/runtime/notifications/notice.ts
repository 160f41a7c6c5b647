import { type FaultFacts, faultsOf } from "../../model/faults.js";
import { printableValue } from "../../model/text/printable.js";

/** A message for the operator. */
export interface Notice {
  /** The subject: notices with the same key are about the same thing. Has names of the config, no text of clients. */
  readonly key: string;
  /** A line without a full stop. */
  readonly what: string;
  /** The fix, as a sentence. */
  readonly fix: string;
}

/** A notice as it is sent to targets. */
export interface SentNotice extends Notice {
  /** `problem`: it continues. `resolved`: it is over. `event`: it happened once. */
  readonly state: "problem" | "resolved" | "event";
  /** When it began, in milliseconds since 1970. */
  readonly since: number;
}

/** The notices of faults. @param kind of notices; all others are for other checks */
export const noticesOf = (kind: string, facts: FaultFacts): readonly Notice[] =>
  faultsOf(facts, ({ notification }) => notification === kind).map(({ subject, text, fix }) => ({
    key: `${kind}/${subject}`,
    what: text,
    fix: fix!,
  }));

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
