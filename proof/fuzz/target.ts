/** Something that takes bytes of strangers. */
export interface FuzzTarget {
  readonly name: string;
  /** What is worth putting into an input: words of its syntax. */
  readonly dictionary: readonly string[];
  /**
   * Runs one input, and checks everything that must hold of any.
   * @throws Violation, or whatever else was thrown though it should not be
   */
  run(input: Buffer): void;
}

/** Something that must hold, and does not. */
export class Violation extends Error {}

export function demand(holds: boolean, what: string, seen?: unknown): asserts holds {
  if (!holds) throw new Violation(seen === undefined ? what : `${what}: ${JSON.stringify(seen)}`);
}
