import { onePiece } from "./onePiece.js";

/** Finds the first of several with the same name, for lines of a log. Bounded, because clients choose the names. */
export class FirstOfName {
  private readonly seen = new Set<string>();

  isFirst(name: string): boolean {
    if (this.seen.size >= NAMES_MAX || name.length > CHARACTERS_MAX || this.seen.has(name)) return false;
    // Copied, because a slice of a head would keep the whole head in memory.
    this.seen.add(onePiece(name));
    return true;
  }
}

const NAMES_MAX = 64;
const CHARACTERS_MAX = 64;
