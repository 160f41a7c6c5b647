import type { Socket } from "node:net";

/**
 * Counts the client connections of a worker, over all its listeners, and refuses those beyond the limit.
 * The one place that knows when the last of them is gone.
 */
export class ConnectionGate {
  private open = 0;
  private warnedAt = -Infinity;
  private waiting: (() => void)[] = [];

  /** @param warn called at most once a minute, however many connections are refused */
  constructor(
    private readonly connectionsMax: number,
    private readonly warn: (message: string) => void,
  ) {}

  /** True if the connection may stay; else it is closed already. */
  admit(socket: Socket): boolean {
    if (this.open >= this.connectionsMax) {
      socket.destroy();
      this.warnOfLimit();
      return false;
    }
    this.open++;
    socket.once("close", this.closed);
    return true;
  }

  /** Resolves when no connection is open. */
  empty(): Promise<void> {
    return this.open === 0 ? Promise.resolve() : new Promise((resolve) => this.waiting.push(resolve));
  }

  private readonly closed = (): void => {
    this.open--;
    if (this.open > 0) return;
    for (const resolve of this.waiting.splice(0)) resolve();
  };

  private warnOfLimit(): void {
    const now = performance.now();
    if (now - this.warnedAt < WARN_MS) return;
    this.warnedAt = now;
    this.warn(`limits.connectionsMax (${this.connectionsMax}) is reached: new connections are closed`);
  }
}

const WARN_MS = 60_000;
