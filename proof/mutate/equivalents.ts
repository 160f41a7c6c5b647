import type { Fault } from "./faults.js";

/** Faults that change nothing anybody could see, with the reason; by what they replace, so that other edits move nothing. */
const EQUIVALENTS: readonly {
  readonly file: string;
  readonly from: string;
  readonly to: string;
  readonly why: string;
}[] = [];

/** Why a fault changes nothing; undefined if it does. */
export function equivalence(fault: Fault): string | undefined {
  return EQUIVALENTS.find(
    ({ file, from, to }) => file === fault.file && from === fault.from && to === fault.to,
  )?.why;
}
