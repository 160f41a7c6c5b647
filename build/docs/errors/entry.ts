import type { Problem } from "../../../src/model/index.js";

/** What `docs/errors.md` says of a code, beside its fix. */
export interface ErrorEntry {
  /** What it means, and what it is good for to know. */
  readonly means: string;
  /** What brings it about, as code. */
  readonly cause?: string;
  /** A problem with the code, made by what makes it in earnest wherever that is possible here. */
  readonly example: () => Problem | Promise<Problem>;
}
