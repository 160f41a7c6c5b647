// Loaded into every process of a front end (--require): on SIGPWR it collects all garbage and writes what is left to a
// file. What a process holds is known then, whatever its collector has not got to yet.
const { renameSync, writeFileSync } = require("node:fs");
const { tmpdir } = require("node:os");
const { join } = require("node:path");
const v8 = require("node:v8");
const vm = require("node:vm");

process.on("SIGPWR", () => {
  // Not at the start: with other flags than its own, Node compiles all of its code anew.
  v8.setFlagsFromString("--expose-gc");
  const collect = vm.runInNewContext("gc");
  // What the first one finds dead may be all that holds other things, by finalizers.
  collect();
  setImmediate(() => {
    collect();
    const file = join(tmpdir(), `portico-collected-${process.pid}.json`);
    writeFileSync(`${file}.new`, JSON.stringify(process.memoryUsage()));
    renameSync(`${file}.new`, file);
  });
});
