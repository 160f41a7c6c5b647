import { parentPort } from "node:worker_threads";
import { hashSync } from "bcryptjs";
import type { BcryptInput } from "./bcrypt.js";

// Builds turn this module, with all that it imports, into a text (build/bundle.ts), which `bcrypt.ts` starts as a thread.

parentPort!.on("message", ({ password, setting }: BcryptInput) => {
  parentPort!.postMessage(hashSync(password, setting));
});
