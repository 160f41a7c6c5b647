/** Work that is done one at a time, or a few at a time, in the order it was asked for. */
export class Queue {
  private readonly waiting: (() => void)[] = [];

  /** @param free how much is done at a time */
  constructor(private free = 1) {}

  /** Does it when its turn comes, never at once; what comes next does not mind whether it fails. */
  async do<T>(work: () => T | Promise<T>): Promise<T> {
    const leave = await this.enter();
    try {
      return await work();
    } finally {
      leave();
    }
  }

  /** Resolves when its turn comes, with what ends it. */
  async enter(): Promise<() => void> {
    if (this.free > 0) this.free -= 1;
    else await new Promise<void>((resolve) => this.waiting.push(resolve));
    return () => {
      const next = this.waiting.shift();
      if (next === undefined) this.free += 1;
      else next();
    };
  }
}
