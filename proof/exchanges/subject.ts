import type { Lane } from "./lane.js";

/** What cases are played on. */
export interface Subject {
  readonly lanes: readonly Pick<Lane, "play" | "underWay">[];
  /** Process ids of the workers: another one takes the place of one that died. */
  workers(): string;
  /** The whole error log, once all that was logged so far is in it. */
  errorLog(): Promise<string>;
  /** Waits until it holds nothing that it did not hold at first. @returns what it still does after that time */
  atRest(patienceMs: number): Promise<string[]>;
  /** Has the config loaded anew; resolves when only the new workers accept, with what went wrong. */
  reload(): Promise<string[]>;
  /** Resolves with the process ids when the old ones have gone. */
  reloaded(): Promise<string>;
  /** Lets one client take all that it can get. @returns whether another one is not served meanwhile */
  unfair(): Promise<string[]>;
  /** Begins to measure for how long its event loop stands still; ends with the longest time, in milliseconds. */
  watch(): () => Promise<number>;
}
