import { parentPort } from "node:worker_threads";
import { hashSync } from "bcryptjs";

// Builds turn this module, with all that it imports, into a text (build/bundle.ts), which `bcrypt.ts` starts as a thread.

/** What a password is hashed with. */
export interface BcryptInput {
  readonly password: string;
  /** Version, cost and salt, as they begin the text of a hash. */
  readonly setting: string;
}

parentPort!.on("message", ({ password, setting }: BcryptInput) => {
  parentPort!.postMessage(hashSync(password, setting));
});
