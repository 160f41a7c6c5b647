import { Worker } from "node:worker_threads";
import type { BcryptInput } from "./bcryptThread.js";

type BcryptDone = (error: Error | null, hash?: Buffer) => void;

/**
 * Hashes passwords by bcrypt, one after the other, in a thread: Node has no bcrypt, and JavaScript beside the event loop
 * would hold up every request. The thread starts with the first password, and ends when there was none for a minute.
 */
export class BcryptThread {
  private thread: Worker | undefined;
  private hasBegun = false;
  /** In the order in which the thread gets them. */
  private readonly waiting: { readonly input: BcryptInput; readonly done: BcryptDone }[] = [];
  private idle: NodeJS.Timeout | undefined;

  /** @param done gets the text of the hash, or why the thread ended before */
  hash(input: BcryptInput, done: BcryptDone): void {
    clearTimeout(this.idle);
    this.waiting.push({ input, done });
    this.thread?.postMessage(input);
    if (this.hasBegun) return;
    this.hasBegun = true;
    this.begin().catch((error: Error) => this.onEnd(error));
  }

  private async begin(): Promise<void> {
    // A text and not a file: the deployed runtime is a single file, which an upgrade may have replaced meanwhile.
    const { default: script } = await import("./bcryptThread.js?text");
    // Options and environment of the process may load other code into every thread, so this one has neither.
    const thread = new Worker(script, { eval: true, execArgv: [], env: {} });
    let why: Error | undefined;
    thread
      .on("message", (hash: string) => this.onHash(hash))
      .on("error", (error: Error) => (why = error))
      .on("exit", (code) => {
        if (this.thread === thread)
          this.onEnd(why ?? new Error(`the thread of bcrypt ended with code ${code}`));
      });
    // Requests keep the process running, and not their passwords. A listener of messages would undo this.
    thread.unref();
    this.thread = thread;
    for (const { input } of this.waiting) thread.postMessage(input);
  }

  private onHash(hash: string): void {
    this.waiting.shift()!.done(null, Buffer.from(hash));
    if (this.waiting.length > 0) return;
    this.idle = setTimeout(() => {
      const { thread } = this;
      this.forget();
      void thread!.terminate();
    }, IDLE_MS).unref();
  }

  private onEnd(why: Error): void {
    clearTimeout(this.idle);
    this.forget();
    for (const { done } of this.waiting.splice(0)) done(why);
  }

  /** The next password starts another thread. */
  private forget(): void {
    this.thread = undefined;
    this.hasBegun = false;
  }
}

const IDLE_MS = 60_000;
