/*
 * Modules are loaded by who needs them, since `serve` waits for two processes to load theirs, one after the other: a
 * worker has no use for a command line and a parser, and its master none for protocols.
 */
// Not a command for people: `serve` starts its workers with it.
if (process.argv[2] === "worker")
  void import("../runtime/process/worker.js").then(({ runWorker }) => runWorker());
else if (process.argv[2] === "as-owner") {
  // Nor this: what root does in trees that others can change is done by a child that is not root.
  void import("../asOwner/child.js").then(({ runAsOwner }) => runAsOwner(process.argv.slice(3)));
} else {
  void import("./program.js")
    .then(({ run }) => run(process.argv.slice(2)))
    .then((code) => {
      process.exitCode = code;
    });
}
