const { existsSync, readFileSync, renameSync, writeFileSync } = require("node:fs");
const { dirname } = require("node:path");
const { Script } = require("node:vm");

/**
 * Runs a script with what V8 compiled of it in an earlier process of this run: a seventh of a start. The first process
 * that ends by itself keeps it. V8 compares no more than the length of a script: a path has one text for all of a run.
 */
module.exports = (file) => {
  const compiled = `${file}.compiled`;
  const code = `(function (require, module, exports, __filename, __dirname) {${readFileSync(file, "utf8")}\n})`;
  const cachedData = existsSync(compiled) ? readFileSync(compiled) : undefined;
  const script = new Script(code, { filename: file, cachedData });
  if (cachedData === undefined) process.once("exit", () => keep(script, compiled));
  const main = { exports: {} };
  script.runInThisContext()(require, main, main.exports, file, dirname(file));
};

function keep(script, compiled) {
  try {
    const own = `${compiled}.${process.pid}`;
    writeFileSync(own, script.createCachedData());
    renameSync(own, compiled);
  } catch {
    // One that has become another user may not write here, and one after it may.
  }
}
