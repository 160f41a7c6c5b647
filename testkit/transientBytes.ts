import { ReceiveBuffer } from "../src/runtime/sockets/receiveBuffer.js";

/**
 * Overwrites the shared receive buffer after every read whose bytes were called transient, so that whoever keeps such
 * bytes without a copy serves nonsense at once, and not only when two connections meet. For tests: who imports this file
 * has it, and nothing of it is in the runtime.
 */
const { next } = ReceiveBuffer.prototype;
const shared = new ReceiveBuffer().first;

/** How many reads were overwritten. */
export const overwritten = { reads: 0 };

ReceiveBuffer.prototype.next = function (this: ReceiveBuffer) {
  if (this.transient) {
    shared.fill(NONSENSE);
    overwritten.reads++;
  }
  return next.call(this);
};

/** No letter, digit, white space or frame of any protocol here. */
const NONSENSE = 0xdb;
