import { lookup, type LookupAllOptions, type LookupOptions } from "node:dns";
import type { LookupFunction } from "node:net";
import { Queue } from "../queue.js";

type Callback = Parameters<LookupFunction>[2];

/**
 * Looks up the name of one upstream, once at a time for all connections that are being made. Node looks names up in
 * threads that also read files, of which there are four: a resolver that hangs would soon have all of them, and with one
 * lookup for each request a backlog that lasts long after the resolver responds again.
 */
export class SharedLookup {
  private waiting: Callback[] | undefined = undefined;

  /** The function that `net.connect` takes: the name and the options of an upstream's connections are always the same. */
  readonly lookup: LookupFunction = (name: string, options: LookupOptions, callback: Callback): void => {
    if (this.waiting !== undefined) return void this.waiting.push(callback);
    this.waiting = [callback];
    void turns.enter().then((leave) =>
      lookup(name, options as LookupAllOptions, (...result) => {
        leave();
        const { waiting } = this;
        this.waiting = undefined;
        for (const each of waiting!) each(...result);
      }),
    );
  };
}

/** All upstreams together use half of Node's threads: the other threads read files and write logs. */
const turns = new Queue(2);
