import { existsSync } from "node:fs";
import { formatProblem } from "../../src/model/index.js";
import { loadConfig, runWorker, serve } from "../../src/runtime/index.js";
import "./transientBytes.js";

/** What the lifecycle tests start: `serve FILE`, `worker`, `check FILE`, and ways to go wrong. */
const [, , command, file = ""] = process.argv;

if (command === "worker") {
  if (existsSync(process.env["TEST_WORKERS_FAIL"] ?? "")) process.exit(3);
  process.on("SIGUSR2", () => {
    throw new Error("a fault for the test");
  });
  runWorker();
} else if (command === "check") {
  void loadConfig({ file }).then((result) => {
    const problems = result.ok ? result.value.warnings : result.problems;
    process.stdout.write(problems.map((p) => `${formatProblem(p)}\n`).join(""));
  });
} else {
  // The natural end of the process shows that nothing is left that would hold it.
  void serve({ file }).then((code) => {
    process.exitCode = code;
  });
  if (process.env["TEST_STOP_AT_START"] !== undefined) process.kill(process.pid, "SIGTERM");
}
