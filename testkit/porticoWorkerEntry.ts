import { existsSync } from "node:fs";

/** The workers that the lifecycle tests start. */

if (existsSync(process.env["TEST_WORKERS_FAIL"] ?? "")) process.exit(3);
process.on("SIGWINCH", () => {
  throw new Error("a fault for the test");
});
void import("../src/runtime/worker/worker.js").then(({ runWorker }) => runWorker());
