import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/**
 * Has V8 collect all garbage, some time from now. A start and a reload leave several MB, and a master allocates so little
 * afterwards that V8 would keep them.
 */
export function collectGarbageSoon(): void {
  clearTimeout(timer);
  timer = setTimeout(() => {
    // Only contexts that are made from then on have the function.
    setFlagsFromString("--expose-gc");
    (runInNewContext("gc") as () => void)();
  }, SOON_MS).unref();
}

let timer: NodeJS.Timeout | undefined;

/** Workers that start need the processors more. */
const SOON_MS = 2_000;
