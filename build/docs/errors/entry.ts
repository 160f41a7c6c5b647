import type { Problem } from "../../../src/model/index.js";

/** What `docs/errors.md` says about a code, besides its fix. */
export interface ErrorEntry {
  /** What it means, and what users should know about it. */
  readonly means: string;
  /** Code that causes it. */
  readonly cause?: string;
  /** A problem with the code, made by the real source of such problems if that is possible here. */
  readonly example: () => Problem | Promise<Problem>;
}
