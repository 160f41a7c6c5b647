import { closeSync, openSync } from "node:fs";
import type { ErrorLevel } from "../exchange/exchange.js";

/**
 * Notices when a worker has no descriptor left. libuv then silently accepts and closes new connections (its EMFILE
 * trick, so that a full queue does not become a busy loop), and recovers when descriptors are free again. Without this
 * watch, no log would say why clients were turned away.
 */
export class DescriptorWatch {
  private lookAt = 0;
  private exhausted = false;

  constructor(private readonly log: (level: ErrorLevel, message: string) => void) {}

  sweep(now: number): void {
    if (now < this.lookAt) return;
    this.lookAt = now + LOOK_MS;
    const free = descriptorIsFree();
    if (!free && !this.exhausted) {
      const fix = "raise LimitNOFILE= in the service's unit (ulimit -n), or lower limits.connectionsMax";
      this.log("crit", `too many open files: new connections are closed until some are free; ${fix}`);
    }
    if (free && this.exhausted) this.log("warn", "files can be opened again: connections are accepted");
    this.exhausted = !free;
  }

  onFault(error: unknown): void {
    this.log("crit", `internal fault: ${(error as Error).stack}`);
  }
}

const LOOK_MS = 1_000;

function descriptorIsFree(): boolean {
  try {
    closeSync(openSync("/dev/null", "r"));
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code !== "EMFILE" && code !== "ENFILE";
  }
}
