import { once } from "node:events";
import { join } from "node:path";
import { Worker } from "node:worker_threads";

/** Measures for how long the event loop of a proxy stands still: something small is asked for all the time. */
export class Pulse {
  private readonly thread = new Worker(join(__dirname, "pulse.js"));

  /** Asks for `/here` at a port of loopback from now on. */
  begin(port: number): void {
    this.thread.postMessage({ port });
  }

  /** Closes its connection. @returns the longest time that an answer took, in milliseconds */
  async end(): Promise<number> {
    const said = once(this.thread, "message") as Promise<[number]>;
    this.thread.postMessage({});
    return (await said)[0];
  }

  async stop(): Promise<void> {
    await this.thread.terminate();
  }
}
