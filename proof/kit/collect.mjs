// Loaded into every process of a front end (--import): on SIGPWR it collects all garbage and writes what is left to a
// file. What a process holds is known then, whatever its collector has not got to yet.
import { renameSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import v8 from "node:v8";
import vm from "node:vm";

v8.setFlagsFromString("--expose-gc");
const collect = vm.runInNewContext("gc");

process.on("SIGPWR", () => {
  // What the first one finds dead may be all that holds other things, by finalizers.
  collect();
  setImmediate(() => {
    collect();
    const file = join(tmpdir(), `portico-collected-${process.pid}.json`);
    writeFileSync(`${file}.new`, JSON.stringify(process.memoryUsage()));
    renameSync(`${file}.new`, file);
  });
});
