import { runWorker } from "../runtime/worker.js";
import { run } from "./program.js";

// Not a command for people: `serve` starts its workers with it, and they have no use for a command line.
if (process.argv[2] === "worker") runWorker();
else {
  void run(process.argv.slice(2)).then((code) => {
    process.exitCode = code;
  });
}
