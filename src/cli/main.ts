import { refuseDebugger } from "../runtime/supervisor/processes/noDebugger.js";

// Every process of Portico starts here, and this comes first.
refuseDebugger();

/*
 * Modules are loaded only where they are needed, because a start waits for two processes to load theirs: a worker needs
 * neither command line nor parser, and its master needs no protocols.
 */
// Not a command for users: `serve` starts its workers with it.
if (process.argv[2] === "worker")
  void import("../runtime/worker/worker.js").then(({ runWorker }) => runWorker());
else if (process.argv[2] === "as-owner") {
  // Nor is this: root uses a child that is not root to work in trees that others can change.
  void import("../host/asOwner/child.js").then(({ runAsOwner }) => runAsOwner(process.argv.slice(3)));
} else {
  // It starts while the master loads its own modules and the config.
  if (process.argv[2] === "serve")
    void import("../runtime/supervisor/processes/spareWorker.js").then((one) => one.prepareWorker());
  void import("./program.js")
    .then(({ run }) => run(process.argv.slice(2)))
    .then((code) => {
      process.exitCode = code;
    });
}

// esbuild takes a module without exports for CommonJS, and then wraps every module of the bundle.
export {}; // oxlint-disable-line typescript/no-useless-empty-export -- see above
